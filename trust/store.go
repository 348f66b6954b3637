// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/internal/private"
)

// Grant is an agreement that a store keeps. The powers are for the content, wherever a file
// with it lies: what depends on a place is part of a power. The variables are for the file
// at Path alone, with this content: the person named hosts for them with this file in mind.
type Grant struct {
	At        time.Time  `json:"at"`
	Path      string     `json:"path"` // of the file when it was agreed to
	Hash      string     `json:"hash"` // of the claim
	Sources   []Source   `json:"sources"`
	Powers    Powers     `json:"powers"`
	Variables []Variable `json:"variables,omitzero"`
}

// GrantOf returns the grant of all powers of a claim.
func GrantOf(c Claim, at time.Time, variables ...Variable) Grant {
	return Grant{At: at.UTC().Truncate(time.Second), Path: c.Path, Hash: c.Hash(), Sources: c.Sources, Powers: c.Powers, Variables: variables}
}

// Agreement returns what the grant agrees to.
func (g *Grant) Agreement() Agreement { return Agreement{Powers: g.Powers, Variables: g.Variables} }

// Store keeps grants in a file of JSON lines, one grant a line, oldest first. Only its
// owner can read and write the file. A store is safe for concurrent use, also by
// several processes. A missing file is an empty store. The zero value has no file, and its
// methods return an error.
type Store struct{ path string }

var errNoFile = errors.New("trust: the store has no file: use Open")

// Open returns the store in the file at path. It does not read the file.
func Open(path string) *Store { return &Store{path} }

// Path returns the path of the store's file.
func (s *Store) Path() string { return s.path }

// lockTime is how long a change waits for another process. A change takes
// milliseconds.
const lockTime = 5 * time.Second

// maxStore and maxGrant limit the sizes of a store and of a line. Ours have a few hundred
// bytes a line, and a few megabytes if a file includes thousands of others.
const (
	maxStore = 512 << 20
	maxGrant = 16 << 20
)

// All returns all grants, oldest first, and holds one at a time in memory. The last pair has an
// error if the file cannot be read to its end. A file that others may write to is an error,
// because it says what may run on this machine.
func (s *Store) All() iter.Seq2[Grant, error] {
	return func(yield func(Grant, error) bool) {
		err := s.each(func(g *Grant, _ []byte) error {
			if !yield(*g, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Grant{}, err)
		}
	}
}

// errEnough means that a caller wants no more grants.
var errEnough = errors.New("enough")

// List returns all grants, oldest first. See [Store.All] for a store that may be large.
func (s *Store) List() (list []Grant, err error) {
	for g, err := range s.All() {
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

// each calls do with each grant and its line, oldest first, and holds one at a time. A line that is
// damaged is an error, also if it is not about what the caller looks for: nobody knows what it
// said. The line is valid until do returns. An error of do ends the reading.
func (s *Store) each(do func(g *Grant, line []byte) error) error {
	if s.path == "" {
		return errNoFile
	}
	info, err := os.Stat(s.path) // opening a pipe would wait for a writer
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: it is not a file\n  hint: move it away, and agree again to what is asked", s.path)
	}
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return err
	}
	if err := private.Check(info); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if info.Size() > maxStore {
		return fmt.Errorf("%s: it is larger than %d MiB\n  hint: move it away, and agree again to what is asked", s.path, maxStore>>20)
	}
	bad := func(line int, err error) error {
		return fmt.Errorf("%s:%d: not a grant of trust: %w\n  hint: remove the line, and agree again to what is asked", s.path, line, err)
	}
	lines, n := bufio.NewScanner(f), 1
	lines.Buffer(nil, maxGrant)
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		g, err := grantFrom(lines.Bytes())
		if err != nil {
			return bad(n, err)
		}
		if err := do(&g, lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return bad(n, fmt.Errorf("it is longer than %d MiB", maxGrant>>20))
	}
	return lines.Err()
}

// last returns the newest grant that is what the caller looks for.
func (s *Store) last(is func(*Grant) bool) (found Grant, ok bool, err error) {
	err = s.each(func(g *Grant, _ []byte) error {
		if is(g) {
			found, ok = *g, true
		}
		return nil
	})
	if err != nil {
		return Grant{}, false, err
	}
	return found, ok, nil
}

// grantFrom reads a line. The error has no words of Go.
func grantFrom(line []byte) (g Grant, err error) {
	var syntax *jsontext.SyntacticError
	switch err := json.Unmarshal(line, &g); {
	case errors.As(err, &syntax):
		return g, fmt.Errorf("it is not JSON at byte %d", syntax.ByteOffset)
	case err != nil:
		return g, errors.New("it has another form")
	}
	return g, g.check()
}

// check returns an error for a grant that is about no file.
func (g *Grant) check() error {
	switch hash, err := hex.DecodeString(g.Hash); {
	case err != nil || len(hash) != sha256.Size:
		return errors.New("its hash is missing or not one")
	case g.Path == "":
		return errors.New("its path is missing")
	}
	return nil
}

// Find returns the newest grant that covers the claim: of the same content, with all its
// powers. A grant at the claim's path comes first. One at another path is returned without
// its variables.
func (s *Store) Find(c Claim) (g Grant, ok bool, err error) {
	hash, here := c.Hash(), false
	g, ok, err = s.last(func(g *Grant) bool {
		if g.Hash != hash || here && g.Path != c.Path || len(c.Powers.Without(g.Powers)) > 0 {
			return false
		}
		here = here || g.Path == c.Path
		return true
	})
	if !here {
		g.Variables = nil
	}
	return g, ok, err
}

// Knows reports whether the store has a grant of the file at a source's path with the
// source's text, whatever else the grant is about.
func (s *Store) Knows(src Source) (bool, error) {
	_, ok, err := s.last(func(g *Grant) bool { return g.Path == src.Path && slices.Contains(g.Sources, src) })
	return ok, err
}

// Before returns the newest grant of a file at the same path, which may have been
// agreed to with another content.
func (s *Store) Before(path string) (g Grant, ok bool, err error) {
	return s.last(func(g *Grant) bool { return g.Path == path })
}

// Add keeps a grant. Grants of the same content at the same path share their variables, so
// that nothing that a person named is forgotten before [Store.Remove]. The new grant
// replaces those that have no other powers. A grant without a path or hash is an error.
func (s *Store) Add(ctx context.Context, g Grant) error {
	if err := g.check(); err != nil && s.path != "" {
		return fmt.Errorf("trust: not a grant: %w", err)
	}
	same := func(o *Grant) bool { return o.Hash == g.Hash && o.Path == g.Path }
	return s.change(ctx, func(w *writer) error {
		var named []Variable
		err := s.each(func(o *Grant, _ []byte) error {
			if same(o) {
				named = union(named, o.Variables)
			}
			return nil
		})
		if err != nil {
			return err
		}
		g.Variables = union(named, g.Variables)
		err = s.each(func(o *Grant, line []byte) error {
			switch {
			case !same(o):
				return w.keep(line)
			case len(o.Powers.Without(g.Powers)) == 0:
				return nil
			}
			o.Variables = g.Variables
			return w.add(o)
		})
		if err != nil {
			return err
		}
		return w.add(&g)
	})
}

// union returns the variables of two lists, each once, in their order.
func union(a, b []Variable) (list []Variable) {
	for _, v := range slices.Concat(a, b) {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Remove removes the grants that match, and returns them.
func (s *Store) Remove(ctx context.Context, match func(Grant) bool) (removed []Grant, err error) {
	err = s.change(ctx, func(w *writer) error {
		err := s.each(func(g *Grant, line []byte) error {
			if match(*g) {
				removed = append(removed, *g)
				return nil
			}
			return w.keep(line)
		})
		if err == nil && len(removed) == 0 {
			return errSame
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return removed, nil
}

// errSame means that a change changes nothing.
var errSame = errors.New("nothing to change")

// change replaces the file by what do writes. A crash leaves the old file or the new one. The
// result is that of the change: a lock that cannot be released ends with the process.
func (s *Store) change(ctx context.Context, do func(*writer) error) error {
	if s.path == "" {
		return errNoFile
	}
	lock, err := filelock.TakeWithin(ctx, s.path+".lock", lockTime) // makes the folder too
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	defer func() { _ = lock.Release() }()
	err = replace(s.path, func(f io.Writer) error {
		w := &writer{bufio.NewWriterSize(f, 1<<20)}
		if err := do(w); err != nil {
			return err
		}
		return w.Flush()
	})
	if errors.Is(err, errSame) {
		return nil
	}
	return err
}

// writer writes lines of grants.
type writer struct{ *bufio.Writer }

// keep writes a line as it was, also with what a newer version wrote in it.
func (w *writer) keep(line []byte) error {
	_, _ = w.Write(line) // the next write has the error, too
	return w.WriteByte('\n')
}

// add writes a grant.
func (w *writer) add(g *Grant) error {
	line, err := json.Marshal(g, json.Deterministic(true))
	if err != nil {
		return err
	}
	return w.keep(line)
}

// replace writes a file as a whole, while its lock is held. If write returns an error, the file
// stays as it is.
func replace(path string, write func(io.Writer) error) (err error) {
	next := path + ".new"
	_ = os.Remove(next) // of a process that was killed
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
		return err
	}
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		_ = folder.Sync() // some systems cannot
		_ = folder.Close()
	}
	return nil
}
