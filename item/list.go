// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// List is an append-only history of items together with its encoded bytes: a
// request copies them as they are, so a turn costs what is new in it.
//
// The zero List is empty and ready. A List may be read from several goroutines
// while none appends. [List.Clone] is cheap and independent: the clone may be
// read while the original grows. Do not copy a List by value.
type List struct {
	buf  []byte // the items, joined by commas
	ends []listEnd
	held []int // where in buf there are tokens of payloads
	more int   // bytes that their payloads take up more than they

	derived *derivations // of this list and its clones; nil while it is empty
	cloned  bool         // and has not grown since
}

type listEnd struct {
	at  int // index after the item in buf
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
		if it.raw != "" {
			l.add(it)
		}
	}
}

// AppendRaw adds a copy of one JSON object at the end: an item, or what stands
// for items elsewhere, such as a message of Chat Completions. The error is as
// that of [Parse], and leaves the list as it was.
func (l *List) AppendRaw(object []byte) error {
	it, err := ParseString(jsonx.String(object))
	if err != nil {
		return err
	}
	it.typ = Type(strings.Clone(string(it.typ))) // no part of object
	l.add(it)
	return nil
}

func (l *List) add(it Item) {
	if l.derived == nil || l.cloned {
		l.derived, l.cloned = l.derived.fork(), false
	}
	if len(l.ends) > 0 {
		l.buf = append(l.buf, ',')
	}
	start := len(l.buf)
	l.buf = append(l.buf, it.raw...)
	l.ends = append(l.ends, listEnd{len(l.buf), it.typ})
	eachToken(it.raw, func(at int, t token, ok bool) {
		l.held = append(l.held, start+at)
		if ok {
			l.more += t.encoded() - tokenLen
		}
	})
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
	return len(l.buf) + l.more + 2
}

// At returns the item at index i, from 0, and the zero Item if there is none. It
// shares the list's memory.
func (l *List) At(i int) Item {
	if l == nil || i < 0 || i >= len(l.ends) {
		return Item{}
	}
	start := 0
	if i > 0 {
		start = l.ends[i-1].at + 1
	}
	end := l.ends[i]
	return Item{raw: jsonx.String(l.buf[start:end.at]), typ: end.typ}
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
	return &List{buf: slices.Clip(l.buf), ends: slices.Clip(l.ends), held: slices.Clip(l.held), more: l.more, derived: l.derived, cloned: true}
}

// Derive returns the list that rewrite makes of this one, such as the form in
// which a certain endpoint takes its items, without rewriting what was
// rewritten before: the outcome is remembered under key, for the list and all
// its clones, and once the list has grown only the new items are rewritten.
//
// rewrite appends to dst what src.At(from) and the items after it become. It
// may look at the items before from, and at those of dst, but not change what
// came of them: what was sent once stays as it is. So the outcome must be the
// same wherever a list ends, as long as it ends where a request can end:
// after a whole reply, and after the outputs of all its calls. An error of
// rewrite is returned and nothing remembered of that call.
//
// A list that goes another way than its original is remembered separately.
// Under each key there is one rewrite, which depends on nothing but key and
// src; keys are comparable, and the last few of a list are remembered. Derive
// may be called by several goroutines while none appends, and by clones at any
// time. rewrite must not keep dst, nor derive anything of src.
func (l *List) Derive(key any, rewrite func(dst, src *List, from int) error) (*List, error) {
	if l.Len() == 0 {
		return new(List), nil
	}
	d := l.derived
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.find(key)
	switch {
	case known == nil:
		known = &derivation{key: key, list: new(List)}
	case l.startsWith(&known.of):
	case known.of.startsWith(l):
		// An older clone: the others go on with what is known.
		old := new(List)
		err := rewrite(old, l, 0)
		return old, err
	default:
		known.of, known.list = List{}, new(List)
	}
	if err := known.extend(l, rewrite); err != nil {
		return nil, err
	}
	d.keep(known)
	return known.list.Clone(), nil
}

// startsWith reports whether the first items of l are those of prefix.
func (l *List) startsWith(prefix *List) bool {
	n := len(prefix.buf)
	switch {
	case n == 0:
		return true
	case len(l.ends) < len(prefix.ends) || l.ends[len(prefix.ends)-1].at != n:
		return false
	case unsafe.SliceData(l.buf) == unsafe.SliceData(prefix.buf):
		return true // what is written is never written again
	}
	return string(l.buf[:n]) == string(prefix.buf)
}

// derivations are what was made of a list and of the clones that have not
// grown.
type derivations struct {
	mu   sync.Mutex
	list []*derivation // the one used last at the end
}

// derivation is what a list has become.
type derivation struct {
	key  any
	of   List // how far it has been rewritten
	list *List
}

// maxDerived bounds the derivations of a list: one program sends a history to
// few endpoints.
const maxDerived = 8

func (d *derivations) find(key any) *derivation {
	for _, known := range d.list {
		if known.key == key {
			return known
		}
	}
	return nil
}

// keep puts the derivation at the end.
func (d *derivations) keep(known *derivation) {
	if i := slices.Index(d.list, known); i >= 0 {
		d.list = slices.Delete(d.list, i, i+1)
	} else if len(d.list) == maxDerived {
		d.list = slices.Delete(d.list, 0, 1)
	}
	d.list = append(d.list, known)
}

// fork returns derivations for a list that goes its own way from here.
func (d *derivations) fork() *derivations {
	own := new(derivations)
	if d == nil {
		return own
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, known := range d.list {
		own.list = append(own.list, &derivation{key: known.key, of: known.of, list: known.list.Clone()})
	}
	return own
}

// extend rewrites what l has more. If that fails, all is as it was.
func (k *derivation) extend(l *List, rewrite func(dst, src *List, from int) error) error {
	from := len(k.of.ends)
	if from == len(l.ends) {
		return nil
	}
	before, whole := *k.list, false
	defer func() {
		if !whole {
			k.list = before.Clone() // a copy on the next write: what failed may be read still
		}
	}()
	if err := rewrite(k.list, l, from); err != nil {
		return err
	}
	k.of, whole = List{buf: slices.Clip(l.buf), ends: slices.Clip(l.ends)}, true
	return nil
}

// JSON returns the list as a JSON array of the items' own bytes: of what an item
// holds, the reference. It is for comparing; [List.AppendJSON] is for others.
func (l *List) JSON() string { return jsonx.String(l.appendRaw(make([]byte, 0, 2))) }

func (l *List) appendRaw(dst []byte) []byte {
	if l == nil {
		return append(dst, '[', ']')
	}
	dst = slices.Grow(dst, len(l.buf)+2)
	return append(append(append(dst, '['), l.buf...), ']')
}

// AppendJSON appends the list as a JSON array: one copy of its bytes, with the
// payloads that its items hold. The error is a [*HeldError].
func (l *List) AppendJSON(dst []byte) ([]byte, error) {
	if l == nil || len(l.held) == 0 {
		return l.appendRaw(dst), nil
	}
	return ListBody("[", l, "]").Append(dst)
}

// MarshalJSON returns the list as a JSON array.
func (l *List) MarshalJSON() ([]byte, error) {
	return l.AppendJSON(make([]byte, 0, l.Size()))
}

// Body returns the request's body, which is what [Request.AppendJSON] appends.
// The history in it is the list's own memory, which never changes: a client
// that sends the body copies and allocates nothing of the history.
func (r *Request) Body() (Body, error) { return bodyOf(r) }

// Body returns the event, as [Request.Body] does a request.
func (e *CreateEvent) Body() (Body, error) { return bodyOf(e) }

// Body returns the request's body, as [Request.Body] does.
func (r *CompactRequest) Body() (Body, error) { return bodyOf(r) }

// Body returns the request's body, as [Request.Body] does.
func (r *TokenCountRequest) Body() (Body, error) { return bodyOf(r) }

// Body returns the request's body, as [Request.Body] does.
func (v *AddItems) Body() (Body, error) { return bodyOf(v) }

// bodyOf encodes a record without the items of its list, which it may have once.
func bodyOf(r record) (Body, error) {
	if isNil(r) {
		return nil, errNil
	}
	c := newCodec(false)
	defer c.free()
	c.apart = true
	c.out = append(make([]byte, 0, 1024), '{')
	r.fields(c)
	if c.err != nil {
		return nil, c.err
	}
	c.out = append(c.out, '}')
	if c.input == nil {
		return TextBody(jsonx.String(c.out)), nil
	}
	return ListBody(jsonx.String(c.out[:c.inputAt]), c.input, jsonx.String(c.out[c.inputAt:])), nil
}

// list is a list of items that is left out when nil.
func (c *codec) list(name string, v **List) {
	if !c.decoding {
		if *v != nil {
			c.name(name)
			if c.apart {
				c.out = append(c.out, '[', ']')
				c.inputAt, c.input = len(c.out)-1, *v
				return
			}
			c.out = (*v).appendRaw(c.out)
		}
		return
	}
	var items []Item
	c.items(name, &items)
	if items != nil {
		*v = NewList(items...)
	}
}
