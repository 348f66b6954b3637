// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Limit bounds the text of an output, the envelope and the marks of what was
// left out included. The zero value bounds nothing. With both sizes set, both
// hold. Images and files are not counted: see [Shape.Images].
type Limit struct {
	// Bytes and Tokens bound the text: 0 means no bound. What is smaller than
	// MinBytes or MinTokens counts as that much, so that something is left.
	Bytes, Tokens int
	// Mode says which part of a text stays. Empty means HeadTail.
	Mode Mode
}

// Limiter is a [Limit] where there may be none: nil says nothing about a bound,
// and Limit{} says that there is none. It is an interface only so that a program
// that calls tools by itself does not carry what shortens outputs. No other type
// is one.
type Limiter interface {
	shortener
	// Check is [Limit.Check].
	Check() error
	settled(o *Outcome, n int) bool
	fit(ctx context.Context, outs []*Outcome)
}

// shortener shortens the output w of an outcome.
type shortener interface {
	shorten(ctx context.Context, o *Outcome, w *whole)
}

// paged is a [*page].
type paged interface {
	shortener
	// behind is for a text that n bytes were put in front of.
	behind(n int) paged
}

// What an agent gives a model of the outputs of tools where nothing else is
// asked for, in bytes: of each, and of those of a turn together.
const (
	DefaultOutput     = 64 << 10
	DefaultTurnOutput = 256 << 10
)

// The smallest limits: enough for an envelope, a mark and some of the text.
const (
	MinBytes  = 1024
	MinTokens = 256
)

// Mode says which part of a text stays when it is too long.
type Mode string

// The modes.
const (
	Head     Mode = "head"
	Tail     Mode = "tail"
	HeadTail Mode = "head+tail"
	Sample   Mode = "sample" // blocks of lines at equal distances, the first and the last among them
)

// Counter counts the tokens of a text: a tokenizer of the model. It must give
// the same number for the same text and be safe for concurrent use. A text of
// more than 32 bytes a token of its limit is taken to be over it without asking.
type Counter interface {
	Count(text string) int
}

// bytesPerToken is what a token is taken for without a [Counter].
const bytesPerToken = 4

// EstimateTokens is what stands in for a [Counter]: one token for every four
// bytes or part of them.
func EstimateTokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// Check reports sizes that are negative or below the smallest, and modes that
// do not exist.
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

// ParseLimit reads a limit as it stands in a file or a flag: a number of
// tokens, or of bytes if that word follows, and then a mode if one is wanted:
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

// isZero reports that no size is bounded.
func (l Limit) isZero() bool { return l.Bytes <= 0 && l.Tokens <= 0 }

// or returns l, and what l leaves open as m has it.
func (l Limit) or(m Limit) Limit {
	if l.isZero() {
		l.Bytes, l.Tokens = m.Bytes, m.Tokens
	}
	if l.Mode == "" {
		l.Mode = m.Mode
	}
	return l
}

// floor raises sizes to the smallest.
func (l Limit) floor() Limit {
	if l.Bytes > 0 {
		l.Bytes = max(l.Bytes, MinBytes)
	}
	if l.Tokens > 0 {
		l.Tokens = max(l.Tokens, MinTokens)
	}
	return l
}

// inBytes returns the limit in bytes alone: without a counter, a token is so
// many of them.
func (l Limit) inBytes() Limit {
	if l.Tokens > 0 {
		if n := l.Tokens * bytesPerToken; l.Bytes <= 0 || n < l.Bytes {
			l.Bytes = n
		}
		l.Tokens = 0
	}
	return l
}

// within returns the limit that keeps to both.
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
