// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
)

// TestBind proves that keys do what they are bound to, another key, several, a command or nothing; that a bound
// command leaves the draft alone; and that a question cannot be answered by a bound command.
func TestBind(t *testing.T) {
	b := newBench(t, 80, 24, false)
	list, err := ParseBindings(" f2=/fullscreen; Ctrl-T=ctrl+r ;f4=ctrl+x ctrl+f; ctrl+z = none; alt+q=/cost; ctrl+a=ctrl+e; ctrl+e=ctrl+a;")
	if err != nil {
		t.Fatal(err)
	}
	b.t.opts.Bind = list
	b.t.compose.set("draft")
	b.t.event(uv.KeyPressEvent{Code: uv.KeyF2})
	if !b.t.wantFull {
		t.Error("f2 is not /fullscreen")
	}
	b.t.event(uv.KeyPressEvent{Code: uv.KeyF4})
	if b.t.wantFull {
		t.Error("f4 is not ctrl+x ctrl+f")
	}
	b.t.event(uv.KeyPressEvent{Code: 't', Mod: uv.ModCtrl})
	if !b.t.find.on {
		t.Error("ctrl+t is not ctrl+r")
	}
	b.t.event(uv.KeyPressEvent{Code: uv.KeyEscape})
	b.t.event(uv.KeyPressEvent{Code: 'z', Mod: uv.ModCtrl}) // would need the input
	b.t.event(uv.MultiEvent{uv.KeyPressEvent{Code: 'e', Mod: uv.ModCtrl}})
	if b.t.compose.at != 0 {
		t.Errorf("ctrl+e is not ctrl+a: %d", b.t.compose.at)
	}
	b.t.event(uv.KeyPressEvent{Code: 'q', Mod: uv.ModAlt})
	if strings.Join(b.t.queue, "|") != "/cost" || b.t.compose.text != "draft" {
		t.Errorf("the queue is %q, the draft %q", b.t.queue, b.t.compose.text)
	}
	b.t.Ask(false)
	b.t.event(uv.KeyPressEvent{Code: 'q', Mod: uv.ModAlt})
	b.asked(t)
	b.t.event(uv.KeyPressEvent{Code: 'q', Mod: uv.ModAlt})
	if len(b.t.queue) != 1 || len(b.t.answer) > 0 {
		t.Errorf("a question: the queue is %q", b.t.queue)
	}
}

// TestBindTwo proves that two keys one after the other do what they are bound to together, and otherwise what each of
// them does alone.
func TestBindTwo(t *testing.T) {
	b := newBench(t, 80, 24, false)
	list, err := ParseBindings("ctrl+x t=/theme light; ctrl+x ctrl+t=ctrl+a; alt+g alt+g=/cost")
	if err != nil {
		t.Fatal(err)
	}
	b.t.opts.Bind = list
	b.t.compose.set("draft")
	press := func(keys ...uv.KeyPressEvent) {
		for _, k := range keys {
			b.t.event(k)
		}
	}
	x := uv.KeyPressEvent{Code: 'x', Mod: uv.ModCtrl}
	if press(x); b.t.hint == "" {
		t.Error("there is no hint that a key is awaited")
	}
	press(uv.KeyPressEvent{Code: 't', Text: "t"})
	press(x, uv.KeyPressEvent{Code: 't', Mod: uv.ModCtrl})
	if strings.Join(b.t.queue, "|") != "/theme light" || b.t.compose.text != "draft" || b.t.compose.at != 0 || b.t.hint != "" {
		t.Errorf("the queue is %q, the draft %q at %d, the hint %q", b.t.queue, b.t.compose.text, b.t.compose.at, b.t.hint)
	}
	if press(x, uv.KeyPressEvent{Code: 'f', Mod: uv.ModCtrl}); !b.t.wantFull {
		t.Error("ctrl+x ctrl+f is not what it was")
	}
	press(uv.KeyPressEvent{Code: 'g', Mod: uv.ModAlt}, uv.KeyPressEvent{Code: 'y', Text: "y"})
	if b.t.compose.text != "ydraft" || len(b.t.queue) != 1 {
		t.Errorf("the draft is %q, the queue %q", b.t.compose.text, b.t.queue)
	}
}

// TestBadBindings proves that wrong bindings are refused, and that the error says why.
func TestBadBindings(t *testing.T) {
	for text, want := range map[string]string{
		"f2": "has no =", "f2=": "nothing after", "f2=up; F2=down": "twice", "ctrl+home+x=up": "is not a key", "f2=fly": "is not a key", "f=up": "cannot be bound",
		"a=up": "cannot be bound", "space=up": "cannot be bound", "f2=y enter": "cannot be bound", "shift+a=up": "cannot be bound", "=up": "is not a key", "ctrl+x a b=up": "more than two", "f2=up; f2 a=down": "cannot begin", "a b=up": "cannot be bound",
	} {
		if _, err := ParseBindings(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		} else if want == "cannot be bound" && !errors.Is(err, errWrites) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "ctrl+space=up", "alt+ü=none", "shift+f12=/theme light", "ctrl+-=up", "Shift-Tab=none", "ctrl+alt+x=alt+enter"} {
		if _, err := ParseBindings(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestBindTwoBetween proves that the first of two keys does nothing to what comes after it: neither to a paste nor
// to the answer of a question.
func TestBindTwoBetween(t *testing.T) {
	b := newBench(t, 80, 24, false)
	list, err := ParseBindings("ctrl+u x=/cost; enter x=/cost")
	if err != nil {
		t.Fatal(err)
	}
	b.t.opts.Bind = list
	b.t.compose.set("draft")
	b.t.event(uv.KeyPressEvent{Code: 'u', Mod: uv.ModCtrl})
	b.t.event(uv.PasteEvent{Content: "pasted"})
	b.t.event(uv.KeyPressEvent{Code: 'a', Text: "a"})
	if got := b.t.compose.text; got != "pasteda" {
		t.Errorf("the draft is %q", got)
	}
	b.t.event(uv.KeyPressEvent{Code: uv.KeyEnter})
	b.t.pending, b.t.quiet = true, time.Now().Add(-time.Hour)
	b.t.takeUp(time.Now())
	b.t.event(uv.KeyPressEvent{Code: 'b', Text: "b"})
	if !b.t.asking || b.t.compose.text != "b" || b.t.stashed.text != "pasteda" {
		t.Errorf("asking %v, the answer is %q, the draft %q", b.t.asking, b.t.compose.text, b.t.stashed.text)
	}
}
