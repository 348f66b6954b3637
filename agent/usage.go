// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// maxCounted is more tokens than any reply has. A count above it is a mistake of
// the endpoint, and would make sums meaningless.
const maxCounted = 1 << 40

// counted returns the usage that counts: limits and sums rest on it, so it must
// not be less than its parts. What cannot be true is set right, and told: "" means
// that nothing was, but for a total that is missing.
func counted(u *item.Usage) (right *item.Usage, wrong string) {
	if u == nil || plausible(u) {
		return u, ""
	}
	own := *u
	var list []string
	set := func(n *int64, what string) {
		if was := *n; was < 0 || was > maxCounted {
			*n = min(max(was, 0), maxCounted)
			list = append(list, fmt.Sprintf("%d %s, which count as %d", was, what, *n))
		}
	}
	set(&own.InputTokens, "input tokens")
	set(&own.OutputTokens, "output tokens")
	set(&own.TotalTokens, "tokens in all")
	if d := u.InputDetails; d != nil {
		inner := *d
		set(&inner.CachedTokens, "cached tokens")
		own.InputDetails = &inner
	}
	if d := u.OutputDetails; d != nil {
		inner := *d
		set(&inner.ReasoningTokens, "reasoning tokens")
		own.OutputDetails = &inner
	}
	parts := own.InputTokens + own.OutputTokens
	if own.TotalTokens < parts {
		if own.TotalTokens > 0 {
			list = append(list, fmt.Sprintf("%d tokens in all for %d and %d, which count as %d", own.TotalTokens, own.InputTokens, own.OutputTokens, parts))
		}
		own.TotalTokens = parts
	}
	if len(list) > 0 {
		wrong = "the endpoint's count of tokens cannot be true: it reports " + strings.Join(list, "; ")
	}
	return &own, wrong
}

// plausible reports counts that need no correction.
func plausible(u *item.Usage) bool {
	fits := func(n int64) bool { return n >= 0 && n <= maxCounted }
	return fits(u.InputTokens) && fits(u.OutputTokens) && fits(u.TotalTokens) && u.TotalTokens >= u.InputTokens+u.OutputTokens &&
		(u.InputDetails == nil || fits(u.InputDetails.CachedTokens)) && (u.OutputDetails == nil || fits(u.OutputDetails.ReasoningTokens))
}

// plus adds counts; the sum is at most the largest number there is.
func plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// count makes the usage of a turn one that counts.
func (r *Run) count(ctx context.Context, end *session.TurnEnded) error {
	u, wrong := counted(end.Usage)
	if end.Usage = u; wrong == "" {
		return nil
	}
	return r.notice(ctx, Noticed{Turn: end.Turn, Kind: session.NoticeUsageWrong, Text: wrong})
}
