// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// Memory remembers what a [Scanner] has accepted, so that a text that comes
// again is compared and not read again. A stream of events says most things more
// than once: in_progress and completed repeat what created said of the request,
// a done part has the text of its text event, the done item has that part, and
// the last response has the item. The zero Memory is empty and ready.
//
// Two things are remembered. A span is one whole string, list or object: a text
// that begins with one has just that value there. A start is where a member of
// the object inside the last text begins, such as the response in an event: a
// text that is equal from one start to another holds the same whole members, and
// the quote of the next one's name. Both refer to text that is only ever appended
// to, until all is dropped together.
type Memory struct {
	text  []byte // copies of what was read
	spans [knownSpans]span
	// The text being read: whether it is remembered, and where in text.
	keeping bool
	base    int

	// The members of the object inside the last text, and of the one being read.
	starts, next []uint32
	room         [2][32]uint32 // members, as many as a response has
	at           int           // of starts: the member that is expected next
	within       string        // the name's literal of the member that holds the object
	inside       bool          // the object is being read
}

// span is a value within Memory.text: where it is, and how deep it nests at
// most.
type span struct{ off, len, height uint32 }

const (
	knownSpans = 128
	knownMin   = 64        // bytes of the smallest value that is remembered
	knownDepth = 4         // how deep in a text values are: the text of a part of an item
	knownList  = 16        // elements of a list that are looked at one by one
	knownSmall = 512       // bytes of the smallest text that is worth it
	knownLarge = 128 << 10 // bytes of the largest
	knownText  = 256 << 10 // bytes of all
)

// Reset forgets everything and keeps the room for it.
func (k *Memory) Reset() { *k = Memory{text: k.text[:0]} }

// Begin returns the memory for a [Scanner] of the text s, or nil where s is too
// small or too large for it to help. The members of the object in the member of s
// that within names, a literal with its quotes, are compared one by one. Where
// keep is false nothing of s is remembered, since it brings little new.
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

// slot returns the place of a value by some of its first 64 bytes. Ids and
// types make values differ there.
func (k *Memory) slot(b []byte) *span {
	b = b[:knownMin]
	h := binary.LittleEndian.Uint64(b)*0x9E3779B97F4A7C15 ^
		binary.LittleEndian.Uint64(b[32:])*0xC2B2AE3D27D4EB4F ^
		binary.LittleEndian.Uint64(b[44:])*0x165667B19E3779F9 ^
		binary.LittleEndian.Uint64(b[56:])*0x27D4EB2F165667C5
	return &k.spans[h>>32%knownSpans]
}

// again is value for a string, list or object that may be known.
func (sc *Scanner) again(i int) (int, error) {
	s, k := sc.Text, sc.Memory
	if len(s)-i < knownMin || sc.Depth > knownDepth || !mayBeLong(s[i:]) {
		return sc.fresh(i)
	}
	b := Bytes(s)[i:]
	slot := k.slot(b)
	n, height := int(slot.len), int(slot.height)
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

// mayBeLong reports by the first bytes of s whether it may begin with a value
// that is worth remembering: no short string, no list of numbers or texts.
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

// fresh reads a string, list or object.
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

// members reads the object whose members are remembered one by one.
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

// pass notes that a member of the object begins at i, and passes over the
// members that are as they were. It returns where the first one begins that may
// not be.
func (k *Memory) pass(s string, i int) int {
	k.next = append(k.next, uint32(k.base+i))
	equal := k.equal(s[i:])
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

// equal returns how much of s is as the expected member and what follows it.
func (k *Memory) equal(s string) int {
	if k.at == len(k.starts) {
		return 0
	}
	return Common(s, String(k.text[k.starts[k.at]:k.end()]))
}

// end is where the text of what was read before ends.
func (k *Memory) end() int {
	if k.keeping {
		return k.base
	}
	return len(k.text)
}

// expect finds the last object's member of that name.
func (k *Memory) expect(name string) {
	for k.at = range k.starts {
		if strings.HasPrefix(String(k.text[k.starts[k.at]:k.end()]), name) {
			return
		}
	}
	k.at = len(k.starts)
}

// Common returns how many bytes at the start of both are equal.
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
