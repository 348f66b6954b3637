// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/antiphon-go/antiphon/session"
)

// Folder is a [session.Store] for one process: it has no locks between processes.
type Folder struct {
	dir string
	mu  sync.Mutex
}

// Append implements [session.Store]. The entries of an append are one line, with tabs
// between them: the JSON of an entry has none.
func (f *Folder) Append(_ context.Context, id string, after int64, entries []session.Entry) error {
	if err := session.CheckSeqs(after, entries); err != nil || len(entries) == 0 {
		return err
	}
	var line []byte
	for i, e := range entries {
		if i > 0 {
			line = append(line, '\t')
		}
		var err error
		if line, err = session.AppendEntry(line, e); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	log, whole, err := f.read(id)
	if err != nil {
		return err
	}
	if end := int64(len(log)); end != after {
		return session.Conflict(end, after)
	}
	file, err := os.OpenFile(f.path(id), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// What a crash left of an append is overwritten.
	if err = file.Truncate(whole); err == nil {
		_, err = file.WriteAt(append(line, '\n'), whole)
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// Load implements [session.Store].
func (f *Folder) Load(_ context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		f.mu.Lock()
		log, _, err := f.read(id)
		f.mu.Unlock()
		if err != nil {
			yield(session.Entry{}, err)
			return
		}
		for _, e := range log[min(max(after, 0), int64(len(log))):] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// read returns the entries of a file and the length of its whole lines.
func (f *Folder) read(id string) (log []session.Entry, whole int64, err error) {
	data, err := os.ReadFile(f.path(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	for text := range bytes.FieldsFuncSeq(data, func(r rune) bool { return r == '\t' || r == '\n' }) {
		e, err := session.ParseEntry(text)
		if err != nil {
			return nil, 0, fmt.Errorf("%s, behind entry %d: %w", f.path(id), len(log), err)
		}
		log = append(log, e)
	}
	return log, int64(len(data)), nil
}

func (f *Folder) path(id string) string { return filepath.Join(f.dir, url.PathEscape(id)+".log") }
