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
// other. It does not copy the history that a [List] keeps encoded, and it reads
// payloads that items hold only when they are sent; see [Body.NewReader]. A Body is
// immutable. The nil Body is empty.
type Body []Piece

// Piece is a part of a [Body].
type Piece struct {
	text string
	held []int // offsets in text of the tokens
	size int   // in bytes, including the payloads
}

// TextBody returns a body that consists of the given texts, which may contain
// references to payloads.
func TextBody(texts ...string) Body {
	b := make(Body, len(texts))
	for i, s := range texts {
		b[i] = textPiece(s)
	}
	return b
}

// ListBody returns a body with a list's elements between head and tail. The brackets
// must be part of head and tail.
func ListBody(head string, l *List, tail string) Body {
	return Body{textPiece(head), l.piece(), textPiece(tail)}
}

// textPiece returns a text as a piece.
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

// piece returns the elements of the list, without copying them.
func (l *List) piece() Piece {
	if l == nil {
		return Piece{}
	}
	return Piece{text: jsonx.String(l.buf), held: slices.Clip(l.held), size: len(l.buf) + l.more}
}

// Len returns the number of bytes to send.
func (b Body) Len() int64 {
	var n int64
	for i := range b {
		n += int64(b[i].size)
	}
	return n
}

// Held reports whether the body contains payloads that must be read to send it.
func (b Body) Held() bool {
	return slices.ContainsFunc(b, func(p Piece) bool { return len(p.held) > 0 })
}

// Equal reports whether both bodies have the same pieces. Payloads are compared by
// their references.
func (b Body) Equal(other Body) bool {
	return slices.EqualFunc(b, other, func(p, q Piece) bool { return p.text == q.text })
}

// Check returns a [*HeldError] if a payload is known to be unreadable, without
// opening any.
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

// Append appends the text to send, including the payloads. On error it returns dst
// unchanged.
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

// Text returns the text to send, including the payloads.
func (b Body) Text() (string, error) {
	out, err := b.Append(nil)
	return jsonx.String(out), err
}

// Buffers returns the text to send as buffers, without copying it, for a writer that
// takes several buffers at once. ok is false if the body contains payloads that must
// be read. The buffers must not be modified.
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

// NewReader returns a reader of the text to send, which has [Body.Len] bytes. It
// reads payloads as they are needed, through a small buffer whatever their size. The
// buffer is released by Close or at the end of a payload. The error of Read may be a
// [*HeldError]. Close may be called while Read runs.
func (b Body) NewReader() io.ReadCloser {
	if len(b) == 1 && len(b[0].held) == 0 {
		return io.NopCloser(strings.NewReader(b[0].text)) // a type that net/http recognizes
	}
	return &bodyReader{rest: b}
}

// bodyReader reads a body once. It does not change the body.
type bodyReader struct {
	rest Body // the pieces from the current one on
	at   int  // offset in the text of the current piece
	held int  // number of its payloads opened so far

	mu  sync.Mutex
	now *stream
	err error // why reading has ended
}

// Read implements io.Reader.
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
	// After some bytes the error waits for the next call.
	if n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

// texts copies text up to the next payload, and opens the payload when it gets
// there.
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

// payload copies base64 of the open payload.
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

// Close releases a payload that was not read to its end. Later calls of Read fail.
func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != nil {
		r.now.close()
		r.now = nil
	}
	if r.err == nil {
		// A later Read must not look like the end of the body.
		r.err = io.ErrClosedPipe
	}
	return nil
}

// stream reads a payload as base64.
type stream struct {
	p    *payload
	room *room
	from int // the unread part of room.encoded
	to   int
	end  bool // the payload has been read to its end
}

// openStream opens the payload whose token is at offset at of s.
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

// close closes the payload and releases the buffers.
func (s *stream) close() {
	s.p.close()
	rooms.Put(s.room)
}

// read reads base64. It returns io.EOF together with the last bytes.
func (s *stream) read(b []byte) (int, error) {
	// A large enough b is filled directly; only a smaller one goes through the
	// buffer.
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

// encode fills b, which must have room for at least four letters, with whole groups
// of base64.
func (s *stream) encode(b []byte) (int, error) {
	n, err := s.p.fill(s.room.plain[:min(len(s.room.plain), len(b)/4*3)])
	if err != nil && err != io.EOF {
		return 0, err
	}
	encodeBase64(b, s.room.plain[:n])
	return base64.StdEncoding.EncodedLen(n), err
}
