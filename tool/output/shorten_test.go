// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var allModes = []Mode{"", Head, Tail, HeadTail, Sample}

var markPattern = regexp.MustCompile(`\[(\d+)(?: of (\d+))? bytes left out here(?: \(lines (\d+) to (\d+)(?: of (\d+))?\))?` +
	`(?:\. To read them, call read_output with id ([0-9A-Za-z_-]+) and offset (\d+)|, offset (\d+)|\. They were not kept; to see them, call the tool for less at a time)?\]`)

// fatal is what a test and a property have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkCut reads a text that was cut, by its marks alone, and holds it against
// the original: what stays stands in its place, each mark says how much is gone
// and where. It wants the text stored as id.
func checkCut(t fatal, original, cut, id string) (gone int) {
	t.Helper()
	num := func(s string) int { n, _ := strconv.Atoi(s); return n }
	pos, rest := 0, cut
	for i := 0; ; i++ {
		m := markPattern.FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return rest[m[2*n]:m[2*n+1]]
		}
		offset := num(group(7) + group(8))
		if i == 0 && (group(6) != id || num(group(2)) != len(original)) {
			t.Fatalf("the first mark %q does not say how to read the rest of %d bytes from %q", group(0), len(original), id)
		}
		before := rest[:m[0]]
		if before != original[pos:offset] && before != original[pos:offset]+"\n" {
			t.Fatalf("before the mark at %d stands %q, want %q", offset, before, original[pos:offset])
		}
		pos = offset + num(group(1))
		gone += num(group(1))
		from, to := 1+strings.Count(original[:offset], "\n"), 1+strings.Count(original[:pos-1], "\n")
		if num(group(3)) != from || num(group(4)) != to {
			t.Fatalf("mark %q: want lines %d to %d", group(0), from, to)
		}
		rest = rest[m[1]:]
		if pos < len(original) {
			if !strings.HasPrefix(rest, "\n") {
				t.Fatalf("the mark does not end its line: %q", rest)
			}
			rest = rest[1:]
		}
	}
	if rest != original[pos:] {
		t.Fatalf("after the last mark stands %q, want %q", rest, original[pos:])
	}
	return gone
}

// someText draws a text with lines of every length, all kinds of line ends and
// of characters, and nothing that looks like a mark.
func someText() *rapid.Generator[string] {
	chunk := rapid.OneOf(
		rapid.StringN(0, 30, -1),
		rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\r", "é", "😀", "日本語", "\u2028", " ", strings.Repeat("x", 300), strings.Repeat("ü", 200), strings.Repeat("line\n", 50), "\n\n\n", "error:\n"}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(chunk, 0, 60).Draw(t, "chunks"), "")
		s = strings.Repeat(s, rapid.IntRange(1, 4).Draw(t, "times"))
		s, _ = Sanitize(strings.ReplaceAll(s, "[", "("))
		return s
	})
}

// T6: whatever the text, the mode and the limit: valid, within the limit or as
// small as it gets, never nothing, the marks tell the truth, and the same again.
func TestCutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := someText().Draw(t, "text")
		p := piece{text: stringBody(text), mode: rapid.SampledFrom(allModes).Draw(t, "mode"), stored: "id1"}
		limit := rapid.IntRange(0, 3000).Draw(t, "limit")
		got, gone := p.shorten(limit)
		if !utf8.ValidString(got) {
			t.Fatalf("not valid: %q", got)
		}
		if len(got) > max(limit, p.smallest()) {
			t.Fatalf("%d bytes, limit %d, smallest %d", len(got), limit, p.smallest())
		}
		if len(text) <= limit && got != text {
			t.Fatalf("cut without need: %q", got)
		}
		if marked := checkCut(t, text, got, "id1"); marked != gone {
			t.Fatalf("the marks say %d, the cut %d", marked, gone)
		}
		if text != "" && gone >= len(text) {
			t.Fatalf("nothing is left of %q", text)
		}
		if again, _ := p.shorten(limit); again != got {
			t.Fatalf("another result: %q", again)
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("a\nb\nc\n", 10, 0)
	f.Add(strings.Repeat("0123456789\r\n", 300), 700, 4)
	f.Add(strings.Repeat("日本", 900), 512, 3)
	f.Fuzz(func(t *testing.T, text string, limit, mode int) {
		text, _ = Sanitize(strings.ReplaceAll(text, "[", "("))
		limit = min(max(limit, 0), 1<<20)
		p := piece{text: stringBody(text), mode: allModes[uint(mode)%uint(len(allModes))], stored: "id1"}
		got, gone := p.shorten(limit)
		if !utf8.ValidString(got) || len(got) > max(limit, p.smallest()) {
			t.Fatalf("%d bytes of limit %d: %q", len(got), limit, got)
		}
		if checkCut(t, text, got, "id1") != gone || text != "" && gone >= len(text) {
			t.Fatalf("%d bytes are gone from %q: %q", gone, text, got)
		}
	})
}

// T6: what each mode keeps.
func TestCutModes(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "line %03d\n", i+1)
	}
	text := b.String()
	for mode, want := range map[Mode]struct{ has, hasNot []string }{
		Head:     {[]string{"line 001\n", "line 020\n"}, []string{"line 400", "line 200"}},
		Tail:     {[]string{"line 400\n", "line 380\n"}, []string{"line 001", "line 200"}},
		HeadTail: {[]string{"line 001\n", "line 400\n"}, []string{"line 200"}},
		Sample:   {[]string{"line 001\n", "line 400\n", "line 2", "line 1", "line 3"}, []string{"line 050\n"}},
	} {
		p := piece{text: stringBody(text), mode: mode, stored: "id1"}
		got, _ := p.shorten(1024)
		checkCut(t, text, got, "id1")
		for _, s := range want.has {
			if !strings.Contains(got, s) {
				t.Errorf("%s: %q is missing in\n%s", mode, s, got)
			}
		}
		for _, s := range want.hasNot {
			if strings.Contains(got, s) {
				t.Errorf("%s: %q is there in\n%s", mode, s, got)
			}
		}
		for line := range strings.Lines(got) {
			if len(line) != len("line 001\n") && line[0] != '[' {
				t.Errorf("%s: a line was cut: %q", mode, line)
			}
		}
		if len(got) < 800 {
			t.Errorf("%s: %d bytes of 1024 are used", mode, len(got))
		}
	}
}

// T6: the exact marks.
func TestMarks(t *testing.T) {
	text := strings.Repeat("123456789\n", 100)
	p := piece{text: stringBody(text), mode: Head, stored: "3f9a"}
	got, _ := p.shorten(180)
	if want := text[:50] + "[950 of 1000 bytes left out here (lines 6 to 100 of 100). To read them, call read_output with id 3f9a and offset 50]"; got != want {
		t.Errorf("%q", got)
	}
	p = piece{text: stringBody(strings.Repeat("x", 1000)), mode: HeadTail}
	got, _ = p.shorten(300)
	if !strings.Contains(got, "x\n[") || !strings.Contains(got, " bytes left out here (lines 1 to 1 of 1). They were not kept; to see them, call the tool for less at a time]\nx") {
		t.Errorf("%q", got)
	}
}

// T7: shares keep within the budget but for the floor, do not depend on the
// order, and leave nothing that somebody still wants.
func TestShareProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 100000)), 0, 12).Draw(t, "sizes")
		budget, floor := rapid.IntRange(0, 50000).Draw(t, "budget"), rapid.IntRange(0, 500).Draw(t, "floor")
		shares := share(budget, floor, sizes)
		sum, wanted, least, level := 0, 0, 0, 0
		for i, s := range shares {
			if s > sizes[i] || s < min(sizes[i], floor) {
				t.Fatalf("%d of %d, floor %d", s, sizes[i], floor)
			}
			if sizes[i] <= budget/len(sizes) && s != sizes[i] {
				t.Fatalf("%d wants no more than its part and gets %d", sizes[i], s)
			}
			sum, wanted, least, level = sum+s, wanted+sizes[i], least+min(sizes[i], floor), max(level, s)
		}
		if sum > max(budget, least) {
			t.Fatalf("%v is more than %d", shares, budget)
		}
		if left := budget - sum; left >= len(sizes) && left > 0 && sum < wanted {
			t.Fatalf("%d of %d are left over, and %v of %v are given", left, budget, shares, sizes)
		}
		for i, s := range shares {
			if s < sizes[i] && s < level {
				t.Fatalf("%v of %v: somebody who is cut gets less than another", shares, sizes)
			}
		}
		order := rapid.Permutation(indices(len(sizes))).Draw(t, "order")
		mixed := make([]int, len(sizes))
		for i, j := range order {
			mixed[i] = sizes[j]
		}
		for i, s := range share(budget, floor, mixed) {
			if s != shares[order[i]] {
				t.Fatalf("in another order %d gets %d instead of %d", mixed[i], s, shares[order[i]])
			}
		}
	})
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func TestParseLimit(t *testing.T) {
	for s, want := range map[string]Limit{
		"8000":              {Tokens: 8000},
		" 8000 tokens tail": {Tokens: 8000, Mode: Tail},
		"65536 bytes":       {Bytes: 65536},
		"1024 bytes sample": {Bytes: 1024, Mode: Sample},
		"256 head+tail":     {Tokens: 256, Mode: HeadTail},
	} {
		if got, err := ParseLimit(s); err != nil || got != want {
			t.Errorf("%q: %+v %v", s, got, err)
		}
	}
	for _, s := range []string{"", "x", "-1", "0", "5", "8000 bits", "8000 bytes tail x", "100 bytes", "8000 head tail"} {
		if got, err := ParseLimit(s); err == nil || got != (Limit{}) {
			t.Errorf("%q: %+v %v", s, got, err)
		}
	}
	for _, l := range []Limit{{Bytes: -1}, {Tokens: -1}, {Bytes: 1}, {Mode: "middle"}} {
		if l.Check() == nil {
			t.Errorf("%+v: no error", l)
		}
	}
}
