// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// viTyped types keys: <esc>, <enter> and <ctrl+r> are keys, all others are characters.
func viTyped(b *bench, keys string) {
	for keys != "" {
		name, text := "", ""
		if rest, ok := strings.CutPrefix(keys, "<"); ok && strings.Contains(rest, ">") && rest[0] >= 'a' && rest[0] <= 'z' {
			name, keys, _ = strings.Cut(rest, ">")
		} else {
			text, _ = cluster(keys)
			name, keys = text, keys[len(text):]
		}
		b.press(name, text)
	}
}

// The brackets of a paste's mark are none.
func TestViMarks(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("line\n", 10), "\n")
	for keys, want := range map[string]string{
		"0di[": "(x) " + long, "0ca[": "(x) " + long, "$di[": "(x) " + long, "0d%": " " + long, "$d%": "(x) " + long, "$hhda[": "(x) " + long,
	} {
		b := newBench(t, 80, 24, false)
		b.t.opts.Vi = true
		viTyped(b, "(x) ")
		b.t.compose.paste(long)
		viTyped(b, "<esc>"+keys)
		if got := b.t.compose.sent(); got != want {
			t.Errorf("%s: %q is sent, want %q", keys, got, want)
		}
	}
	b := newBench(t, 80, 24, false)
	b.t.opts.Vi = true
	viTyped(b, "a[b")
	b.t.compose.paste(long)
	viTyped(b, "c]d<esc>hdi[")
	if got := b.t.compose.text; got != "a[]d" {
		t.Errorf("the draft is %q", got)
	}
}

// TestVi pins what the keys of vi do to a draft. | is the cursor, of the draft before and after.
func TestVi(t *testing.T) {
	for _, tt := range []struct{ before, keys, want string }{
		{"one t|wo", "x", "one t|o"},
		{"one |two", "2x", "one |o"},
		{"one tw|o", "X", "one t|o"},
		{"|one two", "w", "one |two"},
		{"one.t|wo", "b", "one.|two"},
		{"one.t|wo", "B", "|one.two"},
		{"|one two", "e", "on|e two"},
		{"|one two three", "2w", "one two |three"},
		{"  one| two", "0", "|  one two"},
		{"  one| two", "^", "  |one two"},
		{"o|ne two", "$", "one tw|o"},
		{"one\ntwo\nth|ree", "gg", "|one\ntwo\nthree"},
		{"|one\ntwo\nthree", "G", "one\ntwo\n|three"},
		{"|one\ntwo\nthree", "2G", "one\n|two\nthree"},
		{"|one, two, three", "f,", "one|, two, three"},
		{"|one, two, three", "f,;", "one, two|, three"},
		{"|one, two, three", "f,;,", "one|, two, three"},
		{"|one, two", "t,", "on|e, two"},
		{"|one, two, three", "t,;", "one, tw|o, three"},
		{"|one, two, three", "t,;,", "one,| two, three"},
		{"one, two, thre|e", "T,;", "one,| two, three"},
		{"|one, two", "t,;", "on|e, two"},
		{"one, tw|o", "F,", "one|, two"},
		{"one, tw|o", "T,", "one,| two"},
		{"f|(a (b) c)", "%", "f(a (b) c|)"},
		{"f(a (b) c|)", "%", "f|(a (b) c)"},
		{"|a\n\nb\n\nc", "}", "a\n|\nb\n\nc"},
		{"a\n\nb\n\n|c", "{", "a\n\nb\n|\nc"},
		{"one |two three", "dw", "one |three"},
		{"one |two three", "de", "one | three"},
		{"one |two three", "d$", "one| "},
		{"one |two three", "D", "one| "},
		{"one |two three", "d2w", "one| "},
		{"|one two three", "2dw", "|three"},
		{"one |two three", "db", "|two three"},
		{"one two| three", "dF ", "one| three"},
		{"|one, two", "df,", "| two"},
		{"|one, two", "dt,", "|, two"},
		{"one\nt|wo\nthree", "dd", "one\n|three"},
		{"one\nt|wo\nthree", "2dd", "|one"},
		{"one\nt|wo\nthree", "dj", "|one"},
		{"one\nt|wo\nthree", "dk", "|three"},
		{"one\nt|wo", "dG", "|one"},
		{"one t|wo three", "ciwX<esc>", "one |X three"},
		{"one t|wo three", "daw", "one |three"},
		{"one tw|o", "daw", "on|e"},
		{`say "a |b" now`, `ci"x<esc>`, `say "|x" now`},
		{`say "a |b" now`, `da"`, `say | now`},
		{"f(a, (b|), c)", "di(", "f(a, (|), c)"},
		{"f(a|, (b), c)", "da(", "|f"},
		{"f(a|, (b), c)", "dib", "f(|)"},
		{"a[b{c|}]", "diB", "a[b{|}]"},
		{"one\ntwo\n\nth|ree\nfour", "dip", "one\ntwo\n|"},
		{"|one two", "cwX<esc>", "|X two"},
		{"one|two", "SX<esc>", "|X"}, {"one |two", "SX y z<esc>u", "one |two"}, {"one |two", "cwX y<esc>u", "one |two"},
		{"|one two six", "cwX y<esc>w.u", "X y |two six"}, {"|a", "iX <esc>aY <esc>u", "X |a"},
		{"one |two", "ccX<esc>", "|X"},
		{"one |two", "CX<esc>", "one |X"},
		{"one |two", "sX<esc>", "one |Xwo"},
		{"one |two", "rX", "one |Xwo"},
		{"|one two", "ywP", "one| one two"},
		{"one|\ntwo", "yyp", "one\n|one\ntwo"},
		{"one\nt|wo", "YP", "one\n|two\ntwo"},
		{"|one two", `"aywwx"aP`, "one one| wo"},
		{"|one two three", "dw.", "|three"},
		{"|one two", "cwX<esc>w.", "X |X"},
		{"|one", "x<esc>u", "|one"},
		{"|one", "xu<ctrl+r>", "|ne"},
		{"one |two three", "vlld", "one | three"},
		{"one |two three", "vey$p", "one two threetw|o"},
		{"one\nt|wo\nthree", "Vd", "one\n|three"},
		{"one |two", "viwcX<esc>", "one |X"},
		{"|one two three", "vld.", "|two three"},
		{"|one two three", "veyw.", "one |two three"},
		{"|one two", "vlcX<esc>w.", "Xe |Xo"},
		{"|a\nb\nc\nd\ne", "Vjd.", "|e"},
		{"|one\ntwo", "V>j.", "  one\n  |two"},
		{"|one\ntwo", "Vj>", "  |one\n  two"},
		{"  |one", "<<", "|one"},
		{"one\n|two", ">>", "one\n  |two"},
		{"|one", "oX<esc>", "one\n|X"},
		{"|one", "OX<esc>", "|X\none"},
		{"on|e", "IX<esc>", "|Xone"},
		{"|one", "AX<esc>", "one|X"},
		{"|one", "aX<esc>", "o|Xne"},
		{"|one", "d<esc>x", "|ne"},
		{"|one", "z", "|one"},
		{"|e\u0301te\u0301", "xx", "|e\u0301"},
		{"|", "xdwddp.%", "\n\n|"},
	} {
		b := newBench(t, 80, 24, false)
		b.t.opts.Vi = true
		at := strings.IndexByte(tt.before, '|')
		b.t.compose.text, b.t.compose.at = tt.before[:at]+tt.before[at+1:], at
		b.t.vi.mode = viNormal
		viTyped(b, tt.keys)
		if got := b.t.compose.text[:b.t.compose.at] + "|" + b.t.compose.text[b.t.compose.at:]; got != tt.want {
			t.Errorf("%q, %s: %q, want %q", tt.before, tt.keys, got, tt.want)
		}
	}
}

// TestViRobust proves that no keys of vi break a draft, wherever they are typed.
func TestViRobust(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t, 80, 24, false)
		b.t.opts.Vi = true
		draft := rapid.StringOf(rapid.SampledFrom([]rune("ab .\n(){}\"'e\u0301世\U0001f468\u200d"))).Draw(r, "draft")
		b.t.compose.set(draft)
		b.t.compose.at = len(b.t.compose.text)
		b.t.vi.mode = viNormal
		for _, key := range rapid.SliceOfN(rapid.SampledFrom(strings.Fields("h j k l w b e 0 ^ $ g G f F t T ; , % { } i a I A o O x X r s d y c p P . u v V \" > < 2 3 ( ) ' esc ctrl+r W B E ~ ctrl+c ctrl+u ctrl+k ctrl+w ctrl+y alt+d delete alt+s")), 0, 40).Draw(r, "keys") {
			text := key
			if len(key) > 1 {
				text = ""
			}
			b.press(key, text)
			if b.t.compose.text == "" { // sent or cleared
				b.t.compose.set(draft)
			}
			c := &b.t.compose
			if c.at < 0 || c.at > len(c.text) {
				r.Fatalf("after %s the cursor is at %d of %q", key, c.at, c.text)
			}
			if strings.ToValidUTF8(c.text, "?") != c.text {
				r.Fatalf("after %s the draft is %q", key, c.text)
			}
			c.rows("› ", 20, 5)
		}
	})
}

// TestViSelectionGone proves that a selection ends when something else changes the draft, whether it
// becomes shorter, empty or another one.
func TestViSelectionGone(t *testing.T) {
	for _, keys := range []string{"<ctrl+c>", "<ctrl+u>", "<alt+s>", "<ctrl+w>"} {
		for _, selects := range []string{"v", "V"} {
			b := newBench(t, 80, 24, false)
			b.t.opts.Vi = true
			viTyped(b, "hello world<esc>"+selects+keys)
			if got := b.t.below(time.Time{}); !strings.HasPrefix(got, "NORMAL") {
				t.Errorf("after %s%s the status is %q", selects, keys, got)
			}
			viTyped(b, "dd>>ix<esc>")
			if got := b.t.compose.text; got != "x" {
				t.Errorf("after %s%s the draft is %q", selects, keys, got)
			}
		}
	}
}

// TestViModes proves that Esc leaves the mode that inserts, and once more does what it does without
// vi; that the mode is shown; and that the command line sends, leaves and runs commands.
func TestViModes(t *testing.T) {
	b := newBench(t, 80, 24, false)
	b.t.opts.Vi, b.t.opts.Back = true, "/back"
	b.t.opts.Commands = []Command{{Name: "cost"}, {Name: "compact"}}
	stopped := 0
	viTyped(b, "hello<esc>")
	if got := b.t.below(time.Time{}); !strings.HasPrefix(got, "NORMAL") {
		t.Errorf("the status is %q", got)
	}
	viTyped(b, "<enter>")
	if len(b.t.queue) != 1 || b.t.queue[0] != "hello" || b.t.vi.mode != viInsert {
		t.Errorf("sent %q, in mode %d", b.t.queue, b.t.vi.mode)
	}
	end := b.t.Working(func() { stopped++ }, nil)
	viTyped(b, "wait<esc>")
	if stopped != 0 {
		t.Error("the first Esc stops the work")
	}
	viTyped(b, "<esc>")
	if stopped != 1 {
		t.Error("the second Esc does not stop the work")
	}
	end()
	b.t.queue = nil
	b.t.compose.clear()
	viTyped(b, ":cost 1<enter>:nosuch<enter>")
	if len(b.t.queue) != 1 || b.t.queue[0] != "/cost 1" || b.t.hint != "there is no command :nosuch" {
		t.Errorf("the queue is %q, the hint %q", b.t.queue, b.t.hint)
	}
	viTyped(b, "idraft<esc>")
	b.t.opts.Commands = append(b.t.opts.Commands, Command{Name: "fullscreen"}, Command{Name: "steer"}, Command{Name: "detach"})
	b.t.opts.Now = []string{"/detach"}
	b.t.queue = b.t.queue[:1]
	var said []string
	end = b.t.Working(func() {}, func(text string) error { said = append(said, text); return nil })
	viTyped(b, ":fullscreen<enter>:steer go on<enter>:detach<enter>")
	if len(b.t.queue) != 1 || !b.t.wantFull || strings.Join(said, "|") != "go on|/detach" || b.t.compose.text != "draft" {
		t.Errorf("full screen %v, said %q, the queue is %q, the draft %q", b.t.wantFull, said, b.t.queue, b.t.compose.text)
	}
	end()
	b.t.compose.set("")
	b.press("up", "")
	if b.t.compose.text != "/cost 1" || len(b.t.queue) > 0 {
		t.Errorf("Up takes back %q of %q", b.t.compose.text, b.t.queue)
	}
	b.t.compose.set("draft")
	viTyped(b, ":w<enter>")
	if got := b.t.queue[len(b.t.queue)-1]; got != "draft" {
		t.Errorf("sent %q", got)
	}
	viTyped(b, "<esc>:q<enter>")
	if !b.t.leaving {
		t.Error(":q does not leave")
	}
}
