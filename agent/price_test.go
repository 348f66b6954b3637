// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// TestInvalidPrice holds L4: a price with which no cost can be counted does not
// switch a limit off. It is an error before anything is sent, also without a limit,
// because the log cannot hold a cost that is NaN.
func TestInvalidPrice(t *testing.T) {
	for _, price := range []agent.Price{{Input: math.NaN()}, {Cached: -1}, {Output: math.Inf(1)}, {Input: 1, Output: math.Inf(-1)}} {
		for _, limit := range []float64{0, 1e-7} {
			r := newRig(t, agenttest.Completed(item.Assistant("done")))
			r.agent.Prices = func(string) (agent.Price, bool) { return price, true }
			r.agent.Limits.MaxCost = limit
			r.give(item.User("go"))
			_, err := r.agent.Run(t.Context(), r.session)
			if p, ok := errors.AsType[*agent.PriceError](err); !ok || p.Model != "test-model" || !strings.Contains(p.Error(), "not negative") {
				t.Errorf("price %v, limit %v: %v", price, limit, err)
			}
			if sent := len(r.server.Requests()); sent != 0 {
				t.Errorf("price %v, limit %v: %d requests were sent", price, limit, sent)
			}
		}
	}
}

// L4: a hook that chooses another model for one turn does not change the price of the
// next one.
func TestPriceOfEachTurn(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "a")), agenttest.Completed(call("c2", "echo", "b")), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Prices = func(model string) (agent.Price, bool) {
		return map[string]agent.Price{"test-model": {Output: 1e6}, "small": {}}[model], true
	}
	r.agent.Hooks = []agent.Hooks{{BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
		if c.Turn == 2 {
			c.Request.Model = "small"
		}
		return ctx, nil
	}}}
	r.run(item.User("go"))
	var costs []bool
	for e := range r.session.Entries() {
		if b, ok := e.Body.(session.TurnEnded); ok {
			costs = append(costs, b.Cost > 0)
		}
	}
	if !slices.Equal(costs, []bool{true, false, true}) {
		t.Errorf("which turns cost something: %v", costs)
	}
}
