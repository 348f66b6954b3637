// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/internal/filelock"
)

// Log is a log in a file that only its owner can read. It is safe for concurrent use,
// also by several processes. A missing file is an empty log.
type Log struct {
	// Program is the name and version of the program, for records that have none.
	Program string
	// Hide removes secrets from texts. It may be nil.
	Hide func(string) string

	path string
	mu   sync.Mutex
}

// Open returns the log in the file at path. It does not read the file.
func Open(path string) *Log { return &Log{path: path} }

// Path returns the path of the log's file.
func (l *Log) Path() string { return l.path }

// lockTime is how long a write waits for other processes. A write takes milliseconds,
// but many processes may write at once to a slow disk.
const lockTime = 30 * time.Second

var errNoFile = errors.New("audit: the log has no file: use Open")

// Write adds records. When it returns nil, they are on the disk. If it fails, none is
// added. The caller must not do what it could not record.
func (l *Log) Write(ctx context.Context, records ...Record) error {
	if len(records) == 0 {
		return nil
	}
	if l.path == "" {
		return errNoFile
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.write(ctx, records); err != nil {
		return fmt.Errorf("the audit log %s cannot be written: %w", l.path, err)
	}
	return nil
}

// write adds records in one piece. Only the error before they are on the disk counts: a lock
// that cannot be released ends with the process.
func (l *Log) write(ctx context.Context, records []Record) error {
	lock, err := filelock.TakeWithin(ctx, l.path+".lock", lockTime) // makes the folder too
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	f, err := open(l.path)
	if err != nil {
		return err
	}
	defer f.Close()
	last, cut, end, err := tail(f)
	if err != nil {
		return err
	}
	if len(cut) > 0 {
		records = append([]Record{{Kind: KindRepaired, What: fmt.Sprintf("removed %d bytes of a line that was not written to its end", len(cut))}}, records...)
	}
	text, err := l.lines(records, last)
	if err != nil {
		return err
	}
	// The record of the repair replaces what it removes: a crash before it is whole leaves
	// a line that is cut, and never a log from which something is gone without a word.
	if _, err = f.WriteAt(text, end); err == nil && len(cut) > len(text) {
		err = f.Truncate(end + int64(len(text)))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil { // the disk may be full
		_, restored := f.WriteAt(cut, end)
		return errors.Join(err, restored, f.Truncate(end+int64(len(cut))))
	}
	return nil
}

// open opens the file for reading and writing. A new file is made durable in its
// folder, and an old one loses permissions of other users.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a file")
	case info.Mode().Perm() != 0o600:
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if fresh {
		if folder, err := os.Open(filepath.Dir(path)); err == nil {
			_ = folder.Sync() // some systems cannot
			_ = folder.Close()
		}
	}
	return f, nil
}

// piece is how much of the end of the file is read at once.
const piece = 4096

// tail returns the last complete line, what follows it, which is a line that was not written
// to its end, and the offset where that begins.
func tail(f *os.File) (last, cut []byte, end int64, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, nil, 0, err
	}
	var text []byte // the file from offset from on
	for from := size; from > 0; {
		n := min(piece, from)
		from -= n
		block := make([]byte, n, int(n)+len(text))
		if _, err := f.ReadAt(block, from); err != nil {
			return nil, nil, 0, err
		}
		text = append(block, text...)
		stop := bytes.LastIndexByte(text, '\n')
		start := bytes.LastIndexByte(text[:max(stop, 0)], '\n') + 1
		if stop >= 0 && (start > 0 || from == 0) {
			return text[start:stop], text[stop+1:], from + int64(stop) + 1, nil
		}
	}
	return nil, text, 0, nil
}

// lines encodes records and chains them to the line before.
func (l *Log) lines(records []Record, last []byte) (text []byte, err error) {
	prev := Hash(string(last))
	for _, r := range records {
		r = r.Hidden(l.Hide)
		if r.At.IsZero() {
			r.At = time.Now()
		}
		r.At = r.At.UTC().Truncate(time.Millisecond)
		if r.Program == "" {
			r.Program = l.Program
		}
		r.Prev = prev
		line, err := json.Marshal(r, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		prev = Hash(string(line))
		text = append(append(text, line...), '\n')
	}
	return text, nil
}
