// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// shown returns the rows of the screen.
func (b *bench) shown() []string {
	var rows []string
	for _, line := range b.vt.lines[b.vt.top():] {
		rows = append(rows, strings.TrimRight(strings.Join(line.cells, ""), " "))
	}
	return rows
}

// TestFullScreen proves that the full screen shows the end of the transcript above the same draft
// and status, scrolls by keys and the wheel, stays where it is while lines arrive, and follows again
// at the end.
func TestFullScreen(t *testing.T) {
	b := newBench(t, 20, 10, true)
	b.t.status = "status"
	b.t.compose.set("draft")
	line := 0
	say := func(n int) {
		for range n {
			b.t.notes(fmt.Sprintf("line %d\n", line))
			line++
		}
		b.draw(t)
	}
	view := func(first, last int) {
		t.Helper()
		rows := b.shown()
		want := []string{}
		for i := first; i <= last; i++ {
			want = append(want, fmt.Sprintf("line %d", i))
		}
		status := "status"
		if b.t.full.held {
			status = "scrolled, Ctrl-End…"
		}
		want = append(want, "› draft", status)
		if got := strings.Join(rows, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("the screen is\n%s\nand not lines %d to %d", got, first, last)
		}
	}
	say(50)
	b.t.wantFull = true
	b.draw(t)
	view(42, 49)
	if row, col := b.vt.row, b.vt.col; row != 8 || col != 7 || b.vt.hidden {
		t.Errorf("the cursor is at %d, %d, hidden: %v", row, col, b.vt.hidden)
	}
	b.press("pgup", "")
	b.draw(t)
	view(35, 42)
	say(20)
	view(35, 42)
	b.t.scroll(-wheelRows)
	b.draw(t)
	view(32, 39)
	b.press("ctrl+home", "")
	b.draw(t)
	view(0, 7)
	b.press("pgdown", "")
	b.draw(t)
	view(7, 14)
	b.press("ctrl+end", "")
	b.draw(t)
	view(62, 69)
	b.resize(30, 12, func() {})
	b.draw(t)
	view(60, 69)
	b.t.wantFull = false
	b.draw(t)
	b.end()
	if got := b.vt.text(); strings.Count(strings.Join(got, "\n"), "line ") != 70 || strings.Contains(strings.Join(got, "\n"), "draft") {
		t.Errorf("the scrollback is\n%s", strings.Join(got, "\n"))
	}
}

// TestFullScreenRenders proves that a frame of the full screen renders as many lines as are
// visible, however many there are, and that what of them is in memory is bounded.
func TestFullScreenRenders(t *testing.T) {
	b := newBench(t, 80, 24, true)
	for i := range 100_000 {
		b.t.notes(fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", 300)))
	}
	b.draw(t)
	if p := &b.t.past; p.bytes > mostRecent || p.begin() != 0 || p.end() != 100_000 {
		t.Fatalf("%d bytes are in memory, of lines %d to %d", p.bytes, p.begin(), p.end())
	}
	b.t.wantFull = true
	b.draw(t)
	if n := testing.AllocsPerRun(10, func() {
		b.t.scroll(-1)
		_ = b.t.paint(80, 24, time.Unix(0, 0))
	}); n > 5000 {
		t.Errorf("a frame takes %v allocations", n)
	}
	b.press("ctrl+home", "")
	b.draw(t)
	if !strings.HasPrefix(b.shown()[0], "line 0 ") {
		t.Errorf("the first row is %q", b.shown()[0])
	}
}

// TestFullTranscript proves that over random streams, sizes, keys and switches between both screens
// the scrollback holds the transcript, each word once and in order, and that a full screen shows the
// end of the transcript, or where the person has scrolled to, above the live part.
func TestFullTranscript(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t, rapid.IntRange(20, 100).Draw(r, "width"), rapid.IntRange(6, 40).Draw(r, "height"), rapid.Bool().Draw(r, "colour"))
		b.switches = true
		checkSaid(r, b, scenario(r, b, 20, func() {
			if !b.t.full.on {
				return
			}
			rows := b.shown()
			if len(rows) != b.height {
				r.Fatalf("the screen has %d rows of %d", len(rows), b.height)
			}
			if last := b.t.end() - 1; !b.t.full.held && last >= 0 {
				parts := wrapped(b.t.lineAt(last), max(2, b.width-1))
				end := newVT(t, b.width, 1)
				_, _ = end.Write([]byte(parts[len(parts)-1]))
				if got, want := rows[min(b.t.full.room, b.t.end())-1], end.text(); b.t.end() >= b.t.full.room && got != strings.Join(want, "") {
					r.Fatalf("the last row above the live part is %q, want %q", got, want)
				}
			}
		}))
	})
}

// TestFullScreenPane proves that a wide full screen shows the last calls beside the transcript, with those
// of subagents below them and the end of what the last one prints; that the transcript wraps and scrolls
// in what is left; that Ctrl-X Ctrl-O hides it; and that there is none on a small screen, before the
// first call and in the usual view.
func TestFullScreenPane(t *testing.T) {
	b := newBench(t, 120, 20, true)
	o := calls()
	b.t.compose.set("draft")
	b.t.notes(strings.Repeat("word ", 30) + "\nnext\n")
	screen := func() string {
		b.draw(t)
		return strings.Join(b.shown(), "\n")
	}
	b.t.wantFull = true
	if got := screen(); strings.Contains(got, "│") {
		t.Errorf("a pane without calls:\n%s", got)
	}
	o.Last = func(n int) []Node { return o.Nodes() }
	b.t.Browse(o)
	got := screen()
	for _, row := range []string{"│ read_file a.txt\n", "│ agent tidy<U+001B>[2J up\n", "│   read_file b.txt\n", "│ last\n", "│ l 99\n", "│ l 86\n", "\n› draft"} {
		if !strings.Contains(got, row) {
			t.Errorf("no %q on the screen:\n%s", row, got)
		}
	}
	if strings.Contains(got, "l 85") {
		t.Errorf("more than fits:\n%s", got)
	}
	rows := b.shown()
	if !strings.HasPrefix(rows[0], strings.Repeat("word ", 14)+"w │") || !strings.HasPrefix(rows[3], "next   ") {
		t.Errorf("the transcript:\n%s", got)
	}
	for i := range 40 {
		b.t.notes(fmt.Sprintf("line %d\n", i))
	}
	screen()
	b.press("pgup", "")
	if got := screen(); !strings.Contains(got, "line 20 ") || strings.Contains(got, "line 30") {
		t.Errorf("it does not scroll:\n%s", got)
	}
	b.press("ctrl+end", "")
	b.press("ctrl+x", "")
	b.press("ctrl+o", "")
	if got := screen(); strings.Contains(got, "│") || b.t.browse.on {
		t.Errorf("the pane is still there:\n%s", got)
	}
	b.press("ctrl+x", "")
	b.press("ctrl+o", "")
	if got := screen(); !strings.Contains(got, "│ last\n") {
		t.Errorf("the pane does not come back:\n%s", got)
	}
	again := o // another conversation whose calls have the same ids
	again.Text = func(string) string { return "of another conversation" }
	b.t.Browse(again)
	if got := screen(); !strings.Contains(got, "│ of another conversation") {
		t.Errorf("the pane shows the conversation before:\n%s", got)
	}
	b.resize(sided-1, 20, func() {})
	if got := screen(); strings.Contains(got, "│") {
		t.Errorf("a pane on a narrow screen:\n%s", got)
	}
	b.t.wantFull = false
	if got := screen(); strings.Contains(got, "│") {
		t.Errorf("a pane in the usual view:\n%s", got)
	}
}

// TestWorded proves that texts of panes are broken at blanks, lose nothing but a blank, and fit.
func TestWorded(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"no rule allows it", 10, "no rule |allows it"},
		{"no rule allows it", 7, "no rule|allows |it"},
		{"abcdefghijkl", 5, "abcde|fghij|kl"},
		{"a bcdefghijkl", 6, "a bcde|fghijk|l"},
		{"", 5, ""},
		{"日本語 日本語", 7, "日本語 |日本語"},
	} {
		if got := strings.Join(worded(c.text, c.limit), "|"); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

// TestFullScreenLow proves that a full screen of any height shows the draft or the question, and no more rows
// than there are, when a question comes and goes.
func TestFullScreenLow(t *testing.T) {
	for height := 1; height < 8; height++ {
		b := newBench(t, 40, height, true)
		b.t.wantFull, b.t.status = true, "status"
		b.t.queue = []string{"queued"}
		b.draw(t)
		b.t.notes("run it? ")
		b.t.waits = []wait{{what: "the model"}, {what: "a call"}}
		b.draw(t)
		if got := strings.Join(b.shown(), "\n"); height > 1 && !strings.Contains(got, "run it?") || !strings.Contains(got, "›") {
			t.Errorf("%d rows:\n%s", height, got)
		}
		if n := len(b.t.full.drawn); n != height {
			t.Errorf("%d rows of %d", n, height)
		}
		b.t.notes("y\n")
		b.draw(t)
	}
}
