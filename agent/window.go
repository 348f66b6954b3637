// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// window is what endpoints said of the model's context, in tokens.
type window struct {
	told      int64 // in words
	truncated int64 // by truncating a history to about so many
}

// measures reports whether the size of requests is estimated.
func (m *Room) measures() bool { return m.On || m.Learn }

// learned is the Room with what the log says about the window.
func (s *State) learned() Room {
	m := s.Room
	n := s.window.told
	if n == 0 {
		n = s.window.truncated
	}
	if !m.Learn || n == 0 {
		return m
	}
	m.Window = n
	if m.On {
		m.Start = int64(m.Share * float64(n-within(m.Reply, n)))
		m.Keep = min(m.Keep, m.Start/4)
	}
	return m
}

// What must be the case for reported tokens to show that a history was truncated.
const (
	leastInput  = 256 // tokens that are reported: fewer say nothing about a history
	leastGrown  = 400 // bytes of history that are new
	leastTokens = 16  // so many bytes of history are a token at least
)

// truncated reports whether an endpoint left out the beginning of the history that it
// was sent: the input tokens that it reports fell, or stayed, although the request
// begins with the whole of the one before and goes on. Some servers, such as
// Ollama, do so without a word when their context is full.
//
// Tokens fall for other reasons too, and then nothing is said: another model,
// other tools; a history that was edited; reasoning, which many leave out once a
// user speaks; endpoints that do not count what they have in their cache.
func (c *cacheState) truncated(b session.TurnEnded, list *item.List) bool {
	if b.Usage == nil || b.BrokeOff() || c.other || c.warm == 0 {
		return false
	}
	now, grown := b.Usage.InputTokens, int64(c.last.Input-c.warm)
	if now < b.Usage.Cached() {
		now += b.Usage.Cached()
	}
	if now < leastInput || now > c.tokens || now < c.tokens/2 && !c.short || grown < leastGrown {
		return false
	}
	missing := c.tokens - now + grown/leastTokens
	for _, it := range list.All() {
		switch it.Type() {
		case item.TypeReasoning:
			missing -= int64(it.Size())
		case item.TypeCompaction:
			return false // the endpoint makes histories shorter itself
		}
	}
	return missing > 0
}

// filled reports whether a request took all of the window that the endpoint told:
// then there is no room for a reply, unless something was left out.
func (w *window) filled(b session.TurnEnded) bool {
	return w.told > 0 && b.Usage != nil && !b.BrokeOff() && b.Usage.InputTokens >= w.told
}

// historyTruncated takes note of a truncated history.
func (s *State) historyTruncated(was, now int64) {
	s.window.truncated = now
	s.run.truncation = fmt.Sprintf("the endpoint left out the beginning of the history: it counted %d input tokens (%d for the request before, which was shorter), so its context is full; give it a larger one (Ollama: OLLAMA_CONTEXT_LENGTH), or have the history compacted (--compact auto)", now, was)
}

// nextForTruncation says what to do before the model is asked again after an
// endpoint truncated the history: make it shorter, or stop.
func (s *State) nextForTruncation() Effect {
	m := s.learned()
	if m.On && s.run.compactions.failure == "" {
		if c, ok := s.plan(min(m.Keep, s.Tokens()/4)); ok {
			return c
		}
	}
	return Stop{Why: ContextFull, Detail: s.run.truncation}
}

// tooMuch stops a run that would send certainly more than the window holds.
func (s *State) tooMuch(window int64) Effect {
	const certain = 0.7 // of an estimate
	if !s.Room.Learn || s.window.told == 0 || s.fill.reported == 0 || s.fill.rewritten {
		return nil
	}
	least := s.fill.reported + int64(certain*float64(s.size()-s.fill.sent))
	if least <= window {
		return nil
	}
	return Stop{Why: ContextFull, Detail: fmt.Sprintf("the next request would take at least %d tokens, and the endpoint says that the model's context has %d; give it a larger one (Ollama: OLLAMA_CONTEXT_LENGTH), or have the history compacted (--compact auto)", least, window)}
}
