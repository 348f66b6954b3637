// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Transcript is a [session.Store] that is a ChatMarkdown file. The file is the
// truth: it begins with the prompt and is only ever appended to, element by
// element, each written and synced before the run goes on. Of a log it holds
// the items alone; what it cannot say is read back in the safe direction, so
// that a call without a response has an unknown outcome.
//
// It holds one session, whatever the id. It is safe for concurrent use.
type Transcript struct {
	path  string
	given []item.Item

	mu   sync.Mutex
	seq  int64
	size int64  // what the file is expected to hold
	head []byte // what a new file begins with; nil once it is written
	tail bool   // the file does not end in a newline
}

// OpenTranscript opens the transcript at out for the agent file at path, and
// returns the agent that runs on it. If there is no transcript yet, it will
// begin with the agent's file, its relative paths adjusted; it is created by
// the first append. If there is one, the agent and its conversation are read
// from it, and path must only exist. Both may be the same file.
//
// An element at the end that a crash cut short is moved to a file beside the
// transcript, which a warning names.
func OpenTranscript(ctx context.Context, path, out string, o Options) (*File, *Transcript, error) {
	src, err := read(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newTranscript(ctx, path, out, o)
	case err != nil:
		return nil, nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, plain(err))
	}
	whole, warning, err := mend(out, src)
	if err != nil {
		return nil, nil, err
	}
	file, err := parse(ctx, out, out, whole, o)
	if err != nil {
		return nil, nil, err
	}
	if warning != nil {
		file.Warnings = append(file.Warnings, warning)
	}
	t := &Transcript{path: out, given: file.Items, size: int64(len(whole))}
	t.tail = len(whole) > 0 && whole[len(whole)-1] != '\n'
	return file, t, nil
}

// newTranscript prepares a transcript that begins with the agent's file.
func newTranscript(ctx context.Context, path, out string, o Options) (*File, *Transcript, error) {
	file, err := Load(ctx, path, o)
	if err != nil {
		return nil, nil, err
	}
	from, err := placesOf(path, o)
	if err != nil {
		return nil, nil, err
	}
	to, err := placesOf(out, o)
	if err != nil {
		return nil, nil, err
	}
	if err := checkFolder(to.promptDir); err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("%s: the folder %s: %w", out, filepath.Dir(out), err)
	}
	head := rebase(file.Doc, from.promptDir, to.promptDir)
	if head != "" && head[len(head)-1] != '\n' {
		head += "\n"
	}
	return file, &Transcript{path: out, given: file.Items, head: []byte(head)}, nil
}

// mend cuts off an element that a crash left unfinished at the end of a
// transcript, after keeping it in a file of its own.
func mend(path string, src []byte) (whole []byte, warning, err error) {
	end := chatmd.Recover(src)
	if end == len(src) {
		return src, nil, nil
	}
	kept := path + ".cut"
	f, err := os.OpenFile(kept, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: keeping its unfinished end: %w", path, err)
	}
	_, err = f.Write(append(src[end:len(src):len(src)], '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, nil, fmt.Errorf("%s: keeping its unfinished end: %w", path, err)
	}
	if err := os.Truncate(path, int64(end)); err != nil {
		return nil, nil, fmt.Errorf("%s: cutting off its unfinished end: %w", path, plain(err))
	}
	warning = fmt.Errorf("%s: the last element was cut short by a crash; its %d bytes were moved to %s", path, len(src)-end, kept)
	return src[:end], warning, nil
}

// Load implements [session.Store]: the items of the file, as given.
func (t *Transcript) Load(context.Context, string) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		t.mu.Lock()
		t.seq = int64(len(t.given))
		t.mu.Unlock()
		for i, it := range t.given {
			if !yield(session.Entry{Seq: int64(i) + 1, Body: session.Given{Item: it}}, nil) {
				return
			}
		}
	}
}

// Append implements [session.Store]: it writes the entries' items at the end
// of the file, in one write, and syncs. If that fails, the file is as before.
func (t *Transcript) Append(_ context.Context, _ string, after int64, entries []session.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if after != t.seq {
		return fmt.Errorf("%s: %w", t.path, session.ErrConflict)
	}
	text := t.head
	if t.tail {
		text = []byte("\n")
	}
	items := 0
	for _, e := range entries {
		it, ok := said(e.Body)
		if !ok {
			continue
		}
		var err error
		if text, err = chatmd.Append(text, it); err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
		items++
	}
	if items > 0 || t.head != nil {
		if err := t.write(text); err != nil {
			return err
		}
	}
	t.seq += int64(len(entries))
	return nil
}

// said returns the item that an entry adds to the conversation.
func said(b session.Body) (item.Item, bool) {
	switch b := b.(type) {
	case session.Given:
		return b.Item, true
	case session.Received:
		return b.Item, true
	case session.Answered:
		return b.Item, true
	}
	return item.Item{}, false
}

// write appends to the file, which must be as this transcript left it.
func (t *Transcript) write(text []byte) error {
	flags := os.O_WRONLY | os.O_APPEND
	if t.head != nil {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(t.path, flags, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, plain(err))
	}
	if info, statErr := f.Stat(); statErr == nil && info.Size() != t.size {
		f.Close()
		return fmt.Errorf("%s: %w: somebody else wrote to it", t.path, session.ErrConflict)
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(t.size))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", t.path, plain(err))
	}
	t.size += int64(len(text))
	t.head, t.tail = nil, false
	return nil
}
