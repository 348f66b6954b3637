// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"
	"unsafe"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// EventDecoder reads the events of one stream, faster than [ParseEvent] reads
// each by itself: the delta events of a reply differ in few places, so each is
// first held against those before, and what other events say again is compared
// and not read twice. What it accepts and what it returns is the same, but for
// characters that a server split in two: see [Event.Delta].
//
// The decoder keeps copies of events, up to 256 KB of them. The zero value is
// ready; an EventDecoder is not safe for concurrent use.
type EventDecoder struct {
	patterns []*pattern // the one that fitted last comes first
	order    [maxPatterns]*pattern
	first    [2]pattern // where they stand: most streams have no more
	learnt   int        // of these
	known    jsonx.Memory
	event    EventView // one that fits no pattern
	names    names16   // what events were called, to say it again without a copy
	scratch  []byte    // the text of a delta with escapes
	skip     int       // events to go before another pattern is tried
	misses   int       // patterns in a row that fit no event
	halves   halves
}

// Reset forgets all that the decoder has read: it is as new, with the memory
// that it has. The views that it returned are not good any more.
func (d *EventDecoder) Reset() {
	one, two := d.first[0].own, d.first[1].own
	d.known.Reset()
	*d = EventDecoder{known: d.known, scratch: d.scratch[:0], names: d.names, halves: halves{text: d.halves.text[:0]}}
	d.first[0].own, d.first[1].own = one[:0], two[:0]
}

// maxPatterns is how many kinds of deltas may take turns.
const maxPatterns = 4

// pattern is a delta event with holes where such events differ. Its texts are
// copies in own.
type pattern struct {
	own    []byte
	event  EventView
	pieces [maxHoles + 1]string // the text before, between and after the holes
	holes  [maxHoles]hole
	n      int // holes
	fitted bool
}

// hole is a value that may differ.
type hole int

const (
	holeNumber   hole = iota // sequence_number
	holeDelta                // delta
	holeText                 // obfuscation
	holeLogprobs             // logprobs, unless there are none
	maxHoles     = 4
)

// Decode reads one event from a copy of data. The errors are those of
// [ParseEvent].
func (d *EventDecoder) Decode(data []byte) (Event, error) {
	v, err := d.View(data)
	if err != nil {
		return Event{}, err
	}
	return v.Event(), nil
}

// View reads one event without a copy. The view is good until the next call of
// the decoder, and as long as data does not change. The errors are those of
// [ParseEvent].
func (d *EventDecoder) View(data []byte) (*EventView, error) {
	s := jsonx.String(data) // which leaves the decoder as bytes, or as a copy
	if err := checkSize(s); err != nil {
		return nil, err
	}
	for i, p := range d.patterns {
		if p.fit(s, &d.scratch) {
			if i > 0 {
				copy(d.patterns[1:i+1], d.patterns)
				d.patterns[0] = p
			}
			d.halves.join(&p.event.event)
			return &p.event, nil
		}
	}
	e := &d.event.event
	if err := e.parse(jsonx.Scanner{Text: s, Memory: d.known.Begin(s, `"response"`, !repeats(s))}, e.member); err != nil {
		return nil, err
	}
	e.Type, e.ItemID = EventType(d.names.own(string(e.Type))), d.names.own(e.ItemID)
	if strings.HasSuffix(string(e.Type), ".delta") && e.Delta != "" {
		d.learn()
		d.halves.join(e)
	}
	return &d.event, nil
}

// repeats reports whether it is an event that says again what others said.
func repeats(event string) bool {
	return strings.HasPrefix(event, `{"type":"response.in_progress"`) || strings.HasPrefix(event, `{"type":"response.completed"`)
}

// fit reads s into the pattern's event, and reports whether it is one of them.
func (p *pattern) fit(s string, scratch *[]byte) bool {
	e := &p.event.event
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
			e.SequenceNumber, n = jsonx.ShortNumber(s[i:])
		case holeText:
			n, _ = shortString(s[i:])
		case holeDelta:
			if n, escaped = shortString(s[i:]); n > 0 {
				e.Delta = s[i+1 : i+n-1]
			}
			if escaped {
				*scratch = jsonx.AppendUnescaped((*scratch)[:0], e.Delta)
				e.Delta = jsonx.String(*scratch)
			}
		case holeLogprobs:
			n = wholeValue(s[i:])
		}
		if n == 0 {
			return false
		}
		i += n
	}
	if s[i:] != p.pieces[p.n] {
		return false
	}
	e.raw, e.half, e.joined = s, false, false
	p.fitted = true
	return true
}

// wholeValue returns the length of the value at the start of s, which is a
// member of an event, or 0 if there is none.
func wholeValue(s string) int {
	sc := jsonx.Scanner{Text: s, Depth: 1}
	end, err := sc.Value(0)
	if err != nil {
		return 0
	}
	return end
}

// shortString returns the length of the string literal at the start of s, or 0
// if there is none, and whether it has escapes.
func shortString(s string) (length int, escaped bool) {
	if s == "" || s[0] != '"' {
		return 0, false
	}
	end := jsonx.Plain(s, 1)
	if end < len(s) && s[end] == '"' {
		return end + 1, false
	}
	sc := jsonx.Scanner{Text: s}
	end, err := sc.Quoted(0)
	if err != nil {
		return 0, false
	}
	return end, strings.IndexByte(s[:end], '\\') >= 0
}

// learn makes the event a pattern for those that follow. Where patterns do not
// help, they are tried ever more rarely.
func (d *EventDecoder) learn() {
	if d.skip > 0 {
		d.skip--
		return
	}
	var p *pattern
	if n := len(d.patterns); d.learnt < len(d.first) {
		p = &d.first[d.learnt]
		d.learnt++
	} else if n < maxPatterns {
		p = new(pattern)
	} else {
		p = d.patterns[n-1] // the one that has not fitted for longest
		d.patterns = d.patterns[:n-1]
		if p.fitted {
			d.misses = 0
		} else if d.misses++; d.misses > 3 {
			d.skip = min(1<<d.misses, 1024)
		}
	}
	p.learn(&d.event.event)
	if p.n > 0 {
		if d.patterns == nil {
			d.patterns = d.order[:0]
		}
		d.patterns = append(d.patterns, nil)
		copy(d.patterns[1:], d.patterns)
		d.patterns[0] = p
	}
}

// learn makes p a pattern of the event. It has no holes when the event is odd: a
// name is given twice, or spelled with escapes.
func (p *pattern) learn(e *Event) {
	p.own = append(p.own[:0], e.raw...)
	own := jsonx.String(p.own)
	p.n, p.fitted, p.event.event = 0, false, *e
	start, good := 0, true
	var seen [maxHoles]bool
	jsonx.EachMember(own, func(name, value string) {
		good = good && strings.IndexByte(name, '\\') < 0
		kind, ok := holeOf(name)
		if !ok || !good {
			return
		}
		good = !seen[kind]
		seen[kind] = true
		if good && kind.fits(value) {
			at := within(own, value)
			p.pieces[p.n], p.holes[p.n] = own[start:at], kind
			p.n++
			start = at + len(value)
		}
	})
	p.pieces[p.n] = own[start:]
	p.event.event.item, p.event.event.response = moved(e.item, e.raw, own), moved(e.response, e.raw, own)
	if !good {
		p.n = 0
	}
}

// within returns where in s its part begins, or -1 when part is not a view of s.
func within(s, part string) int {
	at := uintptr(unsafe.Pointer(unsafe.StringData(part))) - uintptr(unsafe.Pointer(unsafe.StringData(s)))
	if part == "" || at >= uintptr(len(s)) {
		return -1
	}
	return int(at)
}

// names16 are the types and item ids that came last, as strings of their own: a
// stream has few, and says each in most of its events.
type names16 struct {
	list [16]string
	next int
}

// maxName is how long a name may be that is worth keeping.
const maxName = 256

// own returns a string equal to s whose memory never changes.
func (n *names16) own(s string) string {
	for i := range n.list {
		if n.list[i] == s {
			return n.list[i]
		}
	}
	s = strings.Clone(s)
	if len(s) <= maxName {
		n.list[n.next] = s
		n.next = (n.next + 1) % len(n.list)
	}
	return s
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
	case `"logprobs"`:
		return holeLogprobs, true
	}
	return 0, false
}

// fits reports whether the value is of the kind that the hole takes.
func (h hole) fits(value string) bool {
	switch h {
	case holeNumber:
		return jsonx.IsNumber(value)
	case holeLogprobs:
		return value != "[]"
	}
	return value[0] == '"'
}
