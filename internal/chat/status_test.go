// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// TestBranch proves that the status line names the branch of a folder, of one below it and of a
// worktree, and nothing where there is none or what it has is odd.
func TestBranch(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"repo/.git/worktrees/tree", "tree", "detached/.git", "odd/.git"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "repo", ".git", "HEAD"), "ref: refs/heads/feature/x\n")
	write(t, filepath.Join(dir, "tree", ".git"), "gitdir: ../repo/.git/worktrees/tree\n")
	write(t, filepath.Join(dir, "repo", ".git", "worktrees", "tree", "HEAD"), "ref: refs/heads/other\n")
	write(t, filepath.Join(dir, "detached", ".git", "HEAD"), "0123456789abcdef\n")
	write(t, filepath.Join(dir, "odd", ".git", "HEAD"), "ref: refs/heads/a\x1b[2Jb\n")
	for _, name := range []string{"repo/below/it", "none"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"repo": "feature/x", "repo/below/it": "feature/x", "tree": "other", "detached": "", "odd": "a<U+001B>[2Jb", "none": ""} {
		if got := branchOf(filepath.Join(dir, filepath.FromSlash(name))); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestStatusOfChat proves that the status line names the model that would be asked, also before the first
// request and after another one was chosen, and how full its context is.
func TestStatusOfChat(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"gpt-5.1\"/>\n")
	d := &dialogue{print: &show.Printer{}, used: new(agent.Account), cfg: host.Config{File: file, Workspace: dir}, info: session.Info{Name: "work"}, calls: newOutline(strings.TrimSpace, nil)}
	d.cfg.Environment = host.Environment{"OPENAI_API_KEY": "sk-test-0123456789"}
	opened := func(model string) {
		t.Helper()
		d.cfg.Endpoint.Model = model
		h, err := host.Open(t.Context(), d.cfg)
		if err != nil {
			t.Fatal(err)
		}
		d.answers = whoAnswers(h, &d.cfg)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	status := func(width int, want string) {
		t.Helper()
		if got := d.statusLine(width); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	opened("")
	status(80, "gpt-5.1 at api.openai.com · context of 400k · work")
	turn := session.TurnEnded{Usage: &api.Usage{InputTokens: 90_000, OutputTokens: 11_000, TotalTokens: 101_000}, Window: 200_000}
	d.print.Setup = session.Setup{Model: "gpt-5.1", Endpoint: "https://api.openai.com/v1"}
	d.count(session.Entry{Seq: 1, Body: turn})
	status(80, "gpt-5.1 at api.openai.com · context 50% of 200k · 101k tokens · work")
	status(100, "gpt-5.1 at api.openai.com · context █████░░░ 50% of 200k · 101k tokens · work")
	opened("qwen3")
	status(80, "qwen3 at api.openai.com · context 101k · 101k tokens · work")
	opened("rehearsal")
	status(80, "the rehearsal · context 101k · 101k tokens · work")
}

// TestSpentToday proves that only what was spent on the day counts, and what a fork has from the
// session before only there.
func TestSpentToday(t *testing.T) {
	s := &daySpent{from: time.Unix(1000, 0)}
	turn := func(seq, at int64) session.Entry {
		return session.Entry{Seq: seq, Time: time.Unix(at, 0), Body: session.TurnEnded{Cost: 2}}
	}
	fork := session.Info{Parent: "p", At: 5}
	for _, tt := range []struct {
		e    session.Entry
		of   session.Info
		want float64
	}{
		{turn(1, 999), session.Info{}, 0},
		{turn(1, 1000), session.Info{}, 2},
		{turn(5, 1001), fork, 0},
		{turn(6, 1001), fork, 2},
		{session.Entry{Seq: 1, Time: time.Unix(1001, 0), Body: session.SubagentUsage{Cost: 3}}, session.Info{}, 3},
		{session.Entry{Seq: 1, Time: time.Unix(1001, 0), Body: session.CallStarted{}}, session.Info{}, 0},
	} {
		if got := s.add(tt.e, tt.of); got != tt.want {
			t.Errorf("%+v of %+v: %v, want %v", tt.e, tt.of, got, tt.want)
		}
	}
	other := 1.5
	s.here = 2
	s.others.Store(&other)
	if got := s.total(); got != 3.5 {
		t.Errorf("the total is %v", got)
	}
}
