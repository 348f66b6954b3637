// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

func (l Limit) shorten(ctx context.Context, o *Outcome, w *whole) {
	l = l.or(w.each()).floor()
	if asked, ok := w.asked.(Limit); ok {
		l = l.within(asked.floor())
	}
	l = w.shape.unit(l)
	w.limit = l
	o.write(ctx, w, l)
}

// each is what bounds the output but for its tool's own limit.
func (w *whole) each() (each Limit) {
	for _, l := range []Limiter{w.shape.Limit, w.usual, w.shape.Usual} {
		if l != nil {
			each, _ = l.(Limit)
			break
		}
	}
	return each
}

// shorten writes a page with the mark of what follows it, within the limits
// that there are.
func (p *page) shorten(ctx context.Context, o *Outcome, w *whole) {
	w.page = p
	own, _ := w.own.(Limit)
	own.shorten(ctx, o, w)
}

func (p *page) behind(n int) paged { return &page{id: p.id, offset: p.offset - n, size: p.size} }

// write puts the output into the outcome, within the limit.
func (o *Outcome) write(ctx context.Context, w *whole, l Limit) {
	o.LeftOut, o.Stored = 0, nil
	if w.long != nil && l.allow(w.shape.far(w.long.Len())) {
		w.text, w.long = w.long.whole(), nil
	}
	o.Content = w.content(w.failed, w.list, w.err, w.text, w.parts)
	size := w.shape.measure(o.Content, l)
	if w.long != nil {
		more := w.shape.far(w.long.Len())
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

// allow reports whether a size keeps to the limit.
func (l Limit) allow(size Limit) bool {
	return (l.Bytes <= 0 || size.Bytes <= l.Bytes) && (l.Tokens <= 0 || size.Tokens <= l.Tokens)
}

// far is the size of a text that is too long to be measured.
func (sh Shape) far(n int) Limit {
	return Limit{Bytes: n, Tokens: (n + bytesPerToken - 1) / bytesPerToken}
}

// fitting shortens one output.
type fitting struct {
	w      *whole
	limit  Limit
	total  Limit // the sizes of the whole
	pieces []*piece
	parts  []item.Part // of the output; texts among them are pieces
	at     []int       // where among the parts the pieces stand that are after error and text
}

// split finds the texts of an output: the error, the text, and those among the
// parts. Where these are so many that little would be left of each, they are
// joined and stand before the images.
func (f *fitting) split() {
	w := f.w
	f.parts = slices.Clone(w.parts)
	f.pieces = []*piece{f.piece(stringBody(w.err)), f.piece(stringBody(w.text))}
	if w.long != nil {
		f.pieces[1].text = w.long
	}
	if p, ok := w.page.(*page); ok {
		f.pieces[1].page = p
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
	return &piece{text: text, mode: f.limit.Mode, keeps: f.w.spill != nil}
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

// smallest is what the output can be shortened to.
func (f *fitting) smallest() int {
	n := f.overhead()
	for _, p := range f.pieces {
		n += p.smallest()
	}
	return n
}

// overhead is what the envelope takes.
func (f *fitting) overhead() int {
	if !f.w.failed && !f.w.shape.Envelope {
		return 0
	}
	return len(Envelope(f.w.failed, f.w.name, "", ""))
}

// bytes is the limit, or what it comes to at the rate of the whole output.
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

// fit shortens until the limit is kept, and reports whether it is. Bytes are kept at
// the first try, but for an error that is indented; tokens are a matter of
// approaching them.
func (f *fitting) fit(ctx context.Context, o *Outcome) bool {
	const tries = 8
	if f.limit.isZero() { // a page
		f.shorten(ctx, f.total.Bytes, o)
		return true
	}
	smallest := f.smallest()
	room, low, high := f.bytes(), 0, 0
	for range tries {
		f.shorten(ctx, room, o)
		size := f.w.shape.measure(o.Content, f.limit)
		if f.limit.allow(size) {
			if low = room; f.limit.Tokens <= 0 || size.Tokens >= f.limit.Tokens*9/10 || high == 0 && room >= f.most() {
				return true
			}
		} else {
			if room <= smallest {
				return false // there is no less
			}
			high = room
		}
		room = f.next(room, low, high, size)
	}
	f.shorten(ctx, low, o)
	return low > 0 || f.limit.allow(f.w.shape.measure(o.Content, f.limit))
}

// most is how much room the limit of bytes leaves at best.
func (f *fitting) most() int {
	if f.limit.Bytes > 0 {
		return min(f.limit.Bytes, f.total.Bytes)
	}
	return f.total.Bytes
}

// next is the room to try after one that came to size: between what is known to
// fit and what is known not to, where the count so far suggests.
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

// shorten shortens the pieces so that they take room together and puts the output
// together again.
func (f *fitting) shorten(ctx context.Context, room int, o *Outcome) {
	more := make([]int, len(f.pieces)) // than the smallest
	room -= f.overhead()
	for i, p := range f.pieces {
		more[i] = p.wants() - p.smallest()
		room -= p.smallest()
	}
	shares := Share(room, 0, more)
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

// keep stores the whole of a piece, once, so that the rest of it can be read.
func (f *fitting) keep(ctx context.Context, p *piece, o *Outcome) {
	if p.stored == "" && o.SpillError == nil {
		id, err := p.store(context.WithoutCancel(ctx), f.w.spill)
		if err = checkStoredID(id, err); err != nil {
			o.SpillError = err
			return
		}
		p.stored = id
	}
	if p.stored != "" {
		o.Stored = append(o.Stored, p.stored)
	}
}

// store keeps all of the piece's text in a spill.
func (p *piece) store(ctx context.Context, s Spill) (id string, err error) {
	if l, ok := p.text.(*long); ok {
		return l.store(ctx, s)
	}
	return s.Put(ctx, []byte(p.text.Slice(0, p.text.Len())))
}
