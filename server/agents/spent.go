// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/estimate"
	"github.com/antiphon-go/antiphon/session"
)

// tellUsage tells a writer what the response used that begins at an entry of a log. What the endpoint does not say,
// because a reply broke off or it never does, is estimated for limits. In the usage, which says what was counted, it
// is missing, and a usage of which nothing was counted is null. prices may be nil. never reports whether the endpoint
// did not say it of a reply that was complete.
func tellUsage(w *server.Writer, log []session.Entry, seq int64, prices func(model string) (agent.Price, bool)) (never bool) {
	w.Cost, w.Model = pricesOf(log[seq:])
	counted := usageOf(log[seq:])
	silent, model, never := silentTurns(log, seq)
	if len(silent) == 0 || counted.TotalTokens > 0 {
		w.Usage(counted)
	}
	if len(silent) == 0 {
		return false
	}
	sum := counted
	for i := range silent {
		sum.InputTokens = plan.Plus(sum.InputTokens, silent[i].InputTokens)
		sum.OutputTokens = plan.Plus(sum.OutputTokens, silent[i].OutputTokens)
		sum.TotalTokens = plan.Plus(sum.TotalTokens, silent[i].TotalTokens)
		if prices != nil {
			price, _ := prices(model) // of nothing, if it is not known
			w.Cost += price.Of(&silent[i])
		}
	}
	w.Spent, w.Model = &sum, cmp.Or(w.Model, model)
	return never
}

// says reports whether a usage says something. Some servers send one that is all zeros.
func says(u *api.Usage) bool {
	return u != nil && (u.InputTokens > 0 || u.OutputTokens > 0 || u.TotalTokens > 0)
}

// silentTurns estimates the turns from an entry of a log on whose usage the endpoint did not say, and returns the
// model that the log names last, and whether one of them is complete. The input of a turn is the items before it, without the agent's tools. A request
// that the endpoint refused used nothing.
func silentTurns(log []session.Entry, seq int64) (list []api.Usage, model string, never bool) {
	var history, input, output int64
	open := false
	end := func() {
		list = append(list, api.Usage{InputTokens: input, OutputTokens: output, TotalTokens: plan.Plus(input, output)})
		open = false
	}
	for i := range log {
		switch b := log[i].Body.(type) {
		case session.RunStarted:
			if open { // the turn before it broke off
				end()
			}
			if b.Setup != nil {
				model = cmp.Or(b.Setup.Model, model)
			}
		case session.InputItem:
			history += tokensOf(b.Item)
		case session.CallOutput:
			history += tokensOf(b.Item)
		case session.OutputItem:
			n := tokensOf(b.Item)
			history, output = history+n, output+n
		case session.Compacted:
			if b.Failure == "" {
				history = b.After
			}
		case session.TurnStarted:
			if open {
				end()
			}
			if b.Setup != nil {
				model = cmp.Or(b.Setup.Model, model)
			}
			input, output, open = history, 0, int64(i) >= seq
		case session.TurnEnded:
			refused := b.Status == item.StatusFailed && output == 0 && b.Class != string(endpoint.Truncated)
			if open && !says(b.Usage) && !refused {
				never = never || !b.BrokeOff()
				end()
			}
			open = false
		}
	}
	if open {
		end()
	}
	return list, model, never
}

// tokensOf estimates the tokens of an item.
func tokensOf(it item.Item) int64 { return estimate.Tokens(it.JSON()) }

// tellUsage is the function, and says once for each agent that its endpoint never says what it used.
func (b *Backend) tellUsage(w *server.Writer, a string, log []session.Entry, seq int64, prices func(model string) (agent.Price, bool)) {
	if !tellUsage(w, log, seq, prices) {
		return
	}
	b.mu.Lock()
	told := b.unsaid[a]
	if b.unsaid == nil {
		b.unsaid = map[string]bool{}
	}
	b.unsaid[a] = true
	b.mu.Unlock()
	if !told {
		b.report(fmt.Errorf("the endpoint of the agent %s does not say what it used: limits and usage count an estimate", a))
	}
}
