// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strconv"

	"github.com/antiphon-go/antiphon/item"
)

// callIDs gives every call of a view an id that no other has. Some servers
// count their ids anew in each reply, or leave them blank, and others refuse a
// history in which an id occurs twice; so the first call keeps its id and a
// later one is sent with another. The log keeps what was said. The same calls in
// the same order get the same ids. A call that was never sent and never will be
// gives its id back.
type callIDs struct {
	used  map[string]bool
	calls int
}

// maxCallID is the longest call id that the API takes. Schema:
// FunctionCallOutputItemParam.call_id.
const maxCallID = 64

// take returns the call as it is sent, whose own id the caller has read, and the
// id that it has to itself, "" for a call whose id is in use and cannot be
// changed: only calls of functions and custom tools can get another.
func (c *callIDs) take(call item.Item, own string) (sent item.Item, id string) {
	if c.used == nil {
		c.used = map[string]bool{}
	}
	c.calls++
	if own != "" && len(own) <= maxCallID && !c.used[own] {
		c.used[own] = true
		return call, own
	}
	id = "call_" + strconv.Itoa(c.calls)
	for c.used[id] {
		id += "x"
	}
	sent, ok := renamed(call, id)
	if !ok {
		return call, ""
	}
	c.used[id] = true
	return sent, id
}

// giveBack makes an id free again that take returned.
func (c *callIDs) giveBack(id string) { delete(c.used, id) }

// withCallID returns the item with the call id, or as it is if id is "" or its
// own. It reports false for an item whose id cannot be changed.
func withCallID(it item.Item, id string) (item.Item, bool) {
	if id == "" || id == it.CallID() {
		return it, true
	}
	return renamed(it, id)
}

func renamed(it item.Item, id string) (item.Item, bool) {
	if kind, _ := it.Type().CallKind(); !kind.Renames {
		return it, false
	}
	changed, err := it.With("call_id", item.Quote(id))
	return changed, err == nil
}

func edited[T any, P interface {
	*T
	item.Value
}](it item.Item, edit func(*T)) (item.Item, bool) {
	v, err := item.As[T, P](it)
	if err != nil {
		return it, false
	}
	edit(v)
	changed, err := item.New(P(v))
	return changed, err == nil
}
