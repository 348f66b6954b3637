// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strconv"

	"github.com/antiphon-go/antiphon/item"
)

// callIDs gives every call of a view a unique id. Some servers restart their ids in
// each reply, or leave them blank, and others refuse a history in which an id occurs
// twice. So the first call keeps its id and a later one is sent with another; the
// log keeps the original. The same calls in the same order get the same ids. A call
// that will never be sent returns its id for reuse.
type callIDs struct {
	used  map[string]bool
	calls int
}

// maxCallID is the longest call id that the API takes. Schema:
// FunctionCallOutputItemParam.call_id.
const maxCallID = 64

// take returns the call in the form to send and the id reserved for it. own is the
// call's original id. The returned id is "" if own is in use and cannot be replaced:
// only calls of functions and custom tools can get another id.
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

// giveBack frees an id that take returned.
func (c *callIDs) giveBack(id string) { delete(c.used, id) }

// withCallID returns the item with the call id, or unchanged if id is "" or equal to
// its own. It returns false for an item whose id cannot be changed.
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
