// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

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
	"github.com/antiphon-go/antiphon/trust"
)

// acting is a file whose model makes four calls: the first is allowed by the file, the
// second by a person, the third is denied, and nobody answers for the fourth.
func acting(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s.script"), "turn\n  call one {}\n  call two {}\n  call three {}\n  call four {}\nturn\n  say Done.\n")
	text := "<config model=\"rehearsal:s.script\"/>\n"
	for _, name := range []string{"one", "two", "three", "four"} {
		text += "<tool name=\"" + name + "\" command=\"touch " + filepath.Join(dir, name) + "\" description=\"x\""
		if name == "one" {
			text += ` approval="allow"`
		}
		text += "/>\n"
	}
	return write(t, filepath.Join(dir, "agent.md"), text+"<user>Go.</user>\n")
}

// config answers questions about the file at path, and keeps the records.
func config(path string, log func(audit.Record) error) host.Config {
	return host.Config{
		File: path, FrontEnd: host.FrontEnd{Program: "test 1", Environment: host.Environment{"OPENAI_API_KEY": "sk-0123456789-secret"}},
		Rules: []session.Rule{{Verdict: session.Deny, Tool: "three", From: "--deny"}},
		Trust: func(_ context.Context, c trust.Claim) (trust.Agreement, error) {
			return trust.Agreement{Powers: c.Powers, Decided: session.DeciderPerson, By: "ann", From: "a form", Shown: "it allows itself one"}, nil
		},
		Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
			if q.Call.Name == "four" {
				return agent.Decision{}, agent.ErrNobody
			}
			return agent.Decision{Allow: true, Decided: session.DeciderPerson, By: "ann sk-0123456789-secret", Shown: "two?", Remember: &session.Rule{Verdict: session.Allow, Tool: "two"}}, nil
		},
		Audit: func(_ context.Context, records ...audit.Record) error {
			for _, r := range records {
				if err := log(r); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// K8: each agreement, answer, remembered rule, start and refusal is recorded, with who
// decided, before it has an effect, and without the texts.
func TestAudit(t *testing.T) {
	file := acting(t)
	var got []string
	cfg := config(file, func(r audit.Record) error {
		if r.Program != "test 1" || !strings.HasSuffix(r.File, "agent.md") || len(r.Claim) != 64 {
			t.Errorf("%+v", r)
		}
		if ran := exists(filepath.Join(filepath.Dir(file), r.Tool)); ran && r.Kind == audit.KindStarted {
			t.Errorf("%s had run before the record", r.Tool)
		}
		if r.Kind != audit.KindTrusted && (r.Session == "" || r.CallID == "" || r.Arguments == "" || r.Agent != "agent.md") {
			t.Errorf("%+v", r)
		}
		got = append(got, strings.Join([]string{string(r.Kind), r.Tool, string(r.Decided), r.By, r.From, r.Rule, r.Shown, r.Sandbox}, "|"))
		return nil
	})
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Run(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if !exists(filepath.Join(filepath.Dir(file), name)) {
			t.Errorf("%s did not run", name)
		}
	}
	profile := sandbox.NameFull
	if s := sandbox.Available(); s.Confines() {
		profile = sandbox.NameWorkspace
	}
	want := []string{
		"trusted||person|ann|a form||" + audit.Hash("it allows itself one"),
		"remembered|two|person|ann [redacted]||allow two|" + audit.Hash("two?"),
		"allowed|two|person|ann [redacted]|||" + audit.Hash("two?"),
		"denied|three|rule||--deny|deny three|",
		"denied|four|nobody||",
		"started|one|rule||agent.md:2|allow one||" + profile,
		"started|two|person|ann [redacted]||||" + profile,
	}
	if len(got) != len(want) {
		t.Fatalf("%d records:\n%s", len(got), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("record %d: %s, want %s", i, got[i], want[i])
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// K8: what cannot be recorded is not started: no file runs, no call, no server, no answer
// counts. The person is told once.
func TestUnrecorded(t *testing.T) {
	for _, fails := range []audit.Kind{audit.KindTrusted, audit.KindStarted, audit.KindAllowed, audit.KindRemembered, audit.KindDenied} {
		file := acting(t)
		notices := 0
		cfg := config(file, func(r audit.Record) error {
			if r.Kind == fails {
				return errors.New("the disk is full")
			}
			return nil
		})
		cfg.Notify = func(n host.Notice) {
			if n.Kind == host.NoticeAudit {
				notices++
			}
		}
		h, err := host.Open(t.Context(), cfg)
		if (err != nil) != (fails == audit.KindTrusted) {
			t.Fatalf("%s: %v", fails, err)
		}
		if err == nil {
			if _, err := h.Run(t.Context(), ""); err != nil {
				t.Errorf("%s: %v", fails, err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
		ran := ""
		for _, name := range []string{"one", "two", "three", "four"} {
			if exists(filepath.Join(filepath.Dir(file), name)) {
				ran += name + " "
			}
		}
		want := map[audit.Kind]string{audit.KindAllowed: "one ", audit.KindRemembered: "one ", audit.KindDenied: "one two "}[fails]
		if ran != want || notices != 1 {
			t.Errorf("%s: ran %q, want %q; %d notices", fails, ran, want, notices)
		}
	}
	file := write(t, filepath.Join(t.TempDir(), "agent.md"), "<tool mcp_server=\"stdio:touch started\"/>\n<user>x</user>\n")
	seen := audit.Record{}
	cfg := config(file, func(r audit.Record) error {
		if seen = r; r.Kind == audit.KindConnected {
			return errors.New("the disk is full")
		}
		return nil
	})
	cfg.Workspace, cfg.Rules, cfg.Endpoint.Rehearsal = filepath.Dir(file), nil, true
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Run(t.Context(), ""); err == nil || exists(filepath.Join(filepath.Dir(file), "started")) || !slices.Equal(seen.Command, []string{"touch", "started"}) || seen.Sandbox == "" {
		t.Errorf("%v, %+v", err, seen)
	}
}

// K8: a subagent that would be too deep is recorded as denied, and never as started.
func TestTooDeepIsDenied(t *testing.T) {
	dir := t.TempDir()
	for name, inner := range map[string]string{"agent.md": "middle", "middle.md": "leaf", "leaf.md": ""} {
		text, script := "<config model=\"rehearsal:"+name+".script\"/>\n", "turn\n  say Done.\n"
		if inner != "" {
			text += "<tool name=\"" + inner + "\" agent=\"" + inner + ".md\" local description=\"x\"/>\n"
			script = "turn\n  call " + inner + " {\"task\":\"Go on.\"}\n" + script
		}
		write(t, filepath.Join(dir, name+".script"), script)
		write(t, filepath.Join(dir, name), text+"<user>Go.</user>\n")
	}
	var got []string
	cfg := config(filepath.Join(dir, "agent.md"), func(r audit.Record) error {
		got = append(got, strings.Join([]string{string(r.Kind), r.Tool, string(r.Decided), r.Rule}, "|"))
		return nil
	})
	cfg.Rules = nil
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Run(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if want := []string{"started|middle|rule|allow what only reads", "denied|leaf|program|deny subagents beyond the allowed depth"}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
