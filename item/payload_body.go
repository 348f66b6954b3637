// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Body is the encoded text of a request in pieces, which are sent one after the
// other: the history that a [List] keeps encoded is not copied into it, and
// payloads that items hold are read when they are sent, see [Body.NewReader].
// A Body never changes. The nil Body is empty.
type Body []Piece

// Piece is a part of a [Body].
type Piece struct {
	text string
	held []int // where in text the tokens are
	size int   // in bytes, with the payloads
}

// TextBody returns the body of texts, which may be made of items that hold
// payloads.
func TextBody(texts ...string) Body {
	b := make(Body, len(texts))
	for i, s := range texts {
		b[i] = textPiece(s)
	}
	return b
}

// ListBody returns the body of a list's elements between two texts, which have
// the brackets.
func ListBody(head string, l *List, tail string) Body {
	return Body{textPiece(head), l.piece(), textPiece(tail)}
}

func textPiece(s string) Piece {
	p := Piece{text: s, size: len(s)}
	eachToken(s, func(at int, t token, ok bool) {
		p.held = append(p.held, at)
		if ok {
			p.size += t.encoded() - tokenLen
		}
	})
	return p
}

// piece is the elements of the list, in its own memory.
func (l *List) piece() Piece {
	if l == nil {
		return Piece{}
	}
	return Piece{text: jsonx.String(l.buf), held: slices.Clip(l.held), size: len(l.buf) + l.more}
}

// Len returns the length in bytes of what is sent.
func (b Body) Len() int64 {
	var n int64
	for i := range b {
		n += int64(b[i].size)
	}
	return n
}

// Held reports whether there are payloads in it that have to be read.
func (b Body) Held() bool {
	return slices.ContainsFunc(b, func(p Piece) bool { return len(p.held) > 0 })
}

// Equal reports whether both send the same. Payloads count by what they are
// held as.
func (b Body) Equal(other Body) bool {
	return slices.EqualFunc(b, other, func(p, q Piece) bool { return p.text == q.text })
}

// Check returns a [*HeldError] for a payload that is known to be unreadable.
func (b Body) Check() error {
	for _, p := range b {
		for _, at := range p.held {
			t, ok := readToken(p.text, at)
			if !ok {
				return &HeldError{Err: errBroken}
			}
			if _, err := t.find(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Append appends what is sent, the payloads included. On error dst is returned
// as it was.
func (b Body) Append(dst []byte) ([]byte, error) {
	out := slices.Grow(dst, int(b.Len()))
	for _, p := range b {
		var err error
		if out, err = appendWhole(out, p.text); err != nil {
			return dst, err
		}
	}
	return out, nil
}

// Text returns what is sent as one text.
func (b Body) Text() (string, error) {
	out, err := b.Append(nil)
	return jsonx.String(out), err
}

// Buffers returns what is sent where it is, for a writer of several buffers at
// once, unless there are payloads in it that have to be read. The buffers must
// not be changed.
func (b Body) Buffers() ([][]byte, bool) {
	if b.Held() {
		return nil, false
	}
	buffers := make([][]byte, len(b))
	for i := range b {
		buffers[i] = jsonx.Bytes(b[i].text)
	}
	return buffers, true
}

// NewReader returns a reader of what is sent: as many bytes as [Body.Len] says.
// Payloads are read as they are needed, through little memory whatever their
// size, which is given back by Close or at the end. The error of Read may be a
// [*HeldError]. Close may be called while Read runs.
func (b Body) NewReader() io.ReadCloser {
	if len(b) == 1 && len(b[0].held) == 0 {
		return io.NopCloser(strings.NewReader(b[0].text)) // which net/http knows
	}
	return &bodyReader{rest: b}
}

// bodyReader reads a body once. The body itself stays as it is.
type bodyReader struct {
	rest Body // from the piece on that is read
	at   int  // in its text
	held int  // how many of its payloads have been read

	mu  sync.Mutex
	now *stream
	err error // why nothing more is read
}

// Read has the form of io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for n < len(p) && r.err == nil {
		c := 0
		if r.now != nil {
			c = r.payload(p[n:])
		} else {
			c = r.texts(p[n:])
		}
		n += c
	}
	if n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

// texts copies text up to the next payload, and opens that.
func (r *bodyReader) texts(p []byte) int {
	if len(r.rest) == 0 {
		r.err = io.EOF
		return 0
	}
	piece := &r.rest[0]
	end := len(piece.text)
	if r.held < len(piece.held) {
		end = piece.held[r.held]
	}
	n := copy(p, piece.text[r.at:end])
	switch r.at += n; {
	case r.at < end:
	case r.held < len(piece.held):
		r.now, r.err = openStream(piece.text, r.at)
		r.at += tokenLen
		r.held++
	default:
		r.rest, r.at, r.held = r.rest[1:], 0, 0
	}
	return n
}

// payload copies base64 of the payload that is open.
func (r *bodyReader) payload(p []byte) int {
	n, err := r.now.read(p)
	if err != nil {
		r.now.close()
		r.now = nil
		if err != io.EOF {
			r.err = err
		}
	}
	return n
}

// Close gives back what a payload needs that was not read to its end.
func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		r.now.close()
		r.now = nil
	}
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
	return nil
}

// stream reads a payload as base64.
type stream struct {
	p    *payload
	room *room
	from int // what of room.encoded is to be read
	to   int
	end  bool // the payload has been read
}

func openStream(s string, at int) (*stream, error) {
	t, ok := readToken(s, at)
	if !ok {
		return nil, &HeldError{Err: errBroken}
	}
	p, err := t.open()
	if err != nil {
		return nil, err
	}
	return &stream{p: p, room: rooms.Get().(*room)}, nil
}

func (s *stream) close() {
	s.p.close()
	rooms.Put(s.room)
}

// read reads base64. With the last of it comes io.EOF.
func (s *stream) read(b []byte) (int, error) {
	if s.from == s.to && len(b) >= 4 {
		return s.encode(b)
	}
	if s.from == s.to {
		n, err := s.encode(s.room.encoded[:])
		if err != nil && err != io.EOF {
			return 0, err
		}
		s.from, s.to, s.end = 0, n, err == io.EOF
	}
	n := copy(b, s.room.encoded[s.from:s.to])
	if s.from += n; s.from == s.to && s.end {
		return n, io.EOF
	}
	return n, nil
}

// encode fills b, which has room for four letters or more, as far as that goes.
func (s *stream) encode(b []byte) (int, error) {
	n, err := s.p.fill(s.room.plain[:min(len(s.room.plain), len(b)/4*3)])
	if err != nil && err != io.EOF {
		return 0, err
	}
	encodeBase64(b, s.room.plain[:n])
	return base64.StdEncoding.EncodedLen(n), err
}
