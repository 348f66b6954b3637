// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/internal/filelock"
)

// StatusInterrupted is the status of a [Use] whose process ended before the response did.
const StatusInterrupted = "interrupted"

const (
	begunPrefix = "begun-"
	begunSuffix = ".jsonl"
	lockSuffix  = ".lock"
	newSuffix   = ".new" // of a file that takes the place of another
	// maxBegun is the size from which a file of responses that have begun is written anew.
	maxBegun = 1 << 20
)

// begun is the file of a process with the responses that have begun and not ended. It is locked as long as
// the process lives, so that others can tell what a killed process left.
type begun struct {
	lines
	lock *filelock.Lock
	most int   // the size from which it is written anew
	last int64 // number
	open map[int64]begunLine
}

// begunLine says that a response has begun or, without Use, that it has ended.
type begunLine struct {
	Number int64 `json:"n"`
	Use    *Use  `json:"use,omitzero"`
}

// Begin notes that a response has begun, and what it may use. end adds what it has used, or nothing if the Use
// has no time. If the process ends before, or what was used cannot be added, a later [Ledger.Recover] adds u. end
// may be called after [Ledger.Close].
func (l *Ledger) Begin(u Use) (end func(Use) error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.openBegun(); err != nil {
		return nil, err
	}
	b := l.begun
	b.last++
	n := b.last
	if err := b.write(begunLine{n, &u}); err != nil {
		delete(b.open, n) // nobody ends it
		return nil, err
	}
	return func(used Use) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if b.open[n].Use == nil {
			return nil // it has ended
		}
		if !used.At.IsZero() {
			if err := l.write(line{used, b.name(n)}); err != nil {
				return err
			}
		}
		err := b.write(begunLine{Number: n})
		if l.closed {
			err = errors.Join(err, l.day.close())
			if l.begun == b {
				err = errors.Join(err, l.closeBegun())
			}
		}
		return err
	}, nil
}

// name names a line in the file of a day.
func (b *begun) name(n int64) string { return begunName(filepath.Base(b.path), n) }

func begunName(file string, n int64) string { return fmt.Sprintf("%s:%d", file, n) }

// openBegun makes the file of this process. The caller must hold mu.
func (l *Ledger) openBegun() error {
	switch {
	case l.folder == "":
		return errNoFolder
	case l.begun != nil:
		return nil
	}
	path := filepath.Join(l.folder, begunPrefix+rand.Text()+begunSuffix)
	lock, err := filelock.Take(path + lockSuffix)
	if err != nil {
		return err
	}
	b := &begun{lines: lines{path: path}, lock: lock, most: maxBegun, open: map[int64]begunLine{}}
	if err := b.lines.open(); err != nil {
		return errors.Join(err, lock.Release())
	}
	l.begun = b
	return nil
}

// write writes a line. A file that has grown, or to which a line could not be written, begins anew with the
// responses that have not ended.
func (b *begun) write(one begunLine) error {
	if one.Use != nil {
		b.open[one.Number] = one
	} else {
		delete(b.open, one.Number)
	}
	if b.size > b.most && b.anew() == nil {
		return nil
	}
	err := b.add(one) // it grows on if it cannot be written anew
	if err != nil {
		b.size = b.most + 1
	}
	return err
}

// anew writes the file anew, and leaves it closed. If it returns an error, the file has all its lines.
func (b *begun) anew() error {
	var text []byte
	for _, one := range b.open {
		line, err := json.Marshal(one)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	other := b.path + newSuffix
	err := os.WriteFile(other, text, 0o600)
	if err == nil {
		err = errors.Join(b.close(), os.Rename(other, b.path)) // Windows renames no open file
	}
	if err != nil {
		return errors.Join(err, os.Remove(other))
	}
	b.size, b.most = len(text), maxBegun+2*len(text)
	return nil
}

// closeBegun ends the file of this process, unless a response in it has not ended yet. The caller must hold mu.
func (l *Ledger) closeBegun() error {
	b := l.begun
	if b == nil || len(b.open) > 0 {
		return nil
	}
	l.begun = nil
	return errors.Join(b.close(), gone(os.Remove(b.path)), b.lock.Release())
}

// gone returns an error about removing a file, or nil if it is not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Recover adds what responses may have used that had begun in processes which ended before them, with
// [StatusInterrupted]. Several processes may call it at once.
func (l *Ledger) Recover() error {
	return l.eachProcess(func(name, path string) error {
		lock, err := filelock.TakeWithin(context.Background(), path+lockSuffix, 0)
		if busy := (*filelock.BusyError)(nil); errors.As(err, &busy) {
			return nil // it lives
		}
		if err != nil {
			return err
		}
		left, err := l.leftBy(name, path)
		for _, one := range left {
			if err == nil {
				err = l.add(one)
			}
		}
		if err == nil {
			err = errors.Join(gone(os.Remove(path+newSuffix)), gone(os.Remove(path)))
		}
		return errors.Join(err, lock.Release())
	})
}

// Left returns what Recover would add. It writes nothing, so that another user than that of the server can
// call it. Read [Ledger.All] before: then what is recovered meanwhile does not count twice.
func (l *Ledger) Left() (left []Use, err error) {
	err = l.eachProcess(func(name, path string) error {
		lock, err := filelock.TakeFile(path + lockSuffix)
		if busy := (*filelock.BusyError)(nil); errors.As(err, &busy) {
			return nil
		}
		if gone(err) != nil {
			return err
		}
		list, err := l.leftBy(name, path)
		for _, one := range list {
			left = append(left, one.Use)
		}
		return errors.Join(err, lock.Release())
	})
	return left, err
}

// eachProcess calls f with the name and the path of each file of a process, whether the file is there or not.
func (l *Ledger) eachProcess(f func(name, path string) error) error {
	list, err := os.ReadDir(l.folder)
	if errors.Is(err, fs.ErrNotExist) || l.folder == "" {
		return nil
	}
	if err != nil {
		return err
	}
	var problem error
	last := ""
	for _, one := range list { // sorted by name
		name := one.Name()
		name = strings.TrimSuffix(strings.TrimSuffix(name, lockSuffix), newSuffix)
		if name == last || !strings.HasPrefix(name, begunPrefix) || !strings.HasSuffix(name, begunSuffix) {
			continue
		}
		last = name
		if err := f(name, filepath.Join(l.folder, name)); err != nil {
			problem = errors.Join(problem, fmt.Errorf("%s: %w", name, err)) // it hides no other
		}
	}
	return problem
}

// leftBy returns what is left in a file of a process, but not what was added already: by the process, which was
// killed before it could say so, or by an earlier call that could not finish.
func (l *Ledger) leftBy(name, path string) (left []line, err error) {
	open := map[int64]Use{}
	eachLine(path, func(one begunLine, problem error) bool {
		switch {
		case problem != nil:
			err = gone(problem) // another process was first
		case one.Use == nil:
			delete(open, one.Number)
		default:
			one.Use.Status = StatusInterrupted
			open[one.Number] = *one.Use
		}
		return err == nil
	})
	if err != nil || len(open) == 0 {
		return nil, err
	}
	first := time.Now()
	for _, u := range open {
		if u.At.Before(first) {
			first = u.At
		}
	}
	added, err := l.addedSince(first)
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(open)) {
		if id := begunName(name, n); !added[id] {
			left = append(left, line{open[n], id})
		}
	}
	return left, nil
}

// addedSince returns which lines of files of processes were added since a day.
func (l *Ledger) addedSince(day time.Time) (added map[string]bool, err error) {
	added = map[string]bool{}
	l.eachDay(day, func(one line, problem error) bool {
		if err = problem; one.Begun != "" {
			added[one.Begun] = true
		}
		return err == nil
	})
	return added, err
}
