// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"io"
	"slices"
	"strings"
	"time"
)

// This file is what the program shows: texts of the model, notes, what the person said, and what it waits for.

// Text takes the model's text, which is Markdown. It may end anywhere in a line.
func (t *Terminal) Text() io.Writer { return textWriter{t} }

type textWriter struct{ t *Terminal }

func (w textWriter) Write(text []byte) (int, error) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.lines = append(w.t.lines, w.t.mark.write(Shown(string(text)))...)
	w.t.changed()
	return len(text), w.t.err
}

// EndText says that a text is over: what follows is another one.
func (t *Terminal) EndText() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, t.mark.reset()...)
	t.changed()
}

// Notes takes lines about the conversation, which may have escape sequences for colours. An
// unfinished line is shown in the live part, as a question.
func (t *Terminal) Notes() io.Writer { return noteWriter{t} }

type noteWriter struct{ t *Terminal }

func (w noteWriter) Write(text []byte) (int, error) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.notes(string(text))
	w.t.changed()
	return len(text), w.t.err
}

func (t *Terminal) notes(text string) {
	t.lines = append(t.lines, t.mark.flush()...)
	parts := strings.Split(t.note+text, "\n")
	for _, line := range parts[:len(parts)-1] {
		t.lines = append(t.lines, untabbed(strings.TrimRight(line, "\r")))
	}
	t.note = untabbed(parts[len(parts)-1])
}

// Say adds a line to the transcript that shows what the person said.
func (t *Terminal) Say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.say("› ", text)
}

func (t *Terminal) say(mark, text string) {
	t.lines = append(t.lines, t.mark.reset()...)
	if t.note != "" {
		t.notes("\n")
	}
	t.lines = append(t.lines, "")
	for i, line := range strings.Split(strings.TrimRight(Shown(text), "\n"), "\n") {
		if i > 0 {
			mark = "  "
		}
		t.lines = append(t.lines, t.styled(mark+line, bold))
	}
	t.lines = append(t.lines, "")
	t.changed()
}

func (t *Terminal) styled(text, style string) string {
	if !t.opts.Colour || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + reset
}

// Wait shows that the program waits for something, until Done is called with its key.
func (t *Terminal) Wait(key, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(key)
	t.waits = append(t.waits, wait{key: key, what: Shown(what), began: time.Now()})
	if t.rowsOf = append(t.rowsOf, rowOf{t.end() - 1, key}); len(t.rowsOf) > mostRowsOf {
		t.rowsOf = slices.Clone(t.rowsOf[mostRowsOf/2:])
	}
	t.changed()
}

// Done ends a wait.
func (t *Terminal) Done(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(key)
	t.changed()
}

func (t *Terminal) drop(key string) {
	t.waits = slices.DeleteFunc(t.waits, func(w wait) bool { return w.key == key })
}

// Last shows the last line of a wait's output.
func (t *Terminal) Last(key, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.waits {
		if t.waits[i].key == key {
			t.waits[i].last = strings.TrimSpace(Shown(strings.ReplaceAll(line, "\n", " ")))
		}
	}
	t.changed()
}

// SetStatus sets the status line.
func (t *Terminal) SetStatus(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = Shown(text)
	t.changed()
}
