// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"io"
	"slices"
	"strconv"
)

// frame is the live part: rows that are narrower than the screen, and the place of the
// cursor in them.
type frame struct {
	rows     []string
	row, col int
}

// screen draws the transcript and the live part below it. It remembers only the live part,
// because finished lines belong to the terminal. It is not safe for concurrent use.
type screen struct {
	out   io.Writer
	width int    // of the screen when it was drawn
	drawn frame  // what is on the screen
	some  bool   // something is drawn
	raw   []byte // sequences that change nothing on the screen, for the next write
}

// same reports whether a live part looks like the one that is drawn.
func (s *screen) same(next frame) bool {
	return s.some && s.drawn.row == next.row && s.drawn.col == next.col && slices.Equal(s.drawn.rows, next.rows)
}

// draw appends lines to the transcript and draws the live part below them, in one write.
// width is the current width of the screen.
func (s *screen) draw(width int, lines []string, next frame) error {
	b := []byte("\x1b[?2026h\x1b[?25l")
	b = append(b, s.raw...)
	s.raw = nil
	b = s.top(b, width)
	whole := len(lines) > 0 || width != s.width || !s.some
	if whole {
		b = append(b, "\x1b[J"...)
	}
	for _, line := range lines {
		b = append(b, line...)
		b = append(b, reset+"\r\n"...)
	}
	for i, row := range next.rows {
		if i > 0 {
			b = append(b, "\r\n"...)
		}
		if !whole && i < len(s.drawn.rows) && s.drawn.rows[i] == row {
			continue
		}
		b = append(b, row...)
		b = append(b, reset...)
		if !whole {
			b = append(b, "\x1b[K"...)
		}
	}
	if !whole && len(s.drawn.rows) > len(next.rows) {
		b = s.below(b, next)
	}
	if up := len(next.rows) - 1 - next.row; up > 0 {
		b = move(b, up, 'A')
	}
	b = append(b, '\r')
	b = move(b, next.col, 'C')
	b = append(b, "\x1b[?25h\x1b[?2026l"...)
	s.drawn, s.width, s.some = next, width, len(next.rows) > 0
	_, err := s.out.Write(b)
	return err
}

// below erases what stands below the last row of the new live part.
func (s *screen) below(b []byte, next frame) []byte {
	if len(next.rows) == 0 {
		return append(b, "\r\x1b[J"...)
	}
	b = append(b, "\r\n\x1b[J"...)
	return move(b, 1, 'A')
}

// top moves the cursor to the beginning of the live part. If the screen is narrower now
// than it was, terminals have broken the rows above the cursor into several.
func (s *screen) top(b []byte, width int) []byte {
	if !s.some {
		return b
	}
	up := s.drawn.row
	if width < s.width && width > 0 {
		for _, row := range s.drawn.rows[:s.drawn.row] {
			up += breaks(row, width, columns(row))
		}
		up += breaks(s.drawn.rows[s.drawn.row], width, s.drawn.col)
	}
	return append(move(b, up, 'A'), '\r')
}

// forget is for a terminal that others have written to: the next live part is drawn where the
// cursor is.
func (s *screen) forget() { s.drawn, s.some = frame{}, false }

func move(b []byte, n int, direction byte) []byte {
	if n <= 0 {
		return b
	}
	b = append(b, "\x1b["...)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, direction)
}
