// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/tool"
)

var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestDiffExact proves for any patch and width that the rows, without their styles, marks and
// carets, are exactly the patch, that they fit, and that carets stand alone in their row.
func TestDiffExact(t *testing.T) {
	pieces := []string{"a", "word ", " ", "(", "日本 ", "e\u0301", "👩‍👩‍👧", "שלום ", "\t", "-", "+", "\x1b[2J", "\u202e", strings.Repeat("long ", 30), strings.Repeat("字", 60)}
	line := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6), func(p []string) string { return strings.Join(p, "") })
	rapid.Check(t, func(r *rapid.T) {
		lines := []string{"*** Begin Patch", "*** Update File: a"}
		for range rapid.IntRange(0, 12).Draw(r, "lines") {
			lines = append(lines, rapid.SampledFrom([]string{"-", "+", " ", "@@ "}).Draw(r, "sign")+line.Draw(r, "line"))
		}
		width := rapid.IntRange(20, 100).Draw(r, "width")
		s := Shown{}
		s.Text(strings.Join(lines, "\n"))
		for _, as := range []Look{Unmarked, Underlined, Coloured} {
			var got []string
			for _, row := range s.Rows(width, as) {
				if as != Coloured && strings.Contains(row, "\x1b") {
					r.Fatalf("a style: %q", row)
				}
				row = styles.ReplaceAllString(row, "")
				if ColumnsOf(row) >= width {
					r.Fatalf("%d columns of %d: %q", ColumnsOf(row), width, row)
				}
				if text, ok := strings.CutPrefix(row, "   | "); ok {
					got = append(got, text)
				} else if text, ok := strings.CutPrefix(row, "   ⋮ "); ok {
					got[len(got)-1] += text
				} else if text, ok := strings.CutPrefix(row, "   ⋮␣"); ok {
					got[len(got)-1] += " " + text
				} else if as != Underlined || strings.Trim(row, " ^") != "" || row == "" {
					r.Fatalf("neither text nor carets: %q", row)
				}
			}
			var want []string
			for _, l := range lines {
				want = append(want, Visible(l))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				r.Fatalf("got %q\nwant %q", got, want)
			}
		}
	})
}

// TestDiffLines pins what lines of texts are to diffs.
func TestDiffLines(t *testing.T) {
	for _, c := range []struct{ text, kinds string }{
		{"*** Begin Patch|*** Update File: a|@@ f|-- a|+- b| c||*** End Patch|- item", "hh@-+  h0"},
		{"text|--- a|+++ b|@@ -1,2 +1,2 @@|--- x|+++ y| same|after|- item", "0hh@-+ 00"},
		{"@@ -1 +1 @@|-a|+b|-c", "@-+0"},
		{"- a list|+ another|--| text", "0000"},
		{"@@ -1,2 +0,0 @@|-a|\\ No newline at end of file|-b|-c", "@-0-0"},
	} {
		got := ""
		for _, k := range kindsOf(strings.Split(c.text, "|"), false) {
			if k == kindText {
				k = '0'
			}
			got += string(rune(k))
		}
		if got != c.kinds {
			t.Errorf("%s: got %q, want %q", c.text, got, c.kinds)
		}
	}
}

// TestCallInFull proves that a short edit is shown as a diff, and a short script as its lines.
func TestCallInFull(t *testing.T) {
	small := inFull(tool.Call{Name: "find_and_replace", Arguments: `{"path":"a","find":"x = 1","replace":"x = 2"}`})
	if small.Title != "find_and_replace" || len(small.Rows(80, Unmarked)) != 4 {
		t.Errorf("a short edit is not shown as a diff: %+v", small)
	}
	script := inFull(tool.Call{Name: "run_command", Arguments: `{"command":["sh","-c","set -e\nls"]}`})
	if got := script.Whole(""); got != "?? run_command\n   command:\n   - sh\n   - -c\n   -\n   | set -e\n   | ls\n" {
		t.Errorf("a short script is not shown as lines: %q", got)
	}
}

// A broken line shows whether a blank stood where it is broken, and words stay whole: rm -rf / tmp must
// not look like rm -rf /tmp.
func TestBrokenLinesKeepBlanks(t *testing.T) {
	rows := func(text string) string {
		s := Shown{}
		s.Add("   ", text, "")
		return strings.Join(s.Rows(31, Unmarked), "\n")
	}
	long := strings.Repeat("x", 40)
	for text, want := range map[string]string{
		"allows itself calls of fetch in /w, without asking you": "   allows itself calls of\n   ⋮␣fetch in /w, without\n   ⋮␣asking you",
		"run: cp one two; rm -rf / tmp/all":                      "   run: cp one two; rm -rf /\n   ⋮␣tmp/all",
		"run: cp one two; rm -rf /tmp/all":                       "   run: cp one two; rm -rf\n   ⋮␣/tmp/all",
		"run: cp one two; rm -rf /a  tmp":                        "   run: cp one two; rm -rf /a\n   ⋮␣ tmp",
		"cat " + long:                                            "   cat xxxxxxxxxxxxxxxxxxxxxxx\n   ⋮ xxxxxxxxxxxxxxxxx",
		"cat one and two and threefour ":                         "   cat one and two and\n   ⋮␣threefour ",
	} {
		if got := rows(text); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", text, got, want)
		}
	}
}
