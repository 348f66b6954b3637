// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// This file takes back what calls of a chat did to files. Before a call that writes, the
// content of its files is kept in the store of sessions. A notice in the log says what each
// file was and became. A file is changed back only if it still is what the call made of it.

// fileState is the state of a file: the hash of its content, and its mode. The zero value
// means that there is no file.
type fileState struct {
	hash string
	mode fs.FileMode
}

func (s fileState) String() string {
	if s.hash == "" {
		return "none"
	}
	return fmt.Sprintf("%s %o", s.hash, s.mode)
}

// fileChange is a change of a file, by its absolute path with links resolved.
type fileChange struct {
	path          string
	before, after fileState
}

func noticeOf(callID, by string, list []fileChange) session.Noticed {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%q %s -> %s", c.path, c.before, c.after))
	}
	return session.Noticed{Kind: show.NoticeFiles, CallID: callID, Text: "changed by " + by + ": " + strings.Join(parts, "; ")}
}

var changedFile = lazyregexp.New(`("(?:[^"\\]|\\.)*") (none|[0-9a-f]{64} [0-7]+) -> (none|[0-9a-f]{64} [0-7]+)`)

// changesOf reads a notice.
func changesOf(n session.Noticed) (list []fileChange) {
	state := func(text string) (s fileState) {
		hash, mode, _ := strings.Cut(text, " ")
		if bits, err := strconv.ParseUint(mode, 8, 12); err == nil {
			s = fileState{hash, fs.FileMode(bits)}
		}
		return s
	}
	for _, found := range changedFile.FindAllStringSubmatch(n.Text, -1) {
		if path, err := strconv.Unquote(found[1]); err == nil {
			list = append(list, fileChange{path, state(found[2]), state(found[3])})
		}
	}
	return list
}

// mostKept is the size of the largest file whose content is kept, in bytes.
const mostKept = toolkit.MaxEditBytes

// folderOf opens the folder of a path whose links are resolved, so that all that follows is done in
// this folder, even if a link takes its place. If a link has taken its place already, the error is errSince.
func folderOf(path string) (*toolkit.Files, error) {
	folder := filepath.Dir(path)
	f, err := toolkit.Open(toolkit.Root{Path: folder})
	if err == nil && f.Held()[folder] != folder {
		err = errors.Join(errSince, f.Close())
	}
	return f, err
}

// stateOf reads a file, which need not exist.
func stateOf(path string) (s fileState, content []byte, err error) {
	f, err := folderOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil
	}
	if err != nil {
		return s, nil, err
	}
	defer f.Close()
	p, _ := f.In("", filepath.Base(path))
	return stateIn(p.Dir(), p.OSPath())
}

// stateIn reads a file in a folder that is open.
func stateIn(dir *os.Root, name string) (s fileState, content []byte, err error) {
	f, info, err := private.OpenIn(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil
	}
	notKept := fmt.Errorf("%s is not a regular file of at most %d bytes", name, mostKept)
	if errors.Is(err, private.ErrNotRegular) {
		err = notKept
	}
	if err != nil {
		return s, nil, err
	}
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, mostKept+1))
	if err == nil && len(content) > mostKept {
		err = notKept
	}
	return fileState{hashOf(content), info.Mode().Perm()}, content, err
}

// watchFiles notes what the calls of a run do to files. Its fields do not change during a run.
type watchFiles struct {
	blobs session.Blobs
	id    string // of the session

	mu     sync.Mutex
	before map[string][]fileChange // of the calls that run
	done   []session.Body
}

// watch adds the hooks that note changes of files.
func (t *dialogue) watch(a *agent.Agent) *watchFiles {
	w := &watchFiles{blobs: t.host.Session.Blobs(), id: t.host.Session.ID(), before: map[string][]fileChange{}}
	if w.blobs == nil {
		return w
	}
	a.Hooks = slices.DeleteFunc(slices.Clone(a.Hooks), func(h agent.Hooks) bool { return h.Name == show.NoticeFiles })
	a.Hooks = append(a.Hooks, agent.Hooks{
		Name: show.NoticeFiles,
		BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			set, err := a.ToolSet(ctx)
			if err == nil {
				w.begin(ctx, set, c.Call)
			}
			return ctx, nil
		},
		AfterTool: func(_ context.Context, c *agent.ToolCall) error {
			if !c.Paused {
				w.end(c.Call)
			}
			return nil
		},
	})
	return w
}

// writtenBy returns the absolute paths of the files that a call writes to, as far as its tool knows
// them.
func writtenBy(one tool.Tool, call tool.Call) []string {
	for one != nil {
		if w, ok := one.(interface{ Writes(call tool.Call) []string }); ok {
			return w.Writes(call)
		}
		wrapper, ok := one.(interface{ Unwrap() tool.Tool })
		if !ok {
			return nil
		}
		one = wrapper.Unwrap()
	}
	return nil
}

// begin keeps what a call is about to change. A file that cannot be kept cannot be taken back.
func (w *watchFiles) begin(ctx context.Context, set *tool.Set, call tool.Call) {
	one, _ := set.Lookup(call.Name)
	var list []fileChange
	for _, path := range writtenBy(one, call) {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			folder = filepath.Dir(path) // it may be made
		}
		path = filepath.Join(folder, filepath.Base(path))
		if slices.ContainsFunc(list, func(c fileChange) bool { return c.path == path }) {
			continue
		}
		state, content, err := stateOf(path)
		if err == nil && state.hash != "" {
			_, err = w.blobs.PutBlob(ctx, w.id, content)
		}
		if err == nil {
			list = append(list, fileChange{path: path, before: state})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before[call.ID] = list
}

// end notes what a call has changed.
func (w *watchFiles) end(call tool.Call) {
	w.mu.Lock()
	list := w.before[call.ID]
	delete(w.before, call.ID)
	w.mu.Unlock()
	var changed []fileChange
	for _, c := range list {
		after, _, err := stateOf(c.path)
		if c.after = after; err == nil && after != c.before {
			changed = append(changed, c)
		}
	}
	if changed == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, noticeOf(call.ID, call.Name, changed))
}

// record writes what was noted into the log. The run must be over.
func (w *watchFiles) record(ctx context.Context, s *session.Session) error {
	w.mu.Lock()
	done := w.done
	w.done = nil
	w.mu.Unlock()
	if len(done) == 0 {
		return nil
	}
	_, err := s.Append(context.WithoutCancel(ctx), done...)
	return err
}

// since is what happened to files after an entry of the log.
type since struct {
	back  []fileChange // that can be taken back, as one change of each file
	stays []string     // files that were changed otherwise since
	lost  []string     // calls that cannot be taken back
}

// after returns what happened after entry at.
func (t *dialogue) after(ctx context.Context, at int64) (found since, err error) {
	var list []fileChange
	var calls agent.KnownCalls
	noted := map[string]bool{}
	type started struct {
		id     string
		call   *agent.KnownCall
		failed bool
		output string
	}
	var ran []started
	for e := range t.host.Session.Entries() {
		call := calls.Add(e)
		if e.Seq <= at {
			continue
		}
		switch b := e.Body.(type) {
		case session.Noticed:
			if b.Kind == show.NoticeFiles {
				list = append(list, changesOf(b)...)
				noted[b.CallID] = true
			}
		case session.CallStarted:
			if call != nil {
				ran = append(ran, started{id: b.CallID, call: call})
			}
		case session.CallOutput:
			if i := slices.IndexFunc(ran, func(r started) bool { return r.id == b.CallID }); i >= 0 {
				ran[i].failed, ran[i].output = b.Failed, show.InWords(b.Item)
			}
		}
	}
	if len(ran) > 0 {
		_, set, err := t.equipped(ctx)
		if err != nil {
			return found, err
		}
		for _, r := range ran {
			one, known := set.Lookup(r.call.Tool)
			reads := known && tool.AnnotationsOf(one).ReadOnly
			// A tool that says what it writes to writes nothing if it fails.
			failed := r.failed && len(writtenBy(one, tool.Call{ID: r.id, Name: r.call.Tool, Arguments: r.call.Arguments})) > 0
			as := tool.Call{ID: r.id, Name: r.call.Tool, Arguments: r.call.Arguments}
			failed = failed || r.failed && strings.Contains(r.output, "The tool was not run.") && set.CheckArguments(as) != nil
			if !noted[r.id] && !reads && !failed {
				found.lost = append(found.lost, r.call.Tool+" "+r.call.Arguments)
			}
		}
	}
	for _, c := range list {
		i := slices.IndexFunc(found.back, func(o fileChange) bool { return o.path == c.path })
		switch {
		case i < 0:
			found.back = append(found.back, c)
		case found.back[i].after == c.before:
			found.back[i].after = c.after
		default: // something else changed it between the calls
			found.back[i].after = fileState{hash: "other"}
		}
	}
	found.back = slices.DeleteFunc(found.back, func(c fileChange) bool {
		if c.before == c.after {
			return true
		}
		now, _, err := stateOf(c.path)
		if err != nil || now.hash != c.after.hash {
			found.stays = append(found.stays, c.path)
			return true
		}
		return false
	})
	return found, nil
}

// said is a message of the person.
type said struct {
	seq  int64
	text string
	sent []item.Part // with it, by flags
}

// said returns what the person said, oldest first.
func (t *dialogue) said() (list []said) {
	for e := range t.host.Session.Entries() {
		if b, ok := e.Body.(session.InputItem); ok && !b.Own && b.Item.Type() == item.TypeMessage && b.Item.Role() == item.RoleUser {
			if m, err := item.As[item.Message](b.Item); err == nil {
				text, sent := typedOf(m.Content)
				list = append(list, said{e.Seq, text, sent})
			}
		}
	}
	return list
}

// undo goes back before a message of the person: the last one, or the one that rest numbers
// from the end.
func (t *dialogue) undo(ctx context.Context, rest string) error {
	if err := t.kept(); err != nil {
		return err
	}
	n, list := 1, t.said()
	if rest != "" {
		var err error
		if n, err = strconv.Atoi(rest); err != nil || n < 1 {
			return errors.New("/undo takes a number: 1 is your last message, 2 the one before it")
		}
	}
	if n > len(list) {
		return errors.New("there is no such message to go back to")
	}
	return t.backTo(ctx, list[len(list)-n])
}

// back goes back before the message whose first line is which, or asks before which one.
func (t *dialogue) back(ctx context.Context, which string) error {
	if err := t.kept(); err != nil {
		return err
	}
	list := t.said()
	numbers := numbersOf(list, which)
	switch {
	case which != "" && len(numbers) == 0:
		return errors.New("no message begins with this line")
	case len(numbers) == 1:
		return t.undo(ctx, strconv.Itoa(numbers[0]))
	case len(list) == 0:
		return t.undo(ctx, "")
	}
	const most = 20
	for _, n := range numbers[:min(most, len(numbers))] {
		fmt.Fprintf(t.std.Err, "  %2d. %s\n", n, show.Shorten(list[len(list)-n].text, 100))
	}
	if len(numbers) > most {
		fmt.Fprintf(t.std.Err, "      and %d before them, which /undo N reaches\n", len(numbers)-most)
	}
	line, err := t.asked(ctx, "go back before which one? its number, or nothing: ")
	if err != nil || line == "" {
		return err
	}
	return t.undo(ctx, line)
}

// numbersOf returns the numbers, from the end, of the messages whose first line is as a chat shows it, newest
// first, or of all.
func numbersOf(list []said, line string) (numbers []int) {
	for n := 1; n <= len(list); n++ {
		first, _, _ := strings.Cut(list[len(list)-n].text, "\n")
		if line == "" || strings.TrimSpace(tui.Shown(first)) == line {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// asked asks the person something. The answer is empty when they leave.
func (t *dialogue) asked(ctx context.Context, question string) (string, error) {
	done, err := t.who.Alone(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	t.who.Unasked()
	fmt.Fprint(t.std.Err, question)
	line, _, err := t.who.Line(ctx)
	return strings.TrimSpace(line), err
}

// backTo goes back before a message: of the conversation, in a fork, and of the files that
// were changed since, as the person says.
func (t *dialogue) backTo(ctx context.Context, m said) error {
	found, err := t.after(ctx, m.seq)
	if err != nil {
		return err
	}
	t.list(found)
	conversation, files := true, false
	for len(found.back) > 0 {
		answer, err := t.asked(ctx, "   take back [c]onversation, [f]iles, [b]oth, or [n]othing: ")
		if err != nil {
			return err
		}
		known := true
		switch strings.ToLower(answer) {
		case "c", "conversation":
		case "f", "files":
			conversation, files = false, true
		case "b", "both":
			files = true
		case "n", "nothing", "":
			return nil
		default:
			known = false
		}
		if known {
			break
		}
	}
	u := &undone{from: t.info.ID, conversation: conversation}
	if files {
		u.files = t.restore(ctx, found.back)
	}
	if files && !conversation && len(u.files) > 0 {
		if _, err := t.host.Session.Append(ctx, noticeOf("", "/undo", u.files)); err != nil {
			return err
		}
	}
	if conversation {
		if err := t.before(ctx, m); err != nil {
			return err
		}
		t.sendAgain(m)
		t.face.put(m.text)
	}
	t.undone = u
	return nil
}

// sendAgain has what flags sent with a message go with the next one.
func (t *dialogue) sendAgain(m said) {
	if len(m.sent) > 0 {
		t.conf.Parts = append(slices.Clone(m.sent), t.conf.Parts...)
		fmt.Fprintf(t.std.Err, "   (%s of -f with your next message)\n", show.Plural(len(m.sent), "file"))
	}
}

// list shows what happened to files.
func (t *dialogue) list(found since) {
	show := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintln(t.std.Err, "   "+title)
		}
		for _, line := range lines {
			fmt.Fprintln(t.std.Err, "     "+show.Shorten(show.Visible(t.env.Hide(line)), 200))
		}
	}
	var back, stays []string
	for _, c := range found.back {
		kind := "changed"
		switch {
		case c.before.hash == "":
			kind = "new, and is deleted"
		case c.after.hash == "":
			kind = "deleted"
		}
		back = append(back, beside(c.path)+": "+kind)
	}
	for _, path := range found.stays {
		stays = append(stays, beside(path))
	}
	show("files that can be taken back:", back)
	show("files that stay, because something else changed them since:", stays)
	show("what else was done, which cannot be taken back:", found.lost)
}

// beside returns a path relative to the current folder, if it is in it.
func beside(path string) string {
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// before goes on in a fork that ends before a message, or in a new session if it was the first.
func (t *dialogue) before(ctx context.Context, m said) error {
	if m.seq > 1 {
		return t.forkAt(ctx, m.seq-1, "")
	}
	fmt.Fprintf(t.std.Err, "antiphon: %s stays as it is; this begins anew\n", show.Printable(cmp.Or(t.info.Name, t.info.ID)))
	return t.reopen(ctx, func(cfg *host.Config) { cfg.Session, cfg.Tags = TimedName(), t.conf.Host.Tags })
}

// undone is what /undo did last.
type undone struct {
	from         string // the session
	conversation bool
	files        []fileChange // as /undo changed them
}

// redo does again what /undo took back last.
func (t *dialogue) redo(ctx context.Context) error {
	u := t.undone
	if u == nil {
		return errors.New("there is nothing to do again: /redo follows an /undo, before anything else is said")
	}
	t.undone = nil
	done := t.restore(ctx, u.files)
	if u.conversation {
		t.conf.Parts = nil // the message that they go with is there again
	}
	if !u.conversation {
		if len(done) == 0 {
			return nil
		}
		_, err := t.host.Session.Append(ctx, noticeOf("", "/redo", done))
		return err
	}
	return t.reopen(ctx, func(cfg *host.Config) { cfg.Session = u.from })
}

// restore changes files back to what they were before the changes, and returns what it did.
func (t *dialogue) restore(ctx context.Context, list []fileChange) (done []fileChange) {
	for _, c := range list {
		err := restoreFile(ctx, t.host.Session.Blobs(), t.host.Session.ID(), c)
		if err != nil {
			fmt.Fprintf(t.std.Err, "!! %s: %s\n", show.Visible(beside(c.path)), show.Printable(t.env.Hide(err.Error())))
			continue
		}
		fmt.Fprintf(t.std.Err, "   %s is as it was\n", show.Visible(beside(c.path)))
		done = append(done, fileChange{c.path, c.after, c.before})
	}
	return done
}

// errSince means that a file is not what it was expected to be.
var errSince = errors.New("it was changed since, so it stays as it is")

// restoreFile changes a file back in the folder that is at its path now. What is there now is kept
// for the session, so that it can be done again.
func restoreFile(ctx context.Context, blobs session.Blobs, id string, c fileChange) error {
	f, err := folderOf(c.path)
	if err != nil {
		return err
	}
	defer f.Close()
	p, _ := f.In("", filepath.Base(c.path))
	now, content, err := stateIn(p.Dir(), p.OSPath())
	if err != nil {
		return err
	}
	if now.hash != c.after.hash {
		return errSince
	}
	if now.hash != "" { // for /redo
		if _, err := blobs.PutBlob(ctx, id, content); err != nil {
			return err
		}
	}
	if c.before.hash == "" {
		return removeIf(p.Dir(), p.OSPath(), c.after.hash)
	}
	old, err := keptContent(ctx, blobs, c.before.hash)
	if err != nil {
		return err
	}
	err = f.Edit(p, c.after.hash == "", func(now []byte, exists bool) ([]byte, error) {
		if exists != (c.after.hash != "") || exists && hashOf(now) != c.after.hash {
			return nil, errSince
		}
		return old, nil
	})
	if err != nil || now.mode == c.before.mode {
		return err
	}
	done, _, err := private.OpenIn(p.Dir(), p.OSPath())
	if err != nil {
		return err
	}
	return errors.Join(done.Chmod(c.before.mode), done.Close())
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// keptContent reads a content that was kept.
func keptContent(ctx context.Context, blobs session.Blobs, hash string) ([]byte, error) {
	var h session.Hash
	if _, err := hex.Decode(h[:], []byte(hash)); err != nil {
		return nil, err
	}
	blob, _, err := blobs.OpenBlob(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("its earlier content is not kept any more: %w", err)
	}
	defer blob.Close()
	content, err := io.ReadAll(io.LimitReader(blob, mostKept+1))
	if err == nil && hashOf(content) != hash {
		err = session.ErrDamaged
	}
	return content, err
}

// removeIf deletes a file that still has a content. It gets another name first, so that
// what somebody writes at the same time is not deleted.
func removeIf(dir *os.Root, name, hash string) error {
	temp := ".antiphon-" + rand.Text() + ".tmp"
	if err := dir.Rename(name, temp); err != nil {
		return err
	}
	found, _, err := stateIn(dir, temp)
	if err == nil && found.hash == hash {
		return dir.Remove(temp)
	}
	if back := dir.Link(temp, name); back != nil {
		return errors.Join(errSince, fmt.Errorf("it is called %s now: %w", temp, back))
	}
	return errors.Join(errSince, dir.Remove(temp))
}
