// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/spool"
)

// body is a text that may be shortened: a string, or a text in a file.
type body interface {
	Len() int
	// Slice returns the bytes in [a, b).
	Slice(a, b int) string
	// Lines counts the newlines in [a, b).
	Lines(a, b int) int
}

type stringBody string

func (s stringBody) Len() int              { return len(s) }
func (s stringBody) Slice(a, b int) string { return string(s[a:b]) }
func (s stringBody) Lines(a, b int) int    { return strings.Count(string(s[a:b]), "\n") }

// long is a text too long for memory. It is already valid text without secrets.
type long struct {
	data  *spool.Spool
	lines []int // the number of newlines before each piece of pieceSize bytes
	seen  int   // newlines so far, during writing
}

// How much of a text is processed at once, and how much is held in memory before it
// goes to a file.
const (
	pieceSize  = 64 << 10
	longMemory = 1 << 20
)

func (l *long) Len() int { return int(l.data.Size()) }

func (l *long) Slice(a, b int) string {
	data := make([]byte, b-a)
	if n, err := l.data.ReadAt(data, int64(a)); n < len(data) {
		return fmt.Sprintf("[%d bytes of the output cannot be read: %v]", b-a, err)
	}
	return string(data)
}

func (l *long) Lines(a, b int) int { return l.linesTo(b) - l.linesTo(a) }

func (l *long) linesTo(at int) int {
	piece := min(at/pieceSize, len(l.lines)-1)
	return l.lines[piece] + strings.Count(l.Slice(piece*pieceSize, at), "\n")
}

// whole returns the complete text.
func (l *long) whole() string { return l.Slice(0, l.Len()) }

// Write appends to the text and counts its lines.
func (l *long) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		room := pieceSize - int(l.data.Total())%pieceSize
		part := p[:min(room, len(p))]
		_, _ = l.data.Write(part) // never fails
		if l.seen += bytes.Count(part, []byte("\n")); len(part) == room {
			l.lines = append(l.lines, l.seen)
		}
		p = p[len(part):]
	}
	return n, nil
}

// store copies the text to a store.
func (l *long) store(ctx context.Context, s Store) (id string, err error) {
	if stream, ok := s.(StreamStore); ok {
		return stream.PutFrom(ctx, l.data.Reader())
	}
	data, err := io.ReadAll(l.data.Reader())
	if err != nil {
		return "", err
	}
	return s.Put(ctx, data)
}

// settleLong reads the long text of a result, and makes it valid and removes its
// secrets, like a short text. If it turns out to be short enough, it is moved to
// Text.
func (r *Result) settleLong(secrets []string) {
	if nils.Is(r.Long) {
		r.Long = nil
		return
	}
	c := &cleaning{to: &long{data: spool.New(longMemory), lines: []int{0}}, secrets: secrets}
	for _, s := range secrets {
		if len(s) >= minSecret {
			c.back = max(c.back, longestSpelling*len(s))
		}
	}
	err := c.copy(io.MultiReader(strings.NewReader(r.Text), r.Long))
	r.Text, r.Long = "", nil
	r.Repairs += c.repairs
	if err != nil {
		r.Fail(fmt.Sprintf("reading the output: %v", err))
	}
	l := c.to
	lost, why := l.data.Lost()
	l.lines = l.lines[:l.data.Held()/pieceSize+1]
	l.data.Seal(fmt.Sprintf("\n[%d of %d bytes are lost here and cannot be read again: there was no room for them (%v)]\n", lost, l.data.Total(), why),
		fmt.Sprintf("\n[the output had %d bytes in all; %d of them are lost and cannot be read again]", l.data.Total(), lost))
	if l.data.InMemory() {
		r.Text = l.whole()
		return
	}
	r.long = l
}

// longestSpelling is the number of bytes that may stand for one byte of a secret at the
// border of two pieces: \\u0063.
const longestSpelling = 8

// cleaning processes a text piece by piece, with the result that [Sanitize] and
// redacted have for a text in memory.
type cleaning struct {
	to      *long
	secrets []string
	back    int    // the maximum number of bytes at the end of the text that may be the beginning of a secret
	text    string // clean text that may end within a secret
	repairs int
}

func (c *cleaning) copy(from io.Reader) error {
	var rest []byte
	buf := make([]byte, pieceSize)
	for idle := 0; ; idle++ {
		n, err := readSome(from, buf)
		if n > 0 {
			idle = 0
		} else if err == nil && idle == maxIdle {
			err = io.ErrNoProgress
		}
		rest = append(rest, buf[:n]...)
		if err != nil {
			c.add(string(rest))
			_, _ = c.to.Write([]byte(c.text)) // it never fails
			if err == io.EOF {
				err = nil
			}
			return err
		}
		if len(rest) >= pieceSize {
			end := splitPoint(rest)
			c.add(string(rest[:end]))
			rest = slices.Delete(rest, 0, end)
		}
	}
}

// maxIdle is the number of reads without a result after which a reader is given up.
const maxIdle = 100

// readSome reads once. The reader is the tool's, and what is wrong with it is an error of
// the call.
func readSome(from io.Reader, buf []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("its reader panicked: %v", v)
		}
	}()
	if n, err = from.Read(buf); n < 0 || n > len(buf) {
		return 0, fmt.Errorf("its reader says that it has read %d of %d bytes", n, len(buf))
	}
	return n, err
}

// splitPoint returns a position where a text can be split without changing the
// result of Sanitize: after a newline, which ends every sequence that Sanitize
// repairs. A very long line is split between characters.
func splitPoint(text []byte) int {
	if at := bytes.LastIndexByte(text, '\n'); at >= 0 {
		return at + 1
	}
	const longest = 16 * pieceSize
	if len(text) < longest {
		return 0
	}
	at := len(text) - 1
	for n := 0; n < utf8.UTFMax && !utf8.RuneStart(text[at]); n++ {
		at--
	}
	return at
}

// add processes the next piece.
func (c *cleaning) add(piece string) {
	clean, n := Sanitize(piece)
	c.repairs += n
	c.text = redacted(c.text+clean, c.secrets)
	if ready := len(c.text) - c.back; ready > 0 {
		_, _ = c.to.Write([]byte(c.text[:ready])) // it never fails
		c.text = c.text[ready:]
	}
}
