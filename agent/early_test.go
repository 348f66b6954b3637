// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// slowly says the items, a second before each and before the end, which is an
// error if there is one.
func slowly(failure error, items ...item.Item) listen {
	return func(ctx context.Context, yield func(api.Event, error) bool) {
		for i, it := range items {
			time.Sleep(time.Second)
			if !yield(event(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, it.JSON()), nil) ||
				!yield(event(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, it.JSON()), nil) {
				return
			}
		}
		time.Sleep(time.Second)
		if failure != nil {
			yield(api.Event{}, failure)
			return
		}
		yield(event(`{"type":"response.completed","response":{"id":"r","status":"completed"}}`), nil)
	}
}

// names lists what a run did about calls, in order.
func names(events []agent.Event) (list []string) {
	for _, ev := range events {
		e, _ := ev.(agent.Recorded)
		switch b := e.Body.(type) {
		case session.CallStarted:
			list = append(list, "start "+b.CallID)
		case session.CallOutput:
			list = append(list, "done "+b.CallID)
		case session.TurnEnded:
			list = append(list, "end")
		}
	}
	return list
}

// L3 E4: a call whose tool allows it starts while the reply still comes, up to
// the bound and to the first call that may not; outputs come behind the reply, in
// call order. If the reply breaks off, a call that was started stays, with its
// output.
func TestEarlyStart(t *testing.T) {
	early := []tool.Option{tool.ReadOnly(), tool.EarlyStart()}
	broke := errors.New("the line is dead")
	for _, c := range []struct {
		name     string
		policy   agent.Policy
		parallel int
		failure  error
		calls    []item.Item
		events   []string
		history  []string
	}{
		{"all", agent.Policy{}, 0, nil, []item.Item{call("a", "early", "a"), call("b", "early", "b")},
			[]string{"start a", "start b", "end", "done a", "done b", "end"}, []string{"a: early", "b: early", "a = a", "b = b", "assistant: done"}},
		{"bound", agent.Policy{}, 1, nil, []item.Item{call("a", "early", "a"), call("b", "early", "b")},
			[]string{"start a", "end", "done a", "start b", "done b", "end"}, nil},
		{"behind another", agent.Policy{}, 0, nil, []item.Item{call("a", "early", "a"), call("x", "alone", "x"), call("b", "early", "b")},
			[]string{"start a", "end", "done a", "start x", "done x", "start b", "done b", "end"}, nil},
		{"ask", agent.Policy{Ask: []string{"early"}}, 0, nil, []item.Item{call("a", "early", "a")}, []string{"end", "done a", "end"}, nil},
		{"same id", agent.Policy{}, 0, nil, []item.Item{withID("fc_1", "a"), withID("fc_2", "a")},
			[]string{"start a", "end", "done a", "start a", "done a", "end"}, nil},
		{"cut", agent.Policy{}, 0, nil, []item.Item{item.Must(&item.FunctionCall{CallID: "a", Name: "early", Arguments: "{", Status: item.StatusIncomplete})}, []string{"end", "done a", "end"}, nil},
		{"broken off", agent.Policy{}, 0, broke, []item.Item{item.Assistant("Hm."), call("a", "early", "a"), call("x", "alone", "x")},
			[]string{"start a", "end", "done a"}, []string{"assistant: Hm.", "a: early", "a = a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := new(ledger)
				m := &memory{replies: []any{slowly(c.failure, c.calls...), []item.Item{item.Assistant("done")}}}
				a := &agent.Agent{Model: m, Tools: []tool.Tool{l.tool("early", early...), l.tool("alone", tool.ReadOnly(), tool.Exclusive())}, Policy: c.policy, Parallel: c.parallel}
				s := session.New()
				events, err := drain(a.Stream(t.Context(), s, item.User("go")))
				if !errors.Is(err, c.failure) {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.events, names(events)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				for text, n := range l.ran {
					if n > 1 {
						t.Errorf("%s ran %d times", text, n)
					}
				}
				list := history(s)
				if err := agenttest.CheckPairing(list...); err != nil {
					t.Error(err)
				}
				if c.history == nil {
					return
				}
				var got []string
				for _, line := range outline(list)[1:] {
					got = append(got, firstOf(line, "("))
				}
				if diff := cmp.Diff(c.history, got); diff != "" {
					t.Errorf("history (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func firstOf(line, sep string) string {
	for i := range line {
		if line[i:i+1] == sep {
			return line[:i]
		}
	}
	return line
}

func withID(id, callID string) item.Item {
	return item.Must(&item.FunctionCall{ID: id, CallID: callID, Name: "early", Arguments: `{"text":"` + id + `"}`})
}

// L3: the tool really runs beside the reply.
func TestEarlyStartSavesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gauge)
		m := &memory{replies: []any{slowly(nil, call("a", "sleep", "3"), item.Assistant("and"), item.Assistant("so on")), []item.Item{item.Assistant("done")}}}
		a := &agent.Agent{Model: m, Tools: []tool.Tool{g.sleeper("sleep", tool.ReadOnly(), tool.EarlyStart())}}
		began := time.Now()
		if _, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// L6 S8: whoever leaves while a call runs early leaves nothing behind.
func TestLeaveDuringEarlyCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gauge)
		m := &memory{replies: []any{slowly(nil, call("a", "sleep", "60"), item.Assistant("and"))}}
		a := &agent.Agent{Model: m, Tools: []tool.Tool{g.sleeper("sleep", tool.ReadOnly(), tool.EarlyStart())}}
		s := session.New()
		for ev := range a.Stream(t.Context(), s, item.User("go")) {
			if said := told[session.OutputItem]([]agent.Event{ev}); len(said) > 0 && said[0].Item.Type() == item.TypeMessage {
				break
			}
		}
		checkClosed(t, s, "left")
		contains(t, outputs(history(s))["a"], "interrupted")
	})
}

// J1: a store that fails at any append beside early calls ends all of them.
func TestStoreFailsBesideEarlyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := 0; ; n++ {
			l := new(ledger)
			m := &memory{replies: []any{slowly(nil, call("a", "early", "a"), call("b", "early", "b")), []item.Item{item.Assistant("done")}}}
			a := &agent.Agent{Model: m, Tools: []tool.Tool{l.tool("early", tool.ReadOnly(), tool.EarlyStart())}}
			s, err := session.Open(t.Context(), &diskFull{new(session.Memory), n}, "s")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = a.Run(t.Context(), s, item.User("go")); err == nil {
				break
			}
			if !errors.Is(err, errFull) {
				t.Fatal(err)
			}
		}
	})
}
