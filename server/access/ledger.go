// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// Ledger keeps the usage of responses in a folder: a file of JSON lines for each day in
// UTC, which can be deleted when nobody needs it any more, and one for each process with the
// responses that it makes now: see [Ledger.Begin]. It has names and numbers, and no
// contents. Several processes may write to one. After a crash of the machine the last lines
// may be missing.
type Ledger struct {
	folder string

	mu    sync.Mutex
	day   string
	file  *os.File
	begun *begun // nil until a response begins
}

var errNoFolder = errors.New("access: the ledger has no folder: use OpenLedger")

// OpenLedger returns the ledger in a folder, which the first line makes.
func OpenLedger(folder string) *Ledger { return &Ledger{folder: folder} }

// Add adds a line.
func (l *Ledger) Add(u Use) error {
	line, err := json.Marshal(u)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder == "" {
		return errNoFolder
	}
	if day := u.At.UTC().Format(time.DateOnly); l.file == nil || l.day != day {
		if err := l.close(); err != nil {
			return err
		}
		if err := os.MkdirAll(l.folder, 0o700); err != nil {
			return err
		}
		if l.file, err = os.OpenFile(filepath.Join(l.folder, day+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		l.day = day
	}
	_, err = l.file.Write(append(line, '\n')) // one write, so that lines of processes do not mix
	return err
}

// Close closes the files that are open.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.close(), l.begun.close())
}

func (l *Ledger) close() error {
	file := l.file
	if l.file = nil; file == nil {
		return nil
	}
	return file.Close()
}

// All returns the lines since a time, in the order in which they were written. A line that
// cannot be read, because a process or the machine ended while it was written, is left out.
func (l *Ledger) All(since time.Time) iter.Seq2[Use, error] {
	return func(yield func(Use, error) bool) {
		days, err := os.ReadDir(l.folder)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Use{}, err)
			return
		}
		for _, one := range days { // sorted by name
			day, ok := strings.CutSuffix(one.Name(), ".jsonl")
			if at, err := time.Parse(time.DateOnly, day); !ok || err != nil || at.AddDate(0, 0, 1).Before(since) {
				continue
			}
			if !l.each(one.Name(), since, yield) {
				return
			}
		}
	}
}

// each yields the lines of a file. It returns false if nobody wants more.
func (l *Ledger) each(name string, since time.Time, yield func(Use, error) bool) bool {
	f, err := os.Open(filepath.Join(l.folder, name))
	if err != nil {
		return yield(Use{}, err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		var u Use
		if json.Unmarshal(bytes.TrimSpace(line), &u) == nil && !u.At.Before(since) && !yield(u, nil) {
			return false
		}
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return yield(Use{}, fmt.Errorf("%s: %w", name, err))
		}
	}
}
