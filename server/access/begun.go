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
	newSuffix   = ".new" // of a file that takes the place of another
	// maxBegun is the size from which a file of responses that have begun is written anew.
	maxBegun = 1 << 20
)

// begun is the file of a process with the responses that have begun and not ended. It is locked as long as
// the process lives, so that others can tell what a killed process left.
type begun struct {
	path string
	lock *filelock.Lock
	file *os.File // nil if it must be opened
	size int      // of the file
	most int      // from which it is written anew
	last int64    // number
	open map[int64]begunLine
}

// begunLine says that a response has begun or, without Use, that it has ended.
type begunLine struct {
	Number int64 `json:"n"`
	Use    *Use  `json:"use,omitzero"`
}

// Begin notes that a response has begun, and what it may use. If the process ends before end is called, a
// later [Ledger.Recover] adds u. end may be called after [Ledger.Close].
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
		delete(b.open, n) // nobody ends it
		return nil, err
	}
	return func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if b.open[n].Use == nil {
			return nil // it has ended
		}
		err := b.write(begunLine{Number: n})
		if l.closed && l.begun == b {
			err = errors.Join(err, l.closeBegun())
		}
		return err
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

// write writes a line. A file that has grown, or to which a line could not be written, begins anew with the
// responses that have not ended.
func (b *begun) write(one begunLine) error {
	if one.Use != nil {
		b.open[one.Number] = one
	} else {
		delete(b.open, one.Number)
	}
	var start []byte
	if b.size > b.most {
		if b.anew() == nil {
			return nil
		}
		start = []byte{'\n'} // it grows on, perhaps after a part of a line
	}
	err := b.line(start, one)
	if err != nil {
		b.size = b.most + 1
	}
	return err
}

func (b *begun) line(start []byte, one begunLine) (err error) {
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if b.file == nil {
		if b.file, err = openLines(b.path); err != nil {
			return err
		}
	}
	n, err := b.file.Write(append(append(start, text...), '\n'))
	b.size += n
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
		err = errors.Join(b.closeFile(), os.Rename(other, b.path)) // Windows renames no open file
	}
	if err != nil {
		return errors.Join(err, os.Remove(other))
	}
	b.size, b.most = len(text), maxBegun+2*len(text)
	return nil
}

func (b *begun) closeFile() error {
	file := b.file
	if b.file = nil; file == nil {
		return nil
	}
	return file.Close()
}

// closeBegun ends the file of this process, unless a response in it has not ended yet. The caller must hold mu.
func (l *Ledger) closeBegun() error {
	b := l.begun
	if b == nil || len(b.open) > 0 {
		return nil
	}
	l.begun = nil
	return errors.Join(b.closeFile(), gone(os.Remove(b.path)), b.lock.Release())
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
		if err := l.recover(name); err != nil {
			problem = errors.Join(problem, fmt.Errorf("%s: %w", name, err)) // it hides no other
		}
	}
	return problem
}

// recover adds what one process left, unless it lives.
func (l *Ledger) recover(name string) error {
	path := filepath.Join(l.folder, name)
	lock, err := filelock.TakeWithin(context.Background(), path+lockSuffix, 0)
	if busy := (*filelock.BusyError)(nil); errors.As(err, &busy) {
		return nil
	}
	if err != nil {
		return err
	}
	err = l.addLeft(name, path)
	if err == nil {
		err = errors.Join(gone(os.Remove(path+newSuffix)), gone(os.Remove(path)))
	}
	return errors.Join(err, lock.Release())
}

// addLeft adds what is left in a file, but not what an earlier call has added that could not finish.
func (l *Ledger) addLeft(name, path string) error {
	left, err := leftIn(path)
	if err != nil {
		return gone(err) // another process was first
	}
	added := map[string]map[string]bool{} // by day
	for _, one := range left {
		day, id := dateOf(*one.Use), fmt.Sprintf("%s:%d", name, one.Number)
		if added[day] == nil {
			if added[day], err = l.addedOn(day); err != nil {
				return err
			}
		}
		if added[day][id] {
			continue
		}
		if err := l.add(line{*one.Use, id}); err != nil {
			return err
		}
	}
	return nil
}

// addedOn returns which lines of files of processes were added on a day.
func (l *Ledger) addedOn(day string) (map[string]bool, error) {
	var problem error
	added := map[string]bool{}
	l.each(day+daySuffix, func(one line, err error) bool {
		if problem = gone(err); one.Begun != "" {
			added[one.Begun] = true
		}
		return err == nil
	})
	return added, problem
}

// leftIn returns the responses of a file that have not ended, in their order. The last line may be cut.
func leftIn(path string) ([]begunLine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	open := map[int64]begunLine{}
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
			open[one.Number] = one
		}
	}
	var left []begunLine
	for _, n := range slices.Sorted(maps.Keys(open)) {
		left = append(left, open[n])
	}
	return left, nil
}
