// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/antiphon-go/antiphon/item"

// withheld is what is sent for an item that was withdrawn: nothing, or, for the
// output of a call that stays, something that says so.
type withheld struct{ instead item.Item }

// withheldText is what a model reads where an output was.
const withheldText = "The output of this call was withheld by a check."

// withdraw takes items out of what is sent, at once and for good. The rest stays
// something that an endpoint takes: the output of a call goes with the call, and
// reasoning goes with what it led to. An output that is withdrawn alone is
// replaced, so that the call which took place is not made again.
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

// withdrawUnit withdraws lines of a settled reply, or of what somebody else said.
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
			v.withdrawn[l.seq], v.withdrawn[call.seq] = withheld{}, withheld{}
		}
	}
	v.withdrawReasoning(unit)
}

// withdrawReasoning takes out reasoning whose following item is gone, and unties
// the items after reasoning that is.
func (v *View) withdrawReasoning(unit []line) {
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

// withdrawReply withdraws items of a reply that is not settled, and what was said
// after it.
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

// pairHosted lets a call and its output go together that an endpoint made and
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

// isGone reports whether nothing is sent for an entry.
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

// withheldOutput returns what is sent for the output of a call.
func withheldOutput(call item.Item, reason string) (item.Item, bool) {
	text := withheldText
	if reason != "" {
		text += " " + reason
	}
	out, ok, err := item.OutputFor(call, item.Text(text))
	return out, ok && err == nil
}
