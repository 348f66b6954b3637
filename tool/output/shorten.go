// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// piece is one text of an output. It is valid UTF-8.
type piece struct {
	text body
	mode Mode
	// keeps means that the whole text is stored if part of it is left out; stored is
	// its id, once known.
	keeps  bool
	stored string
	lines  int // lines in the text, once counted
	// page means that text is part of a text that is already stored.
	page *Page
}

// span is a part of a text: the bytes in [a, b).
type span struct{ a, b int }

// minKept is the minimum number of bytes that remain of a longer text.
const minKept = 48

// shorten returns the text within limit bytes, including marks, and the number of
// bytes omitted. It never goes below its smallest size: the marks and minKept bytes.
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

// end returns where the text would end if nothing more were left out.
func (p *piece) end() int {
	if p.page != nil {
		return p.page.size - p.page.offset
	}
	return p.text.Len()
}

// wants returns the size of the text if nothing more is left out.
func (p *piece) wants() int {
	if n := p.text.Len(); p.end() > n {
		return n + p.marker().longest
	}
	return p.text.Len()
}

// smallest returns the smallest size to which the text can be shortened.
func (p *piece) smallest() int { return min(p.wants(), p.marker().longest+minKept) }

// keep selects the parts that remain: blocks that begin and end at line boundaries
// if that costs at most half of a block.
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

// blocks returns k blocks of size bytes at equal distances, the first at the start
// and the last at the end. Adjacent blocks are joined.
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

// lineStart moves a forward to the beginning of a line, or at least of a character.
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

// lineEnd moves b back to the end of a line, or at least of a character.
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

// within reports whether i is inside a character or a two-byte line end.
func (p *piece) within(i int) bool {
	c := p.at(i)
	return !utf8.RuneStart(c) || i > 0 && c == '\n' && p.at(i-1) == '\r'
}

// marker writes the marks that replace omitted text:
//
//	[48210 of 65536 bytes left out here (lines 120 to 911 of 1200). To read them, call read_output with id 3f9a… and offset 17326]
//
// The first mark says how to get the rest; further marks say how much is missing and
// where. Each mark is on lines of its own.
type marker struct {
	p       *piece
	id      string
	base    int // the offset of the text in the stored data
	size    int // the size of the stored data
	lines   int // lines in the text; 0 if unknown
	longest int // the maximum length of the first mark, including the newlines around it
	later   int // the maximum length of the later marks
	written int
	at, nth int // the byte at is in line nth, counted from 0
}

// maxID is the maximum length of the id of a stored output.
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
	// No gap has more digits than the size of the whole text.
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

// line returns the line number of a byte, counted from 1. Calls must be in ascending
// order.
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

// write writes the text to the output, within the limit.
func (w *whole) write(ctx context.Context, o *Output, l Limit) {
	o.LeftOut, o.Stored = 0, nil
	if w.long != nil && l.allow(w.policy.far(w.long.Len())) {
		w.text, w.long = w.long.whole(), nil
	}
	o.Content = w.content(w.failed, w.list, w.err, w.text, w.parts)
	size := w.policy.measure(o.Content, l)
	if w.long != nil {
		more := w.policy.far(w.long.Len())
		size.Bytes, size.Tokens = size.Bytes+more.Bytes, size.Tokens+more.Tokens
	} else if w.page == nil && l.allow(size) {
		return
	}
	f := &fitting{w: w, limit: l, total: size}
	f.split()
	if !f.fit(ctx, o) && len(f.at) > 0 {
		f.join()
		f.fit(ctx, o)
	}
}

// allow reports whether a size is within the limit.
func (l Limit) allow(size Limit) bool {
	return (l.Bytes <= 0 || size.Bytes <= l.Bytes) && (l.Tokens <= 0 || size.Tokens <= l.Tokens)
}

// far returns the assumed size of a text that is too long to measure.
func (p Policy) far(n int) Limit {
	return Limit{Bytes: n, Tokens: (n + bytesPerToken - 1) / bytesPerToken}
}

// fitting is the state of shortening one output.
type fitting struct {
	w      *whole
	limit  Limit
	total  Limit // the sizes of the complete output
	pieces []*piece
	parts  []item.Part // the parts of the output; texts among them are pieces
	at     []int       // the positions in parts of the pieces that follow the error and the text
}

// split collects the texts of an output: the error, the text, and the texts among
// the parts. If there are so many that little would remain of each, they are joined
// and placed before the images.
func (f *fitting) split() {
	w := f.w
	f.parts = slices.Clone(w.parts)
	f.pieces = []*piece{f.piece(stringBody(w.err)), f.piece(stringBody(w.text))}
	if w.long != nil {
		f.pieces[1].text = w.long
	}
	if w.page != nil {
		f.pieces[1].page = w.page
		f.total.Bytes += f.pieces[1].wants() - len(w.text)
	}
	for i, p := range f.parts {
		if t, ok := p.(*item.InputText); ok {
			f.pieces = append(f.pieces, f.piece(stringBody(t.Text)))
			f.at = append(f.at, i)
		}
	}
	if len(f.at) > 0 && f.smallest() > f.bytes() {
		f.join()
	}
}

func (f *fitting) piece(text body) *piece {
	return &piece{text: text, mode: f.limit.Mode, keeps: f.w.Store != nil}
}

func (f *fitting) join() {
	var texts []string
	for i, p := range f.pieces[1:] {
		if n := p.text.Len(); i > 0 || n > 0 {
			texts = append(texts, p.text.Slice(0, n))
		}
	}
	f.pieces = []*piece{f.pieces[0], f.piece(stringBody(strings.Join(texts, "\n")))}
	f.parts = slices.DeleteFunc(f.parts, func(p item.Part) bool {
		_, ok := p.(*item.InputText)
		return ok
	})
	f.at = nil
}

// smallest returns the smallest size to which the output can be shortened.
func (f *fitting) smallest() int {
	n := f.overhead()
	for _, p := range f.pieces {
		n += p.smallest()
	}
	return n
}

// overhead returns the size of the envelope.
func (f *fitting) overhead() int {
	if !f.w.failed && !f.w.policy.Envelope {
		return 0
	}
	return len(Envelope(f.w.failed, f.w.Name, "", ""))
}

// bytes returns the limit in bytes. It converts tokens at the rate of the whole
// output.
func (f *fitting) bytes() int {
	n := f.total.Bytes
	if f.limit.Bytes > 0 {
		n = min(n, f.limit.Bytes)
	}
	if f.limit.Tokens > 0 && f.total.Tokens > f.limit.Tokens {
		n = min(n, int(float64(f.total.Bytes)*float64(f.limit.Tokens)/float64(f.total.Tokens)))
	}
	return n
}

// fit shortens the output until it is within the limit, and reports whether it is. A
// limit in bytes is met at the first attempt, except if an error is indented; a
// limit in tokens is approached.
func (f *fitting) fit(ctx context.Context, o *Output) bool {
	const tries = 8
	if f.limit.isZero() { // a page
		f.shorten(ctx, f.total.Bytes, o)
		return true
	}
	smallest := f.smallest()
	room, low, high := f.bytes(), 0, 0
	for range tries {
		f.shorten(ctx, room, o)
		size := f.w.policy.measure(o.Content, f.limit)
		if f.limit.allow(size) {
			if low = room; f.limit.Tokens <= 0 || size.Tokens >= f.limit.Tokens*9/10 || high == 0 && room >= f.most() {
				return true
			}
		} else {
			if room <= smallest {
				return false // it cannot be shorter
			}
			high = room
		}
		room = f.next(room, low, high, size)
	}
	f.shorten(ctx, low, o)
	return low > 0 || f.limit.allow(f.w.policy.measure(o.Content, f.limit))
}

// most returns the room that the byte limit leaves at best.
func (f *fitting) most() int {
	if f.limit.Bytes > 0 {
		return min(f.limit.Bytes, f.total.Bytes)
	}
	return f.total.Bytes
}

// next returns the room to try after a room that resulted in size. It lies between
// rooms known to fit and known not to fit, at the place that the count suggests.
func (f *fitting) next(room, low, high int, size Limit) int {
	guess := room
	if f.limit.Tokens > 0 && size.Tokens > 0 {
		guess = int(float64(room) * float64(f.limit.Tokens) / float64(size.Tokens) * 0.97)
	}
	if f.limit.Bytes > 0 && size.Bytes > f.limit.Bytes {
		guess = min(guess, room-(size.Bytes-f.limit.Bytes))
	}
	upper := f.most()
	if high > 0 {
		upper = high - 1
	}
	if guess <= low || guess > upper {
		guess = low + (upper-low+1)/2
	}
	return max(guess, 1)
}

// shorten shortens the pieces to take room bytes together, and assembles the output
// again.
func (f *fitting) shorten(ctx context.Context, room int, o *Output) {
	more := make([]int, len(f.pieces)) // the size beyond the smallest
	room -= f.overhead()
	for i, p := range f.pieces {
		more[i] = p.wants() - p.smallest()
		room -= p.smallest()
	}
	shares := share(room, 0, more)
	texts := make([]string, len(f.pieces))
	o.LeftOut, o.Stored, o.Commands = 0, nil, nil
	for i, p := range f.pieces {
		if p.keeps && p.page == nil && shares[i] < more[i] {
			f.keep(ctx, p, o)
		}
		gone := 0
		texts[i], gone = p.shorten(p.smallest() + shares[i])
		o.LeftOut += gone
	}
	for i, at := range f.at {
		c := *f.parts[at].(*item.InputText)
		c.Text = texts[2+i]
		f.parts[at] = &c
	}
	o.Content = f.w.content(f.w.failed, f.w.list, texts[0], texts[1], f.parts)
}

// keep stores the whole of a piece once, so that the model can read the rest.
func (f *fitting) keep(ctx context.Context, p *piece, o *Output) {
	if p.stored == "" && o.StoreError == nil {
		id, err := p.store(context.WithoutCancel(ctx), f.w.Store)
		if err = checkStoredID(id, err); err != nil {
			o.StoreError = err
			return
		}
		p.stored = id
	}
	if p.stored != "" {
		o.Stored = append(o.Stored, p.stored)
	}
}

// store copies the piece's text to a store.
func (p *piece) store(ctx context.Context, s Store) (id string, err error) {
	if l, ok := p.text.(*long); ok {
		return l.store(ctx, s)
	}
	return s.Put(ctx, []byte(p.text.Slice(0, p.text.Len())))
}
