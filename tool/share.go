// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"slices"

	"github.com/antiphon-go/antiphon/item"
)

// What each output of a turn may have, however many there are, before the
// turn's limit counts.
const (
	FloorBytes  = MinBytes
	FloorTokens = MinTokens
)

// Share divides a budget among sizes as water finds its level: a size that wants
// less than the level gets all of it, everybody else gets the level, and the
// level is as high as the budget allows. Nobody is given less than floor or
// what it wants, if that is less, even where the budget is too small for that.
// What one gets does not depend on the order. Nobody who wants no more than
// budget/len(sizes) is ever shortened.
func Share(budget, floor int, sizes []int) []int {
	level := max(waterLevel(budget, sizes), floor)
	shares := make([]int, len(sizes))
	for i, size := range sizes {
		shares[i] = min(max(size, 0), level)
	}
	return shares
}

// waterLevel returns the highest level at which the shares keep within the
// budget.
func waterLevel(budget int, sizes []int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	rest := max(budget, 0)
	for i, size := range sorted {
		size = max(size, 0)
		if each := rest / (len(sorted) - i); size > each {
			return each
		}
		rest -= size
	}
	return max(0, slices.Max(append(sorted, 0)))
}

// Settled reports whether an outcome stays as it is, whatever the other calls
// of its turn put out: it is no larger than an equal part of the turn's limit.
// n is how many calls the turn has. What is settled can be recorded at once;
// the others wait for [Shape.Fit].
func (sh Shape) Settled(o *Outcome, n int) bool {
	return sh.Turn == nil || o.whole == nil || sh.Turn.settled(o, n)
}

// Fit shortens the outcomes of one turn's calls, all of them, so that their
// texts together keep within [Shape.Turn], by [Share]. They must come from
// calls that were invoked with the same Shape. It cuts from the whole outputs
// again, so that each has one set of marks, and may be repeated. The context is
// for the [Spill].
func (sh Shape) Fit(ctx context.Context, outs ...*Outcome) {
	if sh.Turn != nil {
		sh.Turn.fit(ctx, outs)
	}
}

func (l Limit) settled(o *Outcome, n int) bool {
	turn := o.whole.shape.unit(l)
	size := o.whole.shape.measure(o.Content, turn)
	fits := func(size, budget, floor int) bool {
		return budget <= 0 || size <= max(budget/max(n, 1), floor)
	}
	return fits(size.Bytes, turn.Bytes, FloorBytes) && fits(size.Tokens, turn.Tokens, FloorTokens)
}

func (l Limit) fit(ctx context.Context, outs []*Outcome) {
	outs = slices.DeleteFunc(slices.Clone(outs), func(o *Outcome) bool { return o.whole == nil })
	if len(outs) == 0 {
		return
	}
	sh := outs[0].whole.shape
	turn := sh.unit(l)
	bytes, tokens := make([]int, len(outs)), make([]int, len(outs))
	for i, o := range outs {
		size := sh.measure(o.Content, turn)
		bytes[i], tokens[i] = size.Bytes, size.Tokens
	}
	byteShares, tokenShares := Share(turn.Bytes, FloorBytes, bytes), Share(turn.Tokens, FloorTokens, tokens)
	for i, o := range outs {
		own, _ := o.whole.limit.(Limit)
		less := false
		if turn.Bytes > 0 && byteShares[i] < bytes[i] {
			own.Bytes, less = byteShares[i], true
		}
		if turn.Tokens > 0 && tokenShares[i] < tokens[i] {
			own.Tokens, less = tokenShares[i], true
		}
		if less {
			o.write(ctx, o.whole, own)
		}
	}
}

// unit returns a limit in the sizes that are measured: bytes alone if nobody
// counts tokens.
func (sh Shape) unit(l Limit) Limit {
	if sh.Tokens == nil {
		return l.inBytes()
	}
	return l
}

// measure returns the sizes of a content's text, tokens only if l bounds them.
func (sh Shape) measure(c item.Content, l Limit) Limit {
	var size Limit
	add := func(text string) {
		size.Bytes += len(text)
		if l.Tokens > 0 {
			size.Tokens += sh.count(text, l.Tokens)
		}
	}
	if c.IsText() {
		add(c.Text)
	}
	for _, p := range c.Parts {
		if t, ok := p.(*item.InputText); ok {
			add(t.Text)
		}
	}
	return size
}

// count counts tokens, but does not bother with what is far beyond the limit.
func (sh Shape) count(text string, limit int) int {
	const far = 32
	if len(text)/far > limit {
		return max(limit+1, EstimateTokens(text))
	}
	return sh.Tokens.Count(text)
}
