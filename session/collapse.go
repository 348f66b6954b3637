// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/antiphon-go/antiphon/item"
)

// collapsedText is sent instead of the output of a read that was repeated later.
const collapsedText = "The output of this call is left out: a later call read the same again. See its output."

// collapse replaces outputs, which may be in the list or still to come. An output
// that is replaced already stays as it is.
func (v *View) collapse(c Collapsed) {
	if !v.hasOutput(c.By) {
		return
	}
	if v.collapsed == nil {
		v.collapsed = map[int64]int64{}
	}
	for _, seq := range c.Seqs {
		// Only a later output may replace an earlier one: the model reads the marker
		// first, which refers to what follows.
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

// collapsedOutput returns the marker for an output. Items of other types, and
// outputs that are not longer than the marker, are returned unchanged.
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
	// A marker that is not shorter would only change bytes that the endpoint may
	// have cached.
	if err != nil || len(marker.JSON()) >= it.Size() {
		return it
	}
	return marker
}

// Collapses reports whether a [Collapsed] would make an output shorter.
func Collapses(output item.Item) bool { return collapsedOutput(output) != output }
