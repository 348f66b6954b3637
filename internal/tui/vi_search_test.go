// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestViTranscript proves that in the full screen the keys of vi search the transcript in both directions
// and around its ends, go from message to message, and leave a draft alone; and that in the usual view /
// searches what the person said.
func TestViTranscript(t *testing.T) {
	b := newBench(t, 60, 12, true)
	b.t.opts.Vi = true
	for i := range 6 {
		b.t.say(saidMark, fmt.Sprintf("question %d", i))
		for j := range 20 {
			b.t.notes(fmt.Sprintf("line %d of %d\n", j, i))
		}
	}
	b.t.notes("the last Line 7 of all\n")
	b.t.wantFull = true
	b.draw(t)
	at := func(want string) {
		t.Helper()
		b.draw(t)
		if top := b.shown()[0]; top != want {
			t.Errorf("the first row is %q, want %q", top, want)
		}
	}
	viTyped(b, "<esc>?line 7 of")
	if got := b.t.below(time.Time{}); got != "?line 7 of" {
		t.Errorf("below the draft is %q", got)
	}
	viTyped(b, "<enter>")
	b.draw(t)
	if got := strings.Join(b.shown(), "\n"); !strings.Contains(got, "the last Line 7 of all") {
		t.Errorf("the screen:\n%s", got)
	}
	viTyped(b, "n")
	at("line 7 of 5")
	viTyped(b, "n")
	at("line 7 of 4")
	viTyped(b, "N")
	at("line 7 of 5")
	viTyped(b, "[")
	at("› question 5")
	viTyped(b, "[[")
	at("› question 3")
	viTyped(b, "]")
	at("› question 4")
	viTyped(b, "/line 2 of 0<enter>")
	at("line 2 of 0")
	viTyped(b, "n")
	at("line 2 of 0")
	viTyped(b, "/nowhere<enter>")
	if at("line 2 of 0"); b.t.hint != "not found: nowhere" {
		t.Errorf("the hint is %q", b.t.hint)
	}
	b.t.opts.Back, b.t.opts.Commands = "/back", []Command{{Name: "back"}}
	viTyped(b, ":e<enter>")
	viTyped(b, "[:e<enter>")
	if got := strings.Join(b.t.queue, "|"); !strings.HasPrefix(got, "/back|/back question ") {
		t.Errorf("the queue is %q", got)
	}
	viTyped(b, "gg")
	at("")
	viTyped(b, "jj")
	at("")
	viTyped(b, "k")
	at("› question 0")
	viTyped(b, "G")
	b.draw(t)
	if got := strings.Join(b.shown(), "\n"); b.t.full.held || !strings.Contains(got, "the last Line 7 of all") {
		t.Errorf("the screen:\n%s", got)
	}
	viTyped(b, "iab<esc>N")
	if b.t.compose.text != "ab" {
		t.Errorf("the draft is %q", b.t.compose.text)
	}
	b.t.compose.set("")
	viTyped(b, "/line 3 of 2<enter>Vjjk")
	b.draw(t)
	if got := b.t.below(time.Time{}); !strings.Contains(got, "VISUAL LINE") {
		t.Errorf("below the draft is %q", got)
	}
	b.t.raw = nil
	viTyped(b, "y")
	if want := base64.StdEncoding.EncodeToString([]byte("line 3 of 2\nline 4 of 2")); !strings.Contains(string(b.t.raw), want) || b.t.full.selects {
		t.Errorf("copied %q", b.t.raw)
	}
	b.t.raw = nil
	viTyped(b, "GVkkkkkkkkkkkkk")
	b.draw(t)
	if got := b.shown()[0]; got != "line 7 of 5" {
		t.Errorf("the view does not follow the selection: %q", got)
	}
	viTyped(b, "ggy")
	if b.t.raw = nil; !strings.Contains(b.t.hint, "copied") {
		t.Errorf("the hint is %q", b.t.hint)
	}
	viTyped(b, "V<esc>")
	if b.t.full.selects || b.t.last.escaped {
		t.Error("Esc does not end the selection alone")
	}
	b.t.opts.Drop, b.t.opts.Set, b.t.opts.Commands = "/context drop", []string{"theme"}, []Command{{Name: "back"}, {Name: "theme"}}
	b.t.queue = nil
	viTyped(b, "G:d<enter>")
	if len(b.t.queue) > 0 || !strings.Contains(b.t.hint, "choose a message") {
		t.Errorf("the queue is %q, the hint %q", b.t.queue, b.t.hint)
	}
	viTyped(b, "[:d<enter>:set theme=light<enter>:set up=down<enter>")
	if got := strings.Join(b.t.queue, "|"); got != "/context drop › question 5|/theme light" || !strings.Contains(b.t.hint, "names are theme") {
		t.Errorf("the queue is %q, the hint %q", got, b.t.hint)
	}
	b.t.wantFull = false
	b.draw(t)
	viTyped(b, "/")
	if !b.t.find.on || b.t.line != nil {
		t.Error("/ does not search what was said")
	}
}
