// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// piece is one text of an output, valid UTF-8.
type piece struct {
	text body
	mode Mode
	// keeps says that the whole text is stored if any of it is left out; stored
	// is the id, once it is known.
	keeps  bool
	stored string
	lines  int // in the text, once they are counted
	// page says that text is a part of what is stored already.
	page *page
}

// page is where a piece lies in a stored output.
type page struct {
	id           string
	offset, size int // where it begins; of the whole
}

// span is a part of a text: the bytes from a up to b.
type span struct{ a, b int }

// minKept is what of a text stays at least, if it has as much.
const minKept = 48

// shorten returns the text within limit bytes, marks included, and how much of it
// is gone. Below its smallest size it does not go: the marks and minKept bytes.
func (p *piece) shorten(limit int) (text string, gone int) {
	end, n := p.end(), p.text.Len()
	if end <= n && n <= max(limit, p.smallest()) {
		return p.text.Slice(0, n), 0
	}
	m := p.marker()
	var b strings.Builder
	b.Grow(min(limit, n) + m.longest)
	at := 0
	for _, s := range p.keep(limit, m) {
		if s.a > at {
			m.write(&b, span{at, s.a})
		}
		gone += s.a - at
		b.WriteString(p.text.Slice(s.a, s.b))
		at = s.b
	}
	if at < end {
		m.write(&b, span{at, end})
		gone += end - at
	}
	return b.String(), gone
}

// end is where the text would end if nothing were left out.
func (p *piece) end() int {
	if p.page != nil {
		return p.page.size - p.page.offset
	}
	return p.text.Len()
}

// wants is the size of a text of which nothing more is left out.
func (p *piece) wants() int {
	if n := p.text.Len(); p.end() > n {
		return n + p.marker().longest
	}
	return p.text.Len()
}

// smallest is the size to which a text can be shortened.
func (p *piece) smallest() int { return min(p.wants(), p.marker().longest+minKept) }

// keep chooses what stays: blocks that begin and end with lines where that
// costs no more than half of a block.
func (p *piece) keep(limit int, m *marker) []span {
	n := p.text.Len()
	if p.page != nil {
		return []span{{0, p.lineEnd(0, min(n, roomFor(limit-m.longest)))}}
	}
	blocks := 2
	switch p.mode {
	case Head:
		return []span{{0, p.lineEnd(0, min(n, roomFor(limit-m.longest)))}}
	case Tail:
		return []span{{p.lineStart(n-min(n, roomFor(limit-m.longest)), n), n}}
	case Sample:
		const block, most = 400, 20
		blocks = min(2+limit/block, most)
	}
	marks := m.longest + (blocks-2)*m.later
	return p.blocks(blocks, min(n, roomFor(limit-marks))/blocks)
}

func roomFor(room int) int { return max(room, minKept) }

// blocks keeps k blocks of size bytes at equal distances, the first at the
// start and the last at the end. Such as touch become one.
func (p *piece) blocks(k, size int) []span {
	n := p.text.Len()
	var kept []span
	for i := range k {
		a := i * (n - size) / (k - 1)
		b := a + size
		if i > 0 {
			a = p.lineStart(a, b)
		}
		if i < k-1 {
			b = p.lineEnd(a, b)
		}
		if len(kept) > 0 && a <= kept[len(kept)-1].b {
			kept[len(kept)-1].b = max(b, kept[len(kept)-1].b)
			continue
		}
		kept = append(kept, span{a, b})
	}
	return kept
}

// lineStart moves a forward to where a line begins, or at least a character.
func (p *piece) lineStart(a, b int) int {
	if a == 0 || p.at(a-1) == '\n' {
		return a
	}
	if i := strings.IndexByte(p.text.Slice(a, max(a, (a+b)/2)), '\n'); i >= 0 {
		return a + i + 1
	}
	for a < b && p.within(a) {
		a++
	}
	return a
}

// lineEnd moves b back to where a line ends, or at least a character.
func (p *piece) lineEnd(a, b int) int {
	if b == p.text.Len() || b > 0 && p.at(b-1) == '\n' {
		return b
	}
	if half := (a + b) / 2; half < b {
		if i := strings.LastIndexByte(p.text.Slice(half, b), '\n'); i >= 0 {
			return half + i + 1
		}
	}
	for b > a && p.within(b) {
		b--
	}
	return b
}

func (p *piece) at(i int) byte { return p.text.Slice(i, i+1)[0] }

// within reports whether i is inside a character or a line end of two.
func (p *piece) within(i int) bool {
	c := p.at(i)
	return !utf8.RuneStart(c) || i > 0 && c == '\n' && p.at(i-1) == '\r'
}

// marker writes what replaces the text that is gone:
//
//	[48210 of 65536 bytes left out here (lines 120 to 911 of 1200). To read them, call read_output with id 3f9a… and offset 17326]
//
// The first mark says how to get the rest, further ones say how much is gone
// and where. Each stands on lines of its own.
type marker struct {
	p       *piece
	id      string
	base    int // the offset of the text in what is stored
	size    int // of what is stored
	lines   int // in the text; 0: not known
	longest int // of the first mark, with the newlines around it
	later   int // of the others
	written int
	at, nth int // the line, from 0, that the byte at belongs to
}

// maxID is how long the id of a stored output can be.
const maxID = 64

func (p *piece) marker() *marker {
	n := p.text.Len()
	m := &marker{p: p, id: p.stored, size: n}
	if p.page != nil {
		m.id, m.base, m.size = p.page.id, p.page.offset, p.page.size
	} else {
		if p.lines == 0 {
			newlines := p.text.Lines(0, n)
			if p.lines = max(1, newlines); newlines > 0 && p.at(n-1) != '\n' {
				p.lines++
			}
		}
		m.lines = p.lines
	}
	// No gap has more digits than the whole.
	widest := *m
	if p.keeps {
		widest.id = strings.Repeat("x", maxID)
	}
	m.longest = len(widest.mark(m.size, m.lines, m.lines, m.size, true)) + 2
	m.later = len(widest.mark(m.size, m.lines, m.lines, m.size, false)) + 2
	return m
}

func (m *marker) write(b *strings.Builder, gap span) {
	if b.Len() > 0 && m.p.at(gap.a-1) != '\n' {
		b.WriteByte('\n')
	}
	from, to := 0, 0
	if m.lines > 0 {
		from = m.line(gap.a)
		to = m.line(gap.b - 1)
	}
	b.WriteString(m.mark(gap.b-gap.a, from, to, m.base+gap.a, m.written == 0))
	m.written++
	if gap.b < m.p.text.Len() {
		b.WriteByte('\n')
	}
}

// line returns the line, counted from 1, that a byte belongs to. It is asked in
// ascending order.
func (m *marker) line(at int) int {
	m.nth += m.p.text.Lines(m.at, at)
	m.at = at
	return m.nth + 1
}

func (m *marker) mark(gone, from, to, offset int, first bool) string {
	var b strings.Builder
	b.WriteByte('[')
	b.WriteString(strconv.Itoa(gone))
	if first {
		b.WriteString(" of " + strconv.Itoa(m.size))
	}
	b.WriteString(" bytes left out here")
	if m.lines > 0 {
		b.WriteString(" (lines " + strconv.Itoa(from) + " to " + strconv.Itoa(to))
		if first {
			b.WriteString(" of " + strconv.Itoa(m.lines))
		}
		b.WriteByte(')')
	}
	switch {
	case m.id != "" && first:
		b.WriteString(". To read them, call " + storedWhole + m.id + " and offset " + strconv.Itoa(max(offset, 0)))
	case m.id != "":
		b.WriteString(", offset " + strconv.Itoa(offset))
	case first:
		b.WriteString(". They were not kept; to see them, call the tool for less at a time")
	}
	b.WriteByte(']')
	return b.String()
}
