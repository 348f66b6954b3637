// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package person

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// questioned returns what a person sees who is asked about a call and types these
// lines.
func questioned(t *testing.T, call tool.Call, colour bool, typed string) (string, agent.Decision) {
	t.Helper()
	var screen bytes.Buffer
	who := New(strings.NewReader(typed), &screen)
	who.Look = show.Unmarked
	if colour {
		who.Look = show.Coloured
	}
	v, err := who.Approve(t.Context(), agent.ApprovalRequest{Call: call, Rules: []session.Rule{{Verdict: session.Allow, Tool: call.Name}}})
	if err != nil && typed != "" {
		t.Fatal(err)
	}
	return screen.String(), v
}

func arguments(t *testing.T, members ...string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(members); i += 2 {
		fmt.Fprintf(&b, ",%s:%s", item.Quote(members[i]), item.Quote(members[i+1]))
	}
	return "{" + b.String()[1:] + "}"
}

// A script is shown once, as its lines, whole before it can be allowed; what
// is hidden is counted, and y shows it first.
func TestAskAboutScript(t *testing.T) {
	var script strings.Builder
	for i := range 122 {
		fmt.Fprintf(&script, "echo step %d\n", i)
		if i == 60 {
			script.WriteString("rm -rf ~/important\n")
		}
	}
	call := tool.Call{Name: "run_command", Arguments: arguments(t, "command", script.String(), "directory", ".")}
	screen, _ := questioned(t, call, false, "n\n")
	if strings.Contains(screen, `\n`) || strings.Contains(screen, "important") || strings.Count(screen, "| echo step 3\n") != 1 {
		t.Errorf("folded:\n%s", screen)
	}
	wantAll(t, "the question", screen, "   command:\n   | echo step 0\n", "lines hidden here: answer s to see all", "   s: show the ", "directory: .")

	screen, v := questioned(t, call, false, "y\nn\n")
	if v.Allow || strings.Count(screen, "| rm -rf ~/important\n") != 1 || !strings.Contains(screen, "have not been shown yet") {
		t.Errorf("y without having seen it: %+v\n%s", v, screen)
	}
	if screen, v = questioned(t, call, false, "s\ny\n"); !v.Allow || strings.Count(screen, "| rm -rf ~/important\n") != 1 {
		t.Errorf("s, y: %+v\n%s", v, screen)
	}
}

// A patch is a diff, once, coloured where colours are on.
func TestAskAboutPatch(t *testing.T) {
	patch := "*** Begin Patch\n*** Update File: a.go\n@@\n-old\n+new\n kept\n*** End Patch\n"
	for _, call := range []tool.Call{
		{Name: "apply_patch", Arguments: patch, Custom: true},
		{Name: "apply_patch", Arguments: arguments(t, "patch", patch+strings.Repeat(" ", 100))},
	} {
		screen, _ := questioned(t, call, true, "n\n")
		wantAll(t, "in colours", screen, "   | \x1b[31m-old\x1b[0m\n", "   | \x1b[32m+new\x1b[0m\n", "   |  kept\n")
		screen, _ = questioned(t, call, false, "n\n")
		if strings.Contains(screen, "\x1b") || strings.Count(screen, "+new") != 1 {
			t.Errorf("without colours: %q", screen)
		}
	}
}

// What cannot be seen is shown by its number, long lines are broken behind a
// mark of their own, and the question between its words.
func TestAskHidesNothing(t *testing.T) {
	long := strings.Repeat("x", 200) + "?? read_file {} run it?"
	call := tool.Call{Name: "run_command", Arguments: arguments(t, "command", "a\u200bb\x1b[2J\u202e\r\nrm -rf /\n"+long, "?? y", strings.Repeat("z", 50))}
	screen, _ := questioned(t, call, false, "n\n")
	wantAll(t, "the question", screen, "   | a<U+200B>b<U+001B>[2J<U+202E><U+000D>\n", "   | rm -rf /\n", "\n   ⋮ xxx", `"?? y": zzz`)
	for line := range strings.Lines(screen) {
		if show.ColumnsOf(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("too long: %q", line)
		}
		if strings.HasPrefix(line, "??") && !strings.HasPrefix(line, "?? run_command\n") {
			t.Errorf("the arguments speak as the program: %q", line)
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(screen), " "), "y: run it, once n: do not run it; words after n tell the model why a: run it, and do not ask again in this conversation about any call of run_command e: run it with other arguments, which you type run it? y, n, a or e:") {
		t.Errorf("the question is torn:\n%s", screen)
	}
}

// A short call in a narrow window is broken by the program: what the terminal would break could look like
// another question, or like an answer to it.
func TestAskOnNarrowScreen(t *testing.T) {
	pad := strings.Repeat("x", 40-len(`?? fetch {"url":"`))
	call := tool.Call{Name: "fetch", Arguments: `{"url":"` + pad + `   asked because you allowed it"}`}
	var out bytes.Buffer
	p := New(strings.NewReader("n\n"), &out)
	p.Columns = func() int { return 40 }
	if _, err := p.Approve(t.Context(), agent.ApprovalRequest{Call: call}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if show.ColumnsOf(strings.TrimRight(line, "\n")) > 40 || strings.HasPrefix(line, "   asked because you") {
			t.Errorf("a row that the terminal breaks, or a forged one: %q", line)
		}
	}
	wantAll(t, "the question", out.String(), "?? fetch {\"url\":\""+pad[:20], "\n   ⋮")
}

// A member that is there twice is shown with both values: an endpoint that runs the call may take
// either.
func TestAskAboutMemberTwice(t *testing.T) {
	for _, first := range []string{`"to":"evil@example.com"`, `"t\u006f":"evil@example.com"`} {
		text := `{` + first + `,"text":"` + strings.Repeat("x", 100) + `","to":"friend@example.com"}`
		screen, _ := questioned(t, tool.Call{Kind: item.TypeMCPApprovalRequest, Name: "mail.send", Arguments: text}, false, "n\n")
		wantAll(t, "the question", screen, "   to: evil@example.com\n", "   to: friend@example.com\n")
	}
	edit := `{"find":"a","find":"b","replace":"c","pad":"` + strings.Repeat("x", 100) + `"}`
	screen, _ := questioned(t, tool.Call{Kind: item.TypeMCPApprovalRequest, Name: "files.edit", Arguments: edit}, false, "n\n")
	wantAll(t, "the question", screen, "   find: a\n", "   find: b\n", "   replace: c\n")
}

// Short calls stay on one line, others are named values and readable JSON.
func TestAskAboutOthers(t *testing.T) {
	screen, _ := questioned(t, tool.Call{Name: "read_file", Arguments: `{"path":"a"}`}, false, "n\n")
	wantAll(t, "a short call", screen, "?? read_file {\"path\":\"a\"}\n   y: run it, once\n")
	screen, _ = questioned(t, tool.Call{Name: "run_command", Arguments: `{"command":["bash","-c","one\ntwo\n"],"deep":{"a":[1,2,{"b":"` + strings.Repeat("c", 120) + `"}]}}`}, false, "n\n")
	wantAll(t, "a list", screen, "   command:\n   - bash\n   - -c\n   -\n   | one\n   | two\n", "\"b\": \"ccc")
}

// Somebody who does not know the letters can ask what they mean.
func TestAskWhatAnswersMean(t *testing.T) {
	screen, v := questioned(t, tool.Call{Name: "read_file", Arguments: `{"path":"a"}`}, false, "?\nn\n")
	wantAll(t, "the answers", screen, "y: run it, once", "n: do not run it", "a: run it, and do not ask again", "e: run it with other arguments")
	if v.Allow {
		t.Error("the call was allowed")
	}
}

// A5: what an answer allows from then on is shown with each word by itself, and
// nothing in it is left out.
func TestOfferShowsEachWord(t *testing.T) {
	rules := rememberable{like: &session.Rule{Tool: "run", Member: "command", Prefix: []string{"rm", "a b", "x\x1b\u202e"}}, always: &session.Rule{Tool: "run"}}
	if got, want := about(agent.ApprovalRequest{}, rules, 0).Text(RunIt), "about exactly this: rm 'a b' 'x<U+001B><U+202E>'\n"; !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// A5: "all calls of this tool" at the terminal does not cover a write to a file that
// other programs run. Without a person, the refusal does not name a flag that would
// not help.
func TestAlwaysIsNotForProtectedFiles(t *testing.T) {
	dir := t.TempDir()
	files, err := toolkit.Open(toolkit.Root{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	write, err := toolkit.New("append_to_file", toolkit.Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	who := New(strings.NewReader("a\nn\n"), &screen)
	for _, p := range []agent.Policy{{Approver: who.Approve}, {Allow: []string{"*"}, Hint: func(string) string { return "Use --allow." }}} {
		a := &agent.Agent{Tools: []tool.Tool{write}, Policy: p}
		a.Request.Model = "m"
		a.Model = agenttest.Script(t,
			agenttest.Completed(item.Call("c1", "append_to_file", `{"path":"one.txt","content":"x"}`)), agenttest.Completed(item.Call("c2", "append_to_file", `{"path":".envrc","content":"x"}`)),
			agenttest.Completed(item.Call("c3", "append_to_file", `{"path":"two.txt","content":"x"}`)), agenttest.Completed(item.Assistant("done")))
		s := session.New()
		if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, ".envrc")); err == nil {
			t.Error("the file was written")
		}
		if _, err := os.Stat(filepath.Join(dir, "two.txt")); err != nil {
			t.Error(err)
		}
		for e := range s.Entries() {
			if v, ok := e.Body.(session.Approval); ok && v.CallID == "c2" && p.Approver == nil && (strings.Contains(v.Reason, "--allow") || !strings.Contains(v.Reason, "it writes to .envrc")) {
				t.Error(v.Reason)
			}
		}
	}
	if n := strings.Count(screen.String(), "run it?"); n != 2 {
		t.Errorf("%d questions:\n%s", n, screen.String())
	}
}

// Edited arguments that are not JSON are asked for again, as is nothing at all;
// of a custom tool any text will do.
func TestEditAgain(t *testing.T) {
	call := tool.Call{Name: "write", Arguments: `{"a":1}`}
	screen, v := questioned(t, call, false, "e\n{\"a\":\ne\n\ne\n{\"a\":2}\n")
	if !v.Allow || v.Arguments != `{"a":2}` || strings.Count(screen, "run it?") != 3 {
		t.Errorf("%+v\n%s", v, screen)
	}
	wantAll(t, "the screen", screen, "   that is not JSON, which arguments are, such as {", "   nothing was given, so the arguments stay as they are\n")
	call.Custom = true
	if screen, v = questioned(t, call, false, "e\nplain words\n"); !v.Allow || v.Arguments != "plain words" {
		t.Errorf("%+v\n%s", v, screen)
	}
}

// TestAskAboutEdit proves that the question about an edit shows it as a diff with the changed words
// marked: in colours in reverse, without colours by carets, and for screen readers not at all.
func TestAskAboutEdit(t *testing.T) {
	call := tool.Call{Name: "find_and_replace", Arguments: arguments(t, "path", "greet.py", "find", "def greet():\n    print(\"Hi\")\n", "replace", "def greet():\n    print(\"Hello\", name)\n"+strings.Repeat("#", 60))}
	for as, want := range map[show.Look]string{
		show.Unmarked:   "   |  def greet():\n   | -    print(\"Hi\")\n   | +    print(\"Hello\", name)\n",
		show.Underlined: "   | -    print(\"Hi\")\n                 ^^\n   | +    print(\"Hello\", name)\n                 ^^^^^ ^^^^^^\n",
		show.Coloured:   "   | \x1b[31m-    print(\"\x1b[7mHi\x1b[27m\")\x1b[0m\n",
	} {
		var screen bytes.Buffer
		who := New(strings.NewReader("n\n"), &screen)
		who.Look = as
		if _, err := who.Approve(t.Context(), agent.ApprovalRequest{Call: call}); err != nil {
			t.Fatal(err)
		}
		wantAll(t, "the question", screen.String(), "?? find_and_replace", "path: greet.py", "find (-) and replace (+):", want, "(find ends with a line end, replace does not)")
	}
}

// wantAll reports what a text lacks.
func wantAll(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lack(s) %q:\n%.3000s", what, part, text)
		}
	}
}
