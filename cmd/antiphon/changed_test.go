// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
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
		s := shown{}
		s.text(strings.Join(lines, "\n"))
		for _, as := range []look{unmarked, underlined, coloured} {
			var got []string
			for _, row := range s.rows(width, as) {
				if as != coloured && strings.Contains(row, "\x1b") {
					r.Fatalf("a style: %q", row)
				}
				row = styles.ReplaceAllString(row, "")
				if columnsOf(row) >= width {
					r.Fatalf("%d columns of %d: %q", columnsOf(row), width, row)
				}
				if text, ok := strings.CutPrefix(row, "   | "); ok {
					got = append(got, text)
				} else if text, ok := strings.CutPrefix(row, "   ⋮ "); ok {
					got[len(got)-1] += text
				} else if as != underlined || strings.Trim(row, " ^") != "" || row == "" {
					r.Fatalf("neither text nor carets: %q", row)
				}
			}
			var want []string
			for _, l := range lines {
				want = append(want, visible(l))
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

// TestAskAboutEdit proves that the question about an edit shows it as a diff with the changed words
// marked: in colours in reverse, without colours by carets, and for screen readers not at all.
func TestAskAboutEdit(t *testing.T) {
	small := inFull(tool.Call{Name: "find_and_replace", Arguments: arguments(t, "path", "a", "find", "x = 1", "replace", "x = 2")})
	if small.title != "find_and_replace" || len(small.rows(80, unmarked)) != 4 {
		t.Errorf("a short edit is not shown as a diff: %+v", small)
	}
	script := inFull(tool.Call{Name: "run_command", Arguments: `{"command":["sh","-c","set -e\nls"]}`})
	if got := script.whole(""); got != "?? run_command\n   command:\n   - sh\n   - -c\n   -\n   | set -e\n   | ls\n" {
		t.Errorf("a short script is not shown as lines: %q", got)
	}
	call := tool.Call{Name: "find_and_replace", Arguments: arguments(t, "path", "greet.py", "find", "def greet():\n    print(\"Hi\")\n", "replace", "def greet():\n    print(\"Hello\", name)\n"+strings.Repeat("#", 60))}
	for as, want := range map[look]string{
		unmarked:   "   |  def greet():\n   | -    print(\"Hi\")\n   | +    print(\"Hello\", name)\n",
		underlined: "   | -    print(\"Hi\")\n                 ^^\n   | +    print(\"Hello\", name)\n                 ^^^^^ ^^^^^^\n",
		coloured:   "   | \x1b[31m-    print(\"\x1b[7mHi\x1b[27m\")\x1b[0m\n",
	} {
		var screen bytes.Buffer
		who := newPerson(stdio{in: strings.NewReader("n\n"), err: &screen})
		who.look = as
		if _, err := who.approve(t.Context(), agent.ApprovalRequest{Call: call}); err != nil {
			t.Fatal(err)
		}
		wantAll(t, "the question", screen.String(), "?? find_and_replace", "path: greet.py", "find (-) and replace (+):", want, "(find ends with a line end, replace does not)")
	}
}

// TestResultShowsChange proves that the row of a call that has changed files shows the change, a
// part of a long one, and nothing if the person has just been asked about it.
func TestResultShowsChange(t *testing.T) {
	patch := "*** Begin Patch\n*** Update File: a.go\n@@\n-old word\n+new word\n" + strings.Repeat(" more\n", 30) + "*** End Patch\n"
	for _, c := range []struct {
		name, arguments, want string
		verdict               *session.Approval
		whole                 bool
	}{
		{"patch", patch, "   | \x1b[31m-\x1b[7mold\x1b[27m word\x1b[0m\n   | \x1b[32m+\x1b[7mnew\x1b[27m word\x1b[0m\n", nil, false},
		{"long patch", patch, "   | … 20 lines more, which --show-output shows\n", nil, false},
		{"whole patch", patch, "   | \x1b[1m*** End Patch\x1b[0m\n", nil, true},
		{"function", arguments(t, "input", patch), "   | \x1b[1m*** Update File: a.go\x1b[0m\n", nil, false},
		{"operation", arguments(t, "type", "update_file", "path", "a", "diff", "@@\n-x y\n+x z"), "   | \x1b[31m-x \x1b[7my\x1b[27m\x1b[0m\n", nil, false},
		{"edit", arguments(t, "path", "a", "find", "x = 1", "replace", "x = 2"), "   | \x1b[32m+x = \x1b[7m2\x1b[27m\x1b[0m\n", nil, false},
		{"append", arguments(t, "path", "a", "content", "one\ntwo\n"), "   | \x1b[32m+one\x1b[0m\n   | \x1b[32m+two\x1b[0m\n", nil, false},
		{"asked", patch, "", &session.Approval{Allowed: true, From: atTerminal}, false},
		{"rule", patch, "+\x1b[7mnew", &session.Approval{Allowed: true, By: "a rule"}, false},
		{"other", `{"path":"a"}`, "", nil, false},
	} {
		var screen bytes.Buffer
		p := newPrinter(stdio{out: &screen, err: &screen}, nil)
		p.watched, p.whole, p.look = true, c.whole, coloured
		p.change(&agent.KnownCall{Tool: "tool", Arguments: c.arguments, Verdict: c.verdict})
		if got := screen.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
