// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"
	"unsafe"
)

// EventDecoder reads the events of one stream, faster than [ParseEvent] reads
// each by itself: the delta events of a reply differ in few places, so each is
// first held against the one before. What it accepts and what it returns is the
// same.
//
// An event shares the memory of its data and of the decoder: it is good until
// the next call. The zero value is ready; an EventDecoder is not safe for
// concurrent use.
type EventDecoder struct {
	last    pattern
	event   Event  // one that fits no pattern
	scratch []byte // the text of a delta with escapes
	skip    int    // events to go before another pattern is tried
	misses  int    // patterns in a row that fit no event
}

// pattern is a delta event with holes where such events differ. Its texts are
// copies in own.
type pattern struct {
	own    []byte
	event  Event
	pieces [maxHoles + 1]string // the text before, between and behind the holes
	holes  [maxHoles]hole
	n      int // holes
	fitted bool
}

// hole is a value that may differ.
type hole int

const (
	holeNumber hole = iota // sequence_number
	holeDelta
	holeText // obfuscation
	maxHoles = 3
)

// Decode reads one event. The errors are those of [ParseEvent].
func (d *EventDecoder) Decode(data []byte) (*Event, error) {
	s := text(data)
	if d.last.n > 0 && d.fit(s) {
		return &d.last.event, nil
	}
	if err := d.event.parse(data); err != nil {
		return nil, err
	}
	if strings.HasSuffix(string(d.event.Type), ".delta") {
		d.learn(d.event.raw)
	}
	return &d.event, nil
}

// fit reads s into the pattern's event, and reports whether it is one of them.
func (d *EventDecoder) fit(s string) bool {
	p := &d.last
	e := &p.event
	i := 0
	for k := range p.n {
		piece := p.pieces[k]
		if len(s)-i < len(piece) || s[i:i+len(piece)] != piece {
			return false
		}
		i += len(piece)
		n, escaped := 0, false
		switch p.holes[k] {
		case holeNumber:
			e.SequenceNumber, n = shortNumber(s[i:])
		case holeText:
			n, _ = shortString(s[i:])
		case holeDelta:
			if n, escaped = shortString(s[i:]); n > 0 {
				e.Delta = s[i+1 : i+n-1]
			}
			if escaped {
				d.scratch = appendUnescaped(d.scratch[:0], e.Delta)
				e.Delta = text(d.scratch)
			}
		}
		if n == 0 {
			return false
		}
		i += n
	}
	if s[i:] != p.pieces[p.n] {
		return false
	}
	e.raw = s
	p.fitted = true
	return true
}

// shortNumber reads a whole number of up to 18 digits and returns its length,
// 0 for any other.
func shortNumber(s string) (n int64, length int) {
	for length < len(s) && length < 19 && s[length] >= '0' && s[length] <= '9' {
		n = n*10 + int64(s[length]-'0')
		length++
	}
	if length == 19 || length > 1 && s[0] == '0' {
		return 0, 0
	}
	return n, length
}

// shortString returns the length of the string literal at the start of s, or 0
// if there is none, and whether it has escapes.
func shortString(s string) (length int, escaped bool) {
	if s == "" || s[0] != '"' {
		return 0, false
	}
	end := plain(s, 1)
	if end < len(s) && s[end] == '"' {
		return end + 1, false
	}
	sc := scanner{s: s}
	end, err := sc.str(0)
	if err != nil {
		return 0, false
	}
	return end, strings.IndexByte(s[:end], '\\') >= 0
}

// learn makes the event the pattern of those that follow. Where patterns do not
// help, they are tried ever more rarely.
func (d *EventDecoder) learn(event string) {
	if d.skip > 0 {
		d.skip--
		return
	}
	if d.last.n > 0 && !d.last.fitted {
		if d.misses++; d.misses > 3 {
			d.skip = min(1<<d.misses, 1024)
		}
	} else {
		d.misses = 0
	}
	d.last.learn(event)
}

func (p *pattern) learn(event string) {
	p.n, p.fitted = 0, false
	p.own = append(p.own[:0], event...)
	own := &p.event
	if own.parse(p.own) != nil {
		return
	}
	start, good := 0, true
	var seen [maxHoles]bool
	eachMember(own.raw, func(name, value string) {
		good = good && strings.IndexByte(name, '\\') < 0
		kind, ok := holeOf(name)
		if !ok || !good {
			return
		}
		good = !seen[kind]
		seen[kind] = true
		if good && kind.fits(value) {
			at := int(uintptr(unsafe.Pointer(unsafe.StringData(value))) - uintptr(unsafe.Pointer(unsafe.StringData(own.raw))))
			p.pieces[p.n], p.holes[p.n] = own.raw[start:at], kind
			p.n++
			start = at + len(value)
		}
	})
	p.pieces[p.n] = own.raw[start:]
	if !good || own.Delta == "" {
		p.n = 0 // a name given twice, or nothing to fill in
	}
}

// holeOf says which members differ from event to event.
func holeOf(name string) (hole, bool) {
	switch name {
	case `"sequence_number"`:
		return holeNumber, true
	case `"delta"`:
		return holeDelta, true
	case `"obfuscation"`:
		return holeText, true
	}
	return 0, false
}

// fits reports whether the value is of the kind that the hole takes.
func (h hole) fits(value string) bool {
	if h == holeNumber {
		return isNumber(value)
	}
	return value[0] == '"'
}
