// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"fmt"
	"math"
	"slices"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
)

// pair makes responses of people and older programs, before the first mark, answer
// the calls that they name. A response above its call is moved after it, with a
// warning. A response of another kind than its call is an error: the model would
// read that the call was interrupted, although the file contains its response.
func pair(doc *chatmd.File, list []chatmd.Located) (paired []chatmd.Located, remarks []error, problems chatmd.ErrorList) {
	older := list[:olderItems(doc, list)]
	var open, lone []int // calls without a response, responses without a call
	for i, l := range older {
		switch {
		case l.Item.IsCall():
			if at := slices.IndexFunc(open, func(c int) bool { return older[c].Item.CallID() == l.Item.CallID() }); at >= 0 {
				remarks = append(remarks, fmt.Errorf("%s:%d:%d: the call of line %d has the same id %q and no response before this one; give each call its own id [warning]",
					doc.Name, l.Line, l.Column, older[open[at]].Line, l.Item.CallID()))
			}
			open = append(open, i)
		case l.Item.IsOutput():
			at := slices.IndexFunc(open, func(c int) bool { return l.Item.Answers(older[c].Item) })
			if at < 0 {
				lone = append(lone, i)
				continue
			}
			open = slices.Delete(open, at, at+1)
		}
	}
	moved := map[int][]int{} // responses, by the item before their new place
	for _, i := range lone {
		out := older[i]
		if at := slices.IndexFunc(open, func(c int) bool { return out.Item.Answers(older[c].Item) }); at >= 0 {
			call := open[at]
			open = slices.Delete(open, at, at+1)
			last := lastCall(older, call)
			moved[last] = append(moved[last], i)
			remarks = append(remarks, fmt.Errorf("%s:%d:%d: the response stands above its call of line %d and is read as if it stood below it [warning]",
				doc.Name, out.Line, out.Column, older[call].Line))
			continue
		}
		if at := slices.IndexFunc(open, func(c int) bool { return older[c].Item.CallID() == out.Item.CallID() }); at >= 0 {
			call := older[open[at]]
			problems = append(problems, &chatmd.Error{
				File: doc.Name, Line: out.Line, Column: out.Column,
				Message: fmt.Sprintf("the call is a %s: the response to %q is a %s and does not answer the call of line %d", call.Item.Type(), out.Item.CallID(), out.Item.Type(), call.Line),
				Hint:    kindHint(call.Item),
			})
		}
	}
	if len(moved) == 0 {
		return list, remarks, problems
	}
	return move(list, moved), remarks, problems
}

// olderItems counts the items before the first mark.
func olderItems(doc *chatmd.File, list []chatmd.Located) int {
	end := math.MaxInt
	for _, e := range doc.Elements {
		if chatmd.IsMark(e.Tag) {
			end = e.Offset
			break
		}
	}
	n := slices.IndexFunc(list, func(l chatmd.Located) bool { return l.Offset > end })
	if n < 0 {
		return len(list)
	}
	return n
}

// lastCall returns the index of the last call in the sequence of calls from i on.
// They form one reply, which a response would end.
func lastCall(list []chatmd.Located, i int) int {
	for i+1 < len(list) && list[i+1].Item.IsCall() {
		i++
	}
	return i
}

// move returns the list with items moved after others.
func move(list []chatmd.Located, moved map[int][]int) []chatmd.Located {
	gone := map[int]bool{}
	for _, behind := range moved {
		for _, i := range behind {
			gone[i] = true
		}
	}
	var out []chatmd.Located
	for i, l := range list {
		if !gone[i] {
			out = append(out, l)
		}
		for _, k := range moved[i] {
			out = append(out, chatmd.Located{Item: list[k].Item, Position: l.Position})
		}
	}
	return out
}

// kindHint says how to write a response to the call.
func kindHint(call item.Item) string {
	switch call.Type() {
	case item.TypeFunctionCall, item.TypeCustomToolCall:
		return fmt.Sprintf("write type=%q, or leave the type out", call.Type())
	}
	return "write its output as an <item>"
}
