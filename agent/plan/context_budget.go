// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// ContextBudget describes the model's context to a [State], and says when the
// history is made shorter. The zero ContextBudget disables compaction.
type ContextBudget struct {
	// On enables the compaction of a history that the endpoint finds too long.
	On bool
	// Start is the request size, in tokens, from which a compaction is due. 0
	// disables it.
	Start int64
	// Window is the size of the model's context in tokens, 0 if it is unknown.
	Window int64
	// Keep is the number of the newest tokens that stay, and By names the way in
	// which older items are replaced; see Compaction of package agent.
	Keep int64
	By   string
	// Learn lets the context size that the endpoint states, or reveals by truncating
	// a history, replace Window and Start. Start is then computed from Share, the
	// share of the window that may be filled, and Reply, the longest reply in tokens,
	// 0 if it is unknown.
	Learn bool
	Share float64
	Reply int64
	// Around is the size of the instructions and tools in tokens.
	Around int64
	// Model and Estimator are used to estimate the size of items.
	Model     string
	Estimator Estimator
}

// Within returns how much of a window a reply may take.
func Within(reply, window int64) int64 {
	if reply <= 0 || reply >= window { // unknown, or as large as the window
		return window / 4
	}
	return reply
}

// Tokens estimates the size of one item.
func (m *ContextBudget) Tokens(it item.Item) int64 {
	if m.Estimator != nil {
		return max(0, int64(m.Estimator.Estimate(m.Model, it)))
	}
	return int64(Estimate(m.Model, it))
}

// fill tracks how much of the context is used.
type fill struct {
	items int   // number of items that size includes
	size  int64 // estimate of these items
	asked int64 // estimate of the last request, with instructions and tools

	// The estimate and the reported size of the last request with a reported size.
	sent, reported int64
	rewritten      bool // the next request does not begin with that request
}

// again restarts the estimate after a decision changed the items to send.
func (f *fill) again() { f.items, f.size, f.rewritten = 0, 0, true }

// compactions tracks the outcomes of compactions in this run.
type compactions struct {
	retried bool   // there was a compaction since the last context overflow
	later   int64  // the next attempt is due at this size
	failure string // reason why the last attempt failed
}

// size estimates the next request as far as it is known, uncorrected.
func (s *State) size() int64 {
	list := s.view.Items()
	for ; s.fill.items < list.Len(); s.fill.items++ {
		s.fill.size += s.Room.Tokens(list.At(s.fill.items))
	}
	return s.fill.size + s.Room.Around
}

// Tokens estimates how much of the model's context the next request takes, as far as
// its items are known: the reported size of the last request, plus an estimate of the
// new items. It is 0 if Room does not measure.
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

// Corrected scales an estimate by the ratio of the last reported size to its
// estimate. A short request says little about the ratio, because most of it is the
// frame around the items.
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

// reported records the size that the endpoint reported for the last request.
func (s *State) reported(u *api.Usage) {
	if s.Room.Measures() && u != nil && u.InputTokens > 0 && s.fill.asked > 0 {
		s.fill.sent, s.fill.reported, s.fill.rewritten = s.fill.asked, u.InputTokens, false
	}
}

// compacted folds the outcome of a compaction.
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

// Worthwhile is the divisor for the least saving: a compaction must save at least
// 1/Worthwhile of the request. A smaller saving is not worth the loss, and another
// compaction would soon follow.
const Worthwhile = 10

// nextForOverflow returns the effect after the endpoint found the history too long:
// shorten it once and ask again.
func (s *State) nextForOverflow() Effect {
	tried := &s.run.compactions
	reason := s.run.last.Reason
	switch {
	case !s.Room.On:
		return Stop{Why: StopContextFull, Detail: contextFull + reason}
	case tried.retried:
		return Stop{Why: StopContextFull, Detail: fmt.Sprintf("the history does not fit into the model's context, although it was made shorter before the model was asked again: %s", reason)}
	case tried.failure != "":
		return Stop{Why: StopContextFull, Detail: fmt.Sprintf("the history does not fit into the model's context, and it could not be made shorter: %s (%s)", tried.failure, reason)}
	}
	if stop, reached := s.limit(); reached {
		return stop
	}
	if c, ok := s.Shorten(min(s.Room.Keep, s.Tokens()/4)); ok {
		return c
	}
	return Stop{Why: StopContextFull, Detail: fmt.Sprintf("the history does not fit into the model's context, and it holds too little that a compaction could replace: %s", reason)}
}

// nextForRoom returns a compaction if one is due, a stop if the request certainly
// does not fit, or nil.
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
		return Stop{Why: StopContextFull, Detail: fmt.Sprintf("the next request would take about %d tokens of the model's %d; %s",
			tokens, m.Window, cmp.Or(tried.failure, "the history holds too little that a compaction could replace"))}
	}
	return nil
}

// Shorten returns the compaction that leaves a tail of about keep tokens, and reports
// whether it is [Worthwhile]. Items that no request has carried stay in the tail,
// even if it becomes longer.
func (s *State) Shorten(keep int64) (Compact, bool) {
	list, words := s.view.Items(), keep/2 // budget for the user's messages before the tail
	last := list.Len() - 1                // latest possible start of the tail
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

// replaced returns the user's last messages before the tail that fit into keep
// tokens, and the size of all other items.
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

// window holds the size of the model's context in tokens, as learned from endpoints.
type window struct {
	told      int64 // as an error or a header states it
	truncated int64 // as a truncated history reveals it, approximately
}

// Measures reports whether the size of requests is estimated.
func (m *ContextBudget) Measures() bool { return m.On || m.Learn }

// Learned returns the Room with the window size that the log reveals.
func (s *State) Learned() ContextBudget {
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

// Thresholds above which reported tokens show that a history was truncated.
const (
	leastInput  = 256 // reported tokens; smaller counts prove nothing
	leastGrown  = 400 // bytes of new history
	leastTokens = 16  // a token covers at most this many bytes of history
)

// truncated reports whether an endpoint left out the beginning of the history: the
// reported input tokens fell or stayed equal, although the request extends the
// previous one. Some servers, such as Ollama, truncate silently when their context is
// full.
//
// Tokens also fall for other reasons, and the result is then false: another model or
// other tools; an edited history; reasoning, which many endpoints leave out after a
// new user message; endpoints that do not count cached tokens.
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
			return false // the endpoint compacts histories itself
		}
	}
	return missing > 0
}

// filled reports whether a request took the whole window that the endpoint stated.
// There is then no room for a reply, unless the endpoint left something out.
func (w *window) filled(b session.TurnEnded) bool {
	return w.told > 0 && b.Usage != nil && !b.BrokeOff() && b.Usage.InputTokens >= w.told
}

// historyTruncated records a truncated history.
func (s *State) historyTruncated(was, now int64) {
	s.window.truncated = now
	s.run.truncation = fmt.Sprintf("the endpoint left out the beginning of the history: it counted %d input tokens (%d for the request before, which was shorter), so its context is full; give it a larger one (Ollama: OLLAMA_CONTEXT_LENGTH), or have the history compacted", now, was)
}

// nextForTruncation returns the effect that follows after an endpoint truncated the
// history: compact it, or stop.
func (s *State) nextForTruncation() Effect {
	m := s.Learned()
	if m.On && s.run.compactions.failure == "" {
		if c, ok := s.Shorten(min(m.Keep, s.Tokens()/4)); ok {
			return c
		}
	}
	return Stop{Why: StopContextFull, Detail: s.run.truncation}
}

// tooMuch returns a stop if the next request certainly does not fit into the window,
// or nil.
func (s *State) tooMuch(window int64) Effect {
	const certain = 0.7 // share of an estimate that is certain
	if !s.Room.Learn || s.window.told == 0 || s.fill.reported == 0 || s.fill.rewritten {
		return nil
	}
	least := s.fill.reported + int64(certain*float64(s.size()-s.fill.sent))
	if least <= window {
		return nil
	}
	return Stop{Why: StopContextFull, Detail: fmt.Sprintf("the next request would take at least %d tokens, and the endpoint says that the model's context has %d; give it a larger one (Ollama: OLLAMA_CONTEXT_LENGTH), or have the history compacted", least, window)}
}
