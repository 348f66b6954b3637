// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Of two runs on one stored session the second gets an error before it has sent
// or written anything, and what the first one's tool did is in the log. G4
func TestRunLocks(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c", "charge", "x")), agenttest.Completed(item.Assistant("done")))
	other, err := session.Open(t.Context(), r.store, "s")
	if err != nil {
		t.Fatal(err)
	}
	busy := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, session.ErrBusy) {
			t.Errorf("%s beside the run: %v", what, err)
		}
	}
	r.agent.Tools = []tool.Tool{textTool("charge", func(ctx context.Context, _ string) (string, error) {
		asked, entries := len(r.server.Requests()), len(r.session.Log())
		_, err := r.agent.Run(ctx, other, item.User("two"))
		busy("a run of another Session", err)
		_, err = r.agent.Run(ctx, r.session, item.User("three"))
		busy("a run of the same Session", err)
		if err := agent.Decide(ctx, other, agent.Decision{CallID: "c", Allow: true}); !errors.Is(err, agent.ErrNoSuchApproval) {
			t.Errorf("a decision that nobody asked for, beside the run: %v", err)
		}
		_, err = agent.Restore(ctx, other, 0)
		busy("a restore", err)
		_, err = r.agent.Compact(ctx, other)
		busy("a compaction", err)
		if len(r.server.Requests()) != asked || len(r.session.Log()) != entries {
			t.Error("the second run sent or wrote something")
		}
		return "charged", nil
	})}
	if res := r.run(item.User("one")); res.Why != agent.StopEndTurn {
		t.Errorf("%+v", res)
	}
	if got := outputs(history(r.session))["c"]; got != "charged" {
		t.Errorf("the tool's output is %q", got)
	}
	// The lock is free again, and the other Session reads what happened first.
	r.server.Add(agenttest.Completed(item.Assistant("on")))
	if res, err := r.agent.Run(t.Context(), other, item.User("on")); err != nil || res.Why != agent.StopEndTurn {
		t.Errorf("%+v, %v", res, err)
	}
	r.inputs()
}

// A caller who has the lock runs as often as it likes, and keeps it. Without a
// lock of its own a nested session is written under that of the one around it.
func TestRunUnderLock(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Call("a", "fork", `{"command":"Go."}`), item.Call("b", "fork", `{"command":"Go too."}`)),
		agenttest.Completed(item.Assistant("x")), agenttest.Completed(item.Assistant("x")), agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("again")))
	r.agent.Tools = []tool.Tool{agent.ForkTool()}
	unlock, err := r.session.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.run(item.User("one"))
	r.run(item.User("two"))
	if _, err := r.store.Lock(t.Context(), "s"); !errors.Is(err, session.ErrBusy) {
		t.Errorf("the caller's lock is gone: %v", err)
	}
	inner, err := session.Open(t.Context(), r.store, session.SubsessionID("s", 1, "a"))
	if err != nil || len(inner.Log()) == 0 {
		t.Fatalf("the fork's session: %v, %v", inner.Log(), err)
	}
	if _, err := r.agent.Run(t.Context(), inner, item.User("hi")); !errors.Is(err, session.ErrBusy) {
		t.Errorf("a run in a session nested in a locked one: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if _, err := r.session.Lock(t.Context()); err != nil {
		t.Error(err)
	}
}

// WaitLock waits until the holder is done, or the context is.
func TestWaitLock(t *testing.T) {
	r := newRig(t)
	other, err := session.Open(t.Context(), r.store, "s")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := other.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.session.WaitLock(ctx); !errors.Is(err, session.ErrBusy) || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	go func() { _ = unlock() }()
	free, err := r.session.WaitLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := free(); err != nil {
		t.Error(err)
	}
}
