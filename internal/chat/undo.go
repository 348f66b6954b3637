// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// since is what happened to files after an entry of the log.
type since struct {
	back  []fileChange // that can be taken back, as one change of each file
	stays []string     // files that were changed otherwise since
	lost  []string     // calls that cannot be taken back
}

// startedCall is a call that was started, and what became of it.
type startedCall struct {
	call   tool.Call
	failed bool
	output string
}

// after returns what happened after entry at.
func (t *dialogue) after(ctx context.Context, at int64) (found since, err error) {
	var changes []fileChange
	var calls agent.KnownCalls
	noted := map[string]bool{} // calls whose changes of files are known
	var ran []startedCall
	for e := range t.host.Session.Entries() {
		call := calls.Add(e)
		if e.Seq <= at {
			continue
		}
		switch b := e.Body.(type) {
		case session.Noticed:
			if b.Kind == show.NoticeFiles {
				changes = append(changes, changesOf(b)...)
				noted[b.CallID] = true
			}
		case session.CallStarted:
			if call != nil {
				ran = append(ran, startedCall{call: tool.Call{ID: b.CallID, Name: call.Tool, Arguments: call.Arguments}})
			}
		case session.CallOutput:
			if i := slices.IndexFunc(ran, func(r startedCall) bool { return r.call.ID == b.CallID }); i >= 0 {
				ran[i].failed, ran[i].output = b.Failed, show.InWords(b.Item)
			}
		}
	}
	ran = slices.DeleteFunc(ran, func(r startedCall) bool { return noted[r.call.ID] })
	if found.lost, err = t.unclear(ctx, ran); err != nil {
		return found, err
	}
	found.back, found.stays = takenBack(changes)
	return found, nil
}

// unclear returns the calls that may have changed something that nobody noted.
func (t *dialogue) unclear(ctx context.Context, ran []startedCall) (lost []string, err error) {
	if len(ran) == 0 {
		return nil, nil
	}
	_, set, err := t.equipped(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range ran {
		one, known := set.Lookup(r.call.Name)
		reads := known && tool.AnnotationsOf(one).ReadOnly
		// A tool that says what it writes to writes nothing if it fails.
		nothing := r.failed && len(writtenBy(one, r.call)) > 0
		refused := r.failed && strings.Contains(r.output, "The tool was not run.") && set.CheckArguments(r.call) != nil
		if !reads && !nothing && !refused {
			lost = append(lost, r.call.Name+" "+r.call.Arguments)
		}
	}
	return lost, nil
}

// takenBack returns the changes as one of each file, and the files that something else has changed since.
func takenBack(changes []fileChange) (back []fileChange, stays []string) {
	for _, c := range changes {
		i := slices.IndexFunc(back, func(o fileChange) bool { return o.path == c.path })
		switch {
		case i < 0:
			back = append(back, c)
		case back[i].after == c.before:
			back[i].after = c.after
		default: // something else changed it between the calls
			back[i].after = fileState{hash: "other"}
		}
	}
	back = slices.DeleteFunc(back, func(c fileChange) bool {
		if c.before == c.after {
			return true
		}
		now, _, err := stateOf(c.path)
		changed := err != nil || now.hash != c.after.hash
		if changed {
			stays = append(stays, c.path)
		}
		return changed
	})
	return back, stays
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
