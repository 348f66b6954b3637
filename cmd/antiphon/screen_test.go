// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
)

// slow makes a folder with an agent whose command prints a line and waits for the
// file go.
func slow(t *testing.T, line string) (dir string) {
	dir = t.TempDir()
	write(t, filepath.Join(dir, "slow.sh"), "#!/bin/sh\nprintf '"+line+"\\n'\nwhile [ ! -e go ]; do sleep 0.05; done\necho the end\n")
	write(t, filepath.Join(dir, "agent.md"), `<config model="rehearsal:agent.script"/>
<tool name="build" command="sh slow.sh"/>
<user>Build.</user>
`)
	write(t, filepath.Join(dir, "agent.script"), "turn\n  call build {}\nturn\n  say Built.\n")
	return dir
}

// U4: at a terminal a line says what runs and how long, with the last line of its
// output; it goes when the call ends, survives a resize, and neither wide
// characters nor escapes of the tool garble it.
func TestStatusLine(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for a terminal")
	}
	t.Parallel()
	dir := slow(t, `step one \\033]0;title\\007\\033[2J\\033[31mred 世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界`)
	term := openTerminal(t, dir, "antiphon run agent.md --allow build")
	screen := term.until(t, "… build, ")
	if !strings.Contains(screen, "step one") {
		screen = term.until(t, "step one")
	}
	for line := range strings.Lines(screen) {
		if show.ColumnsOf(strings.TrimRight(line, "\n")) > 150 {
			t.Errorf("a line is too long: %q", line)
		}
	}
	_, second := term.untilLater(t, "… build", 0)
	term.tmux(t, "resize-window", "-x", "60", "-y", "40")
	screen, _ = term.untilLater(t, "… build", second)
	if n := strings.Count(screen, "… build"); n != 1 {
		t.Errorf("the line is there %d times:\n%s", n, screen)
	}
	write(t, filepath.Join(dir, "go"), "")
	screen = term.until(t, "[exit code 0]")
	if strings.Contains(screen, "… build") || !strings.Contains(screen, "Built.") || !strings.Contains(screen, "| the end") {
		t.Errorf("the screen at the end:\n%s", screen)
	}
	raw := term.written(t)
	if strings.Contains(raw, "\x1b]0;") || strings.Contains(raw, "\x1b[2J") {
		t.Errorf("escapes of the tool reach the terminal: %q", raw)
	}
}

// U4: who is asked is said while the endpoint is silent; standard output that is
// no terminal has the answer and nothing else.
func TestStatusLineOfModel(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for a terminal")
	}
	t.Parallel()
	release := make(chan struct{})
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("Hello.")).StallAfter(0, release))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"big-model\"/>\n<user>Hi.</user>\n")
	term := openTerminal(t, dir, "antiphon run agent.md --base-url "+srv.URL+" >answer.txt")
	term.until(t, "… big-model at 127.0.0.1")
	term.untilLater(t, "… big-model", 0)
	close(release)
	screen := term.until(t, "[exit code 0]")
	if strings.Contains(screen, "… big-model") {
		t.Errorf("the line stays:\n%s", screen)
	}
	if got := read(t, filepath.Join(dir, "answer.txt")); got != "Hello.\n" {
		t.Errorf("standard output holds %q", got)
	}
}

// U4: a store that others keep busy is waited for with a line, too, and of a long
// thought the line has the newest words.
func TestStatusLineOfStoreAndThought(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for a terminal")
	}
	t.Parallel()
	release := make(chan struct{})
	thought := strings.Repeat("First I look at it. ", 20) + "Now I know."
	const whole = `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello.","annotations":[]}]}`
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("One.")), agenttest.Events(
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"r","output_index":0,"summary_index":0,"delta":"`+thought+`"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"`+thought+`"}]}}`,
		`{"type":"response.output_item.done","output_index":1,"item":`+whole+`}`,
		`{"type":"response.completed","response":{"id":"r","status":"completed"}}`).StallAfter(2, release))
	dir := t.TempDir()
	file, store := write(t, filepath.Join(dir, "agent.md"), "<config model=\"m\"/>\n<user>Hi.</user>\n"), filepath.Join(dir, "s.db")
	if o := program(t, "run", file, "--session", "work", "--store", store, "--base-url", srv.URL); o.code != 0 {
		t.Fatal(o.err)
	}
	db, err := sql.Open("sqlite", store)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t, dir, "antiphon run agent.md --session work --store s.db --store-retry 60s --base-url "+srv.URL+" More")
	term.until(t, "… the store of the sessions, ")
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	term.until(t, "Now I know.")
	close(release)
	if screen := term.until(t, "[exit code 0]"); strings.Contains(screen, "… the store") {
		t.Errorf("the line stays:\n%s", screen)
	}
}

// U4: in plain mode, and in a terminal that moves no cursor, nothing is drawn
// over anything.
func TestPlainMode(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"antiphon run agent.md --allow build --plain", "TERM=dumb antiphon run agent.md --allow build", "ANTIPHON_PLAIN=1 antiphon run agent.md --allow build"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir := slow(t, "step one")
			term := openTerminal(t, dir, line)
			term.until(t, "-> build")
			write(t, filepath.Join(dir, "go"), "")
			term.until(t, "[exit code 0]")
			if raw := term.written(t); strings.Contains(raw, "\x1b[J") || strings.Contains(raw, "\x1b[2m") || strings.Contains(raw, "…") {
				t.Errorf("the terminal got %q", raw)
			}
		})
	}
}

// U4: outputs are shown by their end, whole, or not at all.
func TestShownOutputs(t *testing.T) {
	agent := func(t *testing.T) string {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "note.txt"), "one\ntwo\nthree\nfour\nfive\x1b[31m\u200b\n")
		write(t, filepath.Join(dir, "agent.script"), "turn\n  call read_file {\"path\": \"note.txt\"}\nturn\n  say Read.\n")
		return write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"read_file\"><read id=\"here\" path=\"${prompt_dir}\"/></tool>\n<user>Read.</user>\n")
	}
	o := program(t, "run", agent(t), "-v")
	wantAll(t, "-v", o.err, "-> read_file note.txt\n", "   | one\n", "   | four\n", "five", "<U+200B>")
	if o = program(t, "run", agent(t), "--quiet"); strings.Contains(o.err, "->") || strings.Contains(o.err, "--") || o.out != "Read.\n" {
		t.Errorf("--quiet: %q and %q", o.out, o.err)
	}
	if o = program(t, "run", agent(t)); strings.Contains(o.err, "   |") {
		t.Errorf("a pipe gets %q", o.err)
	}
}

// U4: what a tool put out before it failed is shown, too: it says what went wrong.
func TestShownOutputsOfFailures(t *testing.T) {
	dir := t.TempDir()
	command := write(t, filepath.Join(dir, "build.sh"), "echo one\necho two\necho three\necho four\necho no such thing >&2\nexit 3\n")
	write(t, filepath.Join(dir, "agent.script"), "turn\n  call build {}\nturn\n  say Read.\n")
	agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"build\" command=\"sh "+filepath.ToSlash(command)+"\" description=\"Builds.\"/>\n<user>Build.</user>\n")
	o := program(t, "run", agent, "-v", "--allow", "build")
	wantAll(t, "-v", o.err, "failed: the command failed with exit code 3", "   | one\n", "   | four\n", "   | no such thing\n")
	if strings.Contains(o.err, "   | status:") || strings.Contains(o.err, "   | error:") {
		t.Errorf("-v: the error comes twice:\n%s", o.err)
	}
	term := openTerminal(t, dir, "antiphon run agent.md --allow build")
	wantAll(t, "a terminal", term.until(t, "[exit code 0]"), "above, which --show-output shows\n", "   | no such thing\n")
	if o = program(t, "run", agent, "--allow", "build"); strings.Contains(o.err, "   |") {
		t.Errorf("a pipe gets %q", o.err)
	}
	if o = program(t, "run", agent, "--allow", "nothing", "-v"); strings.Contains(o.err, "   |") {
		t.Errorf("a refused call put out %q", o.err)
	}
}

// An answer that is given twice answers one question: the next call has not been
// seen by then. A5
func TestAnsweredTwice(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.script"), "turn\n  call note {\"arguments\": [\"one\"]}\n  call note {\"arguments\": [\"two\"]}\nturn\n  say Done.\n")
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"note\" command=\"echo\" description=\"Notes.\"/>\n<user>Note.</user>\n")
	term := openTerminal(t, dir, "antiphon run agent.md")
	term.until(t, "run it?")
	term.keys(t, "y", "Enter", "y", "Enter")
	term.until(t, "(1 line was typed before this question: not taken as its answer)")
	term.keys(t, "n", "Enter")
	wantAll(t, "the screen", term.until(t, "[exit code 0]"), "1 call, 1 refused")
}
