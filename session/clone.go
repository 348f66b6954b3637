// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/antiphon-go/antiphon/api"
)

// cloned returns a body that shares no mutable memory with b. A log records what was
// written, so a caller that later changes a value it passed in or received must not
// change the log. Most bodies hold nothing mutable, and items cannot be changed.
func cloned(b Body) Body {
	switch b := b.(type) {
	case RunStarted:
		if b.Setup != nil {
			b.Setup = b.Setup.clone()
			return b
		}
	case TurnStarted:
		if b.Setup != nil {
			b.Setup = b.Setup.clone()
			return b
		}
	case TurnEnded:
		if b.Setup != nil || b.Usage != nil {
			b.Setup, b.Usage = b.Setup.clone(), cloneUsage(b.Usage)
			return b
		}
	case ApprovalAsked:
		b.Rules = slices.Clone(b.Rules)
		for i := range b.Rules {
			b.Rules[i].Prefix = slices.Clone(b.Rules[i].Prefix)
		}
		return b
	case Approval:
		if b.Remember != nil {
			rule := *b.Remember
			rule.Prefix = slices.Clone(rule.Prefix)
			b.Remember = &rule
			return b
		}
	case ItemsWithdrawn:
		b.Seqs = slices.Clone(b.Seqs)
		return b
	case Compacted:
		b.Kept, b.Items, b.Usage = slices.Clone(b.Kept), slices.Clone(b.Items), cloneUsage(b.Usage)
		return b
	case Collapsed:
		b.Seqs = slices.Clone(b.Seqs)
		return b
	case Superseded:
		b.Seqs = slices.Clone(b.Seqs)
		return b
	}
	return b
}

// appendCloned appends entries with cloned bodies.
func appendCloned(log, entries []Entry) []Entry {
	for _, e := range entries {
		e.Body = cloned(e.Body)
		log = append(log, e)
	}
	return log
}

func (s *Setup) clone() *Setup {
	if s == nil {
		return nil
	}
	c := *s
	c.Tools, c.Files = slices.Clone(s.Tools), slices.Clone(s.Files)
	return &c
}

func cloneUsage(u *api.Usage) *api.Usage {
	if u == nil {
		return nil
	}
	c := &struct { // one allocation for all parts, because each turn has a usage
		api.Usage
		in  api.InputTokensDetails
		out api.OutputTokensDetails
	}{Usage: *u}
	c.Extra, c.Spelled = slices.Clone(u.Extra), slices.Clone(u.Spelled)
	if d := u.InputDetails; d != nil {
		c.in = *d
		c.in.Extra = slices.Clone(d.Extra)
		if d.CacheWriteTokens != nil {
			written := *d.CacheWriteTokens
			c.in.CacheWriteTokens = &written
		}
		c.InputDetails = &c.in
	}
	if d := u.OutputDetails; d != nil {
		c.out = *d
		c.out.Extra = slices.Clone(d.Extra)
		c.OutputDetails = &c.out
	}
	return &c.Usage
}
