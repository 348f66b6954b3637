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
func (d *EventDecoder) Decode(data []byte) (Event, error) {
	s := text(data)
	if d.last.n > 0 {
		if e, ok := d.fit(s); ok {
			return e, nil
		}
	}
	e, err := ParseEvent(data)
	if err == nil && strings.HasSuffix(string(e.Type), ".delta") {
		d.learn(e)
	}
	return e, err
}

// fit reads s as an event of the pattern.
func (d *EventDecoder) fit(s string) (Event, bool) {
	p := &d.last
	e := p.event
	rest := s
	for k := range p.n {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, p.pieces[k]); !ok {
			return e, false
		}
		n := 0
		switch p.holes[k] {
		case holeNumber:
			e.SequenceNumber, n = shortNumber(rest)
		case holeText:
			n = shortString(rest)
		case holeDelta:
			if n = shortString(rest); n > 0 {
				e.Delta = d.unescape(rest[1 : n-1])
			}
		}
		if n == 0 {
			return e, false
		}
		rest = rest[n:]
	}
	if rest != p.pieces[p.n] {
		return e, false
	}
	e.raw = s
	p.fitted = true
	return e, true
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
// if there is none.
func shortString(s string) int {
	if s == "" || s[0] != '"' {
		return 0
	}
	sc := scanner{s: s}
	end, err := sc.str(0)
	if err != nil {
		return 0
	}
	return end
}

func (d *EventDecoder) unescape(body string) string {
	if strings.IndexByte(body, '\\') < 0 {
		return body
	}
	d.scratch = appendUnescaped(d.scratch[:0], body)
	return text(d.scratch)
}

// learn makes the event the pattern of those that follow. Where patterns do not
// help, they are tried ever more rarely.
func (d *EventDecoder) learn(e Event) {
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
	d.last.learn(e)
}

func (p *pattern) learn(e Event) {
	p.n, p.fitted = 0, false
	p.own = append(p.own[:0], e.raw...)
	own, err := ParseEvent(p.own)
	if err != nil {
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
	p.event = own
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
