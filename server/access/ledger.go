// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Ledger keeps the usage of responses in a folder: a file of JSON lines for each day in
// UTC, which can be deleted when nobody needs it any more, and one for each process with the
// responses that it makes now: see [Ledger.Begin]. It has names and numbers, and no
// contents. Several processes may write to one. After a crash of the machine the last lines
// may be missing.
type Ledger struct {
	folder string

	mu     sync.Mutex
	day    *lines
	begun  *begun // nil until a response begins
	closed bool
}

// line is a line in the file of a day.
type line struct {
	Use
	// Begun names the line that said that the response has begun, if there is one.
	Begun string `json:"begun,omitzero"`
}

const daySuffix = ".jsonl"

var errNoFolder = errors.New("access: the ledger has no folder: use OpenLedger")

// OpenLedger returns the ledger in a folder, which the first line makes.
func OpenLedger(folder string) *Ledger { return &Ledger{folder: folder} }

// Add adds a line.
func (l *Ledger) Add(u Use) error { return l.add(line{Use: u}) }

func (l *Ledger) add(one line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(one)
}

// write adds a line to the file of its day. The caller must hold mu.
func (l *Ledger) write(one line) error {
	if l.folder == "" {
		return errNoFolder
	}
	if path := filepath.Join(l.folder, dateOf(one.Use)+daySuffix); l.day == nil || l.day.path != path {
		if err := l.day.close(); err != nil {
			return err
		}
		l.day = &lines{path: path}
	}
	return l.day.add(one)
}

func dateOf(u Use) string { return u.At.UTC().Format(time.DateOnly) }

// Close closes the files that are open. The one with the responses that have begun is closed when all of
// them have ended, so that nobody else counts them meanwhile.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return errors.Join(l.day.close(), l.closeBegun())
}

// All returns the lines since a time, in the order in which they were written. A line that
// cannot be read, because a process or the machine ended while it was written, is left out.
func (l *Ledger) All(since time.Time) iter.Seq2[Use, error] {
	return func(yield func(Use, error) bool) {
		l.eachDay(since, func(one line, err error) bool {
			return err == nil && one.At.Before(since) || yield(one.Use, err)
		})
	}
}

// eachDay yields the lines of the files of the days since a time.
func (l *Ledger) eachDay(since time.Time, yield func(line, error) bool) {
	days, err := os.ReadDir(l.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		yield(line{}, err)
		return
	}
	for _, one := range days { // sorted by name
		day, ok := strings.CutSuffix(one.Name(), daySuffix)
		if at, err := time.Parse(time.DateOnly, day); !ok || err != nil || at.AddDate(0, 0, 1).Before(since) {
			continue
		}
		if !eachLine(filepath.Join(l.folder, one.Name()), yield) {
			return
		}
	}
}
