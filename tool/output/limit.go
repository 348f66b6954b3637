// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Limit bounds the text of an output, including the envelope and the marks for
// omitted text. The zero value bounds nothing. If both sizes are set, both apply.
// Images and files are not counted: see [Policy.Images].
type Limit struct {
	// Bytes and Tokens bound the text; 0 means no bound. Values below MinBytes or
	// MinTokens are raised to these, so that some text remains.
	Bytes, Tokens int
	// Mode selects the part of a text that is kept. Empty means HeadTail.
	Mode Mode
}

// The default limits of package agent, in bytes: for each tool output, and for all
// outputs of a turn together.
const (
	DefaultBytes     = 64 << 10
	DefaultTurnBytes = 256 << 10
)

// The smallest limits. They leave room for an envelope, a mark and some of the text.
const (
	MinBytes  = 1024
	MinTokens = 256
)

// Mode selects the part of a text that is kept when the text is too long.
type Mode string

// The modes.
const (
	Head     Mode = "head"
	Tail     Mode = "tail"
	HeadTail Mode = "head+tail"
	Sample   Mode = "sample" // blocks of lines at equal distances, including the first and the last
)

// Counter counts the tokens of a text, like the tokenizer of a model. It must return
// the same number for the same text and be safe for concurrent use. It is not called
// for a text with more than 32 bytes per token of its limit: such a text counts as
// too long.
type Counter interface {
	Count(text string) int
}

// bytesPerToken is the assumed size of a token without a [Counter].
const bytesPerToken = 4

// EstimateTokens is used without a [Counter]: it counts one token for every four
// bytes, rounded up.
func EstimateTokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// Check returns an error for a size that is negative or below the minimum, and for
// an unknown mode.
func (l Limit) Check() error {
	switch {
	case l.Bytes < 0 || l.Tokens < 0:
		return fmt.Errorf("output limit: a size is negative")
	case l.Bytes > 0 && l.Bytes < MinBytes:
		return fmt.Errorf("output limit: %d bytes is less than the smallest, %d", l.Bytes, MinBytes)
	case l.Tokens > 0 && l.Tokens < MinTokens:
		return fmt.Errorf("output limit: %d tokens is less than the smallest, %d", l.Tokens, MinTokens)
	}
	switch l.Mode {
	case "", Head, Tail, HeadTail, Sample:
		return nil
	}
	return fmt.Errorf("output limit: unknown mode %q: want head, tail, head+tail or sample", l.Mode)
}

// ParseLimit parses a limit as written in a file or a flag: a number of tokens, or
// of bytes if followed by that word, and then optionally a mode:
//
//	8000
//	8000 tokens tail
//	65536 bytes sample
func ParseLimit(s string) (Limit, error) {
	var l Limit
	words := strings.Fields(s)
	if len(words) == 0 {
		return l, fmt.Errorf("output limit: want a number of tokens")
	}
	n, err := strconv.Atoi(words[0])
	if err != nil || n <= 0 {
		return l, fmt.Errorf("output limit %q: want a number of tokens, such as 8000", s)
	}
	words = words[1:]
	switch {
	case len(words) > 0 && words[0] == "bytes":
		l.Bytes, words = n, words[1:]
	case len(words) > 0 && words[0] == "tokens":
		l.Tokens, words = n, words[1:]
	default:
		l.Tokens = n
	}
	if len(words) > 0 {
		l.Mode, words = Mode(words[0]), words[1:]
	}
	if len(words) > 0 {
		return Limit{}, fmt.Errorf("output limit %q: %q does not belong there", s, words[0])
	}
	if err := l.Check(); err != nil {
		return Limit{}, err
	}
	return l, nil
}

// isZero reports whether neither size is bounded.
func (l Limit) isZero() bool { return l.Bytes <= 0 && l.Tokens <= 0 }

// or returns l, with the fields that l leaves unset taken from m.
func (l Limit) or(m Limit) Limit {
	if l.isZero() {
		l.Bytes, l.Tokens = m.Bytes, m.Tokens
	}
	if l.Mode == "" {
		l.Mode = m.Mode
	}
	return l
}

// floor raises sizes to the minimum.
func (l Limit) floor() Limit {
	if l.Bytes > 0 {
		l.Bytes = max(l.Bytes, MinBytes)
	}
	if l.Tokens > 0 {
		l.Tokens = max(l.Tokens, MinTokens)
	}
	return l
}

// inBytes converts the limit to bytes alone. Without a counter, a token is a fixed
// number of bytes.
func (l Limit) inBytes() Limit {
	if l.Tokens > 0 {
		if n := l.Tokens * bytesPerToken; l.Bytes <= 0 || n < l.Bytes {
			l.Bytes = n
		}
		l.Tokens = 0
	}
	return l
}

// within returns the limit that satisfies both limits.
func (l Limit) within(other Limit) Limit {
	smaller := func(a, b int) int {
		if a == 0 || b == 0 {
			return max(a, b)
		}
		return min(a, b)
	}
	l.Bytes, l.Tokens = smaller(l.Bytes, other.Bytes), smaller(l.Tokens, other.Tokens)
	return l
}

// share divides a budget among sizes like water that finds its level: a size below
// the level is granted in full, every other size gets the level, and the level is as
// high as the budget allows. No share is smaller than the lesser of floor and the
// size, even if the budget is too small for that. A share does not depend on the
// order of sizes. A size of at most budget/len(sizes) is always granted in full.
func share(budget, floor int, sizes []int) []int {
	level := max(waterLevel(budget, sizes), floor)
	shares := make([]int, len(sizes))
	for i, size := range sizes {
		shares[i] = min(max(size, 0), level)
	}
	return shares
}

// waterLevel returns the highest level at which the shares stay within the budget.
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

// WithinTurn reports whether [Policy.FitTurn] leaves an output unchanged regardless
// of the other outputs of its turn, because it is no larger than an equal share of
// [Policy.PerTurn]. n is the number of calls in the turn. Such an output can be
// recorded at once; the others must wait for FitTurn.
func (p Policy) WithinTurn(o *Output, n int) bool {
	if p.PerTurn == nil || o == nil || o.whole == nil {
		return true
	}
	turn := p.unit(*p.PerTurn)
	size := p.measure(o.Content, turn)
	fits := func(size, budget, floor int) bool {
		return budget <= 0 || size <= max(budget/max(n, 1), floor)
	}
	return fits(size.Bytes, turn.Bytes, MinBytes) && fits(size.Tokens, turn.Tokens, MinTokens)
}

// FitTurn shortens the outputs of one turn so that their texts together stay within
// [Policy.PerTurn]. outs must be all outputs of the turn, written with the same
// Policy. Outputs below an equal share are unchanged, and the others divide what
// remains. FitTurn always cuts from the whole outputs, so that each has one set of
// marks; it may be called again. The context is for the [Store].
func (p Policy) FitTurn(ctx context.Context, outs ...*Output) {
	outs = slices.DeleteFunc(slices.Clone(outs), func(o *Output) bool { return o == nil || o.whole == nil })
	if p.PerTurn == nil || len(outs) == 0 {
		return
	}
	turn := p.unit(*p.PerTurn)
	bytes, tokens := make([]int, len(outs)), make([]int, len(outs))
	for i, o := range outs {
		size := p.measure(o.Content, turn)
		bytes[i], tokens[i] = size.Bytes, size.Tokens
	}
	byteShares, tokenShares := share(turn.Bytes, MinBytes, bytes), share(turn.Tokens, MinTokens, tokens)
	for i, o := range outs {
		own := o.whole.limit
		less := false
		if turn.Bytes > 0 && byteShares[i] < bytes[i] {
			own.Bytes, less = byteShares[i], true
		}
		if turn.Tokens > 0 && tokenShares[i] < tokens[i] {
			own.Tokens, less = tokenShares[i], true
		}
		if less {
			o.whole.write(ctx, o, own)
		}
	}
}

// unit returns a limit in the sizes that are measured: only bytes if there is no
// token counter.
func (p Policy) unit(l Limit) Limit {
	if p.Tokens == nil {
		return l.inBytes()
	}
	return l
}

// measure returns the size of a content's text. It counts tokens only if l bounds
// them.
func (p Policy) measure(c item.Content, l Limit) Limit {
	var size Limit
	add := func(text string) {
		size.Bytes += len(text)
		if l.Tokens > 0 {
			size.Tokens += p.count(text, l.Tokens)
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

// count counts tokens. It only estimates a text that is far beyond the limit.
func (p Policy) count(text string, limit int) int {
	const far = 32
	if len(text)/far > limit {
		return max(limit+1, EstimateTokens(text))
	}
	return p.Tokens.Count(text)
}
