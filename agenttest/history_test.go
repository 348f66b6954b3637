// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// J1: what is wrong with a log is found without asking those who wrote it.
func TestCheckLog(t *testing.T) {
	call := item.Call("c1", "work", `{}`)
	out, _, err := item.OutputFor(call, item.Text("done"))
	if err != nil {
		t.Fatal(err)
	}
	begin := []session.Body{session.RunStarted{}, session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: call}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted}}
	start, repeatable, answer := session.CallStarted{CallID: "c1"}, session.CallStarted{CallID: "c1", Repeatable: true}, session.CallOutput{CallID: "c1", Item: out}
	for name, c := range map[string]struct {
		more  []session.Body
		ran   agenttest.CallCounts
		log   string
		calls string
	}{
		"sound":                    {[]session.Body{start, answer, session.TurnStarted{Turn: 2}}, agenttest.CallCounts{Began: 1, Ended: 1}, "", ""},
		"no output":                {[]session.Body{start, session.TurnStarted{Turn: 2}}, agenttest.CallCounts{}, "has no output", ""},
		"two outputs":              {[]session.Body{start, answer, answer}, agenttest.CallCounts{}, "no call c1 waits", ""},
		"run again":                {[]session.Body{start, session.RunStarted{}, start}, agenttest.CallCounts{Began: 2}, "must not be run again", "begun 2 times"},
		"run again, as it may be":  {[]session.Body{repeatable, session.RunStarted{}, repeatable}, agenttest.CallCounts{Began: 2}, "", ""},
		"run again when answered":  {[]session.Body{repeatable, answer, repeatable}, agenttest.CallCounts{}, "no call c1 waits", ""},
		"run without an intent":    {nil, agenttest.CallCounts{Began: 1}, "", "begun 1 times, and the log says 0"},
		"run more than it says":    {[]session.Body{repeatable}, agenttest.CallCounts{Began: 2}, "", "begun 2 times, and the log says 1"},
		"the same item twice":      {[]session.Body{start, answer, session.TurnStarted{Turn: 2}, said(2), said(2)}, agenttest.CallCounts{}, "is there twice", ""},
		"an item of no turn":       {[]session.Body{start, answer, said(1)}, agenttest.CallCounts{}, "not under way", ""},
		"a turn that was there":    {[]session.Body{start, answer, session.TurnStarted{Turn: 1}}, agenttest.CallCounts{}, "behind turn 1", ""},
		"cut, and never started":   {[]session.Body{start, answer, session.TurnStarted{Turn: 2}, session.OutputItem{Turn: 2, Item: item.Call("c2", "work", "{}")}, session.RunStarted{}, session.TurnStarted{Turn: 3}}, agenttest.CallCounts{}, "", ""},
		"started while it runs":    {[]session.Body{repeatable, repeatable}, agenttest.CallCounts{}, "runs already", ""},
		"paused, and goes on then": {[]session.Body{session.CallStarted{CallID: "c1", Session: "s/1"}, session.Paused{CallID: "c1", Session: "s/1"}, session.CallStarted{CallID: "c1", Session: "s/1"}, answer}, agenttest.CallCounts{}, "", ""},
	} {
		var log []session.Entry
		for i, b := range append(begin[:len(begin):len(begin)], c.more...) {
			log = append(log, session.Entry{Seq: int64(i) + 1, Body: b})
		}
		ran := map[string]agenttest.CallCounts{agenttest.CallKey("s", 1, "c1"): c.ran}
		for what, got := range map[string]struct {
			err  error
			want string
		}{"log": {agenttest.CheckLog(log), c.log}, "calls": {agenttest.CheckCalls("s", log, 0, ran), c.calls}} {
			if got.want == "" != (got.err == nil) || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: %s: %v", name, what, got.err)
			}
		}
	}
	gap := []session.Entry{{Seq: 2, Body: session.RunStarted{}}}
	if err := agenttest.CheckLog(gap); err == nil {
		t.Error("a log that begins with entry 2 is sound")
	}
	if err := agenttest.CheckCalls("s", nil, 0, map[string]agenttest.CallCounts{agenttest.CallKey("s", 1, "c1"): {Began: 1}}); err == nil {
		t.Error("a call that no log has is sound")
	}
}

func said(turn int) session.Body {
	return session.OutputItem{Turn: turn, Item: item.Must(&item.Message{ID: "msg_1", Role: item.RoleAssistant, Content: item.Text("x")})}
}

// J1: the ledger knows of each call that began and ended, under the key that the
// log gives.
func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := agenttest.OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	work := tool.Must("work", "Works.", func(ctx context.Context, _ struct{}) (string, error) { return agenttest.KeyOf(ctx), nil }, tool.ReadOnly())
	fall := tool.Must("fall", "Falls.", func(context.Context, struct{}) (string, error) { panic("on the floor") }, tool.ReadOnly())
	srv := agenttest.NewServer(t, agenttest.Completed(item.Call("c1", "work", "{}"), item.Call("c2", "fall", "{}")), agenttest.Completed(item.Assistant("done")))
	a := &agent.Agent{Model: srv.Client(), Tools: []tool.Tool{l.Tool(work), l.Tool(fall)}, Hooks: []agent.Hooks{l.Hooks()}}
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ran, err := agenttest.ReadCallLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"c1", "c2"} {
		if key := agenttest.CallKey(s.ID(), 1, id); ran[key] != (agenttest.CallCounts{Began: 1, Ended: 1}) {
			t.Errorf("%s: %+v", key, ran)
		}
	}
	if err := agenttest.CheckCalls(s.ID(), s.Log(), 0, ran); err != nil {
		t.Error(err)
	}
	if none, err := agenttest.ReadCallLog(path + "-not"); err != nil || len(none) > 0 {
		t.Error(none, err)
	}
}
