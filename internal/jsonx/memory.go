// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// Memory remembers text that a [Scanner] has accepted, so that text that occurs
// again is compared rather than parsed. A stream of events repeats most of its
// content: in_progress and completed repeat what created said about the request, a
// done part has the text of its text event, the done item contains that part, and
// the last response contains the item. The zero Memory is empty and ready to use.
//
// It remembers two things. A span is one whole string, list or object. If a text
// begins with the bytes of a span, the value there is exactly that span. A start is
// the offset at which a member begins in an object within the last text, such as the
// response in an event. If a text is equal to that object from one start to another,
// it contains the same whole members, followed by the quote of the next name. Both
// refer to text to which Memory only appends, until it drops everything at once.
type Memory struct {
	text  []byte // copies of the texts that were read
	spans [knownSpans]span
	// The text being read: whether it is remembered, and its offset in text.
	keeping bool
	base    int

	// Starts of the members in the last object, and in the one being read.
	starts, next []uint32
	room         [2][32]uint32 // backing arrays; a response has about this many members
	at           int           // index in starts of the member expected next
	within       string        // literal name of the member that holds the object
	inside       bool          // the scanner is inside that object
}

// span is a value in Memory.text: its offset and length, and how deep it nests.
type span struct{ off, len, height uint32 }

const (
	knownSpans = 128
	knownMin   = 64        // bytes of the smallest value that is remembered
	knownDepth = 4         // maximum depth of remembered values: the text of a part of an item
	knownList  = 16        // elements of a list that are looked up one by one
	knownSmall = 512       // bytes of the smallest text that is worth remembering
	knownLarge = 128 << 10 // bytes of the largest
	knownText  = 256 << 10 // bytes of all texts together
)

// Reset forgets everything and keeps the memory.
func (k *Memory) Reset() { *k = Memory{text: k.text[:0]} }

// Begin returns the memory for a [Scanner] of the text s, or nil if s is too small
// or too large to benefit. within is the literal name, with its quotes, of the
// member of s whose object is compared member by member. If keep is false, s is
// compared but not remembered, because it contains little that is new.
func (k *Memory) Begin(s, within string, keep bool) *Memory {
	if len(s) < knownSmall || len(s) > knownLarge {
		return nil
	}
	k.within, k.inside, k.keeping = within, false, keep
	if !k.keeping {
		return k
	}
	need := len(k.text) + len(s)
	if need > knownText {
		k.text, k.spans, k.starts = k.text[:0], [knownSpans]span{}, k.starts[:0]
	} else if need > cap(k.text) {
		k.text = append(make([]byte, 0, min(max(2*need, 2<<10), knownText)), k.text...)
	}
	k.base = len(k.text)
	k.text = append(k.text, s...)
	return k
}

// slot returns the place for a value in spans, as a hash of some of its first 64
// bytes. Values usually differ there because of their ids and types.
func (k *Memory) slot(b []byte) *span {
	b = b[:knownMin]
	h := binary.LittleEndian.Uint64(b)*0x9E3779B97F4A7C15 ^
		binary.LittleEndian.Uint64(b[32:])*0xC2B2AE3D27D4EB4F ^
		binary.LittleEndian.Uint64(b[44:])*0x165667B19E3779F9 ^
		binary.LittleEndian.Uint64(b[56:])*0x27D4EB2F165667C5
	return &k.spans[h>>32%knownSpans]
}

// again is like Value for a string, list or object that may be known.
func (sc *Scanner) again(i int) (int, error) {
	s, k := sc.Text, sc.Memory
	if len(s)-i < knownMin || sc.Depth > knownDepth || !mayBeLong(s[i:]) {
		return sc.fresh(i)
	}
	b := Bytes(s)[i:]
	slot := k.slot(b)
	n, height := int(slot.len), int(slot.height)
	// The depth counts too: the same text may be too deep here.
	if n > 0 && n <= len(b) && sc.Depth+height <= MaxDepth && string(b[:n]) == string(k.text[slot.off:int(slot.off)+n]) {
		sc.deepest = max(sc.deepest, sc.Depth+height)
		return i + n, nil
	}
	end, err := sc.fresh(i)
	if n = end - i; err == nil && k.keeping && n >= knownMin && (n > int(slot.len) || int(slot.off) < k.base) {
		*slot = span{off: uint32(k.base + i), len: uint32(n), height: uint32(sc.deepest - sc.Depth)}
	}
	return end, err
}

// mayBeLong reports from the first bytes of s whether it may begin with a value
// worth remembering. Short strings and lists of numbers or strings are not.
func mayBeLong(s string) bool {
	switch s[0] {
	case '{':
		return true
	case '[':
		return s[1] == '{'
	}
	m := special(binary.LittleEndian.Uint64(Bytes(s)[1:]))
	return m == 0 || s[1+bits.TrailingZeros64(m)/8] != '"'
}

// fresh parses a string, list or object.
func (sc *Scanner) fresh(i int) (int, error) {
	switch {
	case sc.Text[i] == '"':
		return sc.Quoted(i)
	case sc.Text[i] == '[':
		return sc.Array(i, nil)
	case sc.Depth == 1 && sc.Memory.inside:
		return sc.members(i)
	}
	return sc.Object(i, nil)
}

// members parses the object whose members are remembered one by one.
func (sc *Scanner) members(i int) (int, error) {
	k := sc.Memory
	if k.next == nil {
		k.starts, k.next = k.room[0][:0], k.room[1][:0]
	}
	k.next, k.at = k.next[:0], 0
	end, err := sc.Object(i, nil)
	if err == nil && k.keeping {
		k.starts, k.next = k.next, k.starts
	}
	return end, err
}

// pass records that a member of the object begins at i, and skips the members that
// equal those of the last object. It returns the start of the first member that may
// differ.
func (k *Memory) pass(s string, i int) int {
	k.next = append(k.next, uint32(k.base+i))
	equal := k.equal(s[i:])
	// Not even the name is equal, so look for the member with this name.
	if name := 2 + strings.IndexByte(s[i+1:], '"'); equal < name {
		if k.expect(s[i : i+name]); k.at == len(k.starts) {
			return i
		}
		equal = k.equal(s[i:])
	}
	from, here := k.starts[k.at], i
	for k.at++; k.at < len(k.starts) && int(k.starts[k.at]-from) < equal; k.at++ {
		i = here + int(k.starts[k.at]-from)
		k.next = append(k.next, uint32(k.base+i))
	}
	return i
}

// equal returns how many bytes of s equal the expected member and the text after it.
func (k *Memory) equal(s string) int {
	if k.at == len(k.starts) {
		return 0
	}
	return Common(s, String(k.text[k.starts[k.at]:k.end()]))
}

// end returns the end of the text from earlier calls, without the text being read.
func (k *Memory) end() int {
	if k.keeping {
		return k.base
	}
	return len(k.text)
}

// expect sets k.at to the last object's member with the given name, or to
// len(k.starts) if it has none.
func (k *Memory) expect(name string) {
	for k.at = range k.starts {
		if strings.HasPrefix(String(k.text[k.starts[k.at]:k.end()]), name) {
			return
		}
	}
	k.at = len(k.starts)
}

// Common returns the length in bytes of the common prefix of a and b.
func Common(a, b string) int {
	n := min(len(a), len(b))
	x, y := Bytes(a)[:n], Bytes(b)[:n]
	i := 0
	for ; i+8 <= n; i += 8 {
		if d := binary.LittleEndian.Uint64(x[i:]) ^ binary.LittleEndian.Uint64(y[i:]); d != 0 {
			return i + bits.TrailingZeros64(d)/8
		}
	}
	for i < n && x[i] == y[i] {
		i++
	}
	return i
}
