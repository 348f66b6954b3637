// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Compaction says when a run sends something shorter instead of the older
// part of what it sends, and what. The zero value is off: then a history that
// no longer fits ends the run with [ContextFull].
//
// Nothing is lost by it: the log keeps all, and [Restore] takes it back. What
// the system and the developer said stays as it is, and so do the newest items and
// what the user said last. Replies are replaced together with the outputs of
// their calls.
type Compaction struct {
	// Auto starts it automatically: near the end of the model's context, and when
	// the endpoint says that the history is too long, once for each time.
	Auto bool
	// At is how many tokens a request may be estimated at before it starts. If it
	// is set, Auto need not be. 0 is Share of what the window leaves for input; if
	// the window is not known, only the endpoint's word starts it.
	At int64
	// Window is the model's context in tokens: 0 is what is known of
	// Agent.Request.Model.
	Window int64
	// Share is how much of what the window leaves for input may be filled: 0 means
	// 0.8. The longest reply that the model can give does not count as input.
	Share float64
	// Keep is how many of the newest tokens stay as they are: 0 means a quarter of
	// where it starts, 20 000 at most. It is less where they end in the middle of
	// a reply and its outputs, and more if no request has carried them yet. Of what
	// the user said before them, the newest stays too, up to half as many tokens.
	Keep int64
	// By says how: session.BySummary, which is what "" means, ByEndpoint or
	// ByDropping. ByEndpoint is a summary where the Model is no [Compacter], or its
	// endpoint says that it has no such thing.
	By string
	// Model writes summaries, in answer to Request, of which Input, Instructions
	// and Tools are not used. Without it the agent's own does; without Request.Model
	// it is asked for the agent's, and stores what the agent's requests do.
	Model   Model
	Request item.Request
	// Estimator guesses how many tokens an item takes. nil is [Estimate].
	Estimator Estimator
}

// Compacter is implemented by a [Model] whose endpoint makes histories shorter
// itself. A responses.Client is one.
type Compacter interface {
	Compact(ctx context.Context, req *item.CompactRequest) (*item.Compacted, error)
}

// Defaults of [Compaction].
const (
	defaultShare = 0.8
	maxKeep      = 20_000
	keepUnknown  = 8_000 // of a window that is not known
)

// room is what the agent's configuration comes to.
func (a *Agent) room() plan.Room {
	c := &a.Compaction
	model := a.Request.Model
	if !c.Auto && c.At <= 0 {
		_, told := a.Model.(Sizer)
		return plan.Room{Learn: told, Model: model, Estimator: c.Estimator}
	}
	window := cmp.Or(c.Window, windowOf(model))
	start := c.At
	if start <= 0 && window > 0 {
		start = int64(cmp.Or(c.Share, defaultShare) * float64(window-replyOf(&a.Request, window)))
	}
	keep := c.Keep
	if keep <= 0 {
		keep = cmp.Or(min(start/4, maxKeep), keepUnknown)
	}
	return plan.Room{
		On: true, Start: start, Window: window, Keep: keep, By: cmp.Or(c.By, session.BySummary),
		Learn: c.Window <= 0 && c.At <= 0, Share: cmp.Or(c.Share, defaultShare), Reply: longestReply(&a.Request),
		Model: model, Estimator: c.Estimator,
	}
}

// windowOf returns the context window of a model, 0 if it is not known.
func windowOf(model string) int64 {
	m, _ := endpoint.LookupModel(model)
	return int64(m.ContextWindow)
}

// replyOf returns how much of the window is for the reply.
func replyOf(req *item.Request, window int64) int64 { return plan.Within(longestReply(req), window) }

// longestReply returns how long a reply can be, 0 if that is not known.
func longestReply(req *item.Request) int64 {
	if req.MaxOutputTokens != nil {
		return *req.MaxOutputTokens
	}
	m, _ := endpoint.LookupModel(req.Model)
	return int64(m.MaxOutput)
}
