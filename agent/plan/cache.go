// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/antiphon-go/antiphon/session"
)

// Cache compares a turn's request with the one before, of the same session: an
// endpoint that caches prompts can reuse what both begin with. It is about the
// history as the log has it. Tools and instructions stand in front of it; the
// instructions are the same throughout a run, and so are the tools unless a
// ToolSource has others.
type Cache struct {
	// Input is how many bytes of history the request carried, Previous how many
	// the one before did, and Stable how many both begin with.
	Input    int `json:"input"`
	Previous int `json:"previous"`
	Stable   int `json:"stable"`
	// Broken names what ended the common beginning before the end of the
	// previous request; nil if nothing did.
	Broken *CacheBreak `json:"broken,omitempty"`
	// Expected is how many input tokens could have come out of the cache: those
	// of the request before, or Stable's share of them. Endpoints round down, and
	// do not cache short prompts. Cached is how many did.
	Expected int64 `json:"expected"`
	Cached   int64 `json:"cached"`
}

// CacheBreak is the first item of the previous request that this one does not
// carry as it was.
type CacheBreak struct {
	// Index is its place among the items of the previous request, Seq the number
	// of its entry.
	Index int   `json:"index"`
	Seq   int64 `json:"seq"`
	// Why is session.ByQuarantine, session.ByDroppedReasoning or another of
	// those, or [ByTools], for which Index is -1: no item, but what stands in front
	// of all.
	Why string `json:"why"`
}

// ByTools is why a common beginning ends before it has begun: the tools are
// others than they were.
const ByTools = "tools"

// cacheState folds what the report is made of.
type cacheState struct {
	last   Cache // of the turn under way or the last one
	tools  bool  // they changed since the last request
	asks   int
	items  int   // of the last request
	tokens int64 // input tokens of the last request whose count is known; 0 none
	warm   int   // bytes of that request
	short  bool  // tokens is what there should be at least: the endpoint counted only a part
	other  bool  // since then something else than the history changed, or it was not only added to
}

// asked takes note of a request.
func (c *cacheState) asked(v *session.View) {
	now := Cache{Input: v.Items().Size() - len("[]"), Previous: c.last.Input}
	now.Stable = min(now.Previous, now.Input)
	index, bytes, seq, why, changed := v.Changed()
	if c.asks > 0 && changed && index < c.items {
		now.Stable = min(bytes, now.Stable)
		now.Broken = &CacheBreak{index, seq, why}
	}
	if c.asks > 0 && c.tools {
		now.Stable, now.Broken = 0, &CacheBreak{Index: -1, Why: ByTools}
	}
	c.other = c.other || now.Broken != nil
	c.tools = false
	if c.warm > 0 {
		now.Expected = c.tokens * int64(min(now.Stable, c.warm)) / int64(c.warm)
	}
	c.last, c.items = now, v.Items().Len()
	c.asks++
}

// told takes note of what the endpoint said, and whether it left out the
// beginning of the history.
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

// report returns the comparison of the last turn, nil for a session's first:
// there is nothing to compare it with.
func (c *cacheState) report() *Cache {
	if c.asks < 2 {
		return nil
	}
	last := c.last
	return &last
}
