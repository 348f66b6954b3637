// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// calls is an outline of a read, and of a subagent that made a call.
func calls() Outline {
	return Outline{
		Nodes: func() []Node {
			return []Node{{Key: "r", Label: "read_file a.txt"}, {Key: "s", Label: "agent tidy\x1b[2J up", Agent: true}, {Key: "i", Depth: 1, Label: "read_file b.txt"}, {Key: "l", Label: "last"}}
		},
		Text: func(key string) string {
			var b strings.Builder
			for i := range 100 {
				fmt.Fprintf(&b, "%s %d\n", key, i)
			}
			return b.String()
		},
	}
}

// TestBrowse proves that Ctrl-O looks into the last call and Ctrl-G into the last subagent, that keys
// choose, fold, scroll, enter and leave, and that the usual view is as it was afterwards.
func TestBrowse(t *testing.T) {
	for _, width := range []int{120, 40} { // two panes, and one below the other
		b := newBench(t, width, 24, true)
		b.t.notes("said before\n")
		b.t.compose.set("draft")
		b.draw(t)
		b.press("ctrl+o", "")
		if b.t.browse.on || b.t.hint != "" {
			t.Fatalf("it looks into nothing: %q", b.t.hint)
		}
		b.t.Browse(Outline{Nodes: func() []Node { return nil }, Text: func(string) string { return "" }})
		if b.press("ctrl+g", ""); b.t.browse.on || b.t.hint != "there was no subagent yet" {
			t.Errorf("the hint is %q", b.t.hint)
		}
		b.t.Browse(calls())
		b.press("ctrl+o", "")
		shows := func(chosen, text, without string) {
			t.Helper()
			b.draw(t)
			rows := strings.Join(b.shown(), "\n")
			if !strings.Contains(rows, chosen) || !strings.Contains(rows, text) || without != "" && strings.Contains(rows, without) {
				t.Errorf("%d columns: no %q with %q, or %q on the screen:\n%s", width, chosen, text, without, rows)
			}
		}
		shows("›  last", "l 0", "draft")
		b.press("pgdown", "")
		shows("›  last", "l 25", "l 16\n")
		b.press("up", "")
		shows("›    read_file b.txt", "i 0", "")
		b.press("left", "")
		shows("›▾ agent tidy<U+001B>", "s 0", "")
		b.press("left", "")
		shows("›▸ agent tidy<U+001B>", "s 0", "read_file b")
		b.press("down", "")
		shows("›  last", "l 0", "read_file b")
		b.press("ctrl+o", "")
		b.press("ctrl+g", "")
		shows("›▾ agent tidy", "s 0", "")
		b.press("enter", "")
		shows("›▾ agent tidy", "s 0", "read_file a")
		b.press("end", "")
		shows("›▾ agent tidy", "s 99", "")
		b.t.asking = true
		shows("a question waits", "s 99", "")
		b.t.asking = false
		b.press("esc", "")
		shows("›▾ agent tidy", "read_file a", "")
		b.press("esc", "")
		b.draw(t)
		if b.t.full.on || b.t.compose.text != "draft" {
			t.Errorf("the view is still there, or the draft is %q", b.t.compose.text)
		}
		b.end()
		if got := b.vt.text(); !slices.Equal(got, []string{"said before"}) {
			t.Errorf("the transcript is %q", got)
		}
	}
}

// TestLookHere proves that Ctrl-O looks into the call whose row the person has scrolled to in the full screen, and into
// the last one at the end; and that d takes a call out of what is sent, and says why it cannot.
func TestLookHere(t *testing.T) {
	b := newBench(t, 80, 12, true)
	var list []Node
	for i := range 10 {
		key := fmt.Sprint("call ", i)
		b.t.notes("-> " + key + "\n")
		b.t.Wait(key, key)
		b.t.Done(key)
		b.t.notes(strings.Repeat("its output\n", 20))
		list = append(list, Node{Key: key, Label: key, Wait: key, Drop: fmt.Sprint(i)})
	}
	list[9].Drop = ""
	b.t.Browse(Outline{Nodes: func() []Node { return list }, Text: func(key string) string { return key }})
	b.t.opts.Drop, b.t.wantFull = "/context drop", true
	b.draw(t)
	looksAt := func(key, want string) {
		t.Helper()
		b.press(key, "")
		b.draw(t)
		if b.press("ctrl+o", ""); b.t.browse.at != want {
			t.Errorf("after %s it looks at %q, want %q", key, b.t.browse.at, want)
		}
		b.draw(t)
	}
	looksAt("ctrl+home", "call 0")
	if b.press("d", "d"); b.t.browse.on || strings.Join(b.t.queue, "|") != "/context drop 0" {
		t.Errorf("the queue is %q", b.t.queue)
	}
	for range 4 {
		b.press("pgdown", "")
	}
	looksAt("pgdown", "call 2")
	b.press("esc", "")
	looksAt("ctrl+end", "call 9")
	if b.press("d", "d"); !b.t.browse.on || b.t.hint == "" || len(b.t.queue) != 1 {
		t.Errorf("the queue is %q, the hint %q", b.t.queue, b.t.hint)
	}
}

// TestBrowseSmall proves that the look into calls fits every size.
func TestBrowseSmall(t *testing.T) {
	for _, size := range [][2]int{{20, 5}, {4, 2}, {89, 1}, {90, 1}, {300, 100}} {
		b := newBench(t, size[0], size[1], true)
		b.t.Browse(calls())
		b.press("ctrl+o", "")
		rows, row := b.t.browsed(size[0], size[1])
		if len(rows) != size[1] || row < 0 || row >= len(rows) {
			t.Errorf("%v: %d rows, chosen %d", size, len(rows), row)
		}
		for _, row := range rows {
			if columns(row) >= max(5, size[0]) {
				t.Errorf("%v: a row of %d columns: %q", size, columns(row), row)
			}
		}
	}
}

// TestBrowseEmptied proves that calls which are gone end the look into them.
func TestBrowseEmptied(t *testing.T) {
	b := newBench(t, 80, 24, false)
	o := calls()
	b.t.Browse(o)
	b.press("ctrl+o", "")
	b.t.Browse(Outline{Nodes: func() []Node { return nil }, Text: o.Text})
	_ = b.t.paint(80, 24, time.Unix(0, 0))
	if b.press("up", ""); b.t.browse.on {
		t.Error("it still looks into them")
	}
}
