// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/antiphon-go/antiphon/session"
)

// Cache compares a turn's request with the previous request of the same session. An
// endpoint that caches prompts can reuse their common prefix. Sizes are those of the
// history in the log. Tools and instructions precede it in the request: if they, the
// model or the endpoint are others than in the previous request, nothing is common.
type Cache struct {
	// Input and Previous are the sizes of this request's and the previous request's
	// history, in bytes. Stable is the size of their common prefix.
	Input    int `json:"input"`
	Previous int `json:"previous"`
	Stable   int `json:"stable"`
	// Broken is the reason why the common prefix ends before the end of the previous
	// request; nil if it does not.
	Broken *CacheBreak `json:"broken,omitempty"`
	// Expected is the number of input tokens that the endpoint could have read from
	// its cache: all input tokens of the previous request, or the share that Stable
	// is of it. Endpoints round down, and do not cache short prompts. Cached is the
	// number that the endpoint reported.
	Expected int64 `json:"expected"`
	Cached   int64 `json:"cached"`
}

// CacheBreak identifies the first item of the previous request that this request does
// not repeat unchanged.
type CacheBreak struct {
	// Index is the item's index in the previous request, and Seq the number of its
	// entry.
	Index int   `json:"index"`
	Seq   int64 `json:"seq"`
	// Why is one of the reasons of package session, such as session.ByQuarantine or
	// session.ByDroppedReasoning, or one of those below. For these the Index is -1: no item
	// changed, but what precedes all items.
	Why string `json:"why"`
}

// Reasons of a [CacheBreak] with an empty common prefix: other tools, other instructions,
// and another model or endpoint.
const (
	ByTools        = "tools"
	ByInstructions = "instructions"
	ByModel        = "model"
)

// cacheState folds the entries into the data of the report.
type cacheState struct {
	last   Cache  // for the current or the last turn
	tools  bool   // the tools changed since the last request
	prefix string // what else changed since then that precedes the history: a reason, or ""
	asks   int
	items  int   // of the last request
	tokens int64 // input tokens of the last request with a known count; 0 if there is none
	warm   int   // size of that request, in bytes
	short  bool  // tokens is a lower bound: the endpoint counted only a part of the request
	other  bool  // since then the history was edited, or something outside it changed
}

// asked records a request.
func (c *cacheState) asked(v *session.View) {
	now := Cache{Input: v.Items().Size() - len("[]"), Previous: c.last.Input}
	now.Stable = min(now.Previous, now.Input)
	index, bytes, seq, why, changed := v.Changed()
	if c.asks > 0 && changed && index < c.items {
		now.Stable = min(bytes, now.Stable)
		now.Broken = &CacheBreak{index, seq, why}
	}
	if c.tools {
		c.prefix = ByTools
	}
	if c.asks > 0 && c.prefix != "" {
		now.Stable, now.Broken = 0, &CacheBreak{Index: -1, Why: c.prefix}
	}
	c.other = c.other || now.Broken != nil
	c.tools, c.prefix = false, ""
	if c.warm > 0 {
		now.Expected = c.tokens * int64(min(now.Stable, c.warm)) / int64(c.warm)
	}
	c.last, c.items = now, v.Items().Len()
	c.asks++
}

// moved compares the setups of two requests. The first one is empty in logs of programs that
// did not record it.
func (c *cacheState) moved(was, now *session.Setup) {
	switch {
	case was.Model == "" && was.Endpoint == "":
	case was.Model != now.Model || was.Endpoint != now.Endpoint:
		c.prefix = ByModel
	case !slices.Equal(was.Tools, now.Tools):
		c.prefix = ByTools
	case was.Instructions != now.Instructions:
		c.prefix = ByInstructions
	}
}

// told records the usage that the endpoint reported, and whether the endpoint left
// out the beginning of the history.
func (c *cacheState) told(b session.TurnEnded, truncated bool) {
	if b.Usage == nil || b.BrokeOff() {
		return
	}
	c.last.Cached = b.Usage.Cached()
	if c.short = truncated; truncated {
		c.tokens += int64(max(0, c.last.Input-c.warm)) / leastTokens
	} else {
		c.tokens = b.Usage.InputTokens
	}
	c.warm, c.other = c.last.Input, b.Profile != ""
}

// report returns the comparison of the last turn. It is nil for the first turn of a
// session, which has no previous request.
func (c *cacheState) report() *Cache {
	if c.asks < 2 {
		return nil
	}
	last := c.last
	return &last
}
