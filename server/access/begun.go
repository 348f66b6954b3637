// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/internal/filelock"
)

// StatusInterrupted is the status of a [Use] whose process ended before the response did.
const StatusInterrupted = "interrupted"

const (
	begunPrefix = "begun-"
	begunSuffix = ".jsonl"
	lockSuffix  = ".lock"
	// maxBegun is the size from which a file of responses that have begun is written anew.
	maxBegun = 1 << 20
)

// begun is the file of a process with the responses that have begun and not ended. It is locked as long as
// the process lives, so that others can tell what a killed process left.
type begun struct {
	path string
	lock *filelock.Lock
	file *os.File
	size int   // of the file
	most int   // from which it is written anew
	last int64 // number
	open map[int64]begunLine
}

// begunLine says that a response has begun or, without Use, that it has ended.
type begunLine struct {
	Number int64 `json:"n"`
	Use    *Use  `json:"use,omitzero"`
}

// Begin notes that a response has begun, and what it may use. If the process ends before end is called, a
// later [Ledger.Recover] adds u.
func (l *Ledger) Begin(u Use) (end func() error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.openBegun(); err != nil {
		return nil, err
	}
	b := l.begun
	b.last++
	n := b.last
	if err := b.write(begunLine{n, &u}); err != nil {
		return nil, err
	}
	return func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return b.write(begunLine{Number: n})
	}, nil
}

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
	file, err := openLines(path)
	if err != nil {
		return errors.Join(err, lock.Release())
	}
	l.begun = &begun{path: path, lock: lock, file: file, most: maxBegun, open: map[int64]begunLine{}}
	return nil
}

func openLines(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// write writes a line. A file that has grown begins anew, with the responses that have not ended.
func (b *begun) write(one begunLine) error {
	if b.file == nil {
		return nil // the ledger is closed
	}
	if one.Use != nil {
		b.open[one.Number] = one
	} else {
		delete(b.open, one.Number)
	}
	if b.size > b.most {
		return b.anew()
	}
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	n, err := b.file.Write(append(text, '\n'))
	b.size += n
	return err
}

func (b *begun) anew() error {
	var text []byte
	for _, one := range b.open {
		line, err := json.Marshal(one)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	other := b.path + ".new"
	if err := os.WriteFile(other, text, 0o600); err != nil {
		return err
	}
	err := errors.Join(b.file.Close(), os.Rename(other, b.path))
	file, wrong := openLines(b.path)
	b.file, b.size, b.most = file, len(text), maxBegun+2*len(text)
	return errors.Join(err, wrong)
}

// close ends the file. What has not ended yet stays in it, for another process.
func (b *begun) close() error {
	if b == nil || b.file == nil {
		return nil
	}
	err := b.file.Close()
	b.file = nil
	if len(b.open) == 0 {
		err = errors.Join(err, os.Remove(b.path))
	}
	return errors.Join(err, b.lock.Release())
}

// Recover adds what responses may have used that had begun in processes which ended before them, with
// [StatusInterrupted]. Several processes may call it at once.
func (l *Ledger) Recover() error {
	list, err := os.ReadDir(l.folder)
	if errors.Is(err, fs.ErrNotExist) || l.folder == "" {
		return nil
	}
	if err != nil {
		return err
	}
	var problem error
	for _, one := range list {
		if name := one.Name(); strings.HasPrefix(name, begunPrefix) && strings.HasSuffix(name, begunSuffix) {
			if err := l.recover(filepath.Join(l.folder, name)); err != nil {
				problem = errors.Join(problem, fmt.Errorf("%s: %w", name, err)) // it hides no other
			}
		}
	}
	return problem
}

// recover adds what one process left, unless it lives.
func (l *Ledger) recover(path string) error {
	lock, err := filelock.TakeWithin(context.Background(), path+lockSuffix, 0)
	if busy := (*filelock.BusyError)(nil); errors.As(err, &busy) {
		return nil
	}
	if err != nil {
		return err
	}
	left, err := leftIn(path)
	for _, u := range left {
		if err == nil {
			err = l.Add(u)
		}
	}
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) { // another process was first
		err = nil
	}
	return errors.Join(err, lock.Release())
}

// leftIn returns the responses of a file that have not ended, in their order. The last line may be cut.
func leftIn(path string) ([]Use, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	open := map[int64]Use{}
	for in := bufio.NewReader(f); ; {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var one begunLine
		switch {
		case json.Unmarshal(text, &one) != nil:
		case one.Use == nil:
			delete(open, one.Number)
		default:
			one.Use.Status = StatusInterrupted
			open[one.Number] = *one.Use
		}
	}
	var left []Use
	for _, n := range slices.Sorted(maps.Keys(open)) {
		left = append(left, open[n])
	}
	return left, nil
}
