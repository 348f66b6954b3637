// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A command that a person types is asked about, recorded before it starts, confined and hidden like
// a call of run_command, although the file has no such tool, and it leaves the session as it is. K1 K8 A10 A11
func TestCommand(t *testing.T) {
	profile := sandbox.NameFull
	if s := sandbox.Available(); s.Confines() {
		profile = sandbox.NameWorkspace
	}
	dir, outside := t.TempDir(), t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<user>Go.</user>\n")
	made := filepath.Join(dir, "made")
	var got, questions []string
	answer, remember := true, &session.Rule{Verdict: session.Allow, Tool: "*"}
	cfg := host.Config{
		File: file, Workspace: dir,
		FrontEnd: host.FrontEnd{Environment: host.Environment{"OPENAI_API_KEY": "sk-0123456789-secret", "PATH": os.Getenv("PATH")}},
		Rules:    []session.Rule{{Verdict: session.Deny, Tool: "run_comman?", Member: "command", Prefix: []string{"rm"}, From: "--deny"}},
		Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
			questions = append(questions, q.Call.Arguments+" "+q.Sandbox)
			if q.Rules != nil {
				t.Errorf("the question offers rules: %v", q.Rules)
			}
			return agent.Decision{Allow: answer, Decided: session.DeciderPerson, By: "ann", Shown: "run it?", Remember: remember}, nil
		},
		Audit: func(_ context.Context, records ...audit.Record) error {
			for _, r := range records {
				if r.Kind == audit.KindStarted && r.CallID == "one" && exists(made) {
					t.Error("it had run before the record")
				}
				got = append(got, strings.Join([]string{string(r.Kind), r.Tool, r.CallID, string(r.Decided), r.By, r.Rule, r.Sandbox}, "|"))
			}
			return nil
		},
	}
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	entries := len(slices.Collect(h.Session.Entries()))
	run := func(id, line string) tool.Outcome {
		t.Helper()
		out, err := h.Command(t.Context(), id, line)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := run("one", "touch made; echo sk-0123456789-secret"); out.Failed || strings.Contains(out.Content.Display(), "secret") || !strings.Contains(out.Content.Display(), "[redacted]") || !exists(made) {
		t.Errorf("allowed: %+v, %s", out, out.Content.Display())
	}
	if out := run("two", "echo $OPENAI_API_KEY; cat /proc/$PPID/environ; touch "+filepath.Join(outside, "x")); profile != sandbox.NameFull && exists(filepath.Join(outside, "x")) || strings.Contains(out.Content.Display(), "secret") {
		t.Errorf("confined: %s", out.Content.Display())
	}
	if out := run("three", "rm made"); out.Failure != tool.NotRun || !exists(made) {
		t.Errorf("denied by a rule: %+v", out)
	}
	answer = false
	if out := run("four", "touch no"); out.Failure != tool.NotRun || exists(filepath.Join(dir, "no")) {
		t.Errorf("refused: %+v", out)
	}
	want := []string{
		"allowed|run_command|one|person|ann||", "started|run_command|one|person|ann||" + profile,
		"allowed|run_command|two|person|ann||", "started|run_command|two|person|ann||" + profile,
		"denied|run_command|three|rule|", "refused|run_command|four|person|ann||", "denied|run_command|four|person|ann|",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("the audit log:\n%s", strings.Join(got, "\n"))
	}
	if len(questions) != 3 {
		t.Errorf("questions: %q", questions)
	}
	if now := len(slices.Collect(h.Session.Entries())); now != entries {
		t.Errorf("the session has %d entries more", now-entries)
	}
}

// A typed command that cannot be recorded, or that nobody is there to allow, does not start. K8
func TestCommandUnrecorded(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<user>Go.</user>\n")
	cfg := host.Config{File: file, Workspace: dir, Rules: []session.Rule{{Verdict: session.Allow, Tool: "run_command"}},
		Audit: func(context.Context, ...audit.Record) error { return errors.New("the disk is full") }}
	for name, rules := range map[string][]session.Rule{"unrecorded": cfg.Rules, "nobody": nil} {
		cfg.Rules = rules
		h, err := host.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		out, err := h.Command(t.Context(), "", "touch made")
		if err != nil || out.Failure != tool.NotRun || exists(filepath.Join(dir, "made")) {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
