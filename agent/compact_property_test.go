// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// guess is an estimator that is wrong by a factor.
type guess float64

func (g guess) Estimate(model string, it item.Item) int {
	return int(float64(g) * float64(plan.Estimate(model, it)))
}

// C2 C3 C4 P1: whatever a model says and however wrong the estimates are, a run
// comes to its end; each compaction that counts saves a real share; every request
// pairs up and begins with the instructions; what the model has not seen is never
// replaced; and taken back, nothing is missing.
func TestAnyModelCompacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(t, name) }
		m := &small{window: []int{0, 1000, 4000}[pick("window", 3)]}
		m.reply = func(int) (items []item.Item) {
			if pick("thinks", 2) == 0 {
				items = append(items, item.Must(&item.Reasoning{ID: "rs", Summary: []item.Part{&item.SummaryText{Text: "hm"}}}))
			}
			for range pick("calls", 4) {
				items = append(items, call([]string{"a", "b"}[pick("id", 2)], "echo", strings.Repeat("x ", pick("size", 2000))))
			}
			return append(items, item.Assistant("said"))
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		m.summary = func(context.Context, *api.Request) (string, error) {
			switch pick("summary", 8) {
			case 0:
				return "", errors.New("no service")
			case 1:
				cancel()
				return "", context.Canceled
			case 2:
				return strings.Repeat("long ", 3000), nil
			}
			return strings.Repeat("sum ", pick("length", 100)), nil
		}
		a := compacting(m)
		a.Limits.MaxTurns = 12
		a.Compaction = agent.Compaction{
			At: int64(pick("at", 4000)), Auto: true, Keep: int64(pick("keep", 2000)), Window: int64(m.window * pick("known", 2)),
			By: []string{session.BySummary, session.ByDropping, session.ByEndpoint}[pick("by", 3)], Estimator: guess(0.25 + float64(pick("guess", 12))/4),
		}
		s := session.New()
		system := item.System("the rules")
		for range 3 {
			_, err := a.Run(ctx, s, system, item.User("q"))
			if err != nil && ctx.Err() == nil && !errors.Is(err, overflow()) && !strings.Contains(err.Error(), "tokens") && !strings.Contains(err.Error(), "context") {
				t.Fatal(err)
			}
			if ctx.Err() != nil {
				ctx, cancel = context.WithCancel(context.Background())
				defer cancel()
			}
		}
		for i, req := range m.turns {
			items := itemsOf(req.Input)
			if err := agenttest.CheckPairing(items...); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			if items[0] != system {
				t.Fatalf("request %d begins with %s", i, items[0].JSON())
			}
		}
		var never session.View
		tried, turns := 0, 0
		began, answered := int64(0), int64(0) // the last turn, and the last one that ended well
		for e := range s.Entries() {
			switch b := e.Body.(type) {
			case session.Compacted:
				if tried++; b.Failure == "" && b.Before-b.After < b.Before/10 {
					t.Fatalf("%+v", b)
				}
				if b.Failure == "" && answered > 0 && b.Through > answered {
					t.Fatalf("it replaces what no request has carried since entry %d: %+v", answered, b)
				}
				continue
			case session.TurnStarted:
				turns++
				began = e.Seq
			case session.TurnEnded:
				if !b.BrokeOff() {
					answered = began
				}
			}
			never.Apply(e)
		}
		if tried > 2*turns+3 {
			t.Fatalf("%d compactions in %d turns", tried, turns)
		}
		whole := itemsOf(never.Items())
		if _, err := agent.Restore(context.Background(), s, 0); err == nil || tried > 0 {
			never = session.View{}
			for e := range s.Entries() {
				never.Apply(e)
			}
			if !slices.Equal(itemsOf(never.Items()), whole) {
				t.Fatal("taken back, it is not what it was")
			}
		}
		session.Explain(s.Entries())
	})
}
