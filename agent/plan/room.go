// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Room is what a [State] knows of the model's context. The zero Room decides
// nothing.
type Room struct {
	// On: a history that the endpoint finds too long is compacted.
	On bool
	// Start is the number of tokens at which a compaction is due, 0 if none is.
	Start int64
	// Window is all that there is, 0 if that is not known.
	Window int64
	// Keep is how many of the newest tokens stay, and By how the others are
	// replaced; see Compaction.
	Keep int64
	By   string
	// Learn lets what the endpoint says about the model's context, or gives away by
	// cutting a history, take the place of Window and Start. Share and Reply are what
	// Start is made of then: the share of the window that may be filled, and the
	// longest reply, 0 if that is not known.
	Learn bool
	Share float64
	Reply int64
	// Around is what instructions and tools take of it.
	Around int64
	// Model and Estimator tell the size of items.
	Model     string
	Estimator Estimator
}

// within returns how much of a window a reply may take.
func Within(reply, window int64) int64 {
	if reply <= 0 || reply >= window { // not known, or out of the same window
		return window / 4
	}
	return reply
}

// tokens estimates one item.
func (m *Room) Tokens(it item.Item) int64 {
	if m.Estimator != nil {
		return max(0, int64(m.Estimator.Estimate(m.Model, it)))
	}
	return int64(Estimate(m.Model, it))
}

// fill folds how much of the context is used.
type fill struct {
	items int   // of the list, that size counts
	size  int64 // estimate of these items
	asked int64 // estimate of the last request, with all around it

	// Of the last request whose size the endpoint reported.
	sent, reported int64
	rewritten      bool // what is sent now does not begin with it
}

// again makes the estimate anew, for a decision changed what is sent.
func (f *fill) again() { f.items, f.size, f.rewritten = 0, 0, true }

// compactions folds their outcomes in this run.
type compactions struct {
	retried bool   // one since the endpoint last found the history too long
	later   int64  // not before so many tokens
	failure string // of the last one
}

// size estimates the next request, as far as it is known, before any correction.
func (s *State) size() int64 {
	list := s.view.Items()
	for ; s.fill.items < list.Len(); s.fill.items++ {
		s.fill.size += s.Room.Tokens(list.At(s.fill.items))
	}
	return s.fill.size + s.Room.Around
}

// Tokens estimates how much of the model's context the next request takes, as
// far as its items are settled: what the endpoint reported of the last one, and
// an estimate of what is new. It is 0 if there is no Room.
func (s *State) Tokens() int64 {
	if !s.Room.Measures() {
		return 0
	}
	f, size := &s.fill, s.size()
	if f.rewritten || size < f.sent {
		return s.Corrected(size)
	}
	return f.reported + size - f.sent
}

// corrected returns an estimate as the last report has it: that was so much
// larger or smaller than what was estimated. Of a short request that says little:
// what stands around the items counts for most of it.
func (s *State) Corrected(size int64) int64 {
	const short = 1000
	f, most := &s.fill, 10.0
	if f.reported == 0 {
		return size
	}
	if f.reported < short {
		most = 1.5
	}
	return int64(float64(size) * min(max(float64(f.reported)/float64(f.sent), 1/most), most))
}

// reported takes note of what the endpoint said of the last request.
func (s *State) reported(u *item.Usage) {
	if s.Room.Measures() && u != nil && u.InputTokens > 0 && s.fill.asked > 0 {
		s.fill.sent, s.fill.reported, s.fill.rewritten = s.fill.asked, u.InputTokens, false
	}
}

// compacted folds a compaction.
func (s *State) compacted(b session.Compacted) {
	s.run.cost += b.Cost
	if u, _ := Counted(b.Usage); u != nil { // a log may be foreign
		s.run.tokens = Plus(s.run.tokens, u.TotalTokens)
	}
	if b.Failure != "" {
		s.run.compactions.failure = b.Failure
		s.run.compactions.later = b.Before + b.Before/Worthwhile + 1
		return
	}
	s.run.truncation = ""
	if s.overflowed() {
		s.run.compactions.retried = true
		s.mended()
	}
}

func (s *State) overflowed() bool { return s.run.last.Class == classContextOverflow }

// Worthwhile is the share of the request, one in so many, that a compaction must
// save: less is not worth the loss, and would soon have to be repeated.
const Worthwhile = 10

// nextForOverflow says what to do about a history that the endpoint finds too
// long: make it shorter, once, and ask again.
func (s *State) nextForOverflow() Effect {
	tried := &s.run.compactions
	reason := s.run.last.Reason
	switch {
	case !s.Room.On:
		return Stop{Why: ContextFull, Detail: contextFull + reason}
	case tried.retried:
		return Stop{Why: ContextFull, Detail: fmt.Sprintf("the history does not fit into the model's context, although it was made shorter before the model was asked again: %s", reason)}
	case tried.failure != "":
		return Stop{Why: ContextFull, Detail: fmt.Sprintf("the history does not fit into the model's context, and it could not be made shorter: %s (%s)", tried.failure, reason)}
	}
	if stop, reached := s.limit(); reached {
		return stop
	}
	if c, ok := s.Shorten(min(s.Room.Keep, s.Tokens()/4)); ok {
		return c
	}
	return Stop{Why: ContextFull, Detail: fmt.Sprintf("the history does not fit into the model's context, and there is too little of it that something shorter could stand for: %s", reason)}
}

// nextForRoom returns a compaction if one is due, a stop if the request is
// certain not to fit, or nil.
func (s *State) nextForRoom() Effect {
	m := s.Learned()
	switch {
	case s.run.truncation != "":
		return s.nextForTruncation()
	case !m.On:
		return s.tooMuch(m.Window)
	case m.Start <= 0:
		return nil
	}
	tokens := s.Tokens()
	if tokens < m.Start {
		return nil
	}
	tried := &s.run.compactions
	if tokens >= tried.later {
		if c, ok := s.Shorten(m.Keep); ok {
			return c
		}
	}
	if m.Window > 0 && s.fill.reported > 0 && tokens > m.Window {
		return Stop{Why: ContextFull, Detail: fmt.Sprintf("the next request would take about %d tokens of the model's %d; %s",
			tokens, m.Window, cmp.Or(tried.failure, "there is too little of it that something shorter could stand for"))}
	}
	return nil
}

// plan names the compaction that leaves a tail of so many tokens, if one would
// be Worthwhile. What no request has carried is in the tail, however long it is.
func (s *State) Shorten(keep int64) (Compact, bool) {
	list, words := s.view.Items(), keep/2 // what the user said before the tail
	last := list.Len() - 1                // where the tail begins at the latest
	if s.accepted > 0 {
		last = min(last, s.accepted)
	}
	from := list.Len()
	for from > 0 {
		if keep -= s.Corrected(s.Room.Tokens(list.At(from - 1))); keep < 0 && from <= last {
			break
		}
		from--
	}
	through, first := s.view.Boundary(from)
	for i := from + 1; first < from && i <= last; i++ {
		through, first = s.view.Boundary(i)
	}
	if through == 0 {
		return Compact{}, false
	}
	c := Compact{Through: through, By: s.Room.By, Before: s.Tokens()}
	c.Kept, c.Replaced = s.replaced(through, words)
	return c, c.Replaced > 0 && c.Replaced >= c.Before/Worthwhile
}

// replaced returns what the user said last, of what a compaction can replace, as
// far as it fits, and the size of all else.
func (s *State) replaced(through, keep int64) (kept []int64, size int64) {
	type word struct{ seq, size int64 }
	var words []word
	for i, it := range s.view.Replaceable(through) {
		n := s.Corrected(s.Room.Tokens(it))
		size += n
		seq, refused := s.view.Seq(i)
		if it.Type() == item.TypeMessage && it.Role() == item.RoleUser && seq != s.view.Compaction() && !refused && !session.IsBreakNote(it) {
			words = append(words, word{seq, n})
		}
	}
	for i := len(words) - 1; i >= 0 && words[i].size <= keep; i-- {
		kept = append(kept, words[i].seq)
		keep -= words[i].size
		size -= words[i].size
	}
	return kept, size
}

// window is what endpoints said of the model's context, in tokens.
type window struct {
	told      int64 // in words
	truncated int64 // by truncating a history to about so many
}

// measures reports whether the size of requests is estimated.
func (m *Room) Measures() bool { return m.On || m.Learn }

// learned is the Room with what the log says about the window.
func (s *State) Learned() Room {
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
		m.Start = int64(m.Share * float64(n-Within(m.Reply, n)))
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
	m := s.Learned()
	if m.On && s.run.compactions.failure == "" {
		if c, ok := s.Shorten(min(m.Keep, s.Tokens()/4)); ok {
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
