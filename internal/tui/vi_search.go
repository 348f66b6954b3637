// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// This file is how the keys of vi move in the transcript of the full screen.

// sought is what was searched in the transcript.
type sought struct {
	text  string
	back  bool // towards the beginning
	found int  // the line that was found last
	said  bool // it is a message
}

// saidMark is in front of what the person said.
const saidMark = "› "

// transcriptKey applies a key of the normal mode to the transcript, and reports whether it is one.
func (t *Terminal) transcriptKey(text string) bool {
	if t.full.selects && t.selectKey(text) {
		return true
	}
	switch text {
	case "v", "V":
		t.full.selects, t.full.anchor, t.full.line = true, t.here(), t.here()
	case "j":
		t.scroll(1)
	case "k":
		t.scroll(-1)
	case "G":
		t.full.held = false
	case "/", "?":
		t.line, t.lineMark, t.hint = new(string), text, ""
	case "n", "N":
		if t.sought.text == "" {
			t.hint = "nothing was searched yet: / and ? search"
			break
		}
		t.seek(t.sought.back != (text == "N"))
	case "[", "]":
		if !t.goTo(text == "[", func(line string) bool { return strings.HasPrefix(line, saidMark) }) {
			t.hint = "there is no message"
			break
		}
		t.sought.said = true
	default:
		return false
	}
	return true
}

// selectKey applies a key to the selection of lines, and reports whether it means that.
func (t *Terminal) selectKey(text string) bool {
	f := &t.full
	switch text {
	case "j":
		t.selectTo(f.line + 1)
	case "k":
		t.selectTo(f.line - 1)
	case "G":
		t.selectTo(t.end() - 1)
	case "o":
		f.anchor, f.line = f.line, f.anchor
		t.selectTo(f.line)
	case "y":
		var lines []string
		for i := max(t.past.begin(), min(f.anchor, f.line)); i <= min(t.end()-1, max(f.anchor, f.line)); i++ {
			lines = append(lines, ansi.Strip(t.lineAt(i)))
		}
		t.copy(strings.Join(lines, "\n"))
		t.hint, f.selects = fmt.Sprintf("copied, %d lines", len(lines)), false
	case "v", "V":
		f.selects = false
	default:
		return false
	}
	return true
}

// selectTo moves the end of the selection to a line, and the view with it.
func (t *Terminal) selectTo(line int) {
	f := &t.full
	f.line = min(max(line, t.past.begin()), t.end()-1)
	bottom := t.bottom()
	switch {
	case f.line < f.top.line || f.line == f.top.line && f.top.row > 0:
		f.top, f.held = place{line: f.line}, true
	case f.line > bottom && f.line == t.end()-1:
		f.held = false
	case f.line > bottom:
		f.top, f.held = t.back(place{line: f.line + 1}, t.columns(), f.room), true
	}
}

// bottom returns the last line of which the view has a row.
func (t *Terminal) bottom() int {
	if !t.full.held { // where it is drawn next
		t.full.top = t.back(place{line: t.end()}, t.columns(), t.full.room)
	}
	_, after := t.rowsFrom(t.full.top, t.columns(), t.full.room)
	if after.row == 0 {
		after.line--
	}
	return min(after.line, t.end()-1)
}

// columns returns how wide the transcript is in the full screen.
func (t *Terminal) columns() int { return cmp.Or(t.full.text, max(2, t.full.width-1)) }

// here returns the line of the cursor: that of the selection, the one that was found, or else the last one of the
// view.
func (t *Terminal) here() int {
	bottom := t.bottom()
	switch found := t.sought.found; {
	case t.full.selects:
		return t.full.line
	case t.full.held && found >= max(t.past.begin(), t.full.top.line) && found <= bottom:
		return found
	}
	return bottom
}

// callHere returns the key of the last call whose row is on the screen or above it, or above the end of a selection; "" at
// the end of the transcript.
func (t *Terminal) callHere() string {
	if !t.full.on || !t.full.held && !t.full.selects {
		return ""
	}
	here := t.bottom()
	if t.full.selects {
		here = t.full.line
	}
	for _, r := range slices.Backward(t.rowsOf) {
		if r.line <= here {
			return r.key
		}
	}
	return ""
}

// foundMessage returns the first line of the message that [ or ] has found and that is still there, or "".
func (t *Terminal) foundMessage() string {
	at := t.sought.found
	if !t.full.on || !t.full.held || !t.sought.said || at < t.past.begin() || at >= t.end() {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(ansi.Strip(t.lineAt(at)), saidMark))
}

// seek goes to the next line that has what was searched.
func (t *Terminal) seek(back bool) {
	want := strings.ToLower(t.sought.text)
	if !t.goTo(back, func(line string) bool { return strings.Contains(strings.ToLower(line), want) }) {
		t.hint = Shown("not found: " + t.sought.text)
	}
}

// goTo puts the next line that fits at the top of the view, or shows it there if it is near the end. It
// looks from the line on that was found last, if that is visible, or else from the view on, and around the
// ends. It reports false if there is none.
func (t *Terminal) goTo(back bool, fits func(line string) bool) bool {
	f, first, n := &t.full, t.past.begin(), t.end()-t.past.begin()
	at, step := f.top.line-first, 1
	switch found := t.sought.found; {
	case found >= max(first, f.top.line) && found < min(first+n, f.top.line+f.room):
		at = found - first
	case !f.held && back:
		at = n
	case !f.held:
		at = n - 1
	}
	if back {
		step = n - 1
	}
	for range n {
		at = (at + step) % n
		if fits(ansi.Strip(t.lineAt(first + at))) {
			f.top, f.held, t.sought.found, t.sought.said = place{line: first + at}, true, first+at, false
			f.line = first + at
			return true
		}
	}
	return false
}
