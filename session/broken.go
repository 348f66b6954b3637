// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// brokeOff follows an assistant message that broke off. Some servers treat an
// assistant message at the end of a request as the beginning of their own reply:
// they continue it and return the whole text again, or they refuse two such messages
// in a row. Others start a new reply. After a user's message all servers do the
// same. The note stays in the list whatever follows, so that the next request begins
// with the same bytes as this one.
var brokeOff = item.User("[The reply above broke off here before it was complete. Unless something else is asked below, go on from exactly where it stops, and do not repeat what is there.]")

// IsBreakNote reports whether an item of [View.Items] is the note after a reply that
// broke off. No log entry holds the note; [View.Seq] gives the entry of the message
// before it.
func IsBreakNote(it item.Item) bool { return it == brokeOff }

// noteBreak adds the note if the last line is a message of the assistant.
func (v *View) noteBreak() {
	if len(v.lines) == 0 {
		return
	}
	if last := v.lines[len(v.lines)-1]; spoken(last.item) {
		v.put(last.seq, brokeOff, false)
	}
}

// spoken reports whether an item is an assistant's message.
func spoken(it item.Item) bool {
	return it.Type() == item.TypeMessage && it.Role() == item.RoleAssistant
}

// Unfinished returns the number of the entry whose message the next reply continues:
// the last message in the view is a reply that broke off. It returns 0 if there is
// no such message.
func (v *View) Unfinished() int64 {
	if i := v.before(len(v.lines)); i >= 0 && len(v.pending) == 0 && v.lines[i].item == brokeOff {
		return v.lines[i].seq
	}
	return 0
}

// before returns the index of the last line before i that no later entry repeats, or
// -1.
func (v *View) before(i int) int {
	for i--; i >= 0 && v.repeated[v.lines[i].seq] != 0; i-- {
	}
	return i
}

// fragment is a message that broke off, with the reasoning that led to it.
type fragment struct {
	seqs []int64 // the message's entry is the last
	text string
}

// fragments returns the broken-off messages at the end of the lines, the oldest
// first. They follow one another directly and are parts of one reply.
func (v *View) fragments() (parts []fragment) {
	for i := v.before(len(v.lines)); i > 0 && v.lines[i].item == brokeOff; {
		i = v.before(i)
		f := fragment{[]int64{v.lines[i].seq}, wordsOf(v.lines[i].item)}
		for i = v.before(i); i >= 0 && v.lines[i].item.Type() == item.TypeReasoning; i = v.before(i) {
			f.seqs = append(f.seqs, v.lines[i].seq)
		}
		slices.Reverse(f.seqs)
		parts = append(parts, f)
	}
	slices.Reverse(parts)
	return parts
}

// Repeats returns a [Superseded] to record if the reply under way continues a reply
// that broke off and repeats its text, so that only one of the two is needed. broken
// reports whether the reply under way broke off too. Repeats returns false if the
// reply continues where the other one stopped.
func (v *View) Repeats(broken bool) (Superseded, bool) {
	if v.speaking == nil || len(v.pending) != 1 {
		return Superseded{}, false
	}
	parts := v.fragments()
	if len(parts) == 0 {
		return Superseded{}, false
	}
	said, only, ok := v.speaking.said()
	if !ok {
		return Superseded{}, false
	}
	return said.repeats(parts, broken, only)
}

// repeats is [View.Repeats] for a message and the parts that broke off before it.
func (said *fragment) repeats(parts []fragment, broken, only bool) (Superseded, bool) {
	now := said.seqs[len(said.seqs)-1]
	for i := range parts {
		if begins(said.text, texts(parts[i:])) || !broken && begins(said.text, parts[i].text) {
			return Superseded{Seqs: seqsOf(parts[i:]), By: now}, true
		}
	}
	for i := range parts {
		if broken && only && begins(texts(parts[i:]), said.text) {
			return Superseded{Seqs: said.seqs, By: parts[i].seqs[len(parts[i].seqs)-1]}, true
		}
	}
	return Superseded{}, false
}

// said returns the first message of a reply with the reasoning before it. ok is
// false if another item comes first; only reports whether the reply has no further
// items.
func (r *reply) said() (f fragment, only, ok bool) {
	for i, n := range r.nodes {
		f.seqs = append(f.seqs, n.seq)
		switch {
		case n.item.Type() == item.TypeReasoning:
		case spoken(n.item):
			f.text = wordsOf(n.item)
			return f, i == len(r.nodes)-1, true
		default:
			return f, false, false
		}
	}
	return f, false, false
}

// wordsOf returns the text of a message without white space. White space is ignored
// when texts are compared, because servers trim it at the end of a message and put
// blank lines between messages that they join.
func wordsOf(message item.Item) string {
	m, err := item.As[item.Message](message)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(m.Content.Display()), "")
}

func texts(parts []fragment) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.text)
	}
	return b.String()
}

func seqsOf(parts []fragment) (seqs []int64) {
	for _, p := range parts {
		seqs = append(seqs, p.seqs...)
	}
	return seqs
}

// begins reports whether text begins with the text with, which must not be empty.
func begins(text, with string) bool { return with != "" && strings.HasPrefix(text, with) }

// supersede leaves out the entries that another message repeats, provided that this
// message comes from the assistant and is not left out itself. Only the assistant's
// messages and reasoning can be left out.
func (v *View) supersede(b Superseded) {
	if by := v.itemOf(b.By); !spoken(by) || v.repeated[b.By] != 0 || slices.Contains(b.Seqs, b.By) {
		return
	}
	if v.repeated == nil {
		v.repeated = map[int64]int64{}
	}
	for _, seq := range b.Seqs {
		it := v.itemOf(seq)
		if _, again := v.repeated[seq]; again || !spoken(it) && it.Type() != item.TypeReasoning {
			continue
		}
		v.repeated[seq] = b.By
		v.repair(seq, it, fmt.Sprintf("entry %d says it again from its beginning", b.By))
	}
	v.rewrite(ByRepetition)
}

// itemOf returns the item of an entry that is settled or part of a pending reply, or
// the zero Item.
func (v *View) itemOf(seq int64) item.Item {
	for _, r := range v.pending {
		for _, n := range r.nodes {
			if n.seq == seq && !n.gone {
				return n.item
			}
		}
	}
	for i := len(v.lines) - 1; i >= 0; i-- {
		if l := v.lines[i]; l.seq == seq && l.item != brokeOff {
			return l.item
		}
	}
	return item.Item{}
}
