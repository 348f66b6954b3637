// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

const (
	// mostRecalled is the number of messages that are shown of a session that continues.
	mostRecalled = 4
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
}

func (m message) hasPicture() (has bool) {
	picturesIn(m.images, func(string) { has = true })
	return has
}

// messagesIn returns the messages among entries.
func messagesIn(entries iter.Seq[session.Entry]) (all []message) {
	for e := range entries {
		var it item.Item
		switch b := e.Body.(type) {
		case session.InputItem:
			it = b.Item
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
		if user {
			text = typedText(m.Content)
			if line, ran := ranLine(text); ran {
				text = line
			}
		}
		all = append(all, message{e.Seq, user, text, m.Content.Parts})
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
	if t.recalled > 0 {
		all = slices.DeleteFunc(all, func(m message) bool { return m.seq <= t.recalled })
	} else if before := len(all) - most; before > 0 && most > 0 {
		t.shortened(fmt.Sprintf("the last %d of %d messages", most, len(all)))
		all = all[before:]
	}
	t.showMessages(all)
}

// shortened says that only the end of the session is shown.
func (t *dialogue) shortened(what string) {
	fmt.Fprintf(t.std.err, "antiphon: %s; /redraw shows all, and antiphon sessions show %s also what happened between them\n", what, quoted(t.info.ID))
}

func (t *dialogue) showMessages(list []message) {
	for _, m := range list {
		if m.user {
			t.face.said(m.text)
			picturesIn(m.images, func(uri string) { t.picture(context.Background(), "that went with it", uri) })
			continue
		}
		t.print.text(m.text)
		t.print.endLine()
		t.face.endText()
	}
}

// opening shows the end of a long session while all of it is read. What the person sends
// meanwhile waits in the queue. An error is left to the reading of all.
func (t *dialogue) opening(ctx context.Context, in store.Store, found session.Info) {
	if found.Entries < manyEntries {
		return
	}
	t.face.wait(restOf, fmt.Sprintf("%s, %d entries", restOf, found.Entries))
	end, last, err := lastMessages(ctx, in, found, mostRecalled)
	if err != nil || len(end) == 0 {
		return
	}
	t.info, t.recalled = found, last
	t.printer(slices.Values([]session.Entry(nil)))
	t.shortened(fmt.Sprintf("the last %d messages of %d entries", len(end), found.Entries))
	t.showMessages(end)
}

// lastMessages returns the last messages of a session, and the number of its last entry. It reads
// the log from its end, and returns none if there are not enough of them near it, or if one has
// a picture, for whose decoding the rest would wait.
func lastMessages(ctx context.Context, in store.Store, found session.Info, most int) (list []message, last int64, err error) {
	for n := int64(128); n <= min(mostSearched, found.Entries); n *= 2 {
		var end []session.Entry
		for e, err := range in.Load(ctx, found.ID, found.Entries-n) {
			if err != nil {
				return nil, 0, err
			}
			end = append(end, e)
		}
		if list = messagesIn(slices.Values(end)); len(list) > most {
			list = list[len(list)-most:]
			if slices.ContainsFunc(list, message.hasPicture) {
				break
			}
			return list, end[len(end)-1].Seq, nil
		}
	}
	return nil, 0, nil
}
