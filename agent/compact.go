// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/session"
)

// Compaction sets when and how a run sends something shorter in place of older items.
// The zero value disables it; a history that no longer fits then ends the run with
// [StopContextFull].
//
// Compaction does not lose anything: the log keeps every item, and [Restore] undoes
// it. System and developer messages stay, and so do the newest items and the user's
// last messages. Replies are replaced together with the outputs of their calls.
type Compaction struct {
	// Auto compacts automatically near the end of the model's context, and each time
	// the endpoint reports that the history is too long.
	Auto bool
	// At is the estimated request size, in tokens, from which a compaction starts. It
	// works without Auto. 0 means Share of the window's input part; if the window is
	// unknown, a compaction starts only when the endpoint reports that the history is
	// too long.
	At int64
	// Window is the size of the model's context in tokens: 0 means the known size for
	// Agent.Request.Model.
	Window int64
	// Share is the share of the window's input part that may be filled: 0 means 0.8.
	// The input part is the window without the longest reply of the model.
	Share float64
	// Keep is the number of the newest tokens that stay unchanged: 0 means a quarter
	// of the starting size, at most 20 000, or 8 000 if the starting size is unknown. Fewer stay if the boundary is within a
	// reply and its outputs, and more if no request has carried them yet. The user's
	// newest messages before them stay too, up to half as many tokens.
	Keep int64
	// By selects how: session.BySummary (also ""), ByEndpoint or ByDropping.
	// ByEndpoint falls back to a summary if the Model is not a [Compactor], or if its
	// endpoint does not support compaction.
	By string
	// Model writes summaries, in answer to Request. The Input, Instructions and Tools
	// of Request are ignored. A nil Model means the agent's. If Request.Model is
	// empty, the agent's model is used; if Request.Store is nil, the agent's setting.
	Model   Model
	Request api.Request
	// Estimator estimates how many tokens an item takes. Nil means [plan.Estimate].
	Estimator Estimator
}

// Compactor is implemented by a [Model] whose endpoint can compact histories.
// responses.Client implements it.
type Compactor interface {
	Compact(ctx context.Context, req *api.CompactRequest) (*api.Compacted, error)
}

// Defaults of [Compaction].
const (
	defaultShare = 0.8
	maxKeep      = 20_000
	keepUnknown  = 8_000 // for an unknown window
)

// check returns an error for values that say nothing about a compaction. Without it they
// would count as the defaults, or be noticed only when the history is long.
func (c *Compaction) check() error {
	switch c.By {
	case "", session.BySummary, session.ByEndpoint, session.ByDropping:
	default:
		return fmt.Errorf("agent: Compaction.By is %q, want %q, %q, %q or nothing", c.By, session.BySummary, session.ByEndpoint, session.ByDropping)
	}
	if !(c.Share >= 0 && c.Share <= 1) {
		return fmt.Errorf("agent: Compaction.Share is %v: want a share of the context, up to 1, or 0 for the default", c.Share)
	}
	for _, one := range []struct {
		name  string
		value int64
	}{{"At", c.At}, {"Window", c.Window}, {"Keep", c.Keep}} {
		if one.value < 0 {
			return fmt.Errorf("agent: Compaction.%s is %d: want a number of tokens, or 0 for the default", one.name, one.value)
		}
	}
	return nil
}

// room converts the agent's configuration for the State.
func (a *Agent) room() plan.ContextBudget {
	c := &a.Compaction
	model := a.Request.Model
	if !c.Auto && c.At <= 0 {
		_, told := a.Model.(Sizer)
		return plan.ContextBudget{Learn: told, Model: model, Estimator: c.Estimator}
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
	return plan.ContextBudget{
		On: true, Start: start, Window: window, Keep: keep, By: cmp.Or(c.By, session.BySummary),
		Learn: c.Window <= 0 && c.At <= 0, Share: cmp.Or(c.Share, defaultShare), Reply: longestReply(&a.Request),
		Model: model, Estimator: c.Estimator,
	}
}

// windowOf returns the size of a model's context, or 0 if it is unknown.
func windowOf(model string) int64 {
	m, _ := endpoint.LookupModel(model)
	return int64(m.ContextWindow)
}

// replyOf returns the part of the window that is reserved for the reply.
func replyOf(req *api.Request, window int64) int64 { return plan.Within(longestReply(req), window) }

// longestReply returns the longest possible reply in tokens, or 0 if it is unknown.
func longestReply(req *api.Request) int64 {
	if req.MaxOutputTokens != nil {
		return *req.MaxOutputTokens
	}
	m, _ := endpoint.LookupModel(req.Model)
	return int64(m.MaxOutput)
}
