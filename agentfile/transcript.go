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

	"github.com/antiphon-go/antiphon/chatmd/transcript"
	"github.com/antiphon-go/antiphon/session"
)

// Transcript is a [session.Store] that is a ChatMarkdown file. The file is the
// truth: it begins with the prompt and is only ever appended to, element by
// element, each written and synced before the run goes on. Of a log it holds
// the items, where runs and replies begin, how replies ended, which calls were
// started, wait for an approval or were withdrawn, and which items were
// quarantined or collapsed; see [chatmd.IsMark]. So a crash leaves what it leaves
// of a session in a store: a reply without its end has broken off, and a call
// without a mark of its start was not started. Before the first mark, where people
// and earlier programs wrote, a call without a response has an unknown outcome.
//
// Notices, usage, and what was decided about compactions are marks too, so that
// totals and what the next run sends are those of a session in a store. Not in it
// are verdicts on calls that were not started yet, which are asked about again,
// rules that somebody wanted remembered, and the sessions of nested runs: only
// what those came to.
//
// It holds one session, whatever the id. It is safe for concurrent use.
type Transcript struct {
	path  string
	given []session.Body

	payloads *payloads

	mu     sync.Mutex
	seq    int64
	size   int64  // what the file is expected to hold
	head   []byte // what a new file begins with; nil once it is there
	owed   []byte // what agents in messages used, to be written with what comes next
	tail   bool   // the file does not end in a newline
	writer transcript.Writer
}

// OpenTranscript opens the transcript at out for the agent file at path, and
// returns the agent that runs on it. If there is no transcript yet, it will
// begin with the agent's file, its relative paths adjusted; it is created by
// the first append. If there is one, the agent and its conversation are read
// from it. Both may be the same file; if another file than path began it, the error
// is an [*OtherAgentError], unless [Options.KeepAgent] is set.
//
// The transcript is locked until the File is closed or the process ends. If
// somebody else has the lock, the error wraps [session.ErrBusy] and says who;
// nothing was read then, asked or written.
//
// An element that a crash left unfinished at the end is moved to a file beside the
// transcript, which a warning names.
func OpenTranscript(ctx context.Context, path, out string, o Options) (*File, *Transcript, error) {
	if err := regular(out); err != nil {
		return nil, nil, err
	}
	release, err := hold(out)
	if err != nil {
		return nil, nil, err
	}
	file, t, err := openHeld(ctx, path, out, o)
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	file.release = release
	return file, t, nil
}

func openHeld(ctx context.Context, path, out string, o Options) (*File, *Transcript, error) {
	src, err := read(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newTranscript(ctx, path, out, o)
	case err != nil:
		return nil, nil, err
	}
	kept := src[:whole(src)]
	before := o // a look at it, before agents in its messages are asked
	before.Check = true
	file, err := parse(ctx, out, out, kept, before)
	if err != nil {
		return nil, nil, err
	}
	remark, err := file.checkOrigin(path, out, kept, o)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	if file.Partial && !o.Check {
		file.Close()
		if file, err = parse(ctx, out, out, kept, o); err != nil {
			return nil, nil, err
		}
	}
	if remark != nil {
		file.Warnings = append(file.Warnings, remark)
	}
	if rest := src[len(kept):]; len(rest) > 0 {
		beside, err := moveEnd(out, int64(len(kept)), rest)
		if err != nil {
			file.Close()
			return nil, nil, err
		}
		file.Warnings = append(file.Warnings, fmt.Errorf("%s: a crash left the last element unfinished; its %d bytes were moved to %s", out, len(rest), beside))
	}
	t := &Transcript{path: out, given: file.Log(), size: int64(len(kept)), payloads: payloadsOf(file, out)}
	t.writer = transcript.After(t.given)
	if sameFile(path, out) && !file.namesAgent() {
		t.writer.Agent = asSeenFrom(out, path)
	}
	t.owed = file.owes()
	t.tail = len(kept) > 0 && kept[len(kept)-1] != '\n'
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
	head := file.head(from, to.promptDir)
	if head != "" && head[len(head)-1] != '\n' {
		head += "\n"
	}
	given := file.Log()
	t := &Transcript{path: out, given: given, head: []byte(head), writer: transcript.After(given), payloads: payloadsOf(file, out)}
	t.writer.Agent = asSeenFrom(out, path)
	t.owed = file.owes()
	return file, t, nil
}

// owes is the marks of what agents in messages used to answer just now.
func (f *File) owes() (marks []byte) {
	for _, used := range f.used {
		marks = transcript.AppendNested(marks, session.Nested{Turns: used.Turns, Tokens: used.Tokens, Cost: used.Cost})
	}
	return marks
}

// regular refuses what can neither be appended to nor truncated, and a link to a file that
// is not there: a new transcript would have to take the link's place.
func regular(path string) error {
	info, err := os.Stat(path)
	if to, linkErr := os.Readlink(path); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a symbolic link to %s, which is not there; remove the link, or name the file itself", path, to)
	}
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("%s: it is not a regular file", path)
	}
	return nil
}

// moveEnd truncates a transcript to the given size: an element that a crash left
// unfinished at its end is moved to a file of its own, whose name it returns.
func moveEnd(path string, size int64, rest []byte) (kept string, err error) {
	kept, err = keep(path, rest)
	if err != nil {
		return "", fmt.Errorf("%s: keeping its unfinished end: %w", path, plain(err))
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Sync(), f.Close())
	}
	if err != nil {
		return "", fmt.Errorf("%s: removing its unfinished end: %w", path, plain(err))
	}
	return kept, nil
}

// keep appends what cannot stand in a transcript to a file beside it, whose
// name it returns.
func keep(path string, rest []byte) (kept string, err error) {
	kept = path + ".cut"
	f, err := os.OpenFile(kept, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(rest[:len(rest):len(rest)], '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	syncFolder(filepath.Dir(kept))
	return kept, err
}

// Load implements [session.Store]: what the file said when it was opened. Later
// entries are not read back.
func (t *Transcript) Load(_ context.Context, _ string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		if after > 0 {
			return
		}
		t.mu.Lock()
		t.seq = int64(len(t.given))
		t.mu.Unlock()
		for i, body := range t.given {
			if !yield(session.Entry{Seq: int64(i) + 1, Body: body}, nil) {
				return
			}
		}
	}
}

// Append implements [session.Store]: it writes the entries' items at the end
// of the file, in one write, and syncs. Long payloads go into files of their
// own, which are there before the element that names them. If that fails, the
// file is as before. A new file appears with the first item, or when the model
// is about to be asked. Errors leave it to the session to name the file.
func (t *Transcript) Append(_ context.Context, _ string, after int64, entries []session.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if after != t.seq {
		return session.ErrConflict
	}
	text := t.head
	if t.tail {
		text = []byte("\n")
	}
	text = append(text[:len(text):len(text)], t.owed...)
	due, writer := false, t.writer
	for _, e := range entries {
		if _, asks := e.Body.(session.TurnStarted); asks {
			due = due || t.head != nil
		}
		var err error
		before := len(text)
		if writer, text, err = writer.Append(text, e, t.payloads.append); err != nil {
			t.payloads.discard()
			return plain(err)
		}
		due = due || len(text) > before
	}
	if due {
		t.payloads.keep() // also if it fails: what was written may be kept elsewhere
		if err := t.write(text); err != nil {
			return noRoom(plain(err))
		}
		t.size += int64(len(text))
		t.head, t.owed, t.tail = nil, nil, false
	}
	t.seq += int64(len(entries))
	t.writer = writer
	return nil
}

// write appends to the file, which must be as this transcript left it. The
// beginning of a new one appears as a whole or not at all: a file with half a
// prompt would be taken for another agent.
func (t *Transcript) write(text []byte) error {
	if t.head != nil {
		return create(t.path, text)
	}
	f, err := os.OpenFile(t.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if info, statErr := f.Stat(); statErr == nil && info.Size() != t.size {
		return errors.Join(t.moved(text), f.Close())
	}
	n, err := f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, t.takeBack(f, int64(n)))
	}
	return errors.Join(err, f.Close())
}

// takeBack cuts off the beginning of a text that could not be written whole, n
// bytes of it, unless somebody else has written after it: then it stays, and what
// is not whole is moved away when the file is opened again.
func (t *Transcript) takeBack(f *os.File, n int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() != t.size+n {
		return err
	}
	return errors.Join(f.Truncate(t.size), f.Sync())
}

var errMoved = fmt.Errorf("%w: somebody else wrote to it", session.ErrConflict)

// moved is the error of a file that somebody else has written to. What was to
// be added is kept beside it.
func (t *Transcript) moved(text []byte) error {
	kept, err := keep(t.path, text)
	if err != nil {
		return errors.Join(errMoved, err)
	}
	return fmt.Errorf("%w; what this run was about to add is in %s", errMoved, kept)
}

// create makes a file of the text unless there is one, for its owner's eyes. It
// writes a file beside it first, and links that.
func create(path string, text []byte) error {
	draft := fmt.Sprintf("%s.%d.new", path, os.Getpid())
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(draft)
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Link(draft, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = moveUnlessThere(draft, path) // a file system without links
	}
	if errors.Is(err, fs.ErrExist) {
		return errMoved
	}
	syncFolder(filepath.Dir(path)) // without its name the text is lost
	return err
}

// moveUnlessThere renames a file. Somebody who creates the same file in between
// loses it; where links work, it is not used.
func moveUnlessThere(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}
