// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

const (
	// mostRecalled is the number of messages that are shown of a session that continues.
	mostRecalled = 4
	// mostRecalledCalls is the number of calls that are shown between them.
	mostRecalledCalls = 20
	// manyEntries is the number from which the end of a session is shown before the session
	// is open, and mostSearched the number of entries in which its last messages are looked for.
	manyEntries  = 2000
	mostSearched = 4096
)

// restOf is what the person sees while a long session is opened.
const restOf = "the rest of the conversation"

// message is what the person or the model said.
type message struct {
	seq    int64
	user   bool
	text   string
	images []item.Part
	// printed is what a shell line of the person's printed.
	printed string
}

func (m message) hasPicture() (has bool) {
	show.PicturesIn(m.images, func(string) { has = true })
	return has
}

// messagesIn returns the messages among entries.
func messagesIn(entries iter.Seq[session.Entry]) (all []message) {
	for e := range entries {
		var it item.Item
		switch b := e.Body.(type) {
		case session.InputItem:
			if it = b.Item; b.Own {
				continue
			}
		case session.OutputItem:
			it = b.Item
		}
		if it.Type() != item.TypeMessage || it.Instructs() {
			continue
		}
		m, err := item.As[item.Message](it)
		if err != nil {
			continue
		}
		text := m.Content.Display()
		user := it.Role() != item.RoleAssistant
		printed := ""
		if user {
			text = typedText(m.Content)
			if line, ran := ranLine(text); ran {
				_, printed, _ = strings.Cut(strings.TrimPrefix(text, ranHead), "\n")
				text = line
			}
		}
		all = append(all, message{e.Seq, user, text, m.Content.Parts, printed})
	}
	return all
}

// recall shows the end of a session that continues, at most so many messages or, with 0, all, and
// puts what the person said into the history. If the end was shown before the session was open,
// it shows what followed.
func (t *dialogue) recall(entries iter.Seq[session.Entry], most int) {
	all := messagesIn(entries)
	var asked []string
	for _, m := range all {
		if m.user && m.seq > t.remembered {
			asked = append(asked, m.text)
		}
	}
	if len(all) > 0 {
		t.remembered = max(t.remembered, all[len(all)-1].seq)
	}
	t.face.remember(asked, t.draft())
	defer t.recallRan()
	if t.host != nil && t.host.Fresh() {
		return
	}
	from := t.recalled + 1
	if before := len(all) - most; t.recalled == 0 && before > 0 && most > 0 {
		t.shortened(fmt.Sprintf("the last %d of %d messages", most, len(all)))
		from = all[before].seq
	}
	mostCalls := mostRecalledCalls
	if most == 0 {
		mostCalls = math.MaxInt
	}
	t.replay(entries, from, mostCalls, func(name, uri string) { t.picture(context.Background(), name, uri) })
}

// shortened says that only the end of the session is shown.
func (t *dialogue) shortened(what string) {
	fmt.Fprintf(t.std.Err, "antiphon: %s; /redraw shows all, and antiphon sessions show %s also what happened between them\n", what, quoted(t.info.ID))
}

// replay shows entries as they were shown when they came, from a number on, with at most so many calls.
// Picture shows a picture; nil means that pictures are left out.
func (t *dialogue) replay(entries iter.Seq[session.Entry], from int64, mostCalls int, picture func(name, uri string)) {
	p := t.newPrinter()
	p.Waits, p.Again, p.Over, p.Picture = (*show.Screen)(nil), true, true, picture
	left := -mostCalls // calls that are not shown
	for e := range entries {
		if _, ok := e.Body.(session.CallStarted); ok && e.Seq >= from {
			left++
		}
	}
	if left > 0 {
		p.Tell(show.Dim, "   … the first %s of these are not shown; /redraw shows all", show.Plural(left, "call"))
	}
	hidden, begun := map[string]bool{}, map[string]time.Time{}
	for e := range entries {
		if e.Seq < from {
			p.Passed(e)
			continue
		}
		switch b := e.Body.(type) {
		case session.InputItem:
			t.replayInput(e, p)
			continue
		case session.CallStarted:
			if begun[b.CallID] = e.Time; len(hidden) < left {
				hidden[b.CallID] = true
			}
			if hidden[b.CallID] {
				p.Passed(e)
				continue
			}
		case session.CallOutput:
			if hidden[b.CallID] {
				p.Passed(e)
				continue
			}
			if at := begun[b.CallID]; !at.IsZero() && e.Time.After(at) {
				_ = p.Show(agent.Progress{Kind: agent.ProgressReturned, CallID: b.CallID, Took: e.Time.Sub(at), Error: show.FailureOf(b.Item)}) // the terminal has no errors
			}
		}
		p.Entry(e)
		switch e.Body.(type) {
		case session.OutputItem, session.TurnEnded:
			p.EndLine()
			t.face.endText()
		}
	}
}

// mostRanRows is the number of rows shown of what a shell line printed.
const mostRanRows = 20

// replayInput shows what was said to the model.
func (t *dialogue) replayInput(e session.Entry, p *show.Printer) {
	for _, m := range messagesIn(slices.Values([]session.Entry{e})) {
		if !m.user {
			p.Text(m.text)
			p.EndLine()
			t.face.endText()
			continue
		}
		t.face.said(m.text)
		if p.Picture != nil {
			show.PicturesIn(m.images, func(uri string) { p.Picture("that went with it", uri) })
		}
		if m.printed == "" {
			continue
		}
		rows := strings.Split(strings.TrimRight(m.printed, "\n"), "\n")
		if more := len(rows) - mostRanRows; more > 0 {
			fmt.Fprintf(t.std.Err, "  … %s above\n", show.Plural(more, "line"))
			rows = rows[more:]
		}
		for _, row := range rows {
			fmt.Fprintln(t.std.Err, "  "+show.Printable(strings.TrimRight(row, "\r")))
		}
	}
}

// opening shows the end of a long session while all of it is read. What the person sends
// meanwhile waits in the queue. An error is left to the reading of all.
func (t *dialogue) opening(ctx context.Context, in store.Store, found session.Info) {
	if found.Entries < manyEntries {
		return
	}
	t.face.Wait(restOf, fmt.Sprintf("%s, %d entries", restOf, found.Entries))
	end, from, err := lastMessages(ctx, in, found, mostRecalled)
	if err != nil || len(end) == 0 {
		return
	}
	t.info, t.recalled = found, end[len(end)-1].Seq
	t.printer(slices.Values([]session.Entry(nil)))
	t.shortened(fmt.Sprintf("the last %d messages of %d entries", mostRecalled, found.Entries))
	t.replay(slices.Values(end), from, mostRecalledCalls, nil)
}

// lastMessages returns the last entries of a session, and the number of that with the first of its last
// messages. It reads the log from its end, and returns none if there are not enough messages near it, or if
// one has a picture, for whose decoding the rest would wait.
func lastMessages(ctx context.Context, in store.Store, found session.Info, most int) (end []session.Entry, from int64, err error) {
	for n := int64(128); n <= min(mostSearched, found.Entries); n *= 2 {
		end = nil
		for e, err := range in.Load(ctx, found.ID, found.Entries-n) {
			if err != nil {
				return nil, 0, err
			}
			end = append(end, e)
		}
		if list := messagesIn(slices.Values(end)); len(list) > most {
			list = list[len(list)-most:]
			if slices.ContainsFunc(list, message.hasPicture) {
				break
			}
			return end, list[0].seq, nil
		}
	}
	return nil, 0, nil
}
