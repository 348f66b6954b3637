// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program keeps conversations in a store of its own: a folder with a file for each
// session, in which an append is one line. Start it twice: go run ./examples/go/store
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// Folder is a [session.Store] for one process: it has no locks between processes.
type Folder struct {
	dir string
	mu  sync.Mutex
}

// Append implements [session.Store]. A line has tabs between its entries, because their
// JSON has none. A line without an end is what a crash left, and is overwritten.
func (f *Folder) Append(_ context.Context, id string, after int64, entries []session.Entry) error {
	if err := session.CheckSeqs(after, entries); err != nil || len(entries) == 0 {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	lines, err := f.read(id)
	if err != nil {
		return err
	}
	if last := int64(bytes.Count(lines, []byte("\t")) + bytes.Count(lines, []byte("\n"))); last != after {
		return session.Conflict(last, after)
	}
	var line []byte
	for _, e := range entries {
		if line, err = session.AppendEntry(append(line, '\t'), e); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(f.path(id), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = file.Truncate(int64(len(lines))); err == nil {
		_, err = file.WriteAt(append(line[1:], '\n'), int64(len(lines)))
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// Load implements [session.Store].
func (f *Folder) Load(_ context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		lines, err := f.read(id)
		for text := range bytes.FieldsFuncSeq(lines, func(r rune) bool { return r == '\t' || r == '\n' }) {
			e, err := session.ParseEntry(text)
			if after--; after < 0 && (!yield(e, err) || err != nil) {
				return
			}
		}
		if err != nil {
			yield(session.Entry{}, err)
		}
	}
}

// read returns the whole lines of a file.
func (f *Folder) read(id string) ([]byte, error) {
	data, err := os.ReadFile(f.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return data[:bytes.LastIndexByte(data, '\n')+1], err
}

func (f *Folder) path(id string) string { return filepath.Join(f.dir, url.PathEscape(id)+".log") }

func main() {
	log.SetFlags(0)
	dir := filepath.Join(os.TempDir(), "antiphon-example")
	if err := errors.Join(os.MkdirAll(dir, 0o700), run(context.Background(), &Folder{dir: dir}, os.Stdout)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store session.Store, out io.Writer) error {
	url, stop, err := new(rehearsal.Server).Start()
	if err != nil {
		return err
	}
	defer stop()
	s, err := session.Open(ctx, store, "talk") // goes on where the last run of the program ended
	if err != nil {
		return err
	}
	a := &agent.Agent{Model: &responses.Client{BaseURL: url}}
	a.Request.Model = "rehearsal"
	res, err := a.Run(ctx, s, item.User("Hello."))
	if err == nil {
		_, err = fmt.Fprintf(out, "%s; the session has %d entries\n", res.Why, len(s.Log()))
	}
	return err
}
