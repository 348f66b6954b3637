// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"time"
)

// TestNotices: a question and the end of long work are told while the window has no focus, and
// then only. What the notice is about is one short line that no terminal obeys.
func TestNotices(t *testing.T) {
	const evil = "work\x1b]0;title\a\x1b\\;\n\u202eevil"
	for kind, want := range map[string]string{
		"":       "\a",
		"bell":   "\a",
		"none":   "",
		"osc9":   "\x1b]9;antiphon: a question waits for you: work<U+001B>]0;title<U+0007><U+001B>\\; <U+202E>evil\x1b\\",
		"osc777": "\x1b]777;notify;antiphon;a question waits for you: work<U+001B>]0,title<U+0007><U+001B>\\, <U+202E>evil\x1b\\",
		"osc99":  "\x1b]99;i=antiphon:d=0;antiphon\x1b\\\x1b]99;i=antiphon:d=1:p=body;a question waits for you: work<U+001B>]0;title<U+0007><U+001B>\\; <U+202E>evil\x1b\\",
	} {
		b := newBench(t, 80, 24, false)
		b.t.opts.Notice, b.t.opts.About = kind, evil
		b.t.Ask(false)()
		if len(b.t.raw) > 0 {
			t.Errorf("%s: told to somebody who looks: %q", kind, b.t.raw)
		}
		b.t.blurred = true
		b.t.Ask(false)
		if got := string(b.t.raw); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// TestNoticeOfWork: short work ends without a notice, and a function of the program's own gets the
// text instead of the terminal.
func TestNoticeOfWork(t *testing.T) {
	b := newBench(t, 80, 24, false)
	var told []string
	b.t.opts.Tell = func(text string) { told = append(told, text) }
	b.t.opts.About = strings.Repeat("long ", 1000)
	b.t.blurred = true
	b.t.Working(func() {}, nil)()
	if len(told) > 0 {
		t.Errorf("short work: %q", told)
	}
	end := b.t.Working(func() {}, nil)
	b.t.worked = b.t.worked.Add(-2 * time.Minute)
	end()
	if len(told) != 1 || !strings.HasPrefix(told[0], "the work has ended after 2m") || columns(told[0]) > longestNotice || len(b.t.raw) > 0 {
		t.Errorf("%q, %q", told, b.t.raw)
	}
}

// TestCopyInTmux proves that a copied text reaches the terminal's clipboard also through a tmux that takes
// no clipboard from programs.
func TestCopyInTmux(t *testing.T) {
	const seq = "\x1b]52;c;dGV4dA==\a"
	for tmux, want := range map[bool]string{false: seq, true: seq + "\x1bPtmux;\x1b" + seq + "\x1b\\"} {
		b := newBench(t, 80, 24, false)
		b.t.opts.Tmux = tmux
		if b.t.Copy("text"); string(b.t.raw) != want {
			t.Errorf("in tmux %v: %q", tmux, b.t.raw)
		}
	}
}

// TestNoticeInTmux: tmux hands a wrapped notice through.
func TestNoticeInTmux(t *testing.T) {
	if got := notice("osc9", "text", true); got != "\x1bPtmux;\x1b\x1b]9;antiphon: text\x1b\x1b\\\x1b\\" {
		t.Errorf("%q", got)
	}
	if got := notice("bell", "text", true); got != "\a" {
		t.Errorf("%q", got)
	}
}
