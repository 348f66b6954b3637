// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// This file is the full screen: another painter of the same transcript and live part. The
// transcript above the live part can be scrolled there, and only its visible rows are rendered.
// Lines that are finished meanwhile go to the terminal's scrollback when the person comes back.

// full is the state of the full screen. Its zero value is one that is not shown.
type full struct {
	on            bool
	width, height int      // of the screen when it was drawn
	entered       [2]int   // the size when it was entered
	drawn         []string // the rows that are on the screen
	row, col      int      // the cursor
	held          bool     // the person has scrolled, so that the view does not follow
	top           place    // the first row of the view
	room          int      // rows of the view
	text          int      // columns of the view
	selects       bool     // lines are selected, with the keys of vi
	anchor, line  int      // where the selection begins, and the cursor, as lines
}

// selected reports whether a line is selected.
func (f *full) selected(line int) bool {
	return f.selects && line >= min(f.anchor, f.line) && line <= max(f.anchor, f.line)
}

// rowOf is the line of the transcript that says what the program waits for, by the key of the wait.
type rowOf struct {
	line int
	key  string
}

// mostRowsOf is how many of them are kept.
const mostRowsOf = 4096

// place is a row of the transcript: a line, counted from the first one that there ever was, and a
// row of it.
type place struct{ line, row int }

const (
	enterFull = "\x1b[?1049h\x1b[?1000h\x1b[?1006h"
	leaveFull = "\x1b[?1006l\x1b[?1000l\x1b[?1049l"
)

// wheelRows is how far a turn of the wheel scrolls.
const wheelRows = 3

// pass notes that lines went to the terminal's scrollback.
func (t *Terminal) pass(lines []string) {
	dropped := false
	for _, line := range lines {
		dropped = t.past.add(named(line)) || dropped
	}
	if dropped {
		first := t.past.begin()
		t.rowsOf = slices.DeleteFunc(t.rowsOf, func(r rowOf) bool { return r.line < first })
	}
}

// switchFull enters the full screen or comes back from it, if the person wants that.
func (t *Terminal) switchFull(width, height int) error {
	switch {
	case (t.wantFull || t.browse.on) == t.full.on:
		return nil
	case t.full.on:
		return t.exitFull(width, height)
	}
	if err := t.flush(width); err != nil {
		return err
	}
	t.full = full{on: true, entered: [2]int{width, height}}
	enter := enterFull
	if t.allKeys { // each of the two screens has its own state
		enter += keysOn
	}
	_, err := io.WriteString(t.screen.out, enter)
	return err
}

func (t *Terminal) exitFull(width, height int) error {
	back := leaveFull + "\r"
	if t.allKeys {
		back = keysOff + back
	}
	if t.full.entered != [2]int{width, height} {
		// Where the cursor is then, terminals disagree about: what comes next goes below everything.
		back += "\x1b[999B\r\n"
	}
	t.full = full{}
	t.screen.forget()
	_, err := io.WriteString(t.screen.out, back)
	return err
}

// flush writes the finished lines, and removes the live part.
func (t *Terminal) flush(width int) error {
	lines := t.lines
	t.lines = nil
	t.pass(lines)
	err := t.screen.draw(width, t.themed(lines), frame{})
	t.screen.forget()
	return err
}

// lineAt returns a line of the transcript, and end how many there are.
func (t *Terminal) lineAt(i int) string {
	if i < t.past.end() {
		return t.past.line(i)
	}
	return named(t.lines[i-t.past.end()])
}

// named returns a line for the full screen, where a picture that the terminal draws would have to
// be drawn again and again.
func named(line string) string {
	if isPlaced(line) {
		return "(a picture, drawn outside of the full screen)"
	}
	return line
}

func (t *Terminal) end() int { return t.past.end() + len(t.lines) }

// back returns the place that is n rows above another.
func (t *Terminal) back(p place, width, n int) place {
	for n > 0 {
		if p.row == 0 {
			if p.line <= t.past.begin() {
				break
			}
			p.line--
			p.row = len(wrapped(t.lineAt(p.line), width))
		}
		up := min(p.row, n)
		p.row, n = p.row-up, n-up
	}
	return p
}

// rowsFrom returns at most n rows from a place on, and the place behind them.
func (t *Terminal) rowsFrom(p place, width, n int) (rows []string, after place) {
	for len(rows) < n && p.line < t.end() {
		parts := wrapped(t.lineAt(p.line), width)
		if t.full.selected(p.line) {
			for i, part := range parts {
				parts[i] = "\x1b[7m" + cmp.Or(ansi.Strip(part), " ") + reset
			}
		}
		parts = parts[min(p.row, len(parts)-1):]
		if left := n - len(rows); len(parts) > left {
			return append(rows, parts[:left]...), place{p.line, p.row + left}
		}
		rows = append(rows, parts...)
		p = place{line: p.line + 1}
	}
	return rows, p
}

// scroll moves the view by rows, down if n is positive. At the end it follows again.
func (t *Terminal) scroll(n int) {
	width := t.columns()
	if n < 0 {
		t.full.top, t.full.held = t.back(t.full.top, width, -n), true
		return
	}
	if t.full.held {
		_, t.full.top = t.rowsFrom(t.full.top, width, n)
	}
}

// pageUp, pageDown, toTop and toEnd scroll the full screen. They report false in the usual view.
func (t *Terminal) pageUp() bool   { return t.scrollPage(-1) }
func (t *Terminal) pageDown() bool { return t.scrollPage(1) }

func (t *Terminal) scrollPage(by int) bool {
	if t.full.on {
		t.scroll(by * max(1, t.full.room-1))
	}
	return t.full.on
}

func (t *Terminal) toTop() bool {
	if t.full.on {
		t.full.top, t.full.held = place{line: t.past.begin()}, true
	}
	return t.full.on
}

func (t *Terminal) toEnd() bool {
	if t.full.on {
		t.full.held = false
	}
	return t.full.on
}

// view returns the rows of the transcript that are visible.
func (t *Terminal) view(width, room int) []string {
	f := &t.full
	f.room = room
	if f.held {
		f.top.line = max(f.top.line, t.past.begin())
		rows, _ := t.rowsFrom(f.top, width, room)
		if len(rows) == room {
			return rows
		}
	}
	f.held = false
	f.top = t.back(place{line: t.end()}, width, room)
	rows, _ := t.rowsFrom(f.top, width, room)
	return rows
}

// sided is from how many columns on the full screen has a pane.
const sided = 110

// side returns the rows of the pane beside the transcript, and its columns with the line between them: the
// last calls, with those of subagents below them, and what the last one of the conversation prints. There
// is none before the first call.
func (t *Terminal) side(width, room int) (rows []string, wide int) {
	if t.noSide || width < sided || room < 6 || t.outline.Last == nil {
		return nil, 0
	}
	most := max(2, room/3)
	list := t.outline.Last(most)
	if len(list) == 0 {
		return nil, 0
	}
	wide = width * 2 / 5
	columns := wide - 3
	newest := 0
	for i, n := range list {
		if n.Depth == 0 {
			newest = i
		}
	}
	for _, n := range list[max(0, len(list)-most):] {
		rows = append(rows, fitted(strings.Repeat("  ", n.Depth)+Shown(strings.ReplaceAll(n.Label, "\n", " ")), columns))
	}
	rows = append(rows, t.styled(strings.Repeat("─", columns), dim))
	text := t.sideText.of(t.outline, list[newest], columns)
	if left := room - len(rows); len(text) > left { // the end is what is new
		text = text[len(text)-left:]
	}
	return append(rows, text...), wide
}

// paint returns what draws the full screen, or nil if it is drawn already.
func (t *Terminal) paint(width, height int, now time.Time) []byte {
	f := &t.full
	var rows []string
	row, col := 0, 0
	if t.browse.on {
		rows, row = t.browsed(width, height)
	} else {
		live := t.live(width, height, now)
		room := max(0, height-len(live.rows))
		side, wide := t.side(width, room)
		f.text = max(2, width-1-wide)
		rows = t.view(f.text, room)
		if wide > 0 {
			rows = t.beside(rows, side, f.text, room)
		}
		for len(rows) < room {
			rows = append(rows, "")
		}
		row, col = len(rows)+live.row, live.col
		rows = append(rows, live.rows...)
	}
	if len(rows) > height { // the live part takes two rows at least
		from := min(row, len(rows)-height)
		rows, row = rows[from:from+height], row-from
	}
	rows = t.themed(rows)

	whole := width != f.width || height != f.height || len(rows) != len(f.drawn)
	if !whole && len(t.raw) == 0 && row == f.row && col == f.col && slices.Equal(rows, f.drawn) {
		return nil
	}
	b := append([]byte("\x1b[?2026h\x1b[?25l"), t.raw...)
	t.raw = nil
	if whole {
		b = append(b, "\x1b[H\x1b[2J"...)
	}
	b = append(b, "\x1b[?7l"...)
	for i, text := range rows {
		if !whole && f.drawn[i] == text || whole && text == "" {
			continue
		}
		b = append(at(b, i, 0), text...)
		b = append(b, reset+"\x1b[K"...)
	}
	b = append(b, "\x1b[?7h"...)
	b = append(at(b, row, col), "\x1b[?25h\x1b[?2026l"...)
	f.drawn, f.width, f.height, f.row, f.col = rows, width, height, row, col
	return b
}

// at moves the cursor to a place on the screen.
func at(b []byte, row, col int) []byte {
	b = append(b, "\x1b["...)
	b = strconv.AppendInt(b, int64(row+1), 10)
	b = append(b, ';')
	b = strconv.AppendInt(b, int64(col+1), 10)
	return append(b, 'H')
}
