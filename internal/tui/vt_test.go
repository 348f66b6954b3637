// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// vt is a plain model of a terminal: lines that it wraps at its width and keeps forever, of
// which the last ones are on the screen. It knows only what the package may send, and fails
// the test at anything else.
type vt struct {
	t             *testing.T
	width, height int
	flat          bool // when the width changes, it cuts the rows on the screen instead of wrapping all lines again
	lines         []vtLine
	base          int  // the first row on a flat screen
	row, col      int  // the cursor, from the first line that was ever there
	wraps         bool // the cursor stands behind the last column
	stays         bool // rows do not wrap: what does not fit replaces the last column
	hidden        bool // the cursor
	saved         [2]int
	pictures      int // how many were drawn
	main          *vt // what the other screen holds while the alternate one is shown
}

// vtLine is a row of the terminal. soft means that the next row continues it.
type vtLine struct {
	cells []string
	soft  bool
}

func newVT(t *testing.T, width, height int) *vt {
	return &vt{t: t, width: width, height: height, lines: make([]vtLine, 1)}
}

// Write applies one write of the screen. Each is one synchronized update.
func (v *vt) Write(b []byte) (int, error) {
	s := string(b)
	if strings.Contains(s, "\x1b[J") && !strings.HasPrefix(s, "\x1b[?2026h") {
		v.t.Errorf("a write outside of a synchronized update: %q", s)
	}
	for s != "" {
		switch {
		case strings.HasPrefix(s, "\x1b7"):
			v.saved = [2]int{v.row, v.col}
			s = s[2:]
		case strings.HasPrefix(s, "\x1b8"):
			v.row, v.col, v.wraps = v.saved[0], v.saved[1], false
			s = s[2:]
		case strings.HasPrefix(s, "\x1b_G"), strings.HasPrefix(s, "\x1bP"):
			end := strings.Index(s, "\x1b\\")
			v.picture(s[:end])
			s = s[end+2:]
		case strings.HasPrefix(s, "\x1b]1337;"):
			end := strings.IndexByte(s, 7)
			v.picture(s[:end])
			s = s[end+1:]
		case strings.HasPrefix(s, "\x1b]8;;"):
			s = s[strings.Index(s, "\x1b\\")+2:]
		case strings.HasPrefix(s, "\x1b["):
			end := strings.IndexAny(s[2:], "ABCDHJKmhl") + 2
			v.control(s[2:end], s[end])
			s = s[end+1:]
		case s[0] == '\r':
			v.col, v.wraps = 0, false
			s = s[1:]
		case s[0] == '\n':
			v.down()
			v.wraps = false
			s = s[1:]
		default:
			c, n := cluster(s)
			if c < " " {
				v.t.Fatalf("a control character reached the terminal: %q", s)
			}
			v.put(c, n)
			s = s[len(c):]
		}
	}
	return len(b), nil
}

func (v *vt) down() {
	if v.row++; v.row == len(v.lines) {
		v.lines = append(v.lines, vtLine{})
	}
	v.base = max(v.base, v.row+1-v.height)
}

func (v *vt) put(c string, n int) {
	if last := &v.lines[v.row]; n == 0 && len(last.cells) > 0 { // a mark belongs to the character before it
		last.cells[len(last.cells)-1] += c
		return
	}
	if v.stays && (v.wraps || v.col+n > v.width) {
		v.col, v.wraps = v.width-1, true
		return
	}
	if v.wraps || v.col+n > v.width {
		v.lines[v.row].soft = true
		v.down()
		v.col, v.wraps = 0, false
	}
	line := &v.lines[v.row]
	for len(line.cells) < v.col+n {
		line.cells = append(line.cells, " ")
	}
	line.cells[v.col] = c
	for i := 1; i < n; i++ {
		line.cells[v.col+i] = ""
	}
	if v.col += n; v.col >= v.width {
		v.col, v.wraps = v.width-1, true
	}
}

func (v *vt) control(arg string, what byte) {
	n := 1
	if arg != "" {
		_, _ = fmt.Sscan(arg, &n)
	}
	switch what {
	case 'A':
		if v.row-n < v.top() {
			v.t.Errorf("the cursor would leave the screen: row %d, up %d", v.row, n)
		}
		v.row, v.wraps = max(v.top(), v.row-n), false
	case 'B':
		if v.main != nil || n == 999 { // a frame for another size may be on its way; to the end
			v.lower(n)
			break
		}
		if v.row+n >= len(v.lines) {
			v.t.Errorf("the cursor would leave the screen: row %d of %d, down %d", v.row, len(v.lines), n)
		}
		v.row = min(len(v.lines)-1, v.row+n)
	case 'C':
		v.col = min(v.width-1, v.col+n)
	case 'H':
		row, col := 1, 1
		_, _ = fmt.Sscanf(arg, "%d;%d", &row, &col)
		if v.main == nil { // a frame for another size may be on its way
			v.t.Errorf("the cursor is moved to %d, %d", row, col)
		}
		v.row, v.col, v.wraps = min(row, v.height)-1, min(col, v.width)-1, false
	case 'J':
		if arg == "2" && v.main != nil {
			v.lines = make([]vtLine, v.height)
			return
		}
		if v.col == 0 && v.row == v.top() {
			v.t.Errorf("tmux would move the screen into its scrollback")
		}
		v.lines = v.lines[:v.row+1]
		v.eraseLine()
	case 'K':
		v.eraseLine()
	case 'm':
	case 'h', 'l':
		switch arg {
		case "?7":
			v.stays = what == 'l'
		case "?25":
			v.hidden = what == 'l'
		case "?1049":
			v.alternate(what == 'h')
		}
	default:
		v.t.Errorf("a sequence that the package may not use: %q %c", arg, what)
	}
}

// cellHeight is how many pixels a row of the terminal has.
const cellHeight = 12

var heights = regexp.MustCompile(`[,G]r=(\d+)|height=(\d+);|q"1;1;\d+;(\d+)`)

// picture draws a picture: each of its rows has a mark. Like some terminals do, it leaves the cursor
// somewhere below the picture.
func (v *vt) picture(sequence string) {
	found := heights.FindStringSubmatch(sequence)
	if found == nil {
		if !strings.HasPrefix(sequence, "\x1b_G") { // a further part of one
			v.t.Errorf("a picture without its height: %.80q", sequence)
		}
		return
	}
	rows, _ := strconv.Atoi(found[1] + found[2] + found[3])
	if found[3] != "" {
		rows = (rows + cellHeight - 1) / cellHeight
	}
	for i := range rows {
		if v.row+i >= len(v.lines) {
			v.t.Errorf("a picture of %d rows has room for %d", rows, i)
			break
		}
		v.lines[v.row+i].cells = []string{fmt.Sprintf("p%d.%d.", v.pictures, i)}
	}
	v.pictures++
	v.row, v.col = min(len(v.lines)-1, v.row+rows), 3
}

// alternate shows the alternate screen, or the other one again.
func (v *vt) alternate(on bool) {
	if on == (v.main != nil) {
		v.t.Errorf("the alternate screen: %v, and again", on)
		return
	}
	if !on {
		main := *v.main
		*v = main
		return
	}
	main := *v
	v.main, v.lines, v.row, v.col, v.base = &main, make([]vtLine, v.height), 0, 0, 0
}

// lower moves the cursor down to at most the last row of the screen.
func (v *vt) lower(n int) {
	last := max(v.top()+v.height-1, v.row)
	for ; n > 0 && v.row < last; n-- {
		v.down()
	}
	v.wraps = false
}

func (v *vt) eraseLine() {
	line := &v.lines[v.row]
	line.soft = false
	if v.col < len(line.cells) {
		line.cells = line.cells[:v.col]
	}
}

// top returns the first row on the screen.
func (v *vt) top() int {
	if v.flat {
		return v.base
	}
	return max(0, len(v.lines)-v.height)
}

// cut resizes a flat screen. Rows leave a lower one at the top until what is written fits, and
// come back to a higher one.
func (v *vt) cut(width, height int) {
	last := min(len(v.lines), v.base+v.height) - 1
	for last > v.row && len(v.lines[last].cells) == 0 {
		last--
	}
	if height < v.height {
		v.base = max(v.base, last+1-height)
	} else {
		v.base = max(0, v.base-(height-v.height))
	}
	v.lines = v.lines[:last+1]
	for i := range v.lines[v.base:] {
		line := &v.lines[v.base+i]
		line.cells = line.cells[:min(width, len(line.cells))]
	}
	v.width, v.height, v.col, v.wraps = width, height, min(v.col, width-1), false
}

// resize wraps all lines again, as terminals do, and keeps the cursor at its character. Rows
// below it that nothing was written to take no place.
func (v *vt) resize(width, height int) {
	if v.main != nil {
		v.main.resize(width, height)
		v.lines = make([]vtLine, height)
		v.width, v.height, v.row, v.col, v.wraps = width, height, 0, 0, false
		return
	}
	if v.flat {
		v.cut(width, height)
		return
	}
	for len(v.lines)-1 > v.row && len(v.lines[len(v.lines)-1].cells) == 0 {
		v.lines = v.lines[:len(v.lines)-1]
	}
	var lines []vtLine
	row, col := 0, 0
	for i := 0; i < len(v.lines); {
		var whole []string
		at := -1
		for {
			if i == v.row {
				at = len(whole) + v.col
			}
			whole = append(whole, v.lines[i].cells...)
			i++
			if !v.lines[i-1].soft || i == len(v.lines) {
				break
			}
		}
		begin := len(lines)
		lines = append(lines, vtLine{})
		for n, cell := range whole {
			last := &lines[len(lines)-1]
			w := 1
			for n+w < len(whole) && whole[n+w] == "" {
				w++
			}
			if cell != "" && len(last.cells)+w > width {
				last.soft = true
				lines = append(lines, vtLine{})
				last = &lines[len(lines)-1]
			}
			if n == at {
				row, col = len(lines)-1, len(last.cells)
			}
			last.cells = append(last.cells, cell)
		}
		if at >= len(whole) {
			row, col = len(lines)-1, min(width-1, at-cellsBefore(whole, lines[begin:]))
		}
	}
	v.lines, v.row, v.col, v.width, v.height, v.wraps = lines, row, col, width, height, false
}

// cellsBefore returns how many cells stand in the rows before the last one.
func cellsBefore(whole []string, rows []vtLine) int { return len(whole) - len(rows[len(rows)-1].cells) }

// rows returns every row that was ever written.
func (v *vt) rows() (list []string) {
	for _, l := range v.lines {
		list = append(list, strings.Join(l.cells, ""))
	}
	return list
}

// text returns everything that was ever written, wrapped lines as one.
func (v *vt) text() []string {
	var list []string
	line := ""
	for _, l := range v.lines {
		line += strings.Join(l.cells, "")
		if !l.soft {
			list = append(list, strings.TrimRight(line, " "))
			line = ""
		}
	}
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// leastCompared is the least width at which our model is compared with other terminals.
const leastCompared = 20

// tape is a recording of what a terminal was sent.
type tape struct {
	width, height int
	events        []tapeEvent
}

// tapeEvent is a write, a change of the size, or what the terminal holds then.
type tapeEvent struct {
	written       []byte
	width, height int
	lines         []string
}

func (p *tape) Write(b []byte) (int, error) {
	p.events = append(p.events, tapeEvent{written: append([]byte{}, b...)})
	return len(b), nil
}
