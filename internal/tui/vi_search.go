// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
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
	switch text {
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

// foundMessage returns the first line of the message that [ or ] has found and that is still there, or "".
func (t *Terminal) foundMessage() string {
	at := t.sought.found
	if !t.full.on || !t.full.held || !t.sought.said || at < t.dropped || at >= t.end() {
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
	f, first, n := &t.full, t.dropped, t.end()-t.dropped
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
			return true
		}
	}
	return false
}
