// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
)

// A question that nobody answers goes from one person to the next, and then the call does not run: it counts
// neither as allowed nor as refused.
func TestApproversInTime(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n")
	write(t, filepath.Join(dir, "agent.script"), "turn\n  call append_to_file {\"path\": \"notes.txt\", \"content\": \"x\"}\nturn\n  say Then not.\n")
	var told []string
	cfg := host.Config{
		File: file, Workspace: dir, ApprovalTime: time.Millisecond, Approvers: []string{"anna", "ben"},
		Approver: func(ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
			<-ctx.Done()
			return agent.Decision{}, ctx.Err()
		},
	}
	cfg.Notify = func(n host.Notice) {
		if n.Kind == host.NoticeDeadline {
			told = append(told, n.Text)
		}
	}
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	res, err := h.Run(t.Context(), "Write it down")
	if err != nil || res.Text != "Then not." {
		t.Errorf("%+v, %v", res, err)
	}
	var verdicts []session.Approval
	for e := range h.Session.Entries() {
		if a, ok := e.Body.(session.Approval); ok {
			verdicts = append(verdicts, a)
		}
	}
	if len(verdicts) != 1 || verdicts[0].Allowed || verdicts[0].Decided != session.DeciderUnanswered || verdicts[0].By != "" {
		t.Errorf("%+v", verdicts)
	}
	if len(told) != 2 || !strings.Contains(told[0], "ben is asked now") || !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, "nobody answered") }) {
		t.Errorf("%q", told)
	}
}
