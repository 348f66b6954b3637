// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, src string) *Script {
	t.Helper()
	s, err := Parse("test.script", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// flat shows a script's turns as one line a statement.
func flat(turns []turn) []string {
	var list []string
	for _, t := range turns {
		list = append(list, "turn "+t.title)
		for _, st := range t.steps {
			text := st.pause.String()
			if st.text != nil {
				text = st.text.Root.String()
			}
			list = append(list, strings.TrimSpace(string(st.verb)+" "+st.tool)+" | "+text)
		}
	}
	return list
}

func TestParse(t *testing.T) {
	s := parse(t, "\ufeff# head\r\npace 20ms\r\n\r\n"+`
turn first of all
  reason Why not.
  # a comment between statements
  say One
    # no comment: the text goes on

      deeper
    two
  pause 1.5s
  call read_file {"path":
    "a b"}
  call list
  call_raw broken {"path":
  custom patch
    *** Begin

    *** End

round
turn
  say Hello

again
turn
  say Bye
`)
	want := []string{
		"turn first of all",
		"reason | Why not.",
		"say | One\n# no comment: the text goes on\n\n  deeper\ntwo",
		"pause | 1.5s",
		"call read_file | {\"path\":\n\"a b\"}",
		"call list | {}",
		"call_raw broken | {\"path\":",
		"custom patch | *** Begin\n\n*** End",
	}
	if d := cmp.Diff(want, flat(s.turns(0))); d != "" {
		t.Errorf("round 0 (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"turn ", "say | Hello"}, flat(s.turns(1))); d != "" {
		t.Errorf("round 1 (-want +got):\n%s", d)
	}
	for _, round := range []int{2, 3, 99} {
		if d := cmp.Diff([]string{"turn ", "say | Bye"}, flat(s.turns(round))); d != "" {
			t.Errorf("round %d (-want +got):\n%s", round, d)
		}
	}
	if s.pace.String() != "20ms" || s.Name() != "test.script" {
		t.Errorf("pace %v, name %q", s.pace, s.Name())
	}
}

// M4, for scripts: file:line:column, the offending text, a hint.
func TestParseErrors(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"empty", "", `s:1:1: the script has no turn (begin one with the line "turn")`},
		{"only comments", "# x\n\n", `s:3:1: the script has no turn (begin one with the line "turn")`},
		{"empty turn", "turn a\n\nturn b\n  say x\n", `s:1:1: a turn without statements (indent at least one statement under it, such as: say Hello.)`},
		{"statement at the margin", "turn\nsay x\n", `s:2:1: "say" is not allowed without indentation (indent it under a turn)`},
		{"unknown word", "trun\n  say x\n", `s:1:1: "trun" is not allowed without indentation (allowed without indentation: turn, round, again, pace, window)`},
		{"no turn above", "  say x\nturn\n  say x", `s:1:3: "say" is not below a turn (begin a turn with the line "turn")`},
		{"unknown statement", "turn\n  shout x\n  say x\n", `s:2:3: unknown statement "shout" (statements are reason, say, call, call_raw, custom, pause)`},
		{"margin word indented", "turn\n  say x\n  turn\n", `s:3:3: unknown statement "turn" (write it without indentation)`},
		{"tab", "turn\n\tsay x\n", `s:2:1: tab in the indentation (indent with spaces)`},
		{"tab in continuation", "turn\n  say x\n  \ty\n", `s:3:3: tab in the indentation (indent with spaces)`},
		{"say nothing", "turn\n  say\n", `s:2:1: a turn without text: an empty say is an empty line between two others (write text after it, or indented deeper below it)`},
		{"reason nothing", "turn\n  say x\n  reason\n", `s:3:9: "reason" without text (write text after it, or indented deeper below it)`},
		{"bad pause", "turn\n  say x\n  pause soon\n", `s:3:9: "soon" is not a duration (such as 20ms or 1.5s, at most 10m0s)`},
		{"long pause", "turn\n  say x\n  pause 11m\n", `s:3:9: "11m" is not a duration (such as 20ms or 1.5s, at most 10m0s)`},
		{"bad pace", "pace -1s\nturn\n  say x\n", `s:1:6: "-1s" is not a duration (such as 20ms or 1.5s, at most 10m0s)`},
		{"second pace", "pace 1s\npace 1s\nturn\n  say x\n", `s:2:1: a second "pace"; the first is in line 1`},
		{"deeper after pause", "turn\n  pause 1s\n    say x\n", `s:3:5: "pause" has no text to continue (indent it like the line before)`},
		{"no tool", "turn\n  call\n", `s:2:7: "" is not the name of a tool (such as: call read_file …)`},
		{"bad tool", "turn\n  call {\"a\":1}\n", `s:2:8: "{\"a\":1}" is not the name of a tool (such as: call read_file …)`},
		{"bad JSON", "turn\n  call f {\"a\": b}\n", `s:2:16: call f: unexpected character 'b' (arguments are a JSON object; call_raw sends any text)`},
		{"bad JSON below", "turn\n  call f\n    {\"a\": 1,\n     b}\n", `s:4:6: call f: expected a member name (arguments are a JSON object; call_raw sends any text)`},
		{"no object", "turn\n  call f [1]\n", `s:2:10: call f: the arguments are JSON but not an object (arguments are a JSON object; call_raw sends any text)`},
		{"template syntax", "turn\n  say a\n    b {{output\n", `s:3:5: say: unclosed action (see the list of functions in the documentation of package rehearsal)`},
		{"template function", "turn\n  say {{outptu 1}}\n", `s:2:7: say: function "outptu" not defined (see the list of functions in the documentation of package rehearsal)`},
		{"a template of its own", "turn\n  say {{define \"a\"}}x{{end}}y\n", `s:2:7: say: define and block are not available (see the list of functions in the documentation of package rehearsal)`},
		{"a template that uses itself", "turn\n  say {{if true}}{{range tools}}{{template \"script\"}}{{end}}{{end}}\n", `s:2:7: say: template is not available (see the list of functions in the documentation of package rehearsal)`},
		{"text behind round", "turn\n  say x\nround two\nturn\n  say x\n", `s:3:7: text after "round" (write it as a comment above)`},
		{"empty round", "round\nturn\n  say x\n", `s:1:1: the round before this one has no turn (turns before the first round line are the first round)`},
		{"last round", "turn\n  say x\nround\n", `s:4:1: the last round has no turn (begin one with the line "turn")`},
		{"no window", "window x\nturn\n  say x\n", `s:1:8: "x" is not a context size (such as 4000, in tokens)`},
		{"two windows", "window 4\nwindow 5\nturn\n  say x\n", `s:2:1: a second "window"; the first is in line 1`},
		{"round after again", "again\nturn\n  say x\nround\nturn\n  say x\n", `s:4:1: a round after "again" (move it above)`},
		{"empty again", "turn\n  say x\nagain\n", `s:3:1: "again" has no turn (begin one with the line "turn")`},
		{"invalid UTF-8", "turn\n  say \xff\n", "s:2:7: invalid UTF-8 (save the file as UTF-8)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("s", []byte(test.src))
			if err == nil {
				t.Fatal("no error")
			}
			if d := cmp.Diff(test.want, err.Error()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			var at *SyntaxError
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 {
				t.Errorf("not located: %#v", err)
			}
		})
	}
}

// All problems of a script are told at once.
func TestParseManyErrors(t *testing.T) {
	_, err := Parse("s", []byte("turn\n  shout\n    more\n  pause x\n  call f {\n  say fine\nnonsense\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("want four problems, got:\n%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("turn\n  say {{user}}\n    x\n  pause 1s\n  call f {\"a\":1}\nround\nturn\n  custom x y\nagain\nturn\n  say x")
	f.Add("\tturn\n \n  say\n      a\n   b\n  c")
	f.Add("turn\n call f\n  {{\n")
	f.Fuzz(func(t *testing.T, src string) {
		s, err := Parse("f", []byte(src))
		var at *SyntaxError
		if err != nil && !errors.As(err, &at) {
			t.Fatalf("untyped error %v", err)
		}
		if err == nil && len(s.turns(0)) == 0 {
			t.Fatal("a script without a turn was accepted")
		}
		lines := strings.Count(src, "\n") + 1
		if at != nil && (at.Line < 1 || at.Line > lines || at.Column < 1) {
			t.Fatalf("place %d:%d in a file of %d lines", at.Line, at.Column, lines)
		}
	})
}

func FuzzWords(f *testing.F) {
	f.Add("Ein schöner Tag, nicht? 😀😀😀 " + strings.Repeat("x", 100))
	f.Add("\n\n  a\t")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		list := words(text)
		if got := strings.Join(list, ""); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		for _, w := range list {
			if w == "" || w != strings.ToValidUTF8(w, "") {
				t.Fatalf("piece %q of %q", w, text)
			}
		}
	})
}
