// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Compaction says when a run sends something shorter instead of the older
// part of what it sends, and what. The zero value is off: then a history that
// no longer fits ends the run with [ContextFull].
//
// Nothing is lost by it: the log keeps all, and [Restore] takes it back. What
// the system and the developer said stays as it is, and so do the newest items and
// what the user said last. Replies are replaced together with the outputs of
// their calls.
type Compaction struct {
	// Auto starts it automatically: near the end of the model's context, and when
	// the endpoint says that the history is too long, once for each time.
	Auto bool
	// At is how many tokens a request may be estimated at before it starts. If it
	// is set, Auto need not be. 0 is Share of what the window leaves for input; if
	// the window is not known, only the endpoint's word starts it.
	At int64
	// Window is the model's context in tokens: 0 is what is known of
	// Agent.Request.Model.
	Window int64
	// Share is how much of what the window leaves for input may be filled: 0 means
	// 0.8. The longest reply that the model can give does not count as input.
	Share float64
	// Keep is how many of the newest tokens stay as they are: 0 means a quarter of
	// where it starts, 20 000 at most. It is less where they end in the middle of
	// a reply and its outputs, and more if no request has carried them yet. Of what
	// the user said before them, the newest stays too, up to half as many tokens.
	Keep int64
	// By says how: session.BySummary, which is what "" means, ByEndpoint or
	// ByDropping. ByEndpoint is a summary where the Model is no [Compacter], or its
	// endpoint says that it has no such thing.
	By string
	// Model writes summaries, in answer to Request, of which Input, Instructions
	// and Tools are not used. Without it the agent's own does; without Request.Model
	// it is asked for the agent's, and stores what the agent's requests do.
	Model   Model
	Request item.Request
	// Estimator guesses how many tokens an item takes. nil is [Estimate].
	Estimator Estimator
}

// Compacter is implemented by a [Model] whose endpoint makes histories shorter
// itself. A responses.Client is one.
type Compacter interface {
	Compact(ctx context.Context, req *item.CompactRequest) (*item.Compacted, error)
}

// Compact is the effect of sending something shorter instead of what was sent
// before. To do that to a session, see [Agent.Compact]; for what is in the log,
// [session.Compacted]; for the event, [Compacted].
type Compact struct {
	Through int64
	Kept    []int64
	By      string
	// Before is an estimate of the next request, Replaced of what is replaced in
	// it, in tokens.
	Before, Replaced int64
}

func (Compact) effect() {}

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

// Defaults of [Compaction].
const (
	defaultShare = 0.8
	maxKeep      = 20_000
	keepUnknown  = 8_000 // of a window that is not known
)

// room is what the agent's configuration comes to.
func (a *Agent) room() Room {
	c := &a.Compaction
	model := a.Request.Model
	if !c.Auto && c.At <= 0 {
		_, told := a.Model.(Sizer)
		return Room{Learn: told, Model: model, Estimator: c.Estimator}
	}
	window := cmp.Or(c.Window, windowOf(model))
	start := c.At
	if start <= 0 && window > 0 {
		start = int64(cmp.Or(c.Share, defaultShare) * float64(window-replyOf(&a.Request, window)))
	}
	keep := c.Keep
	if keep <= 0 {
		keep = cmp.Or(min(start/4, maxKeep), keepUnknown)
	}
	return Room{
		On: true, Start: start, Window: window, Keep: keep, By: cmp.Or(c.By, session.BySummary),
		Learn: c.Window <= 0 && c.At <= 0, Share: cmp.Or(c.Share, defaultShare), Reply: longestReply(&a.Request),
		Model: model, Estimator: c.Estimator,
	}
}

// windowOf returns the context window of a model, 0 if it is not known.
func windowOf(model string) int64 {
	m, _ := endpoint.LookupModel(model)
	return int64(m.ContextWindow)
}

// replyOf returns how much of the window is for the reply.
func replyOf(req *item.Request, window int64) int64 { return within(longestReply(req), window) }

// longestReply returns how long a reply can be, 0 if that is not known.
func longestReply(req *item.Request) int64 {
	if req.MaxOutputTokens != nil {
		return *req.MaxOutputTokens
	}
	m, _ := endpoint.LookupModel(req.Model)
	return int64(m.MaxOutput)
}

// within returns how much of a window a reply may take.
func within(reply, window int64) int64 {
	if reply <= 0 || reply >= window { // not known, or out of the same window
		return window / 4
	}
	return reply
}

// tokens estimates one item.
func (m *Room) tokens(it item.Item) int64 {
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
		s.fill.size += s.Room.tokens(list.At(s.fill.items))
	}
	return s.fill.size + s.Room.Around
}

// Tokens estimates how much of the model's context the next request takes, as
// far as its items are settled: what the endpoint reported of the last one, and
// an estimate of what is new. It is 0 if there is no Room.
func (s *State) Tokens() int64 {
	if !s.Room.measures() {
		return 0
	}
	f, size := &s.fill, s.size()
	if f.rewritten || size < f.sent {
		return s.corrected(size)
	}
	return f.reported + size - f.sent
}

// corrected returns an estimate as the last report has it: that was so much
// larger or smaller than what was estimated. Of a short request that says little:
// what stands around the items counts for most of it.
func (s *State) corrected(size int64) int64 {
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
	if s.Room.measures() && u != nil && u.InputTokens > 0 && s.fill.asked > 0 {
		s.fill.sent, s.fill.reported, s.fill.rewritten = s.fill.asked, u.InputTokens, false
	}
}

// compacted folds a compaction.
func (s *State) compacted(b session.Compacted) {
	s.run.cost += b.Cost
	if u, _ := counted(b.Usage); u != nil { // a log may be foreign
		s.run.tokens = plus(s.run.tokens, u.TotalTokens)
	}
	if b.Failure != "" {
		s.run.compactions.failure = b.Failure
		s.run.compactions.later = b.Before + b.Before/worthwhile + 1
		return
	}
	s.run.truncation = ""
	if s.overflowed() {
		s.run.compactions.retried = true
		s.mended()
	}
}

func (s *State) overflowed() bool { return s.run.last.Class == string(endpoint.ContextOverflow) }

// worthwhile is the share of the request, one in so many, that a compaction must
// save: less is not worth the loss, and would soon have to be repeated.
const worthwhile = 10

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
	if c, ok := s.plan(min(s.Room.Keep, s.Tokens()/4)); ok {
		return c
	}
	return Stop{Why: ContextFull, Detail: fmt.Sprintf("the history does not fit into the model's context, and there is too little of it that something shorter could stand for: %s", reason)}
}

// nextForRoom returns a compaction if one is due, a stop if the request is
// certain not to fit, or nil.
func (s *State) nextForRoom() Effect {
	m := s.learned()
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
		if c, ok := s.plan(m.Keep); ok {
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
// be worthwhile. What no request has carried is in the tail, however long it is.
func (s *State) plan(keep int64) (Compact, bool) {
	list, words := s.view.Items(), keep/2 // what the user said before the tail
	last := list.Len() - 1                // where the tail begins at the latest
	if s.accepted > 0 {
		last = min(last, s.accepted)
	}
	from := list.Len()
	for from > 0 {
		if keep -= s.corrected(s.Room.tokens(list.At(from - 1))); keep < 0 && from <= last {
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
	return c, c.Replaced > 0 && c.Replaced >= c.Before/worthwhile
}

// replaced returns what the user said last, of what a compaction can replace, as
// far as it fits, and the size of all else.
func (s *State) replaced(through, keep int64) (kept []int64, size int64) {
	type word struct{ seq, size int64 }
	var words []word
	for i, it := range s.view.Replaceable(through) {
		n := s.corrected(s.Room.tokens(it))
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
