// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"io"
	"slices"
	"strconv"
)

// frame is the live part: rows that are narrower than the screen, and the place of the draft's
// cursor in them.
type frame struct {
	rows     []string
	row, col int
}

// screen draws the transcript and the live part below it. It remembers only the live part,
// because finished lines belong to the terminal. It is not safe for concurrent use.
type screen struct {
	out io.Writer
	low bool // the cursor waits in the last row of the live part

	width int    // of the screen when it was drawn
	drawn frame  // what is on the screen
	some  bool   // something is drawn
	raw   []byte // sequences that change nothing on the screen, for the next write
}

// same reports whether a live part looks like the one that is drawn.
func (s *screen) same(next frame) bool {
	return s.some && slices.Equal(s.drawn.rows, next.rows)
}

// draw appends lines to the transcript and draws the live part below them, in one write.
// width is the current width of the screen.
//
// Afterwards the cursor of the terminal is hidden, at the beginning of the live part. So the
// next frame begins there whatever the terminal did in between: when its width changes, some
// terminals wrap all rows again, some cut them, and none tells. In xterm.js the cursor
// waits in the last row instead, because there it sinks for each row below it that is broken, and
// its own row is not wrapped. Rows of the live part do not wrap, because the terminal may be narrower than it was when
// its size was read.
func (s *screen) draw(width int, lines []string, next frame) error {
	b := []byte("\x1b[?2026h\x1b[?25l")
	b = append(b, s.raw...)
	s.raw = nil
	b = s.top(b, width)
	whole := len(lines) > 0 || width != s.width || !s.some
	if whole {
		b = append(b, erase...)
	}
	for _, line := range lines {
		b = append(b, line...)
		b = append(b, reset+"\r\n"...)
	}
	b = append(b, "\x1b[?7l"...)
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
	b = append(b, "\x1b[?7h"...)
	if !whole && len(s.drawn.rows) > len(next.rows) {
		b = s.below(b, next)
	}
	if !s.low {
		b = move(b, len(next.rows)-1, 'A')
	}
	b = append(b, '\r')
	if len(next.rows) == 0 {
		b = append(b, "\x1b[?25h"...)
	}
	b = append(b, "\x1b[?2026l"...)
	s.drawn, s.width, s.some = next, width, len(next.rows) > 0
	_, err := s.out.Write(b)
	return err
}

// erase erases from the beginning of a row to the end of the screen. At the first column of the
// first row, tmux would move what is erased into its scrollback.
const erase = "\x1b[C\x1b[J\r\x1b[K"

// top moves the cursor from the last row of the live part, where it is in xterm.js, to its
// beginning. If the screen is narrower now than it was, the rows above were broken.
func (s *screen) top(b []byte, width int) []byte {
	if !s.low || len(s.drawn.rows) == 0 {
		return b
	}
	up := len(s.drawn.rows) - 1
	if width > 0 && width < s.width {
		for _, row := range s.drawn.rows[:up] {
			up += len(wrapped(row, width)) - 1
		}
	}
	return move(b, up, 'A')
}

// below erases what stands below the last row of the new live part.
func (s *screen) below(b []byte, next frame) []byte {
	if len(next.rows) == 0 {
		return append(b, "\r"+erase...)
	}
	b = append(b, "\r\n\x1b[J"...)
	return move(b, 1, 'A')
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
