// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// bench is a terminal of the package without a loop, drawn into a model.
type bench struct {
	t             *Terminal
	vt            *vt
	width, height int // as the package knows them
	tape          *tape
	switches      bool // between the inline view and the full screen
	now           time.Time
}

// resize changes the size of the screen. It calls meanwhile before the package knows.
func (b *bench) resize(width, height int, meanwhile func()) {
	b.vt.resize(width, height)
	if b.tape != nil {
		b.tape.events = append(b.tape.events, tapeEvent{width: width, height: height})
	}
	meanwhile()
	b.width, b.height = width, height
	b.t.full.drawn = nil // as the loop does, also for the size that it was
}

func newBench(t *testing.T, width, height int, colour bool) *bench {
	v := newVT(t, width, height)
	b := &bench{now: time.Unix(0, 0), width: width, height: height, vt: v}
	b.t = &Terminal{clock: func() time.Time { return b.now }, screen: screen{out: v}, mark: markdown{colour: colour}, opts: Options{Colour: colour}, wake: make(chan struct{}, 1), ready: make(chan struct{}, 1), left: make(chan struct{}), answer: make(chan string, 8)}
	return b
}

// asked waits until a question takes keys.
func (b *bench) asked(t interface{ Errorf(string, ...any) }) {
	b.draw(t)
	b.now = b.now.Add(grace)
	b.draw(t)
}

// draw draws a frame as the loop does, and checks its height.
func (b *bench) draw(t interface{ Errorf(string, ...any) }) {
	if err := b.t.switchFull(b.width, b.height); err != nil {
		t.Errorf("%v", err)
	}
	if b.t.full.on {
		_, _ = b.vt.Write(b.t.paint(b.width, b.height, b.now))
		return
	}
	next := b.t.inline(b.width, b.height, b.now)
	if most := max(2, b.height/3); len(next.rows) > most {
		t.Errorf("the live part has %d rows of a screen of %d: %q", len(next.rows), b.height, next.rows)
	}
	for _, row := range next.rows {
		if columns(row) >= b.width {
			t.Errorf("a row of %d columns on a screen of %d: %q", columns(row), b.width, row)
		}
	}
	lines := b.t.lines
	b.t.pass(lines)
	b.t.lines = nil
	if err := b.t.screen.draw(b.width, lines, next); err != nil {
		t.Errorf("%v", err)
	}
}

// press applies a key, as the loop does.
func (b *bench) press(name, text string) {
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	b.t.key(name, text)
}

// end draws what is finished and removes the live part.
func (b *bench) end() {
	b.t.finish()
	if b.t.full.on {
		_ = b.t.exitFull(b.width, b.height)
	}
	_ = b.t.flush(b.width)
}

// TestTranscript proves that over random streams, notes, drafts, sizes and moments of drawing
// the terminal holds the transcript and nothing else, each word once and in order, when the
// live part is gone, and that the live part never takes more than a third of the screen.
func TestTranscript(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t, rapid.IntRange(12, 100).Draw(r, "width"), rapid.IntRange(6, 40).Draw(r, "height"), rapid.Bool().Draw(r, "colour"))
		b.t.screen.low = rapid.Bool().Draw(r, "low")
		checkSaid(r, b, scenario(r, b, 12, func() {}))
	})
}

// scenario has a conversation of random streams, notes, drafts, sizes and moments of drawing, and
// returns the words that were said. Between two frames it calls drawn.
func scenario(r *rapid.T, b *bench, least int, drawn func()) (said []string) {
	pieces := []string{" ", "\n", "\n\n", "**", "*", "`", "```go\n", "```\n", "# ", "- ", "1. ", "> ", "| ", " |\n", "|---|---|\n", "日本語 ", "e\u0301 ", "שלום ", "[a](https://x.org/b) ", "https://x.org/y ", "\t", "\r\n", "\x1b[2J", "\u202e"}
	if least < leastCompared {
		pieces = append(pieces, "👩‍👩‍👧 ") // terminals disagree about its columns
	}
	word := func() string {
		w := fmt.Sprintf("w%d.", len(said))
		said = append(said, w)
		return w
	}
	for range rapid.IntRange(1, 120).Draw(r, "steps") {
		switch rapid.IntRange(0, 9).Draw(r, "step") {
		case 0:
			if b.switches && rapid.Bool().Draw(r, "switch") {
				b.t.wantFull = !b.t.wantFull
			}
			if b.switches && b.t.full.on {
				b.press(rapid.SampledFrom([]string{"pgup", "pgup", "pgdown", "ctrl+home", "ctrl+end", "home", "end"}).Draw(r, "key"), "")
			}
			b.draw(r)
			drawn()
		case 1:
			b.t.notes("\n" + word() + " a note\n")
		case 2:
			b.t.say("› ", word()+" said")
		case 3:
			b.t.compose.set(strings.Repeat("draft ", rapid.IntRange(0, 60).Draw(r, "draft")))
		case 4:
			b.t.waits = append(b.t.waits[:0], make([]wait, rapid.IntRange(0, 8).Draw(r, "waits"))...)
		case 5:
			b.draw(r)
			width, height := rapid.IntRange(least, 100).Draw(r, "width"), rapid.IntRange(6, 40).Draw(r, "height")
			if broken(b.t.screen.drawn.rows, width) <= min(height, b.height) { // what leaves the screen cannot be erased
				late := !b.t.screen.low && mostRows(b.height) <= height && rapid.Bool().Draw(r, "late")
				b.resize(width, height, func() {
					if late { // the terminal gets another size while a frame for the old one is on its way
						b.t.notes("\n" + word() + " a late note\n")
						b.draw(r)
					}
				})
			}
			if b.draw(r); rapid.Bool().Draw(r, "look") {
				drawn()
			}
		default:
			for range rapid.IntRange(1, 12).Draw(r, "pieces") {
				text := rapid.SampledFrom(pieces).Draw(r, "piece")
				if rapid.Bool().Draw(r, "word") {
					text = word() + " "
				}
				b.t.lines = append(b.t.lines, b.t.mark.write(Shown(text))...)
			}
			if rapid.Bool().Draw(r, "now") {
				b.draw(r)
			}
		}
	}
	b.end()
	drawn()
	return said
}

// checkSaid checks that the terminal holds what was said, and nothing of the live part.
func checkSaid(r *rapid.T, b *bench, said []string) {
	all := strings.Join(b.vt.text(), "") // a long word may be broken
	if strings.Contains(all, "draft") || strings.Contains(all, "›  ") {
		r.Errorf("the live part is left in the transcript:\n%s", all)
	}
	at := 0
	for _, w := range said {
		n := strings.Count(all, w)
		i := strings.Index(all[at:], w)
		if n != 1 || i < 0 {
			r.Fatalf("%s is there %d times, in order: %v:\n%s", w, n, i >= 0, all)
		}
		at += i
	}
}

// broken returns how many rows a live part takes on a screen of another width.
func broken(rows []string, width int) (n int) {
	for _, row := range rows {
		n += len(wrapped(row, width))
	}
	return n
}

// TestNothingLeft proves that a live part that shrinks leaves no row behind.
func TestNothingLeft(t *testing.T) {
	b := newBench(t, 40, 24, true)
	for i := range 12 {
		b.t.compose.set(strings.Repeat("a line\n", 12-i))
		b.t.status = strings.Repeat("s", 12-i)
		b.draw(t)
	}
	b.t.compose.set("")
	b.t.status = "status"
	b.draw(t)
	if got, want := b.vt.text(), []string{"›", "status"}; !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// TestMarkdown pins what Markdown becomes, without colours and with the sequences left out.
func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ in, plain, styled string }{
		{"# A *b*\n", "# A *b*", "A b"},
		{"a **b** _c_ ~~d~~ ***e***\n", "a **b** _c_ ~~d~~ ***e***", "a b c d e"},
		{"a * b, 2*3, snake_case_name, **open\n", "a * b, 2*3, snake_case_name, **open", "a * b, 2*3, snake_case_name, **open"},
		{"`x*y*` and ``a`b``\n", "`x*y*` and ``a`b``", "x*y* and a`b"},
		{"\\*not\\*\n", "*not*", "*not*"},
		{"- a\n  - b\n3. c\n- [x] d\n", "• a\n  • b\n3. c\n☑ d", "• a\n  • b\n3. c\n☑ d"},
		{"> quoted **b**\n", "│ quoted **b**", "│ quoted b"},
		{"---\n", "────────", "────────"},
		{"[a](https://b.c/d) <https://e.f>, https://g.h.\n", "a (https://b.c/d) https://e.f, https://g.h.", "a (https://b.c/d) https://e.f, https://g.h."},
		{"[a](javascript:x)\n", "a (javascript:x)", "a (javascript:x)"},
		{"```go\nx := `**`\n```\nb\n", "```go\nx := `**`\n```\nb", "```go\nx := `**`\n```\nb"},
		{"| a | b |\n|---|---|\n| long | **c** |\nend\n", "a    │ b\n─────┼──────\nlong │ **c**\nend", "a    │ b\n─────┼──\nlong │ c\nend"},
		{"## Why C#\n", "## Why C#", "Why C#"},
		{"## F# ##\n# G \t# \n", "## F#\n# G", "F#\nG"},
		{"# C#\r\n### #\n## ## \n", "# C#\n### \n## ", "C#\n\n"},
		{"| a | b |\n|---|---|\n| - | -- |\n|-|-|\nend\n", "a │ b\n──┼───\n- │ --\n- │ -\nend", "a │ b\n──┼───\n- │ --\n- │ -\nend"},
		{"|---|---|\n| a | b |\n", "--- │ ---\na   │ b", "--- │ ---\na   │ b"},
		{"|---|\n", "---", "---"},
		{"no end", "no end", "no end"},
	} {
		for _, colour := range []bool{false, true} {
			want := c.plain
			if colour {
				want = c.styled
			}
			m := &markdown{colour: colour}
			lines := append(m.write(c.in), m.flush()...)
			if got := ansi.Strip(strings.Join(lines, "\n")); got != want {
				t.Errorf("%q, colour %v:\n got %q\nwant %q", c.in, colour, got, want)
			}
		}
	}
}

// TestRelieve proves that the rest of a line that was broken because it is too long is not read
// as the beginning of one, and that nothing of it is lost.
func TestRelieve(t *testing.T) {
	for _, text := range []string{strings.Repeat("a - b # c 1. d > ", 20), strings.Repeat("**a b** `c d` ", 20), strings.Repeat("x", 300)} {
		for width := 10; width < 60; width += 7 {
			m := new(markdown)
			lines := append(m.write(text), m.relieve(width, 3)...)
			if n := len(wrapped(m.tail()[0], width)); n > 3 {
				t.Errorf("%d rows are left", n)
			}
			lines = append(lines, m.flush()...)
			if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(text, " ", ""); got != want {
				t.Errorf("width %d:\n got %q\nwant %q", width, got, want)
			}
		}
	}
}

// TestRelieveTable proves that a row of dashes of a table whose beginning is finished is a row.
func TestRelieveTable(t *testing.T) {
	m := new(markdown)
	lines := m.write("| a | b |\n|---|---|\n| c | d |\n")
	lines = append(lines, m.relieve(20, 1)...)
	lines = append(append(lines, m.write("| - | - |\n|---|---|\n")...), m.flush()...)
	if got, want := strings.Join(lines, "\n"), "a │ b\n──┼──\nc │ d\n-   │ -\n--- │ ---"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	m = new(markdown)
	lines = m.write("| a | b |\n")
	lines = append(lines, m.relieve(20, 0)...)
	lines = append(append(lines, m.write("|---|---|\n| c | d |\n")...), m.flush()...)
	if got, want := strings.Join(lines, "\n"), "a │ b\n──┼──\nc │ d"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestMarkdownPieces proves that a text gives the same lines however it is cut.
func TestMarkdownPieces(t *testing.T) {
	text := "# T\n\nsome *text*\n\n```py\nx = '''a\nb''' # c\n```\n| a | b |\n|-|-|\n| c | d |\n\n- e **f**\n> g\nlast"
	whole := &markdown{colour: true}
	want := append(whole.write(text), whole.flush()...)
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := &markdown{colour: true}
		var got []string
		for rest := text; rest != ""; {
			n := min(len(rest), 1+random.IntN(7))
			got = append(got, m.write(rest[:n])...)
			_ = m.tail()
			rest = rest[n:]
		}
		if got = append(got, m.flush()...); !cmp.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
	}
}

// TestHostileLines proves that lines made to be slow are drawn in the time that one test has.
func TestHostileLines(t *testing.T) {
	for _, piece := range []string{"*a ", "[a](", "`", "| a ", "x", "<http", "a\u0300\u0301"} {
		b := newBench(t, 80, 24, true)
		b.t.lines = append(b.t.lines, b.t.mark.write(strings.Repeat(piece, 1<<14))...)
		b.draw(t)
		b.end()
	}
}

// TestShown proves that what a terminal would obey is shown as its number, and that what
// languages need stays.
func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b]0;t\x07b":      "a<U+001B>]0;t<U+0007>b",
		"a\u202eb\u2066":      "a<U+202E>b<U+2066>",
		"a\rb\u0085\u009b31m": "a<U+000D>b<U+0085><U+009B>31m",
		"a\tb\r\nc":           "a    b\nc",
		"\U0001F469\u200d\U0001F467 e\u0301 می\u200cخواهم שלום": "\U0001F469\u200d\U0001F467 e\u0301 می\u200cخواهم שלום",
		"tag\U000E0041": "tag<U+E0041>",
	} {
		if got := Shown(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// press types keys; a key with a + or of several letters is a name, others are texts.
func press(c *composer, keys ...string) {
	for _, k := range keys {
		if strings.Contains(k, "+") || k == "left" || k == "right" || k == "up" || k == "down" || k == "home" || k == "end" || k == "backspace" || k == "delete" {
			c.key(k, "")
			continue
		}
		for _, r := range k {
			c.key(string(r), string(r))
		}
	}
}

// TestComposer pins what the keys of the draft do. The cursor is shown as |.
func TestComposer(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"abc", "left", "left", "x"}, "ax|bc"},
		{[]string{"e\u0301a", "left", "backspace"}, "|a"},
		{[]string{"👩‍👩‍👧!", "left", "left", "delete"}, "|!"},
		{[]string{"one two", "ctrl+w", "ctrl+y", "ctrl+y"}, "one twotwo|"},
		{[]string{"one two", "alt+b", "ctrl+k"}, "one |"},
		{[]string{"one two", "ctrl+w", "ctrl+u", "ctrl+y", "alt+y"}, "two|"},
		{[]string{"one two", "ctrl+w", "ctrl+u", "ctrl+y", "alt+y", "alt+y", "!"}, "one !|"},
		{[]string{"one two", "ctrl+w", "x", "alt+y"}, "one x|"},
		{[]string{"one two", "home", "ctrl+space", "end", "left", "ctrl+w"}, "|o"},
		{[]string{"one two", "alt+b", "ctrl+space", "home", "alt+w", "ctrl+y"}, "one |one two"},
		{[]string{"ab", "ctrl+space", "ctrl+u", "ctrl+w"}, "|"},
		{[]string{"aé", "ctrl+b", "ctrl+space", "backspace", "end", "ctrl+w"}, "|"},
		{[]string{"one two", "ctrl+b", "ctrl+space", "home", "é", "end", "ctrl+w"}, "éone tw|"},
		{[]string{"éx", "home", "right", "ctrl+space", "up", "up", "down", "down", "end", "ctrl+w"}, "|"},
		{[]string{"one two", "home", "alt+d"}, "| two"},
		{[]string{"one", "ctrl+j", "two", "up", "end", "!"}, "one!|\ntwo"},
		{[]string{"one", "ctrl+j", "日本", "up", "down", "x"}, "one\n日本x|"},
		{[]string{"one two", "ctrl+_"}, "one |"},
		{[]string{"one two", "ctrl+_", "ctrl+_", "ctrl+_"}, "|"},
		{[]string{"one two", "ctrl+_", "alt+_"}, "one two|"},
		{[]string{"a b", "ctrl+u"}, "|"},
		{[]string{"draft", "up"}, "second|"},
		{[]string{"draft", "up", "up", "up"}, "first|"},
		{[]string{"draft", "up", "up", "down", "down"}, "draft|"},
		{[]string{"שלום", "left", "backspace"}, "של|ם"},
	} {
		d := &composer{history: []string{"first", "second"}}
		press(d, c.keys...)
		if got := d.text[:d.at] + "|" + d.text[d.at:]; got != c.want {
			t.Errorf("%q: got %q, want %q", c.keys, got, c.want)
		}
	}
}

// TestPaste proves that a long paste is folded in the draft and whole when it is sent, and
// that its mark counts as one character.
func TestPaste(t *testing.T) {
	long := strings.Repeat("line\r\n", 20) + "end"
	c := new(composer)
	press(c, "see ")
	c.paste(long)
	press(c, "!")
	if want := "see [paste 1: 21 lines, 103 characters]!"; c.text != want {
		t.Errorf("the draft is %q, want %q", c.text, want)
	}
	if want := "see " + strings.ReplaceAll(long, "\r\n", "\n") + "!"; c.sent() != want {
		t.Errorf("sent is %q", c.sent())
	}
	press(c, "left", "backspace")
	if c.text != "see !" {
		t.Errorf("the draft is %q", c.text)
	}
	c.paste("short\ttext")
	if c.text != "see short\ttext!" {
		t.Errorf("the draft is %q", c.text)
	}
}

// TestPasteAgain proves that a long paste is folded again when it is recalled, searched, put back from the queue or
// edited, that one of a conversation before is folded if it is very long, and that all of it is sent.
func TestPasteAgain(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("line\n", 10), "\n")
	const mark = "see [paste 1: 10 lines, 49 characters]!"
	b := newBench(t, 80, 24, false)
	b.t.Remember(strings.Repeat("x", foldDraft+1))
	b.t.Working(func() {}, nil)
	press(&b.t.compose, "see ")
	b.t.compose.paste(long)
	press(&b.t.compose, "!")
	b.press("enter", "")
	shows := func(when, want, whole string) {
		t.Helper()
		if b.t.compose.text != want || b.t.compose.sent() != whole {
			t.Errorf("%s: the draft is %q", when, b.t.compose.text)
		}
	}
	b.press("esc", "")
	shows("stopped", mark, "see "+long+"!")
	b.press("enter", "")
	b.t.queue = nil
	press(&b.t.compose, "half")
	b.press("up", "")
	shows("recalled", mark, "see "+long+"!")
	if got := b.t.compose.written(); got != "half" {
		t.Errorf("%q is kept", got)
	}
	b.press("up", "")
	shows("older", "[paste 2: 1 lines, 16385 characters]", strings.Repeat("x", foldDraft+1))
	b.press("down", "")
	b.press("down", "")
	shows("back", "half", "half")
	b.press("ctrl+r", "")
	b.press("e", "e")
	shows("searched", mark, "see "+long+"!")
	b.press("esc", "")
	b.t.compose.set("edited " + long)
	shows("edited", "edited [paste 1: 10 lines, 49 characters]", "edited "+long)
}

// TestPasteKilled proves that a long paste that was deleted is put back whole: also after the draft was sent or another
// one came, by the keys of vi, and beside other pastes.
func TestPasteKilled(t *testing.T) {
	long, other := strings.TrimSuffix(strings.Repeat("line\n", 10), "\n"), strings.TrimSuffix(strings.Repeat("rows\n", 10), "\n")
	const mark, second = "[paste 1: 10 lines, 49 characters]", "[paste 2: 10 lines, 49 characters]"
	for _, tt := range []struct{ name, cut, back string }{
		{"ctrl+u", "<ctrl+u>", "<ctrl+y>"},
		{"ctrl+k", "<home><ctrl+k>", "<ctrl+y>"},
		{"ctrl+w", "<home><ctrl+space><end><ctrl+w>", "<ctrl+y>"},
		{"alt+w", "<home><ctrl+space><end><alt+w>", "<ctrl+y>"},
		{"alt+d", "<home><alt+d>", "<ctrl+y>"},
		{"alt+y", "<ctrl+u>x<ctrl+u>", "<ctrl+y><alt+y>"},
		{"dd", "<esc>ddi", "<esc>P<end>i"},
		{"register", `<esc>"adda`, `<esc>"aP`},
		{"visual", `<esc>0v$di`, `<esc>P`},
		{"over", `<esc>0y$0D`, `ax<esc>vp`},
		{"vi and ctrl+y", "<esc>Di", "<ctrl+y>"},
		{"change", "<esc>0C", "<ctrl+y>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, 80, 24, false)
			b.t.opts.Vi = strings.Contains(tt.cut, "<esc>")
			c := &b.t.compose
			c.paste(long)
			viTyped(b, tt.cut)
			c.clear()
			b.t.vi.mode = viInsert
			c.paste(other)
			viTyped(b, tt.back)
			for text, want := range map[string]string{strings.Trim(c.text, "\n"): second, strings.Trim(c.sent(), "\n"): long} {
				if !strings.Contains(text, want) || strings.Contains(c.sent(), "[paste") {
					t.Errorf("the draft is %q, and %q is sent", c.text, c.sent())
				}
			}
			if tt.name != "over" && !strings.Contains(c.sent(), other) {
				t.Errorf("%q is sent", c.sent())
			}
		})
	}
	c := new(composer)
	c.paste(long)
	press(c, "ctrl+u", "ctrl+y")
	if c.text != mark || c.sent() != long {
		t.Errorf("the draft is %q", c.text)
	}
	press(c, "ctrl+u")
	draft := *c
	c.resume(composer{})
	press(c, "ctrl+y")
	if c.sent() != long {
		t.Errorf("the answer is %q", c.sent())
	}
	c.resume(draft)
	c.paste(mark + strings.Repeat("\n", foldLines) + second)
	c.paste(long)
	if want := mark + strings.Repeat("\n", foldLines) + second + long; c.sent() != want {
		t.Errorf("sent is %q, want %q", c.sent(), want)
	}
}

// TestSendKeepsOthers proves that what comes into the draft while a text is said to the work stays there: a prompt that
// is given back, also one with a paste, and a question, whose answer is not the draft.
func TestSendKeepsOthers(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("line\n", 10), "\n")
	for _, tt := range []struct {
		name  string
		said  func(b *bench)
		comes func(b *bench)
		want  string
	}{
		{"alone", func(b *bench) { press(&b.t.compose, "say") }, func(*bench) {}, ""},
		{"unsent", func(b *bench) { press(&b.t.compose, "say") }, func(b *bench) { b.t.Unsent("back") }, "back"},
		{"two", func(b *bench) { press(&b.t.compose, "say") }, func(b *bench) { b.t.Unsent("back"); b.t.Put("first") }, "first\nback"},
		{"with line ends", func(b *bench) { press(&b.t.compose, "say") }, func(b *bench) { b.t.Unsent("back\n") }, "back\n"},
		{"paste", func(b *bench) { b.t.compose.paste(long) }, func(b *bench) { b.t.Unsent("back " + long) }, "back " + long},
		{"very long", func(b *bench) { press(&b.t.compose, "say") }, func(b *bench) { b.t.Unsent(strings.Repeat("x", foldDraft)) }, strings.Repeat("x", foldDraft)},
		{"the same", func(b *bench) { press(&b.t.compose, "say") }, func(b *bench) { b.t.Unsent("say") }, "say"},
		{"recalled", func(b *bench) { press(&b.t.compose, "half"); b.press("up", "") }, func(b *bench) { b.t.Unsent("back") }, "back\nhalf"},
		{"question", func(b *bench) { press(&b.t.compose, "say") }, func(b *bench) {
			b.t.Ask(false)
			b.asked(t)
			b.t.Unsent("back")
			press(&b.t.compose, "yes")
		}, "back"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, 80, 24, false)
			b.t.Remember("before")
			said := ""
			b.t.Working(func() {}, func(text string) error {
				said = text
				tt.comes(b)
				return nil
			})
			tt.said(b)
			whole := b.t.compose.sent()
			b.press("alt+s", "")
			if got := b.t.drafted().sent(); got != tt.want || said != whole {
				t.Errorf("the draft is %q, want %q; %q was said, want %q", got, tt.want, said, whole)
			}
			if b.t.asking && b.t.compose.text != "yes" {
				t.Errorf("the answer is %q", b.t.compose.text)
			}
		})
	}
}

// TestPutKeepsDraft proves that a prompt that is given back, and the draft, are kept while the history or a search is
// shown.
func TestPutKeepsDraft(t *testing.T) {
	for _, keys := range []string{"<up>", "<up><up><up>", "<ctrl+r>fir", "<ctrl+r>fir<esc>", "<ctrl+r>none"} {
		b := newBench(t, 80, 24, false)
		b.t.Remember("first", "second")
		viTyped(b, "half"+keys)
		b.t.Unsent("back")
		viTyped(b, "<esc><down><down><down>")
		if got := b.t.compose.sent(); got != "back\nhalf" {
			t.Errorf("%s: the draft is %q", keys, got)
		}
	}
	b := newBench(t, 80, 24, false)
	b.t.Remember("first", "second")
	viTyped(b, "half<up>!")
	b.t.Unsent("back")
	if got := b.t.compose.sent(); got != "back\nsecond!" {
		t.Errorf("the draft is %q", got)
	}
}

// TestComposerRows proves that for any draft and cursor the rows fit, and the cursor is in them.
func TestComposerRows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := new(composer)
		for range rapid.IntRange(0, 40).Draw(r, "keys") {
			press(c, rapid.SampledFrom([]string{"a", " ", "日", "👩‍👩‍👧", "e\u0301", "\u202e", "ctrl+j", "left", "right", "up", "down", "home", "end", "backspace", "delete", "alt+b", "alt+f", "ctrl+w", "ctrl+_", "alt+_", "ctrl+k", "ctrl+y"}).Draw(r, "key"))
			width, most := rapid.IntRange(8, 30).Draw(r, "width"), rapid.IntRange(1, 6).Draw(r, "most")
			rows, row, col := c.rows("› ", width, most)
			if len(rows) == 0 || len(rows) > most || row < 0 || row >= len(rows) || col < 0 || col > width {
				r.Fatalf("draft %q at %d: rows %q, cursor %d, %d", c.text, c.at, rows, row, col)
			}
			for _, line := range rows {
				if columns(line) > width {
					r.Fatalf("row %q has %d columns of %d", line, columns(line), width)
				}
			}
		}
	})
}

// TestHighlight proves that highlighting changes no character.
func TestHighlight(t *testing.T) {
	code := "func f() { return \"a\\\"b\" } // c\n/* x\ny */ z := `r\ns` + 'c' + 0x1f\ndon't # not\n"
	for _, l := range languages {
		for name := range strings.FieldsSeq(l.names) {
			c := coder{language: languageOf(name)}
			for line := range strings.Lines(code) {
				line = strings.TrimSuffix(line, "\n")
				if got := ansi.Strip(c.highlight(line)); got != line {
					t.Errorf("%s: %q became %q", name, line, got)
				}
			}
		}
	}
}

// TestAskKeepsDraft proves that a question does not take the draft as its answer, that the
// answer is one line, and that the draft comes back as it was: with the cursor, folded pastes and undo, and
// also if the history or a search was shown.
func TestAskKeepsDraft(t *testing.T) {
	const mark = "[paste 1: 10 lines, 49 characters]"
	for _, c := range []struct {
		name   string
		before func(b *bench)
		draft  string // with the cursor as |
		after  []string
		then   string
	}{
		{"typed", func(b *bench) { press(&b.t.compose, "half") }, "half|", []string{"ctrl+_"}, "|"},
		{"paste", func(b *bench) {
			press(&b.t.compose, "sée ")
			b.t.compose.paste(strings.TrimSuffix(strings.Repeat("line\n", 10), "\n"))
			press(&b.t.compose, "!", "left")
		}, "sée " + mark + "|!", []string{"backspace"}, "sée |!"},
		{"history", func(b *bench) {
			press(&b.t.compose, "half")
			b.press("up", "")
		}, "said before|", []string{"down"}, "half|"},
		{"search", func(b *bench) {
			press(&b.t.compose, "half", "left")
			b.press("ctrl+r", "")
			b.press("s", "s")
		}, "hal|f", []string{"x"}, "halx|f"},
		{"command line", func(b *bench) {
			b.t.opts.Vi = true
			viTyped(b, "half<esc>:no")
		}, "hal|f", []string{"h"}, "hal|f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 80, 24, false)
			b.t.Remember("said before")
			shows := func(want string) {
				t.Helper()
				if got := b.t.compose.text[:b.t.compose.at] + "|" + b.t.compose.text[b.t.compose.at:]; got != want {
					t.Errorf("the draft is %q, want %q", got, want)
				}
			}
			c.before(b)
			end := b.t.Ask(false)
			b.t.notes("run it? ")
			b.asked(t)
			shows("|")
			b.t.compose.paste("y\nand more")
			b.press("enter", "")
			if got := <-b.t.answer; got != "y and more" {
				t.Errorf("the answer is %q", got)
			}
			b.t.Put("")
			end()
			shows(c.draft)
			for _, k := range c.after {
				text := ""
				if len(k) == 1 {
					text = k
				}
				b.press(k, text)
			}
			shows(c.then)
			b.end()
			if got := b.vt.text(); !cmp.Equal(got, []string{"run it? y and more"}) {
				t.Errorf("the transcript is %q", got)
			}
		})
	}
}

// TestAskGrace proves that keys which are typed while a question comes up answer nothing and send nothing: they
// are the draft, until no key was pressed for a moment while the question was on the screen. Esc stops the work.
func TestAskGrace(t *testing.T) {
	b := newBench(t, 80, 24, false)
	stopped := 0
	b.t.Working(func() { stopped++ }, nil)
	b.t.Remember("yes")
	b.press("ctrl+r", "")
	b.press("y", "y")
	end := b.t.Ask(false)
	b.t.notes("run it? ")
	b.now = b.now.Add(time.Minute) // it is not shown yet
	b.press("enter", "")
	b.draw(t)
	for range 5 {
		b.now = b.now.Add(grace - 1)
		b.press("!", "!")
		b.press("enter", "")
		b.press("alt+s", "")
		b.draw(t)
	}
	if len(b.t.answer) > 0 || len(b.t.queue) > 0 || b.t.compose.text != "yes!!!!!" {
		t.Errorf("%d answers, the queue %q, the draft %q", len(b.t.answer), b.t.queue, b.t.compose.text)
	}
	if b.press("esc", ""); stopped != 1 {
		t.Errorf("the work is stopped %d times", stopped)
	}
	b.asked(t)
	if got := strings.Join(b.shown(), "\n"); !strings.Contains(got, "\n?") {
		t.Errorf("the screen:\n%s", got)
	}
	b.press("n", "n")
	b.press("enter", "")
	if got := <-b.t.answer; got != "n" {
		t.Errorf("the answer is %q", got)
	}
	end()
	if b.t.compose.text != "yes!!!!!" {
		t.Errorf("the draft is %q", b.t.compose.text)
	}
}

// TestEscTwiceAtOnce proves that two Escs that arrive together are two.
func TestEscTwiceAtOnce(t *testing.T) {
	var decoder uv.EventDecoder
	_, ev := decoder.Decode([]byte("\x1b\x1b"))
	b := newBench(t, 80, 24, false)
	b.t.opts.Back = "/back"
	b.t.event(ev)
	if len(b.t.queue) != 1 || b.t.queue[0] != "/back" {
		t.Errorf("the queue is %q", b.t.queue)
	}
	b.t.queue = nil
	stopped := 0
	b.t.Working(func() { stopped++ }, nil)
	if b.t.event(ev); stopped == 0 {
		t.Error("the work goes on")
	}
}

// TestQueue proves that prompts wait in order, that Up takes the last one back, that Esc stops
// the work and makes them the draft, and that steering reaches the work at once.
func TestQueue(t *testing.T) {
	b := newBench(t, 80, 24, false)
	stopped, said := 0, ""
	end := b.t.Working(func() { stopped++ }, func(text string) error { said = text; return nil })
	send := func(text, key string) {
		b.t.compose.set(text)
		b.press(key, "")
	}
	send("one", "enter")
	send("two", "enter")
	send("three", "enter")
	b.press("up", "")
	if b.t.compose.text != "three" || len(b.t.queue) != 2 {
		t.Errorf("the draft is %q, the queue %q", b.t.compose.text, b.t.queue)
	}
	send("now", "alt+s")
	if said != "now" {
		t.Errorf("said %q", said)
	}
	b.press("esc", "")
	if stopped != 1 || b.t.compose.text != "one\ntwo" || len(b.t.queue) != 0 {
		t.Errorf("stopped %d times, the draft is %q", stopped, b.t.compose.text)
	}
	end()
	b.press("enter", "")
	if text, err := b.t.Next(t.Context()); text != "one\ntwo" || err != nil {
		t.Errorf("next is %q, %v", text, err)
	}
	b.press("ctrl+d", "")
	if text, err := b.t.Next(t.Context()); err != io.EOF {
		t.Errorf("next is %q, %v", text, err)
	}
}

// TestSuggest proves that a prompt that the person may want to say is shown in the empty draft alone, and becomes the draft by Tab.
func TestSuggest(t *testing.T) {
	b := newBench(t, 40, 24, false)
	screen := func() string {
		b.draw(t)
		return strings.Join(b.shown(), "\n")
	}
	const shown = "Tab: run the tests"
	b.t.Suggest("run the tests")
	if got := screen(); !strings.Contains(got, "›  "+shown) {
		t.Errorf("the screen:\n%s", got)
	}
	b.press("enter", "")
	b.press("x", "x")
	if got := screen(); strings.Contains(got, shown) || len(b.t.queue) > 0 {
		t.Errorf("the queue %q, the screen:\n%s", b.t.queue, got)
	}
	b.press("backspace", "")
	end := b.t.Working(func() {}, nil)
	if got := screen(); strings.Contains(got, shown) {
		t.Errorf("while it works:\n%s", got)
	}
	end()
	b.press("tab", "")
	if got := screen(); strings.Contains(got, shown) || b.t.compose.sent() != "run the tests" || len(b.t.queue) > 0 {
		t.Errorf("the draft is %q, the queue %q", b.t.compose.sent(), b.t.queue)
	}
	b.press("ctrl+c", "")
	if got := screen(); strings.Contains(got, "run the tests") {
		t.Errorf("it comes back:\n%s", got)
	}
	b.t.Suggest("a \x1b[2J" + strings.Repeat("wide ", 20))
	if got := screen(); !strings.Contains(got, "Tab: a <U+001B>[2Jwide") {
		t.Errorf("a long one:\n%s", got)
	}
	b.t.Suggest("")
	if got := screen(); strings.Contains(got, "Tab:") {
		t.Errorf("it is taken back:\n%s", got)
	}
}

// TestQueueOfCommands proves that commands and shell lines that are queued do not become lines of a message when
// the work is stopped, or when the program ended before they were sent.
func TestQueueOfCommands(t *testing.T) {
	for _, c := range []struct {
		queue              []string
		written, want, top string // the draft before and after, and what Up shows then
	}{
		{[]string{"fix it", "/quit"}, "", "fix it", "/quit"},
		{[]string{"/cost", "hello"}, "", "hello", "/cost"},
		{[]string{"/cost"}, "", "/cost", "said"},
		{[]string{"!ls", "/cost"}, "", "", "/cost"},
		{[]string{"one", "two"}, "three", "one\ntwo\nthree", "said"},
		{[]string{"one"}, "/quit", "one", "/quit"},
		{nil, "/quit", "/quit", "said"},
	} {
		path := filepath.Join(t.TempDir(), "draft")
		b := newBench(t, 80, 24, false)
		b.t.KeepDraft(path)
		b.t.Working(func() {}, nil)
		for _, text := range c.queue {
			b.t.compose.set(text)
			b.press("enter", "")
		}
		b.t.compose.set(c.written)
		b.t.keep()
		killed := newBench(t, 80, 24, false)
		killed.t.Remember("said")
		killed.t.KeepDraft(path)
		b.press("esc", "")
		for _, one := range []*bench{b, killed} {
			if one.t.compose.text != c.want || len(one.t.queue) > 0 {
				t.Errorf("%q and %q: the draft is %q, the queue %q", c.queue, c.written, one.t.compose.text, one.t.queue)
			}
		}
		for range strings.Count(c.want, "\n") + 1 {
			killed.press("up", "")
		}
		if killed.t.compose.text != c.top {
			t.Errorf("%q and %q: Up shows %q, want %q", c.queue, c.written, killed.t.compose.text, c.top)
		}
	}
}

// TestComplete proves that Tab completes commands.
func TestComplete(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.opts.Commands = []Command{{Name: "compact"}, {Name: "copy"}, {Name: "fork", Arguments: "[NAME]", Help: "goes on in a copy"}}
	for in, want := range map[string]string{"/c": "/co", "/co": "/co", "/f": "/fork ", "/x": "/x", "f": "f"} {
		b.t.compose.set(in)
		b.press("tab", "")
		if b.t.compose.text != want {
			t.Errorf("%q became %q, want %q", in, b.t.compose.text, want)
		}
	}
	b.t.compose.set("/fo")
	if got := b.t.below(time.Time{}); got != "/fork [NAME]: goes on in a copy" {
		t.Errorf("the hint is %q", got)
	}
}

// TestSearch proves that Ctrl-R finds what was said, newest first, and that Esc gives the draft
// back.
func TestSearch(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.Remember("go test", "ls", "Go vet", "cat")
	b.t.compose.set("draft")
	for _, step := range []struct{ key, text, want string }{
		{"ctrl+r", "", "draft"}, {"g", "g", "Go vet"}, {"o", "o", "Go vet"}, {"ctrl+r", "", "go test"}, {"ctrl+r", "", "go test"},
		{"backspace", "", "Go vet"}, {"esc", "", "draft"}, {"ctrl+r", "", "draft"}, {"l", "l", "ls"}, {"left", "", "ls"}, {"x", "x", "lxs"},
	} {
		b.press(step.key, step.text)
		if b.t.compose.text != step.want {
			t.Errorf("after %s: %q, want %q", step.key, b.t.compose.text, step.want)
		}
	}
}

// TestSearchGivesBack proves that a long draft is as it was after a search, with marks and texts as the person left
// them, and that what is pasted while it goes on is in the draft.
func TestSearchGivesBack(t *testing.T) {
	for _, asks := range []bool{false, true} {
		b := newBench(t, 80, 24, false)
		b.t.Remember("go test")
		long := strings.Repeat("some words. ", foldDraft/12+1)
		b.t.compose.insert(long, false)
		b.press("ctrl+r", "")
		b.press("g", "g")
		if asks {
			end := b.t.Ask(false)
			b.asked(t)
			end()
		} else {
			b.press("esc", "")
		}
		b.press("x", "x")
		if b.t.compose.text != long+"x" {
			t.Errorf("the draft is %.100q", b.t.compose.text)
		}
		b.press("ctrl+r", "")
		b.t.event(uv.PasteEvent{Content: "pasted"})
		b.press("esc", "")
		if !strings.HasSuffix(b.t.compose.text, "xpasted") {
			t.Errorf("the draft is %.100q", b.t.compose.text)
		}
	}
}

// TestDraftAtOnce proves that the file of a draft is written when what it must hold changes: when the draft moves,
// and when it was said to the work.
func TestDraftAtOnce(t *testing.T) {
	b := newBench(t, 80, 24, false)
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	b.t.KeepDraft(one)
	b.t.compose.set("draft")
	b.t.keep()
	b.t.KeepDraft(two)
	if text, err := os.ReadFile(two); string(text) != "draft" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	b.t.Working(func() {}, func(string) error { return nil })
	b.press("alt+s", "")
	if text, err := os.ReadFile(two); !os.IsNotExist(err) {
		t.Errorf("the file still holds %q, %v", text, err)
	}
}

// TestCommandLineWaits proves that a command line of vi stays when a question comes that nobody has read.
func TestCommandLineWaits(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.opts.Vi, b.t.opts.Commands = true, []Command{{Name: "cost"}}
	viTyped(b, "<esc>:cost")
	b.t.Ask(false)
	b.press("enter", "")
	if b.t.line == nil || *b.t.line != "cost" || len(b.t.queue) > 0 {
		t.Errorf("the command line is %v, the queue %q", b.t.line, b.t.queue)
	}
}

// TestSteerPanics proves that what panics while it is said to the work leaves the terminal so that it can be given
// back.
func TestSteerPanics(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.Working(func() {}, func(string) error { panic("broken") })
	b.t.compose.set("now")
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("it panics with %v", p)
		}
	}()
	b.press("alt+s", "")
}

// TestQueueOfCommandsWhileAsked proves that queued commands are in the history also if they come back while a
// question has the keys.
func TestQueueOfCommandsWhileAsked(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.Working(func() {}, nil)
	for _, text := range []string{"!make x", "hello"} {
		b.t.compose.set(text)
		b.press("enter", "")
	}
	b.t.compose.history = nil
	end := b.t.Ask(false)
	b.asked(t)
	b.press("esc", "")
	end()
	if b.t.compose.text != "hello" || !slices.Contains(b.t.compose.history, "!make x") {
		t.Errorf("the draft is %q, the history %q", b.t.compose.text, b.t.compose.history)
	}
}

// TestKeepDraft proves that what was sent does not come back from the file of the draft when the
// file is named again, and that the draft moves to another file.
func TestKeepDraft(t *testing.T) {
	b := newBench(t, 80, 24, false)
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	b.t.KeepDraft(one)
	b.t.compose.set("hello")
	b.t.keep()
	b.press("enter", "")
	if text, err := b.t.Next(t.Context()); text != "hello" || err != nil {
		t.Fatalf("next is %q, %v", text, err)
	}
	b.t.Sent("hello")
	b.t.KeepDraft(one)
	if b.t.compose.text != "" {
		t.Errorf("the draft is %q again", b.t.compose.text)
	}
	b.t.compose.set("draft")
	b.t.KeepDraft(two)
	b.t.keep()
	if text, err := os.ReadFile(two); string(text) != "draft" || err != nil || b.t.compose.text != "draft" {
		t.Errorf("the other file holds %q, %v, and the draft is %q", text, err, b.t.compose.text)
	}
	if _, err := os.Stat(one); !os.IsNotExist(err) {
		t.Errorf("the first file is still there: %v", err)
	}
}

// TestDraftThatCannotMove proves that the file of the draft stays until another one holds the draft, and that what could not
// be written is written later.
func TestDraftThatCannotMove(t *testing.T) {
	b := newBench(t, 80, 24, false)
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "taken", "two")
	if err := os.WriteFile(filepath.Dir(two), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.t.KeepDraft(one)
	b.t.compose.set("draft")
	b.t.KeepDraft(two)
	if text, err := os.ReadFile(one); string(text) != "draft" || err != nil {
		t.Errorf("the first file holds %q, %v", text, err)
	}
	if err := os.Remove(filepath.Dir(two)); err != nil {
		t.Fatal(err)
	}
	b.t.keep()
	if text, err := os.ReadFile(two); string(text) != "draft" || err != nil {
		t.Errorf("the second file holds %q, %v", text, err)
	}
}

// TestKeepTaken proves that a prompt that was taken stays in the file of the draft, before what is
// written meanwhile, until it is kept elsewhere, and that one that was not sent is the draft again.
func TestKeepTaken(t *testing.T) {
	b := newBench(t, 80, 24, false)
	path := filepath.Join(t.TempDir(), "draft")
	b.t.KeepDraft(path)
	take := func() {
		t.Helper()
		b.t.compose.set("hello")
		b.press("enter", "")
		if text, err := b.t.Next(t.Context()); text != "hello" || err != nil {
			t.Fatalf("next is %q, %v", text, err)
		}
	}
	kept := func(want string) {
		t.Helper()
		b.t.keep()
		if text, _ := os.ReadFile(path); string(text) != want {
			t.Errorf("the file holds %q, want %q", text, want)
		}
	}
	take()
	kept("hello")
	b.t.compose.set("next")
	kept("hello" + promptEnd + "next")
	b.t.Sent("hello")
	kept("next")
	b.t.compose.set("")
	take()
	b.t.Sent("another")
	kept("hello")
	b.t.compose.set("next")
	b.t.Unsent("hello")
	if kept("hello\nnext"); b.t.compose.text != "hello\nnext" {
		t.Errorf("the draft is %q", b.t.compose.text)
	}
}

// TestEditorBeside proves that the program goes on while the editor has the terminal: what it writes
// waits, an interrupt means the editor, and what comes into the draft or asks a question meanwhile stays.
func TestEditorBeside(t *testing.T) {
	for _, c := range []struct {
		name            string
		meanwhile       func(b *bench) (end func())
		composed, draft string
	}{
		{"nothing", func(*bench) func() { return nil }, "edited", "edited"},
		{"text", func(b *bench) func() { _, _ = io.WriteString(b.t.Text(), "reply\n"); return nil }, "edited", "edited"},
		{"put", func(b *bench) func() { b.t.Put("unsent"); return nil }, "unsent\nedited", "unsent\nedited"},
		{"question", func(b *bench) func() { return b.t.Ask(false) }, "edited", "edited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 80, 24, false)
			b.t.compose.set("draft")
			var end func()
			judged := false
			drop := func() { judged = Editing() }
			DropInterrupts.Store(&drop)
			defer DropInterrupts.Store(nil)
			b.t.mu.Lock()
			before := b.t.compose.sent()
			err := b.t.besideEditor(func() error {
				if !Editing() {
					t.Error("an interrupt would not mean the editor")
				}
				end = c.meanwhile(b)
				return nil
			})
			b.t.edited(before, "edited")
			b.t.mu.Unlock()
			if !judged {
				t.Error("interrupts that have come are not judged before the editor counts as ended")
			}
			if got := b.t.compose.text; err != nil || got != c.composed {
				t.Errorf("%v, the line is %q", err, got)
			}
			if end != nil {
				end()
			}
			if got := b.t.compose.text; got != c.draft {
				t.Errorf("the draft is %q", got)
			}
		})
	}
}

// TestModes: Shift+Tab goes through the modes, also while a question is asked, keeps the draft, and
// the status line shows all but the first.
func TestModes(t *testing.T) {
	b := newBench(t, 60, 24, false)
	b.t.opts.Modes = []string{"ask", "edits", "plan"}
	b.t.SetStatus("status")
	b.press("a", "a")
	for _, want := range []string{"edits", "plan", "ask"} {
		b.press("shift+tab", "")
		if got := b.t.Mode(); got != want || b.t.compose.text != "a" || !strings.Contains(b.t.below(time.Time{}), want) {
			t.Errorf("%q, want %q; below %q, draft %q", got, want, b.t.below(time.Time{}), b.t.compose.text)
		}
	}
	b.press("left", "")
	if got := b.t.below(time.Time{}); got != "status" {
		t.Errorf("the usual mode: %q", got)
	}
	end := b.t.Ask(false)
	b.asked(t)
	b.press("shift+tab", "")
	end()
	b.press("left", "")
	if got := b.t.below(time.Time{}); got != "mode edits · status" {
		t.Errorf("%q", got)
	}
	b.t.SetMode("nonsense")
	if got := b.t.Mode(); got != "edits" {
		t.Errorf("%q", got)
	}
	b.draw(t)
	none := newBench(t, 60, 24, false)
	none.press("shift+tab", "")
	if none.t.Mode() != "" {
		t.Error("a mode of none")
	}
}

// TestModesElsewhere proves that Shift+Tab says so where the mode has no effect, and that it is not shown there.
func TestModesElsewhere(t *testing.T) {
	b := newBench(t, 60, 24, false)
	b.t.opts.Modes = []string{"ask", "plan"}
	b.t.SetMode("plan")
	b.t.ModeApplies(false)
	if got := b.t.below(time.Time{}); strings.Contains(got, "plan") {
		t.Errorf("below the draft: %q", got)
	}
	b.press("shift+tab", "")
	if got := b.t.below(time.Time{}); b.t.Mode() != "plan" || got != "what is asked about is chosen where this runs" {
		t.Errorf("the mode is %s, and below the draft: %q", b.t.Mode(), got)
	}
}

// TestEscCloses proves that Esc closes a list below the draft before it stops the work, and answers a
// question about nothing that works with an empty line.
func TestEscCloses(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.opts.Commands = []Command{{Name: "compact"}, {Name: "copy"}}
	b.t.opts.Files = func(string) []string { return []string{"a", "b"} }
	b.t.Complete(func(command, _ string) []string { return map[string][]string{"@": {"b", "work"}}[command] })
	stopped := 0
	end := b.t.Working(func() { stopped++ }, nil)
	for draft, list := range map[string]string{"/co": "/compact /copy", "see @": "a b work"} {
		stopped = 0
		b.t.compose.set(draft)
		b.press("tab", "")
		if got := b.t.below(time.Time{}); got != list {
			t.Errorf("%s: below it is %q", draft, got)
		}
		b.press("esc", "")
		if got := b.t.below(time.Time{}); stopped != 0 || strings.Contains(got, list) || b.t.compose.text != draft {
			t.Errorf("%s: stopped %d times, the draft is %q, below it %q", draft, stopped, b.t.compose.text, got)
		}
		b.press("esc", "")
		if stopped != 1 {
			t.Errorf("%s: Esc again does not stop the work", draft)
		}
	}
	end()
	b.t.compose.set("draft")
	end = b.t.Ask(false)
	b.press("esc", "")
	b.asked(t)
	b.press("7", "7")
	b.press("esc", "")
	select {
	case got := <-b.t.answer:
		if got != "" {
			t.Errorf("Esc answers %q", got)
		}
	default:
		t.Error("Esc answers nothing")
	}
	if end(); b.t.compose.text != "draft" {
		t.Errorf("the draft is %q", b.t.compose.text)
	}
}

// TestCompleteArgument proves that Tab completes the argument of a command, and lists the choices.
func TestCompleteArgument(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.Complete(func(command, begin string) (found []string) {
		for _, one := range []string{"dark", "light", "lightest"} {
			if command == "theme" && strings.HasPrefix(one, begin) {
				found = append(found, one)
			}
		}
		return found
	})
	for in, want := range map[string][2]string{
		"/theme d": {"/theme dark", ""}, "/theme l": {"/theme light", "light lightest"}, "/theme ": {"/theme ", "dark light lightest"},
		"/theme x": {"/theme x", ""}, "/other d": {"/other d", ""}, "theme d": {"theme d", ""},
	} {
		b.t.compose.set(in)
		b.press("tab", "")
		if b.t.compose.text != want[0] || b.t.hint != want[1] {
			t.Errorf("%q became %q with the hint %q, want %q", in, b.t.compose.text, b.t.hint, want)
		}
	}
}

// TestStill proves that with reduced motion a reply appears by whole lines, and times pass in steps of
// ten seconds.
func TestStill(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.opts.Still = true
	end := b.t.Working(func() {}, nil)
	b.t.Wait("k", "the model")
	_, _ = b.t.Text().Write([]byte("whole\nhalf"))
	began := b.t.waits[0].began
	for after, want := range map[time.Duration]string{0: "0s", 9 * time.Second: "0s", 19 * time.Second: "10s", 2 * time.Minute: "2m0s"} {
		rows := strings.Join(b.t.live(80, 24, began.Add(after)).rows, "\n")
		if !strings.Contains(rows, "· the model, "+want) || strings.Contains(rows, "half") {
			t.Errorf("after %s:\n%s", after, rows)
		}
	}
	end()
	b.end()
	if got := b.vt.text(); !cmp.Equal(got, []string{"whole", "half"}) {
		t.Errorf("the transcript is %q", got)
	}
}

// TestAllKeys proves that a terminal which can tell all keys apart does so while the program has it,
// on both of its screens, and not before it said so.
func TestAllKeys(t *testing.T) {
	b := newBench(t, 80, 24, false)
	var raw strings.Builder
	b.t.screen.out = &raw
	b.draw(t)
	if strings.Contains(raw.String(), keysOn) {
		t.Error("it is switched on unasked")
	}
	b.t.event(uv.KeyboardEnhancementsEvent{})
	b.t.event(uv.KeyboardEnhancementsEvent{})
	if got := strings.Count(string(b.t.raw), keysOn); got != 1 {
		t.Errorf("it is switched on %d times", got)
	}
	b.t.wantFull = true
	_ = b.t.switchFull(80, 24)
	b.t.wantFull = false
	_ = b.t.switchFull(80, 24)
	if text := raw.String(); strings.Count(text, keysOn) != 1 || strings.Count(text, keysOff) != 1 || strings.Index(text, keysOff) < strings.Index(text, keysOn) {
		t.Errorf("the other screen: %q", text)
	}
	for _, k := range []struct {
		key  uv.KeyPressEvent
		want string
	}{
		{uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModShift}, "one\n|"},
		{uv.KeyPressEvent{Code: '-', Mod: uv.ModCtrl | uv.ModShift}, "one|"},
		{uv.KeyPressEvent{Code: '-', Mod: uv.ModAlt | uv.ModShift}, "one\n|"},
		{uv.KeyPressEvent{Code: 'с', BaseCode: 'c', Mod: uv.ModCtrl}, "|"}, // Russian
		{uv.KeyPressEvent{Code: 'u', BaseCode: 'f', Mod: uv.ModCtrl}, "|"}, // Dvorak
		{uv.KeyPressEvent{Code: 'я', BaseCode: 'z', Text: "я"}, "oneя|"},
		{uv.KeyPressEvent{Code: 'm', Mod: uv.ModCtrl}, "|"},
	} {
		if b.t.compose.text == "" {
			b.t.compose.insert("one", false)
		}
		b.t.event(k.key)
		if got := b.t.compose.text + "|"; got != k.want {
			t.Errorf("after %s: %q, want %q", uv.Key(k.key).Keystroke(), got, k.want)
		}
	}
	if len(b.t.queue) != 1 {
		t.Errorf("Ctrl-M sent %q", b.t.queue)
	}
	b.t.opts.Commands = []Command{{Name: "cost"}}
	b.t.compose.set("/c")
	b.t.event(uv.KeyPressEvent{Code: 'i', Mod: uv.ModCtrl})
	if b.t.compose.text != "/cost " {
		t.Errorf("Ctrl-I completes %q", b.t.compose.text)
	}
	b.t.compose.set("")
	b.t.event(uv.KeyPressEvent{Code: '[', Mod: uv.ModCtrl})
	if b.t.opts.Back = "/back"; b.t.last.escaped {
		t.Error("Ctrl-[ without a way back")
	}
	b.t.event(uv.KeyPressEvent{Code: '[', Mod: uv.ModCtrl})
	if !b.t.last.escaped {
		t.Error("Ctrl-[ is not Esc")
	}
}

// TestPasteClipboard proves that Ctrl+V inserts what the clipboard holds, and says what is wrong with
// it, without waiting for it.
func TestPasteClipboard(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.jobs = make(chan func())
	held, problem := "text", error(nil)
	b.t.Pasting(func() (string, error) { return held, problem })
	b.press("ctrl+v", "")
	b.press("a", "a")
	(<-b.t.jobs)()
	if b.t.compose.text != "atext" || b.t.hint != "" {
		t.Errorf("the draft is %q, the hint %q", b.t.compose.text, b.t.hint)
	}
	problem = io.ErrUnexpectedEOF
	b.press("ctrl+v", "")
	(<-b.t.jobs)()
	if b.t.compose.text != "atext" || b.t.hint != problem.Error() {
		t.Errorf("the draft is %q, the hint %q", b.t.compose.text, b.t.hint)
	}
}

// TestCommandAtQuestion proves that a command is no answer: /fullscreen is done at once, /quit leaves, and others wait
// until the question is answered. Where any text may be the answer, other commands are text.
func TestCommandAtQuestion(t *testing.T) {
	for _, tt := range []struct {
		typed  string
		words  bool
		answer string
		queue  string
		full   bool
		leaves bool
	}{
		{typed: "/cost", queue: "/cost"},
		{typed: "/model x", queue: "/model x"},
		{typed: "/model x", words: true, answer: "/model x"},
		{typed: "/nosuch", answer: "/nosuch"},
		{typed: "! make", queue: "! make"},
		{typed: "! make", words: true, answer: "! make"},
		{typed: "/fullscreen", full: true},
		{typed: "/fullscreen", words: true, full: true},
		{typed: "/quit", leaves: true},
		{typed: "/quit ", words: true, leaves: true},
		{typed: "y", answer: "y"},
	} {
		b := newBench(t, 80, 24, false)
		b.t.opts.Commands = []Command{{Name: "cost"}, {Name: "model"}, {Name: "quit"}, {Name: "fullscreen"}}
		end := b.t.Ask(tt.words)
		b.asked(t)
		press(&b.t.compose, tt.typed)
		b.press("enter", "")
		answer := ""
		if len(b.t.answer) > 0 {
			answer = <-b.t.answer
		}
		if queue := strings.Join(b.t.queue, "|"); answer != tt.answer || queue != tt.queue || b.t.wantFull != tt.full || b.t.leaving != tt.leaves || b.t.compose.text != "" {
			t.Errorf("%+v: the answer is %q, the queue %q, full screen %v, leaving %v, the draft %q", tt, answer, queue, b.t.wantFull, b.t.leaving, b.t.compose.text)
		}
		end()
	}
}

// TestHowToLeave proves that Ctrl-C, which stops the work in other programs, says what does so here.
func TestHowToLeave(t *testing.T) {
	b := newBench(t, 80, 24, false)
	end := b.t.Working(func() {}, nil)
	if b.press("ctrl+c", ""); !strings.HasPrefix(b.t.hint, "Esc stops the work; ") {
		t.Errorf("while it works: %q", b.t.hint)
	}
	end()
	b.press("x", "x")
	b.press("ctrl+c", "")
	if b.press("ctrl+c", ""); !strings.HasPrefix(b.t.hint, "Ctrl-C again leaves; ") {
		t.Errorf("while nothing works: %q", b.t.hint)
	}
}
