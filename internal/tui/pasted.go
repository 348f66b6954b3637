// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pasted reads what a terminal sends, with pastes in a form that the decoder of keys passes on whole. It
// would take escape sequences in a paste for keys and answers, and leave them out: a log with colours, or
// whatever follows an ESC, would be lost. So each byte that it might not pass on is a character of its own,
// which unpasted turns back.
type pasted struct {
	from io.Reader

	inside bool
	at     int    // how many bytes of the sequence that begins a paste, or inside of one ends it, have come
	begun  []byte // the beginning of a character of a paste, whose other bytes have not come
	out    []byte // not read yet
}

const (
	pasteBegins, pasteEnds = "\x1b[200~", "\x1b[201~"
	// firstOfPasted is the character that stands for the byte 0; those of the other bytes follow it. They are for
	// private use, and encoded themselves if they are pasted.
	firstOfPasted = '\U0010ff00'
)

// Read implements [io.Reader].
func (p *pasted) Read(to []byte) (int, error) {
	for len(p.out) == 0 {
		var b [4096]byte
		n, err := p.from.Read(b[:])
		for _, c := range b[:n] {
			p.take(c)
		}
		if err != nil {
			n = copy(to, p.out)
			p.out = p.out[n:]
			return n, err
		}
	}
	n := copy(to, p.out)
	p.out = p.out[n:]
	return n, nil
}

// take adds a byte to what can be read. Of what may be the end of a paste, it keeps the beginning.
func (p *pasted) take(c byte) {
	sequence := pasteBegins
	if p.inside {
		sequence = pasteEnds
	}
	if c != sequence[p.at] {
		if p.inside {
			p.encode([]byte(sequence[:p.at])...)
		}
		p.at = 0
	}
	switch {
	case c == sequence[p.at]:
		p.at++
	case p.inside:
		p.encode(c)
	}
	ends := p.at == len(sequence)
	switch {
	case !p.inside:
		p.out = append(p.out, c)
	case ends:
		p.escape(p.begun)
		p.begun = p.begun[:0]
		p.out = append(p.out, sequence...)
	}
	if ends {
		p.inside, p.at = !p.inside, 0
	}
}

// encode adds bytes of a paste. Characters pass as they are, which is much faster, but for those that the decoder of
// keys might leave out, those that stand for bytes, and bytes that are not UTF-8.
func (p *pasted) encode(text ...byte) {
	p.begun = append(p.begun, text...)
	for utf8.FullRune(p.begun) {
		r, n := utf8.DecodeRune(p.begun)
		if r == utf8.RuneError || unicode.IsControl(r) || r >= firstOfPasted {
			p.escape(p.begun[:n])
		} else {
			p.out = append(p.out, p.begun[:n]...)
		}
		p.begun = append(p.begun[:0], p.begun[n:]...)
	}
}

// escape adds for each byte the character that stands for it.
func (p *pasted) escape(text []byte) {
	for _, c := range text {
		p.out = utf8.AppendRune(p.out, firstOfPasted+rune(c))
	}
}

// unpasted returns a paste as it was sent.
func unpasted(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r >= firstOfPasted && r <= firstOfPasted+0xff {
			b.WriteByte(byte(r - firstOfPasted))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
