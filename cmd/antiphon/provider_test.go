// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/rehearsal"
)

// standIn is an endpoint that is no rehearsal as far as the program knows.
func standIn(t *testing.T) string {
	t.Helper()
	base, stop, err := new(rehearsal.Server).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return base
}

// TestSaysKnownServer: the line names the kind of server that answered the session
// before, which the first request is made for; another session is not asked so. U1
func TestSaysKnownServer(t *testing.T) {
	for _, api := range []string{"responses", "chat"} {
		dir := t.TempDir()
		file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
		l := agenttest.StartLocal(t, &agenttest.Local{Server: "llama.cpp", Text: "It is so."})
		run := func(name, prompt string) string {
			o := program(t, "run", file, prompt, "--model", "m", "--base-url", l.URL, "--api", api, "--session", name, "--store", filepath.Join(dir, "s.db"))
			if o.code != 0 {
				t.Errorf("exit code %d: %s", o.code, o.err)
			}
			return o.err
		}
		for i, step := range []struct{ session, profile string }{{"a", "careful"}, {"a", "llama.cpp"}, {"b", "careful"}, {"a", "llama.cpp"}} {
			if said := run(step.session, "And now?"); !strings.Contains(said, " answers (profile "+step.profile) {
				t.Errorf("%s, run %d: no %s in\n%s", api, i, step.profile, said)
			}
		}
	}
}

// TestSaysWhoAnswers: one line names model, host and profile. A session that
// holds the rehearsal's words warns before a real model reads them. U1
func TestSaysWhoAnswers(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	base := standIn(t)
	for _, keep := range [][]string{
		{"--session", "work", "--store", filepath.Join(dir, "s.db")},
		{"--out", filepath.Join(dir, "talk.md")},
	} {
		if o := program(t, append([]string{"run", file, "--rehearsal"}, keep...)...); o.code != 0 || strings.Contains(o.err, "!!") {
			t.Fatalf("exit code %d\n%s", o.code, o.err)
		}
		o := program(t, append([]string{"run", file, "And now?", "--model", "m", "--base-url", base}, keep...)...)
		host := strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/v1")
		if want := "antiphon: m at " + host + " answers (profile careful)\n"; o.code != 0 || strings.Count(o.err, want) != 1 {
			t.Errorf("exit code %d, want once %q:\n%s", o.code, want, o.err)
		}
		if want := "!! the rehearsal model said 1 item of this conversation; m reads that as its own words."; !strings.Contains(o.err, want) {
			t.Errorf("no %q:\n%s", want, o.err)
		}
	}
}
