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

// List is an append-only history of items together with its encoded bytes. Requests
// use those bytes directly, so a turn only pays for its new items.
//
// The zero List is empty and ready to use. Several goroutines may read a List while
// none appends to it. [List.Clone] returns an independent copy in constant time; the
// clone may be read while the original grows. Do not copy a List by value.
type List struct {
	buf  []byte // the items, joined by commas
	ends []listEnd
	held []int // offsets in buf of references to payloads
	more int   // additional bytes when the references are replaced by payloads

	derived *derivations // shared by this list and its clones; nil while the list is empty
	cloned  bool         // it is a clone that has not grown since
}

type listEnd struct {
	at  int // offset in buf of the end of the item
	typ Type
}

// NewList returns a list of the given items.
func NewList(items ...Item) *List {
	l := new(List)
	l.Append(items...)
	return l
}

// Append adds copies of the items' bytes at the end. It ignores zero items.
func (l *List) Append(items ...Item) {
	size := 0 // computed first, so that buf grows at most once
	for _, it := range items {
		size += len(it.raw) + len(",")
	}
	if size > len(items)*len(",") { // there is at least one item that is not zero
		l.buf = slices.Grow(l.buf, size)
		l.ends = slices.Grow(l.ends, len(items))
	}
	for _, it := range items {
		if it.raw != "" {
			l.add(it)
		}
	}
}

// AppendRaw adds a copy of one JSON object at the end. The object is an item, or its
// equivalent in another API, such as a message of Chat Completions. The errors are
// those of [Parse]; the list is then unchanged.
func (l *List) AppendRaw(object []byte) error {
	it, err := ParseString(jsonx.String(object))
	if err != nil {
		return err
	}
	it.typ = Type(strings.Clone(string(it.typ))) // must not share the memory of object
	l.add(it)
	return nil
}

// add appends an item that is not zero.
func (l *List) add(it Item) {
	// The derivations are shared with clones, so a list that grows needs its own.
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

// Len returns the number of items. A nil List is empty.
func (l *List) Len() int {
	if l == nil {
		return 0
	}
	return len(l.ends)
}

// Size returns the number of bytes that [List.AppendJSON] appends.
func (l *List) Size() int {
	if l == nil {
		return 2
	}
	return len(l.buf) + l.more + 2
}

// At returns item i, or the zero Item if there is none. The item shares the list's
// memory.
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

// All returns an iterator over the indexes and items.
func (l *List) All() iter.Seq2[int, Item] {
	return func(yield func(int, Item) bool) {
		for i := range l.Len() {
			if !yield(i, l.At(i)) {
				return
			}
		}
	}
}

// Clone returns a list with the same items in constant time. Appending to one of
// them does not affect the other.
func (l *List) Clone() *List {
	if l == nil {
		return new(List)
	}
	// Clipping makes the first append to the clone copy, so that it never overwrites
	// what the original appends.
	return &List{buf: slices.Clip(l.buf), ends: slices.Clip(l.ends), held: slices.Clip(l.held), more: l.more, derived: l.derived, cloned: true}
}

// Derive returns a list that rewrite makes from this one, such as the form in which
// a certain endpoint takes its items. It does not rewrite the same items twice: it
// remembers the result under key, for the list and all its clones, and when the list
// has grown it rewrites only the new items.
//
// rewrite appends to dst the new form of src.At(from) and the items after it. It may
// look at earlier items of src and at the items of dst, but must not change them:
// they have been sent already. The result must therefore be the same wherever a list
// ends, provided that it ends where a request can end: after a whole reply and after
// the outputs of all its calls. If rewrite fails, Derive returns its error and
// remembers nothing from that call.
//
// A list that diverges from its original is remembered separately. There must be
// only one rewrite for each key, which depends on nothing but key and src. Keys must
// be comparable, and only the most recent few are remembered. Several goroutines may
// call Derive while none appends to the list; clones may call it at any time.
// rewrite must not keep dst or call Derive on src.
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
	// l continues the list that has been rewritten.
	case l.startsWith(&known.of):
	case known.of.startsWith(l):
		// l is an older clone. Keep the result for the longer list, and rewrite l
		// without remembering.
		old := new(List)
		err := rewrite(old, l, 0)
		return old, err
	default:
		// l diverged from the list that has been rewritten, so start again.
		known.of, known.list = List{}, new(List)
	}
	if err := known.extend(l, rewrite); err != nil {
		return nil, err
	}
	d.keep(known)
	return known.list.Clone(), nil
}

// startsWith reports whether the first items of l are the items of prefix.
func (l *List) startsWith(prefix *List) bool {
	n := len(prefix.buf)
	switch {
	case n == 0:
		return true
	case len(l.ends) < len(prefix.ends) || l.ends[len(prefix.ends)-1].at != n:
		return false
	case unsafe.SliceData(l.buf) == unsafe.SliceData(prefix.buf):
		return true // the same memory: bytes once written do not change
	}
	return string(l.buf[:n]) == string(prefix.buf)
}

// derivations holds the results of Derive for a list and those of its clones that
// have not grown.
type derivations struct {
	mu   sync.Mutex
	list []*derivation // most recently used last
}

// derivation is the result of Derive for one key.
type derivation struct {
	key  any
	of   List // the items that have been rewritten
	list *List
}

// maxDerived is how many derivations a list keeps. A program sends a history to few
// endpoints.
const maxDerived = 8

// find returns the derivation for key, or nil.
func (d *derivations) find(key any) *derivation {
	for _, known := range d.list {
		if known.key == key {
			return known
		}
	}
	return nil
}

// keep moves or adds the derivation to the end, and drops the oldest if there are
// too many.
func (d *derivations) keep(known *derivation) {
	if i := slices.Index(d.list, known); i >= 0 {
		d.list = slices.Delete(d.list, i, i+1)
	} else if len(d.list) == maxDerived {
		d.list = slices.Delete(d.list, 0, 1)
	}
	d.list = append(d.list, known)
}

// fork returns a copy of the derivations for a list that diverges from here.
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

// extend rewrites the items that l has in addition. If that fails, k is unchanged.
func (k *derivation) extend(l *List, rewrite func(dst, src *List, from int) error) error {
	from := len(k.of.ends)
	if from == len(l.ends) {
		return nil
	}
	before, whole := *k.list, false
	defer func() {
		if !whole {
			k.list = before.Clone() // clipped, so that a later write copies: the failed rewrite may still be read
		}
	}()
	if err := rewrite(k.list, l, from); err != nil {
		return err
	}
	k.of, whole = List{buf: slices.Clip(l.buf), ends: slices.Clip(l.ends)}, true
	return nil
}

// JSON returns the list as a JSON array of the items' own bytes, with references in
// place of payloads. Use it to compare lists; use [List.AppendJSON] for text that
// leaves the process.
func (l *List) JSON() string { return jsonx.String(l.appendRaw(make([]byte, 0, 2))) }

// appendRaw appends the list as a JSON array, with references in place of payloads.
func (l *List) appendRaw(dst []byte) []byte {
	if l == nil {
		return append(dst, '[', ']')
	}
	dst = slices.Grow(dst, len(l.buf)+2)
	return append(append(append(dst, '['), l.buf...), ']')
}

// AppendJSON appends the list as a JSON array. It copies the list's bytes once and
// inserts the payloads that the items hold. The error is a [*HeldError].
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

// UnmarshalJSON replaces the list by the items of a JSON array. A null gives an empty
// list.
func (l *List) UnmarshalJSON(data []byte) error {
	if l == nil {
		return errNil
	}
	var items []Item
	if string(data) != "null" {
		var err error
		if items, err = ParseList(string(data)); err != nil {
			return err
		}
	}
	*l = *NewList(items...)
	return nil
}
