// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"unsafe"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// EventDecoder reads the events of one stream. It is faster than [ParseEvent], which
// reads each event on its own: delta events of a reply differ in few places, so the
// decoder first compares each event with earlier ones, and it compares text that
// other events repeat instead of parsing it again. It accepts and returns the same
// as ParseEvent, except for characters that a server split in two; see
// [Event.Delta].
//
// The decoder keeps copies of events, up to 256 KB in total. The zero value is ready
// to use. An EventDecoder is not safe for concurrent use.
type EventDecoder struct {
	patterns []*pattern // most recently used first
	order    [maxPatterns]*pattern
	first    [2]pattern // the first patterns, stored inline: most streams need no more
	learnt   int        // how many elements of first are in use
	known    jsonx.Memory
	event    EventView // the current event, if it fits no pattern
	names    names16   // strings for types and ids, to return them without a copy
	scratch  []byte    // the text of a delta that has escapes
	skip     int       // events left before a new pattern is learned
	misses   int       // consecutive patterns that never fitted an event
	halves   halves
}

// Reset prepares the decoder for a new stream and keeps its memory. Views that it
// returned before are invalid.
func (d *EventDecoder) Reset() {
	// Keep the buffers of the inline patterns.
	one, two := d.first[0].own, d.first[1].own
	d.known.Reset()
	*d = EventDecoder{known: d.known, scratch: d.scratch[:0], names: d.names, halves: halves{text: d.halves.text[:0]}}
	d.first[0].own, d.first[1].own = one[:0], two[:0]
}

// maxPatterns is how many patterns are kept, and so how many kinds of deltas may
// alternate.
const maxPatterns = 4

// pattern is a delta event with holes at the places where such events differ. Its
// strings point into own.
type pattern struct {
	own    []byte
	event  EventView
	pieces [maxHoles + 1]string // the text before, between and after the holes
	holes  [maxHoles]hole
	n      int // number of holes
	fitted bool
}

// hole is a place in a pattern whose value may differ.
type hole int

const (
	holeNumber   hole = iota // sequence_number
	holeDelta                // delta
	holeText                 // obfuscation
	holeLogprobs             // logprobs, unless the list is empty
	maxHoles     = 4
)

// Decode reads one event from a copy of data. It returns the same errors as
// [ParseEvent].
func (d *EventDecoder) Decode(data []byte) (Event, error) {
	v, err := d.View(data)
	if err != nil {
		return Event{}, err
	}
	return v.Event(), nil
}

// DecodeString is like Decode but does not copy s.
func (d *EventDecoder) DecodeString(s string) (Event, error) {
	v, err := d.view(s)
	if err != nil {
		return Event{}, err
	}
	e := v.event
	// Values that are not in s are in memory of the decoder.
	for _, part := range [...]*string{&e.Delta, &e.item, &e.response} {
		if within(e.raw, *part) < 0 {
			*part = strings.Clone(*part)
		}
	}
	return e, nil
}

// View reads one event without copying it. The view is valid until the next call of
// a method of the decoder, and only while data does not change. View returns the
// same errors as [ParseEvent].
func (d *EventDecoder) View(data []byte) (*EventView, error) {
	return d.view(jsonx.String(data)) // leaves the decoder only as bytes or as a copy
}

func (d *EventDecoder) view(s string) (*EventView, error) {
	if err := jsonx.CheckSize(s); err != nil {
		return nil, syntaxError(err)
	}
	// Nearly all events of a long reply fit one of the patterns.
	for i, p := range d.patterns {
		if p.fit(s, &d.scratch) {
			if i > 0 {
				// Move the pattern to the front: the next event probably fits it
				// too.
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
	// These two are returned as ordinary strings, so they need memory that does not
	// change.
	e.Type, e.ItemID = EventType(d.names.own(string(e.Type))), d.names.own(e.ItemID)
	// Only deltas occur often enough to be worth learning.
	if strings.HasSuffix(string(e.Type), ".delta") && e.Delta != "" {
		d.learn()
		d.halves.join(e)
	}
	return &d.event, nil
}

// repeats reports whether the event mostly repeats earlier ones. Remembering it
// would waste memory.
func repeats(event string) bool {
	return strings.HasPrefix(event, `{"type":"response.in_progress"`) || strings.HasPrefix(event, `{"type":"response.completed"`)
}

// fit reports whether s matches the pattern, and if so reads it into p.event.
// scratch is a buffer for a delta with escapes.
func (p *pattern) fit(s string, scratch *[]byte) bool {
	e := &p.event.event
	i := 0
	for k := range p.n {
		// The text up to the next hole must be the same.
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
			// Only the length of the padding is needed.
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

// wholeValue returns the length of the JSON value at the start of s, or 0 if there
// is none. The value is a member of an event, so it starts at depth 1.
func wholeValue(s string) int {
	sc := jsonx.Scanner{Text: s, Depth: 1}
	end, err := sc.Value(0)
	if err != nil {
		return 0
	}
	return end
}

// shortString returns the length of the string literal at the start of s, or 0 if
// there is none, and whether it has escapes.
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

// learn makes the current event a pattern for later ones. If patterns keep failing
// to match, it learns new ones less and less often.
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
		p = d.patterns[n-1] // the one that has not matched for longest
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

// learn makes p a pattern of the event. The pattern has no holes if the event is
// unusual: a name occurs twice, or is written with escapes.
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
	// The pattern's event must point into its own copy, because e's memory will be
	// reused.
	p.event.event.item, p.event.event.response = moved(e.item, e.raw, own), moved(e.response, e.raw, own)
	if !good {
		p.n = 0
	}
}

// within returns the offset of part in s, or -1 if part does not point into s.
func within(s, part string) int {
	at := uintptr(unsafe.Pointer(unsafe.StringData(part))) - uintptr(unsafe.Pointer(unsafe.StringData(s)))
	if part == "" || at >= uintptr(len(s)) {
		return -1
	}
	return int(at)
}

// names16 holds the most recent types and item ids as strings with their own memory.
// A stream uses few of them and repeats them in most events.
type names16 struct {
	list [16]string
	next int
}

// maxName is the length in bytes of the longest name that is kept.
const maxName = 256

// own returns a string equal to s whose memory does not change.
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

// holeOf returns the hole for the named member, if its value differs from event to
// event.
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

// fits reports whether the hole can hold the value.
func (h hole) fits(value string) bool {
	switch h {
	case holeNumber:
		return jsonx.IsNumber(value)
	case holeLogprobs:
		return value != "[]"
	}
	return value[0] == '"'
}

// UTF-16 encodes a character beyond U+FFFF as two surrogates. A server that splits
// text by UTF-16 units, as JavaScript does, may end one delta with the first half of
// a character and begin the next with the second half, each written as an escape.
// Decoded one by one, the halves would become U+FFFD twice. The code below joins
// them.

const replacement = "\uFFFD"

// halves tracks the texts of a stream whose last delta ended in half a character.
type halves struct {
	open []openHalf // nearly always empty
	text []byte     // of the last delta that was joined
}

// openHalf is half a character that the next delta of the text may complete.
type openHalf struct {
	of   textName
	half string
}

// textName identifies the text that a delta belongs to, by the members of the event.
type textName struct {
	kind                   EventType
	id                     string
	index, content, nested int
	command                string
}

// nameOf returns the name of the text that the event is about. Texts of shell events
// differ only in command_index, for which Event has no field.
func nameOf(e *Event) textName {
	command, _ := memberOf(e.raw, "command_index")
	return textName{e.Type, e.ItemID, e.OutputIndex, e.ContentIndex, e.SummaryIndex, string(command)}
}

// join changes the event's delta so that it begins and ends with whole characters.
// Half a character at the end is held back until the text's next delta. For nearly
// all deltas join does nothing. The new delta is valid until the next call.
func (h *halves) join(e *Event) {
	if len(h.open) == 0 && !strings.HasSuffix(e.Delta, replacement) || e.Delta == "" || e.joined {
		return
	}
	h.see(e)
}

// see is the slow part of join.
func (h *halves) see(e *Event) {
	of, before := nameOf(e), ""
	for i, o := range h.open {
		if o.of == of {
			before = o.half
			h.open = append(h.open[:i], h.open[i+1:]...)
			break
		}
	}
	// Only the raw text has the escapes. Decoding has replaced the half by U+FFFD.
	v, _ := memberOf(e.raw, "delta")
	if v == "" || v[0] != '"' {
		return
	}
	whole, half := v.CutHalf()
	if half != "" {
		// The event's memory may be reused, so the key needs copies.
		of.id, of.command, of.kind = strings.Clone(of.id), strings.Clone(of.command), EventType(strings.Clone(string(of.kind)))
		h.open = append(h.open, openHalf{of, half})
		e.half = true
	}
	if before != "" || half != "" {
		h.text = jsonx.AppendUnescaped(h.text[:0], before+string(whole[1:len(whole)-1]))
		e.Delta, e.joined = jsonx.String(h.text), true
	}
}
