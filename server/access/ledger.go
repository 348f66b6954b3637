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

	mu     sync.Mutex
	day    string
	file   *os.File
	begun  *begun // nil until a response begins
	closed bool
}

// line is a line in the file of a day.
type line struct {
	Use
	// Begun names the line that said that the response has begun, if its process ended before it did.
	Begun string `json:"begun,omitzero"`
}

const daySuffix = ".jsonl"

var errNoFolder = errors.New("access: the ledger has no folder: use OpenLedger")

// OpenLedger returns the ledger in a folder, which the first line makes.
func OpenLedger(folder string) *Ledger { return &Ledger{folder: folder} }

// Add adds a line.
func (l *Ledger) Add(u Use) error { return l.add(line{Use: u}) }

func (l *Ledger) add(one line) error {
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder == "" {
		return errNoFolder
	}
	if day := dateOf(one.Use); l.file == nil || l.day != day {
		if err := l.close(); err != nil {
			return err
		}
		if err := l.openDay(day); err != nil {
			return err
		}
	}
	if _, err = l.file.Write(append(text, '\n')); err != nil { // one write, so that lines of processes do not mix
		err = errors.Join(err, l.close()) // what openDay finds may be a part of a line
	}
	return err
}

func dateOf(u Use) string { return u.At.UTC().Format(time.DateOnly) }

// openDay opens the file of a day. If its last line was cut, that line ends here, so that it takes no other
// with it.
func (l *Ledger) openDay(day string) error {
	if err := os.MkdirAll(l.folder, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(l.folder, day+daySuffix), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	cut, err := isCut(file)
	if err == nil && cut {
		_, err = file.WriteString("\n")
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.day = file, day
	return nil
}

// isCut reports whether a file ends within a line.
func isCut(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, info.Size()-1)
	return last[0] != '\n', err
}

// Close closes the files that are open. The one with the responses that have begun is closed when all of
// them have ended, so that nobody else counts them meanwhile.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return errors.Join(l.close(), l.closeBegun())
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
			day, ok := strings.CutSuffix(one.Name(), daySuffix)
			if at, err := time.Parse(time.DateOnly, day); !ok || err != nil || at.AddDate(0, 0, 1).Before(since) {
				continue
			}
			more := l.each(one.Name(), func(one line, err error) bool {
				return err == nil && one.At.Before(since) || yield(one.Use, err)
			})
			if !more {
				return
			}
		}
	}
}

// each yields the lines of a file. It returns false if nobody wants more.
func (l *Ledger) each(name string, yield func(line, error) bool) bool {
	f, err := os.Open(filepath.Join(l.folder, name))
	if err != nil {
		return yield(line{}, err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		text, err := in.ReadBytes('\n')
		var one line
		if json.Unmarshal(bytes.TrimSpace(text), &one) == nil && !yield(one, nil) {
			return false
		}
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return yield(line{}, fmt.Errorf("%s: %w", name, err))
		}
	}
}
