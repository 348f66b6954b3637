// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/antiphon-go/antiphon/item"
)

// cloned returns a body that shares no memory with b that somebody could change.
// A log is what was written: who changes a value later, which they gave or got,
// changes their own. Most bodies hold nothing of the kind, and items cannot be
// changed.
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

// appendCloned appends entries, with bodies of their own.
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

func cloneUsage(u *item.Usage) *item.Usage {
	if u == nil {
		return nil
	}
	c := &struct { // each turn has one, with all of its parts
		item.Usage
		in  item.InputTokensDetails
		out item.OutputTokensDetails
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
