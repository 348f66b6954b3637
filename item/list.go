// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"iter"
	"slices"
)

// List is an append-only history of items together with its encoded bytes: a
// request copies them as they are, so a turn costs what is new in it.
//
// The zero List is empty and ready. A List may be read from several goroutines
// while none appends. [List.Clone] is cheap and independent: the clone may be
// read while the original grows.
type List struct {
	buf  []byte // the items, joined by commas
	ends []listEnd
}

type listEnd struct {
	at  int // index behind the item in buf
	typ Type
}

// NewList returns a list of the items.
func NewList(items ...Item) *List {
	l := new(List)
	l.Append(items...)
	return l
}

// Append adds copies of the items' bytes at the end. Zero items are left out.
func (l *List) Append(items ...Item) {
	for _, it := range items {
		if it.raw == "" {
			continue
		}
		if len(l.ends) > 0 {
			l.buf = append(l.buf, ',')
		}
		l.buf = append(l.buf, it.raw...)
		l.ends = append(l.ends, listEnd{len(l.buf), it.typ})
	}
}

// Len returns the number of items; a nil List has none.
func (l *List) Len() int {
	if l == nil {
		return 0
	}
	return len(l.ends)
}

// Size returns the bytes that [List.AppendJSON] appends.
func (l *List) Size() int {
	if l == nil {
		return 2
	}
	return len(l.buf) + 2
}

// At returns the item at index i, from 0. It shares the list's memory.
func (l *List) At(i int) Item {
	start := 0
	if i > 0 {
		start = l.ends[i-1].at + 1
	}
	end := l.ends[i]
	return Item{raw: text(l.buf[start:end.at]), typ: end.typ}
}

// All ranges over the items with their indexes.
func (l *List) All() iter.Seq2[int, Item] {
	return func(yield func(int, Item) bool) {
		for i := range l.Len() {
			if !yield(i, l.At(i)) {
				return
			}
		}
	}
}

// Clone returns a list of the same items in constant time. Appending to either
// does not show in the other.
func (l *List) Clone() *List {
	if l == nil {
		return new(List)
	}
	return &List{buf: slices.Clip(l.buf), ends: slices.Clip(l.ends)}
}

// AppendJSON appends the list as a JSON array: one copy of its bytes.
func (l *List) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	if l != nil {
		dst = append(dst, l.buf...)
	}
	return append(dst, ']')
}

// MarshalJSON returns the list as a JSON array.
func (l *List) MarshalJSON() ([]byte, error) {
	return l.AppendJSON(make([]byte, 0, l.Size())), nil
}

// list is a list of items that is left out when nil.
func (c *codec) list(name string, v **List) {
	if !c.decoding {
		if *v != nil {
			c.name(name)
			c.out = (*v).AppendJSON(c.out)
		}
		return
	}
	var items []Item
	c.items(name, &items)
	if items != nil {
		*v = NewList(items...)
	}
}
