// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/spool"
)

// body is a text that is shortened: a string, or one in a file.
type body interface {
	Len() int
	// Slice returns the bytes from a up to b.
	Slice(a, b int) string
	// Lines counts the newlines from a up to b.
	Lines(a, b int) int
}

type stringBody string

func (s stringBody) Len() int              { return len(s) }
func (s stringBody) Slice(a, b int) string { return string(s[a:b]) }
func (s stringBody) Lines(a, b int) int    { return strings.Count(string(s[a:b]), "\n") }

// long is a text that is too long for the memory: valid, and without secrets.
type long struct {
	data  *spool.Spool
	lines []int // the newlines before each piece of pieceSize bytes
	seen  int   // newlines, while it is written
}

// How much of a text is looked at in one piece, and how much of it is held in
// memory before it goes to a file.
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

// whole is the text in memory.
func (l *long) whole() string { return l.Slice(0, l.Len()) }

// Write adds to the text and counts its lines.
func (l *long) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		room := pieceSize - int(l.data.Total())%pieceSize
		part := p[:min(room, len(p))]
		l.data.Write(part)
		if l.seen += bytes.Count(part, []byte("\n")); len(part) == room {
			l.lines = append(l.lines, l.seen)
		}
		p = p[len(part):]
	}
	return n, nil
}

// store keeps the text in a spill.
func (l *long) store(ctx context.Context, s Spill) (id string, err error) {
	if stream, ok := s.(StreamSpill); ok {
		return stream.PutFrom(ctx, l.data.Reader())
	}
	data, err := io.ReadAll(l.data.Reader())
	if err != nil {
		return "", err
	}
	return s.Put(ctx, data)
}

// settleLong reads the long text of a result: it becomes valid and loses its
// secrets, as a short one does. What turns out short enough is in Text then.
func (r *Result) settleLong(secrets []string) {
	if r.Long == nil {
		return
	}
	c := &cleaning{to: &long{data: spool.New(longMemory), lines: []int{0}}, secrets: secrets}
	for _, s := range secrets {
		c.back = max(c.back, len(s)-1)
	}
	err := c.copy(io.MultiReader(strings.NewReader(r.Text), r.Long))
	r.Text, r.Long = "", nil
	r.repairs += c.repairs
	if err != nil {
		r.fail(fmt.Sprintf("reading the output: %v", err))
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

// cleaning makes a text fit for a model piece by piece, as [Sanitize] and
// redacted do for one in memory.
type cleaning struct {
	to      *long
	secrets []string
	back    int    // a secret may begin so many bytes before the end of what is there
	text    string // that is clean, and may end within a secret
	repairs int
}

func (c *cleaning) copy(from io.Reader) error {
	var rest []byte
	buf := make([]byte, pieceSize)
	for {
		n, err := from.Read(buf)
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

// splitPoint is where a text can be taken apart without a change to what Sanitize
// makes of it: after a newline, which ends whatever it repairs. A line that is
// very long is taken apart between characters.
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

// add takes the next piece.
func (c *cleaning) add(piece string) {
	clean, n := Sanitize(piece)
	c.repairs += n
	c.text = redacted(c.text+clean, c.secrets)
	if ready := len(c.text) - c.back; ready > 0 {
		_, _ = c.to.Write([]byte(c.text[:ready])) // it never fails
		c.text = c.text[ready:]
	}
}
