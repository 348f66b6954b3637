// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/antiphon-go/antiphon/item"

// withheld is the replacement for an item that was withdrawn: nothing, or, for the
// output of a call that stays, an output that says so.
type withheld struct{ instead item.Item }

// withheldText begins the text that a model reads instead of a withheld output.
const withheldText = "The output of this call was withheld by a check."

// withdraw removes items from the list permanently. The remaining items are still
// valid input: the output of a call is removed with the call, and reasoning with the
// item it led to. An output that is withdrawn alone is replaced, so that the model
// does not repeat the call, which did take place.
func (v *View) withdraw(b ItemsWithdrawn) {
	named := make(map[int64]bool, len(b.Seqs))
	for _, seq := range b.Seqs {
		named[seq] = true
	}
	if v.withdrawn == nil {
		v.withdrawn = map[int64]withheld{}
	}
	for i := 0; i < len(v.lines); {
		end := i + 1
		for end < len(v.lines) && !v.lines[end].first {
			end++
		}
		v.withdrawUnit(v.lines[i:end], named, b.Reason)
		i = end
	}
	for _, r := range v.pending {
		v.withdrawReply(r, named, b.Reason)
	}
	v.rewrite(ByWithdrawal)
}

// withdrawUnit withdraws lines of a settled reply, or of a message from another
// source.
func (v *View) withdrawUnit(unit []line, named map[int64]bool, reason string) {
	if !anyNamed(unit, named) {
		return
	}
	for _, l := range unit {
		if named[l.seq] && !l.item.IsOutput() {
			v.withdrawn[l.seq] = withheld{}
		}
	}
	for _, l := range unit {
		if !l.item.IsOutput() {
			continue
		}
		switch call, found := callIn(unit, l.item); {
		case found && v.isGone(call.seq), !found && named[l.seq]:
			v.withdrawn[l.seq] = withheld{}
		case named[l.seq]:
			if marker, ok := withheldOutput(call.item, reason); ok {
				v.withdrawn[l.seq] = withheld{marker}
				break
			}
			// Without a replacement for the output the call must go, too.
			v.withdrawn[l.seq], v.withdrawn[call.seq] = withheld{}, withheld{}
		}
	}
	v.withdrawReasoning(unit)
}

// withdrawReasoning removes reasoning whose following item is gone, and removes the
// ids of items whose reasoning is gone.
func (v *View) withdrawReasoning(unit []line) {
	// The item that reasoning led to comes after it, so this pass goes backwards.
	followed := false // by an item that is sent
	for i := len(unit) - 1; i >= 0; i-- {
		switch l := unit[i]; {
		case l.item.IsOutput():
		case l.item.Type() != item.TypeReasoning:
			followed = !v.isGone(l.seq)
		case !followed:
			v.withdrawn[l.seq] = withheld{}
		}
	}
	linked := false
	for i, l := range unit {
		switch {
		case l.item.Type() == item.TypeReasoning && v.isGone(l.seq):
			linked = true
		case linked && said(l.item) && !l.item.IsOutput():
			unit[i].item = withoutID(l.item)
		}
	}
}

// withdrawReply withdraws items of a pending reply, and items that arrived after it.
func (v *View) withdrawReply(r *reply, named map[int64]bool, reason string) {
	linked := false
	for _, n := range r.nodes {
		switch {
		case named[n.seq]:
			n.gone, n.closed = true, true
			v.withdrawn[n.seq] = withheld{}
			linked = linked || n.item.Type() == item.TypeReasoning
		case linked:
			n.item = withoutID(n.item)
		}
		if n.output.item.IsZero() || !n.gone && !named[n.output.seq] {
			continue
		}
		marker, ok := withheldOutput(n.item, reason)
		if n.gone || !ok {
			n.gone, marker = true, item.Item{}
			v.withdrawn[n.seq] = withheld{}
		}
		v.withdrawn[n.output.seq] = withheld{marker}
	}
	r.pairHosted(v)
	for _, a := range r.after {
		if named[a.seq] {
			v.withdrawn[a.seq] = withheld{}
		}
	}
}

// pairHosted withdraws a call and its output together that the endpoint made and
// answered itself.
func (r *reply) pairHosted(v *View) {
	for i, out := range r.nodes {
		if !out.item.IsOutput() {
			continue
		}
		for _, call := range r.nodes[:i] {
			if out.item.Answers(call.item) && call.gone != out.gone {
				call.gone, out.gone = true, true
				v.withdrawn[call.seq], v.withdrawn[out.seq] = withheld{}, withheld{}
			}
		}
	}
}

// isGone reports whether an entry was withdrawn without a replacement.
func (v *View) isGone(seq int64) bool {
	w, withdrawn := v.withdrawn[seq]
	return withdrawn && w.instead.IsZero()
}

func anyNamed(unit []line, named map[int64]bool) bool {
	for _, l := range unit {
		if named[l.seq] {
			return true
		}
	}
	return false
}

// callIn returns the call that an output of the unit answers.
func callIn(unit []line, out item.Item) (line, bool) {
	for _, l := range unit {
		if out.Answers(l.item) {
			return l, true
		}
	}
	return line{}, false
}

// withheldOutput returns the replacement for the output of a call. It returns false
// if the call's kind has no output that can hold a text.
func withheldOutput(call item.Item, reason string) (item.Item, bool) {
	text := withheldText
	if reason != "" {
		text += " " + reason
	}
	out, ok, err := item.OutputFor(call, item.Text(text))
	return out, ok && err == nil
}
