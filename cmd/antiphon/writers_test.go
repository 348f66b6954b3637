// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// TestTranscriptWriters proves that of runs that are started together on one file,
// new or not, one has it, and the others write and send nothing and say who has
// it. J2
func TestTranscriptWriters(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		dir := t.TempDir()
		agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"m\"/>\n<user>Begin.</user>\n")
		out := filepath.Join(dir, "talk.md")
		srv := agenttest.NewServer(t)
		run := func(say string) (o outcome) { // in a process of its own
			var stdout, stderr strings.Builder
			cmd := exec.Command("antiphon", "run", agent, "--out", out, "--base-url", srv.URL, say)
			cmd.Env = append(os.Environ(), "OPENAI_API_KEY="+testKey)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
				t.Error(err)
				return o
			}
			return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
		}
		before := 0
		if round%4 > 1 { // a file that is there
			srv.Add(agenttest.Completed(item.Assistant("Hello.")))
			if o := run("first"); o.code != 0 {
				t.Fatalf("%d\n%s", o.code, o.err)
			}
			before = 1
		}
		release := make(chan struct{})
		srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
			return agenttest.Completed(item.Assistant("Hello.")).Stall(release)
		})
		n := 2 + round%2
		type ended struct {
			say string
			outcome
		}
		ends := make(chan ended)
		for i := range n {
			say := fmt.Sprintf("This is %d.", i)
			go func() { ends <- ended{say, run(say)} }()
		}
		var lost []string
		for range n - 1 {
			o := <-ends
			lost = append(lost, o.say)
			if o.code != 1 || o.out != "" || !regexp.MustCompile(`talk\.md: another process or run is writing to the session: process \d+ on .*; nothing was sent or written\n  hint: `).MatchString(o.err) {
				t.Errorf("a loser: exit code %d\n%s%s", o.code, o.out, o.err)
			}
		}
		close(release)
		if o := <-ends; o.code != 0 {
			t.Errorf("the winner: exit code %d\n%s", o.code, o.err)
		}
		text := read(t, out)
		for _, r := range srv.Requests() {
			text += string(r.Body)
		}
		if len(srv.Requests()) != before+1 || slices.ContainsFunc(lost, func(say string) bool { return strings.Contains(text, say) }) {
			t.Errorf("round %d: %d requests; %v lost\n%s", round, len(srv.Requests()), lost, text)
		}
		var names []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, []string{"agent.md", "talk.md"}) {
			t.Errorf("left behind: %v %v", names, err)
		}
		if o := run(lost[0]); o.code != 0 || !strings.Contains(read(t, out), lost[0]) {
			t.Errorf("alone: exit code %d\n%s", o.code, o.err)
		}
	}
}

// TestTranscriptSaysWhatMadeIt proves that what a run adds begins with what made
// it, where it is not what made what stands before: model, endpoint, settings,
// program and file, and what the endpoint calls the model that answered. A
// transcript is not gone on with by another agent's file. J12
func TestTranscriptSaysWhatMadeIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := "<config model=\"gpt-5.1\" temperature=\"0.5\"/>\n<user>Begin.</user>\n"
	agent := write(t, filepath.Join(dir, "real.md"), source)
	other := write(t, filepath.Join(dir, "other.md"), "<config model=\"gpt-5.1\"/>\n<user>Something else.</user>\n")
	out := filepath.Join(dir, "tr.md")
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("Hello.")) })
	size := 0
	added := func(args ...string) string {
		t.Helper()
		o := program(t, append([]string{"run", "--out", out, "--base-url", srv.URL}, args...)...)
		if o.code != 0 || strings.Contains(o.err, "[warning]") {
			t.Fatalf("%d\n%s", o.code, o.err)
		}
		text := read(t, out)
		noKey(t, "the transcript", text)
		defer func() { size = len(text) }()
		return text[size:]
	}
	text := added(agent, "--model", "other")
	rest, ok := strings.CutPrefix(text, source+"<run agent=\"real.md\" program=\"antiphon ")
	if line, _, _ := strings.Cut(rest, "\n"); !ok || !strings.Contains(line, ` model="other" `) || !strings.Contains(line, ` endpoint="`+srv.URL) ||
		!strings.Contains(line, `"temperature":0.5`) || !strings.Contains(line, session.Fingerprint(source)) {
		t.Errorf("the first run added\n%s", text)
	}
	if !regexp.MustCompile(`<turn_end number="1" status="completed" response_id="[^"]+" model="[^"]+"`).MatchString(text) {
		t.Errorf("the model that answered is not told:\n%s", text)
	}
	if text = added(agent, "more"); !strings.HasPrefix(text, "<run program=") || !strings.Contains(text, ` model="gpt-5.1" `) {
		t.Errorf("the second run added\n%s", text)
	}
	if text = added(agent, "and more"); !strings.HasPrefix(text, "<run/>\n") {
		t.Errorf("the third run, as the second, added\n%s", text)
	}

	before, asked := read(t, out), len(srv.Requests())
	o := program(t, "run", other, "--out", out, "--base-url", srv.URL, "x")
	if o.code != 2 || !strings.Contains(o.err, "tr.md: the transcript was begun by real.md, not ") || !strings.Contains(o.err, "--in-place") || !strings.Contains(o.err, "--keep-agent") {
		t.Errorf("another agent: exit code %d\n%s", o.code, o.err)
	}
	if read(t, out) != before || len(srv.Requests()) != asked {
		t.Error("something was written or sent")
	}
	if text = added(other, "--keep-agent", "all the same"); !strings.HasPrefix(text, "<run/>\n") {
		t.Errorf("by force, it added\n%s", text)
	}
	write(t, agent, source+"<!-- changed -->\n")
	o = program(t, "run", agent, "--out", out, "--base-url", srv.URL, "x")
	if o.code != 0 || !strings.Contains(o.err, "real.md has changed since it began ") {
		t.Errorf("a changed agent: exit code %d\n%s", o.code, o.err)
	}
}
