// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// K1, K6: a person at a terminal reads what a file may do, and answers once. A yes lasts
// until a byte changes.
func TestTrustQuestion(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for a terminal")
	}
	t.Parallel()
	const run, question = "antiphon run agent.md; ", "run it? y, o, c or n:"
	for _, tt := range []struct {
		name, line string
		steps      []string // what is waited for, and then typed
		marks      string   // what the command has written
		last       string   // on the screen
	}{
		{"no", run, []string{question, "n"}, "", "agent.md was not run, because it is not trusted"},
		{"once", run + "echo again; " + run, []string{question, "o", "\nagain\n?? agent.md", "n"}, "m", "agent.md was not run"},
		{"ask", run, []string{question, "c", "run it? y, n, l, a or e:", "n"}, "", "1 refused"},
		{"yes", run + run + "echo >>mark.sh; " + run, []string{question, "y", "Changed: mark.sh, no power", "n"}, "mm", "agent.md was not run"},
		{"unrecorded", "mkdir log; export ANTIPHON_AUDIT=$PWD/log; " + run + "echo again; " + run, []string{question, "y", "\nagain\n?? agent.md", "n"}, "", "agent.md was not run"},
		{"all", run, []string{question, "a", "Nothing has been started", "", question, "n"}, "", "agent.md was not run"},
		{"help", run, []string{question, "?", "Nothing has been started", "", question, "n"}, "", "agent.md was not run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "agent.script"), "turn\n  call mark {}\nturn\n  say Done.\n")
			write(t, filepath.Join(dir, "mark.sh"), "printf m >>marks\n")
			write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"mark\" command=\"sh mark.sh\" description=\"Marks.\" approval=\"allow\"/>\n<user>Mark.</user>\n")
			term := openTerminal(t, dir, strings.TrimSuffix(tt.line, "; "))
			first := term.until(t, question)
			if !strings.Contains(first, "?? agent.md is not trusted yet. It\n   allows itself mark, that is sh mark.sh (and arguments that the model adds)") {
				t.Errorf("the screen:\n%s", first)
			}
			for i := 0; i < len(tt.steps); i += 2 {
				term.until(t, tt.steps[i])
				if answer := tt.steps[i+1]; answer != "" {
					term.tmux(t, "clear-history")
					term.keys(t, answer, "Enter")
				}
			}
			if screen := term.until(t, "[exit code "); !strings.Contains(screen, tt.last) {
				t.Errorf("the screen at the end:\n%s", screen)
			}
			if marks, _ := os.ReadFile(filepath.Join(dir, "marks")); string(marks) != tt.marks {
				t.Errorf("the command has written %q, want %q", marks, tt.marks)
			}
		})
	}
}

// K1: a letter means the same in the question about a file and in the one about a call. In the
// latter, a allows all calls of a tool.
func TestQuestionsShareNoLetter(t *testing.T) {
	r := session.Rule{Verdict: session.Allow, Tool: "t"}
	call := person.AnswersTo(agent.ApprovalRequest{Call: tool.Call{Name: "t"}, Rules: []session.Rule{r, r}}, 1)
	if len(call) != 6 {
		t.Fatalf("the answers about a call are %v", call)
	}
	for _, one := range fileAnswers(true) {
		if l := one.Letter; l != "y" && l != "n" && slices.ContainsFunc(call, func(other person.Choice) bool { return other.Letter == l }) {
			t.Errorf("%s is an answer to both %v and %v", l, fileAnswers(true), call)
		}
	}
}

// K1: antiphon trust without a yes is no success, so that a script does not go on.
func TestTrustRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for a terminal")
	}
	t.Parallel()
	for name, keys := range map[string][]string{"no": {"n", "Enter"}, "the end of input": {"C-d"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "agent.md"), "<tool name=\"run_command\" approval=\"allow\"/>\n<user>Hello</user>\n")
			term := openTerminal(t, dir, "antiphon trust agent.md")
			term.until(t, "agree until it changes?")
			term.keys(t, keys...)
			if screen := term.until(t, "[exit code "); !strings.Contains(screen, "nothing was agreed to") || !strings.Contains(screen, "[exit code 2]") {
				t.Errorf("the screen at the end:\n%s", screen)
			}
		})
	}
}

// A5: an allowed tool does not write the person's settings, which say where conversations go, also
// if they are in a folder of the agent.
func TestSettingsAreProtected(t *testing.T) {
	for _, there := range []bool{false, true} {
		dir := t.TempDir()
		conf := filepath.Join(dir, "conf", "antiphon")
		if err := os.MkdirAll(filepath.Join(dir, "conf"), 0o700); err != nil {
			t.Fatal(err)
		}
		if there {
			if err := os.MkdirAll(conf, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(conf, "config"), "<config model=\"mine\"/>\n")
		}
		write(t, filepath.Join(dir, "play.script"), "turn\n  call append_to_file {\"path\":\"conf/antiphon/config\",\"content\":\"<config base_url=\\\"https://evil.example/v1\\\"/>\"}\n  call append_to_file {\"path\":\"mine.txt\",\"content\":\"x\"}\nturn\n  say Done.\n")
		write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:play.script\"/>\n<tool name=\"append_to_file\"/>\n<user>x</user>\n")
		t.Chdir(dir)
		o := programEnv(t, []string{"HOME=" + t.TempDir(), "XDG_CONFIG_HOME=" + filepath.Join(dir, "conf"), "XDG_DATA_HOME=" + t.TempDir()}, "run", "agent.md", "--allow", "append_to_file")
		text, _ := os.ReadFile(filepath.Join(conf, "config"))
		if _, err := os.Stat(filepath.Join(dir, "mine.txt")); err != nil || strings.Contains(string(text), "evil") || !strings.Contains(o.err, "1 refused") {
			t.Errorf("settings there: %v: %v, %q, exit code %d\n%s", there, err, text, o.code, o.err)
		}
	}
}

// U7: a second question, about what may be read after the first yes, says what is new; and a change of
// a message alone is not shown as a change of powers.
func TestTrustInTwoSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `<config model="rehearsal"/>
<tool name="read_file"><read id="etc" path="/etc"/></tool>
<tool name="log" command="git log" approval="allow" description="x"/>
<user>x</user>
`
	agent := write(t, filepath.Join(dir, "agent.md"), text)
	env := []string{"XDG_DATA_HOME=" + filepath.Join(dir, "data"), "HOME=" + dir}
	o := programEnv(t, env, "trust", agent, "--yes")
	second := "With what may be read after your yes, the lines with + are new. " + agent
	if o.code != 0 || strings.Count(o.err, "is not trusted yet") != 1 || !strings.Contains(o.err, second+"\n + allows itself log") || !strings.Contains(o.err, " - allows itself log") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	write(t, agent, text+"<system>y</system>\n")
	o = programEnv(t, env, "trust", agent, "--diff")
	if o.code != 0 || !strings.Contains(o.err, "Changed: agent.md, no power\n") || strings.Contains(o.err, " + ") || strings.Contains(o.err, " - ") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}
