// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"

	"github.com/antiphon-go/antiphon/item"
)

// Chat templates of several models reject a history in which the roles user and assistant do not
// alternate, the assistant speaks first, or a system message is not at the beginning. Calls and
// outputs do not count. For a profile with Alternate, the history is adapted to all such templates.

// Messages that are inserted where such a template requires a message and the history has none.
var (
	silentUser      = item.User("[The conversation begins here.]")
	silentAssistant = item.Assistant("[The tools have returned.]")
	brokeOffHere    = item.User("[The reply above is not complete. Go on from exactly where it stops, and do not repeat what is there.]")
)

// lateSystem is the first line of a system message that comes after others.
const lateSystem = "[From the system, not from the user:]\n"

// errJoins reports that a message must be joined to the last message of an earlier request. The
// items rewritten so far cannot be kept.
var errJoins = errors.New("a message joins the one before")

// alternator joins messages and inserts missing ones.
type alternator struct {
	last  item.Item // the last item appended, in this pass or before
	open  item.Item // a message that the next one may join
	dirty bool      // open differs from the original item
}

// begin continues from the end of an earlier pass.
func (w *rewriter) begin(from int) {
	a := &w.alternator
	switch {
	case from == 0:
	case w.dst.Len() > 0 && !w.check:
		a.last = w.dst.At(w.dst.Len() - 1)
	case w.dst.Len() == 0 && w.check:
		a.last = w.src.At(from - 1) // nothing has changed before from
	}
}

// alternate adds an item so that the roles alternate.
func (w *rewriter) alternate(it item.Item, changed bool) error {
	a := &w.alternator
	if it.IsZero() {
		w.append(it, changed)
		return nil
	}
	before := a.open
	if before.IsZero() {
		before = a.last
	}
	role := item.Role("")
	if it.Type() == item.TypeMessage {
		role = it.Role()
	}
	if (role == item.RoleSystem || role == item.RoleDeveloper) && !before.IsZero() && !before.Instructs() {
		late, err := asUser(it)
		if err != nil {
			return err
		}
		it, role, changed = late, item.RoleUser, true
	}
	switch {
	case joins(before, it) && a.open.IsZero():
		if !w.check {
			return errJoins
		}
		changed = true
	case joins(before, it):
		joined, err := join(before, it)
		a.open, a.dirty = joined, true
		return err
	case role == item.RoleUser && before.IsOutput():
		if err := w.alternate(silentAssistant, true); err != nil {
			return err
		}
	case (role == item.RoleAssistant || it.IsCall()) && (before.IsZero() || before.Instructs()):
		if err := w.alternate(silentUser, true); err != nil {
			return err
		}
	}
	w.settle()
	a.open, a.dirty = it, changed
	return nil
}

// settle appends the open message, which no other message joins.
func (w *rewriter) settle() {
	a := &w.alternator
	if !a.open.IsZero() {
		w.append(a.open, a.dirty)
		a.last, a.open, a.dirty = a.open, item.Item{}, false
	}
}

// joins reports whether a message must be joined to the one before: both are user messages, or both
// are instructions. The servers themselves join adjacent assistant messages.
func joins(before, it item.Item) bool {
	if before.Type() != item.TypeMessage || it.Type() != item.TypeMessage {
		return false
	}
	return before.Role() == item.RoleUser && it.Role() == item.RoleUser || before.Instructs() && it.Instructs()
}

// join merges two messages.
func join(a, b item.Item) (item.Item, error) {
	first, err := item.As[item.Message](a)
	if err != nil {
		return item.Item{}, err
	}
	second, err := item.As[item.Message](b)
	if err != nil {
		return item.Item{}, err
	}
	parts := append(partsOf(first.Content), partsOf(second.Content)...)
	var list []item.Part
	for _, p := range parts {
		text, ok := p.(*item.InputText)
		if n := len(list); ok && n > 0 {
			if last, ok := list[n-1].(*item.InputText); ok {
				list[n-1] = &item.InputText{Text: last.Text + "\n\n" + text.Text}
				continue
			}
		}
		list = append(list, p)
	}
	return item.New(&item.Message{Role: first.Role, Content: item.Parts(list...)})
}

func partsOf(c item.Content) []item.Part {
	if c.IsText() {
		return []item.Part{&item.InputText{Text: c.Text}}
	}
	return c.Parts
}

// asUser returns a system message as a user message.
func asUser(it item.Item) (item.Item, error) {
	m, err := item.As[item.Message](it)
	if err != nil {
		return it, err
	}
	return item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputText{Text: lateSystem + m.Content.Display()})})
}

// endsWithUser returns a list that does not end with an assistant message, which servers would take
// for the beginning of their own reply.
func endsWithUser(list *item.List) *item.List {
	n := list.Len()
	if n == 0 {
		return list
	}
	if last := list.At(n - 1); last.Type() != item.TypeMessage || last.Role() != item.RoleAssistant {
		return list
	}
	list = list.Clone()
	list.Append(brokeOffHere)
	return list
}
