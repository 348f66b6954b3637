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
	"github.com/antiphon-go/antiphon/trust"
)

// Transcript is a [session.Store] that keeps one session in a ChatMarkdown file. The
// file begins with the prompt and is only ever appended to, element by element; each
// element is written and synced before the run continues. It holds these parts of a
// log: the items, where runs and replies begin, how replies ended, which calls were
// started, wait for an approval or were withdrawn, and which items were quarantined
// or collapsed; see [chatmd.IsMark]. So a crash has the same effect as with other
// stores: a reply without its end has broken off, and a call without a start mark
// was not started. Before the first mark, in text of people and earlier programs, a
// call without a response has an unknown outcome.
//
// Notices, usage and compactions are marks too, so that totals and the next request
// are the same as with other stores. The file does not hold verdicts on calls that
// were not started, which are asked about again; rules to be remembered; and the
// sessions of subagents, except for their totals.
//
// It holds one session, whatever the id. It is safe for concurrent use.
type Transcript struct {
	path  string
	given []session.Body

	payloads *payloads
	ledger   *ledger

	mu     sync.Mutex
	seq    int64
	size   int64  // the expected size of the file
	head   []byte // the beginning of a new file; nil once the file exists
	owed   []byte // the usage of agents in messages, to be written with the next text
	tail   bool   // the file does not end in a newline
	writer transcript.Writer
}

// OpenTranscript opens the transcript at out for the agent file at path, and returns
// the agent that runs on it. If the transcript does not exist, it will begin with
// the agent's file, with relative paths adjusted, and is created by the first
// append. If it exists, the agent and its conversation are read from it. Both paths
// may name the same file. If another file than path began the transcript, the error
// is an [*OtherAgentError], unless [Options.KeepAgent] is set.
//
// The transcript is locked until the File is closed or the process ends. If another
// process has the lock, the error wraps [session.ErrBusy] and names the process;
// then nothing was read, asked or written.
//
// If a crash left an unfinished element at the end, it is moved to a file beside the
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
	file.release = func() error { return errors.Join(t.leaves(), release()) }
	return file, t, nil
}

// leaves records that the run left what is in the file now.
func (t *Transcript) leaves() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ledger.close()
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
	before := o // checked first, before anybody is asked, for consent or as an agent
	before.Check, before.Consent = true, nil
	file, err := parse(ctx, out, out, kept, before)
	if err != nil {
		return nil, nil, err
	}
	remark, err := file.checkOrigin(path, out, kept, o)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	if len(file.Claim().Powers) > 0 || file.Partial && !o.Check {
		_ = file.Close()
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
			_ = file.Close()
			return nil, nil, err
		}
		file.Warnings = append(file.Warnings, fmt.Errorf("%s: a crash left the last element unfinished; its %d bytes were moved to %s", out, len(rest), beside))
	}
	t := &Transcript{path: out, given: file.Log(), size: int64(len(kept)), payloads: payloadsOf(file, out)}
	if t.ledger, err = file.ledger(out, string(kept), o); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	t.writer = transcript.After(file.written)
	if o.Began != nil && !hasMarks(file.written) {
		o.Began(file.Claim())
	}
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
	head, err := file.beginning(path, out, o)
	if err == nil {
		err = file.begun(ctx, out, head, o)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	given := file.Log()
	t := &Transcript{path: out, given: given, head: []byte(head), writer: transcript.After(file.written), payloads: payloadsOf(file, out)}
	if t.ledger, err = file.ledger(out, "", o); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	if len(file.others) > 0 { // their places differ in the head, whose paths are adjusted
		t.ledger.others = []trust.Span{{From: 0, To: int64(len(head))}}
	}
	t.writer.Agent = asSeenFrom(out, path)
	t.owed = file.owes()
	return file, t, nil
}

// beginning returns the text with which a transcript at out begins.
func (f *File) beginning(path, out string, o Options) (string, error) {
	from, err := placesOf(path, o)
	if err != nil {
		return "", err
	}
	to, err := placesOf(out, o)
	if err != nil {
		return "", err
	}
	if err := checkFolder(to.promptDir); err != nil {
		return "", fmt.Errorf("%s: the folder %s: %w", out, filepath.Dir(out), err)
	}
	head := f.head(from, to.promptDir)
	if head != "" && head[len(head)-1] != '\n' {
		head += "\n"
	}
	return head, nil
}

// begun tells [Options.Began] the claims of a new transcript at out, which begins with
// the text head: those that [Options.Consent] will be asked about when it is opened
// again.
func (f *File) begun(ctx context.Context, out, head string, o Options) error {
	if o.Began == nil {
		return nil
	}
	began := o.Began
	o.Check, o.gate, o.loading = true, nil, nil
	o.Consent = func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		began(c)
		return trust.Everything(ctx, c) // it only says what the agent's file says
	}
	again, err := parse(ctx, out, out, []byte(head), o)
	if err != nil {
		return err
	}
	if c := again.Claim(); len(c.Powers) == 0 { // nobody was asked
		began(c)
	}
	return again.Close()
}

// owes returns the marks for the usage of agents in messages that ran during
// loading.
func (f *File) owes() (marks []byte) {
	for _, used := range f.used {
		marks = transcript.AppendNested(marks, session.SubagentUsage{Turns: used.Turns, Tokens: used.Tokens, Cost: used.Cost})
	}
	return marks
}

// regular refuses files that cannot be appended to or truncated, links to missing
// files, because a new transcript would replace the link, and links to outside of
// their folder, because a stranger may have chosen what the run would write to.
func regular(path string) error {
	info, err := os.Stat(path)
	if to, linkErr := os.Readlink(path); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a symbolic link to %s, which does not exist; remove the link, or name the file itself", path, to)
	}
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("%s: not a regular file", path)
	}
	if isLink(path) {
		real := resolved(path)
		if rel, err := filepath.Rel(resolved(filepath.Dir(path)), real); err != nil || !filepath.IsLocal(rel) {
			return fmt.Errorf("%s is a link to %s, outside of its folder\n  hint: name that file to continue it", path, real)
		}
	}
	return nil
}

// moveEnd truncates a transcript to the given size. It moves the unfinished element
// at the end to a file of its own, and returns the file's name.
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

// keep appends text that cannot be in a transcript to a file beside it, and returns
// the file's name.
func keep(path string, rest []byte) (kept string, err error) {
	f, err := openCut(path)
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(rest[:len(rest):len(rest)], '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	syncFolder(filepath.Dir(path))
	return f.Name(), err
}

// openCut opens FILE.cut to append to it, or FILE.cut.2 and so on if a link, a folder
// or a device has that name: a transcript that a stranger wrote may come with a link
// beside it, through which the stranger's text would get into a file of the user.
func openCut(path string) (*os.File, error) {
	for n := 1; ; n++ {
		name := path + ".cut"
		if n > 1 {
			name = fmt.Sprintf("%s.%d", name, n)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		before, err := os.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !before.Mode().IsRegular() {
			continue
		}
		if f, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			return nil, err
		}
		if opened, err := f.Stat(); err == nil && os.SameFile(before, opened) {
			return f, nil
		}
		_ = f.Close() // a link took its place; nothing was written
	}
}

// Load implements [session.Store]. It returns the content of the file at the time it
// was opened; later entries are not read back.
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

// Append implements [session.Store]: it writes the entries' items at the end of the
// file in one write, and syncs. Long payloads go into separate files, which are
// written before the element that names them. If it fails, the file is unchanged. A
// new file is created with the first item, or when the model is about to be asked.
// Errors do not name the file, because the session does.
func (t *Transcript) Append(_ context.Context, _ string, after int64, entries []session.Entry) error {
	if t.payloads == nil {
		return errors.New("agentfile: the Transcript is not open: use OpenTranscript")
	}
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
	var ends []int // of what must be written as a whole
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
		ends = append(ends, len(text))
	}
	if due {
		written, err := t.ledger.change(text, ends)
		if err != nil {
			t.payloads.discard()
			return noRoom(plain(err))
		}
		t.payloads.keep() // even on failure, because the text may be kept elsewhere
		if err := t.write(text); err != nil {
			return noRoom(plain(err))
		}
		written()
		t.size += int64(len(text))
		t.head, t.owed, t.tail = nil, nil, false
	}
	t.seq += int64(len(entries))
	t.writer = writer
	return nil
}

// write appends to the file, which must be as this transcript left it. The beginning
// of a new file is created as a whole or not at all, because a file with half a
// prompt would be read as another agent.
func (t *Transcript) write(text []byte) error {
	if t.head != nil {
		return create(t.path, text)
	}
	if info, err := os.Stat(t.path); err == nil && !info.Mode().IsRegular() { // to open a named pipe would wait
		return t.moved(text)
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

// takeBack removes the n bytes of a text that could not be written completely,
// unless another process has written after them: then they stay, and the incomplete
// part is moved away when the file is next opened.
func (t *Transcript) takeBack(f *os.File, n int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() != t.size+n {
		return err
	}
	return errors.Join(f.Truncate(t.size), f.Sync())
}

var errMoved = fmt.Errorf("%w: another process wrote to it", session.ErrConflict)

// moved returns the error for a file that another process has written to, and keeps
// the text beside the file.
func (t *Transcript) moved(text []byte) error {
	kept, err := keep(t.path, text)
	if err != nil {
		return errors.Join(errMoved, err)
	}
	return fmt.Errorf("%w; the text that this run was about to add is in %s", errMoved, kept)
}

// create makes a file with the text, readable by its owner only, unless the file
// exists. It writes a draft first and links it into place, so that the file is
// complete when it appears.
func create(path string, text []byte) error {
	draft := fmt.Sprintf("%s.%d.new", path, os.Getpid())
	_ = os.Remove(draft) // of a process that was killed, or a link
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
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
		err = moveUnlessThere(draft, path) // the file system has no links
	}
	if errors.Is(err, fs.ErrExist) {
		return errMoved
	}
	syncFolder(filepath.Dir(path)) // without the name in the folder the text would be lost
	return err
}

// moveUnlessThere renames a file. A process that creates the target in between loses
// its file, so this is used only where links do not work.
func moveUnlessThere(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}
