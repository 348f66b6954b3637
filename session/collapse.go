// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/antiphon-go/antiphon/item"
)

// collapsedText is what is sent for the output of a read that was repeated.
const collapsedText = "The output of this call is left out: a later call read the same again. See its output."

// collapse replaces outputs, which may be in the list or still to come. What is
// replaced already stays as it is.
func (v *View) collapse(c Collapsed) {
	if !v.hasOutput(c.By) {
		return
	}
	if v.collapsed == nil {
		v.collapsed = map[int64]int64{}
	}
	for _, seq := range c.Seqs {
		if _, again := v.collapsed[seq]; !again && seq < c.By {
			v.collapsed[seq] = c.By
		}
	}
	v.rewrite(ByCollapsing)
}

// hasOutput reports whether an entry is the output of a call.
func (v *View) hasOutput(seq int64) bool {
	for _, r := range v.pending {
		for _, n := range r.nodes {
			if !n.output.item.IsZero() && n.output.seq == seq {
				return true
			}
		}
	}
	for _, l := range slices.Backward(v.lines) {
		if l.seq == seq {
			return l.item.IsOutput()
		}
	}
	return false
}

// collapsedOutput returns the marker for an output. Anything else, and what is no
// longer than the marker, stays as it is.
func collapsedOutput(it item.Item) item.Item {
	var v item.Value
	switch it.Type() {
	case item.TypeFunctionCallOutput:
		v = &item.FunctionCallOutput{CallID: it.CallID(), Output: item.Text(collapsedText)}
	case item.TypeCustomToolCallOutput:
		v = &item.CustomToolCallOutput{CallID: it.CallID(), Output: item.Text(collapsedText)}
	default:
		return it
	}
	marker, err := item.New(v)
	if err != nil || len(marker.JSON()) >= it.Size() {
		return it
	}
	return marker
}

// Collapses reports whether a [Collapsed] would make an output shorter.
func Collapses(output item.Item) bool { return collapsedOutput(output) != output }
