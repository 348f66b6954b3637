// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// completed returns the candidates for a command line, without what is said about them.
func completed(t *testing.T, env []string, words ...string) (list []string) {
	t.Helper()
	o := programEnv(t, env, append([]string{completes}, words...)...)
	if o.code != exitOK || o.err != "" {
		t.Errorf("%q: %+v", words, o)
	}
	for line := range strings.Lines(o.out) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		list = append(list, word)
	}
	return list
}

// completable makes a folder with settings, agents and a session, and returns the environment.
func completable(t *testing.T) (env []string) {
	t.Helper()
	env, folder := withSettings(t, `<config model="qwen3" endpoints="local=http://localhost:11434/v1 router=https://openrouter.ai/api/v1" models="fast=qwen3@local big=gpt-5.1"/>`)
	write(t, filepath.Join(folder, "agents", "helper.md"), "<user>Hi</user>")
	if err := os.WriteFile(filepath.Join(folder, "agents", "evil\n--trust\x1b.md"), nil, 0o600); err != nil {
		t.Log(err) // not every system has such names
	}
	write(t, "agent.md", "<config model=\"rehearsal\"/><user>Hi</user>")
	if o := programEnv(t, env, "run", "agent.md", "--session", "old work"); o.code != exitOK {
		t.Fatalf("%+v", o)
	}
	return env
}

// TestCompletion: commands, flags, their values and names are completed where they may stand.
func TestCompletion(t *testing.T) {
	env := completable(t)
	for _, c := range []struct {
		words      []string
		want, lack string // words with blanks between
	}{
		{[]string{""}, "run chat sessions completion man login", "--model __complete"},
		{[]string{"se"}, "sessions serve", "run"},
		{[]string{"sessions", ""}, "list show fork", "run"},
		{[]string{"help", "sess"}, "sessions", ""},
		{[]string{"run", "--mo"}, "--model", "--max-turns"},
		{[]string{"run", "--model", "x", "--mo"}, "", "--model"},
		{[]string{"run", "--tag", "x", "--ta"}, "--tag", ""},
		{[]string{"run", "--model", ""}, "fast big qwen3 rehearsal", "list"},
		{[]string{"run", "-m", "f"}, "fast", "big"},
		{[]string{"run", "--model=f"}, "--model=fast", "fast"},
		{[]string{"run", "--base-url", ""}, "local router", ""},
		{[]string{"run", "--transport", ""}, "http continue websocket", ""},
		{[]string{"run", "--transport=w"}, "--transport=websocket", ""},
		{[]string{"run", "--profile", "ol"}, "ollama", "openai"},
		{[]string{"chat", "--effort", ""}, "none low xhigh", ""},
		{[]string{"run", "--sandbox", ""}, "read-only workspace full", ""},
		{[]string{"run", ""}, "helper :files", "sessions"},
		{[]string{"run", "helper", "--out", ""}, ":files", "helper"},
		{[]string{"run", "-q", "h"}, "helper :files", ""},
		{[]string{"run", "helper", "--", "--mo"}, "", "--model"},
		{[]string{"-m", ""}, "fast", "run"},
		{[]string{"--fi"}, "--file", ""},
		{[]string{"-f", ""}, ":files", ""},
		{[]string{"serve", "a.md", "b.md", ""}, ":files", ""},
		{[]string{"work", "--agents", ""}, ":folders", ""},
		{[]string{"trust", "--di"}, "--diff", ""},
		{[]string{"trust", "rev"}, "revoke", "list"},
		{[]string{"usage", "--by", "p"}, "project", "key"},
		{[]string{"convert", "--to", ""}, "chatmd", ""},
		{[]string{"completion", ""}, "bash zsh fish", ""},
		{[]string{"man", "sess"}, "sessions", ""},
		{[]string{"man", "sessions", "l"}, "list", "login"},
		{[]string{"login", ""}, "local router openai", ""},
		{[]string{"nonsense", "x", "y", "z", ""}, "", "run"},
	} {
		got := completed(t, env, c.words...)
		for want := range strings.FieldsSeq(c.want) {
			if !slices.Contains(got, want) {
				t.Errorf("%q: no %s in %q", c.words, want, got)
			}
		}
		for lack := range strings.FieldsSeq(c.lack) {
			if slices.Contains(got, lack) {
				t.Errorf("%q: %s in %q", c.words, lack, got)
			}
		}
		for _, word := range got {
			if strings.Contains(word, "evil") || word == "--trust" && !strings.HasPrefix(c.words[len(c.words)-1], "-") {
				t.Errorf("%q: a file's name came through: %q", c.words, got)
			}
		}
	}
	for _, words := range [][]string{{"sessions", "show", ""}, {"run", "helper", "--session", "old"}, {"chat", "--attach", "o"}} {
		if got := completed(t, env, words...); !slices.Contains(got, "old work") {
			t.Errorf("%q: no session in %q", words, got)
		}
	}
	if got := completed(t, env, "sessions", "--store", filepath.Join(t.TempDir(), "none.db"), "show", ""); len(got) > 0 {
		t.Errorf("a store that is not there: %q", got)
	}
}

// TestCompletionKnowsAll: every flag of every command is completed, and so is every enumeration.
func TestCompletionKnowsAll(t *testing.T) {
	var cli grammar
	parser, err := kong.New(&cli, kong.Name("antiphon"))
	if err != nil {
		t.Fatal(err)
	}
	env := home(t, t.TempDir())
	for _, leaf := range parser.Model.Leaves(true) {
		words := strings.Fields(commandPath(leaf))[1:]
		got := completed(t, env, append(words, "--")...)
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				if !slices.Contains(got, "--"+f.Name) {
					t.Errorf("%q: no --%s in %q", words, f.Name, got)
				}
				if f.Enum == "" {
					continue
				}
				want := slices.DeleteFunc(f.EnumSlice(), func(one string) bool { return one == "" })
				if values := completed(t, env, append(words, "--"+f.Name, "")...); !slices.Equal(values, want) {
					t.Errorf("%q --%s: %q, want %q", words, f.Name, values, want)
				}
			}
		}
	}
}

// shellScript writes the script for a shell into a file, or skips the test if the shell is not
// there.
func shellScript(t *testing.T, shell string) (script string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skip("needs " + shell + ": not there, so this test is skipped")
	}
	o := programEnv(t, nil, "completion", shell)
	if o.code != exitOK || strings.Contains(o.out, "@complete@") {
		t.Fatalf("%+v", o)
	}
	return write(t, filepath.Join(t.TempDir(), "antiphon."+shell), o.out)
}

// TestCompletionInBash: bash itself gets words that it can put into a command line, although it
// breaks words at = and :.
func TestCompletionInBash(t *testing.T) {
	script := shellScript(t, "bash")
	env := completable(t)
	for _, c := range []struct{ words, want string }{ // as bash breaks them
		{"antiphon sess", "sessions"},
		{"antiphon sessions show ''", `old\ work`},
		{"antiphon run --transport = w", "websocket"},
		{"antiphon run --transport = ''", "http continue websocket"},
		{"antiphon run helper --transport w", "websocket"},
		{"antiphon login ''", "local router openai"},
		{"antiphon run --base-url http : //localhost : 8080 helper --transport w", "websocket"},
		{"antiphon run age", "agent.md"},
		{"antiphon run --out = age", "agent.md"},
	} {
		// Outside of a key press compopt is an error, so bash's own completion of files is not used.
		cmd := exec.Command("bash", "--norc", "-c", `source "$1"; COMP_WORDS=(`+c.words+`); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _antiphon 2>&1; printf '%s\n' "${COMPREPLY[@]}"`, "bash", script)
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, env...)
		out, err := cmd.CombinedOutput()
		if got := strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), " "); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.words, got, c.want, err)
		}
	}
}

// TestCompletionAtTerminal: a key press completes a command, a name with a blank, a value behind =
// and a file, in each shell.
func TestCompletionAtTerminal(t *testing.T) {
	for shell, start := range map[string]string{
		"bash": "bash --norc --noprofile -i",
		"zsh":  "zsh -f -i",
		"fish": "fish --no-config -i",
	} {
		t.Run(shell, func(t *testing.T) {
			script := shellScript(t, shell)
			env := completable(t)
			dir, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			line := "env"
			for _, v := range env {
				line += " '" + v + "'"
			}
			term := openTerminal(t, dir, line+" PS1='$ ' "+start)
			ready := "source " + script + "; echo re''ady"
			if shell == "zsh" {
				ready = "autoload -Uz compinit; compinit -u -D; PS1='%% '; " + ready
			}
			term.keys(t, "-l", ready)
			term.keys(t, "Enter")
			term.until(t, "\nready")
			for typed, want := range map[string]string{
				"antiphon vers":                          "antiphon version",
				"antiphon run --transp":                  "antiphon run --transport",
				"antiphon run agent.md --transport=webs": "antiphon run agent.md --transport=websocket",
				"antiphon sessions show ol":              `antiphon sessions show old\ work`,
				"antiphon run agen":                      "antiphon run agent.md",
			} {
				term.keys(t, "C-u")
				term.keys(t, "-l", typed)
				term.keys(t, "Tab")
				term.until(t, want)
			}
		})
	}
}

// TestCompletionScripts: an unknown shell is an error that names those that are known.
func TestCompletionScripts(t *testing.T) {
	if o := programEnv(t, nil, "completion", "tcsh"); o.code != exitUsage || !strings.Contains(o.err, "bash") {
		t.Errorf("%+v", o)
	}
}
