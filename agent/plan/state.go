// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// State is what a log comes to: the view for the next request, and what there
// is left to do. [State.Apply] folds one entry, [State.Next] names the next
// effect. Both are pure: the same entries give the same effect, whenever and
// wherever they are read. A [Run] keeps one of its own: a program needs a State
// only to find out what a log would lead to. A State is not safe for concurrent use.
type State struct {
	// Limits bound the run. MaxTime is not looked at: there is no clock in
	// here, its passing arrives as an entry.
	Limits Limits
	// Room bounds what is sent. Zero, nothing is made shorter.
	Room Room
	// Kinds are the kinds of calls of the API's own tools that can be run, such
	// as item.TypeApplyPatchCall.
	Kinds []item.Type
	// ReadKey names what a call of a tool has read, by the arguments that it was run
	// with, "" for its own. It reports false for a call that reads nothing which
	// could be read again, and must be pure. With it, what is read again is sent
	// once; nil is for all that was read.
	ReadKey func(call item.Item, arguments string) (key string, ok bool)
	// Keep lets the state fold what the endpoint keeps of the session: see
	// [State.Join] and [State.LastExchange].
	Keep bool

	view     session.View
	turn     int   // the last turn's number
	turnAt   int64 // the entry of its start
	inTurn   bool  // it has not ended
	needs    bool  // something waits for an answer
	owes     bool  // needs, without the items in asking
	asking   []asking
	called   bool           // the reply under way, or the last one, calls a tool
	obeyed   bool           // a reply to the present input has called one
	begun    bool           // there was a run
	over     bool           // the last run has stopped
	gap      int64          // an entry that was lost, which nobody has accepted; 0 if none is
	rules    []session.Rule // that the session remembers
	sent     int            // items of the last request
	accepted int            // of these, how many some endpoint has taken
	cache    cacheState
	fill     fill
	window   window
	setup    session.Setup // as the log has it
	server   serverKind
	kept     kept
	reads    reads

	run runState
}

// runState counts from the run's start.
type runState struct {
	turns        int
	tokens       int64
	cost         float64
	nested       Spent          // what nested runs used
	waits        map[int64]bool // calls, by their entry, that wait for an approval, or whose nested run does
	last         session.TurnEnded
	refusal      bool   // the last reply is one
	empty        bool   // the last reply says nothing
	unanswerable string // why a call of the last reply cannot be answered
	dropped      bool   // reasoning was left out
	truncation   string // the endpoint left out the beginning of the history: what is said of it
	ask          session.StopAsked
	repeats      repeats

	compactions compactions
}

// Limits bound a run by what its log tells. Zero means no limit, except for
// MaxTurns. What nested runs use counts too. That time has run out arrives as an
// entry.
type Limits struct {
	// MaxTurns bounds how often the model is asked: 0 means [DefaultMaxTurns].
	MaxTurns int
	// MaxTokens bounds the total tokens that the endpoint reports, and MaxCost what
	// they cost. Both are checked between turns, so the last one may go beyond them.
	MaxTokens int64
	MaxCost   float64
	// MaxRepeats stops a model that makes the same call, with the same
	// arguments, this many times in a row.
	MaxRepeats int
}

// repeats counts equal calls in a row.
type repeats struct {
	name, arguments string
	count           int
}

func (r *repeats) add(it item.Item) {
	name, arguments := CalledBy(it)
	if name != r.name || string(arguments) != r.arguments {
		*r = repeats{name: name, arguments: string(arguments)}
	}
	r.count++
}

// View returns the state's view.
func (s *State) View() *session.View { return &s.view }

// Turn returns the number of the last turn, and TurnEntry that of the entry of its
// start; both are 0 before the first.
func (s *State) Turn() int { return s.turn }

// TurnEntry is described at [State.Turn].
func (s *State) TurnEntry() int64 { return s.turnAt }

// StopAsked returns the wish to stop that the run has to follow; its Why is "" if
// there is none.
func (s *State) StopAsked() session.StopAsked { return s.run.ask }

// UnderWay reports whether the last run has not stopped.
func (s *State) UnderWay() bool { return s.begun && !s.over }

// Interrupted reports whether the log ends in the middle of an effect: a reply has
// not ended, or a call that was started has no output.
func (s *State) Interrupted() bool {
	var room [4]session.OpenCall
	for _, c := range s.view.AppendOpen(room[:0]) {
		if c.Started && !c.Lost {
			return true
		}
	}
	return s.inTurn
}

// Used returns what the run has used so far, with the runs that are nested in it.
func (s *State) Used() Spent {
	used := Spent{Turns: s.run.turns, Tokens: s.run.tokens, Cost: s.run.cost}
	used.Add(s.run.nested)
	return used
}

// Rules returns the rules that the session remembers. They are the state's own.
func (s *State) Rules() []session.Rule { return slices.Clip(s.rules) }

// Setup returns what makes the next turn, as the log has it. It is the state's own.
func (s *State) Setup() *session.Setup { return &s.setup }

// Server returns the endpoint of the log and the kind of server that its answers
// told, "" for what is not known.
func (s *State) Server() (endpoint, profile string) { return s.server.endpoint, s.server.profile }

// ServerOf returns what [State.Server] does after the entries, for those who want
// nothing else of them.
func ServerOf(entries iter.Seq[session.Entry]) (endpoint, profile string) {
	var kind serverKind
	var setup session.Setup
	if entries == nil {
		return "", ""
	}
	for e := range entries {
		setup.Apply(e.Body)
		kind.apply(e.Body, setup.Endpoint)
	}
	return kind.endpoint, kind.profile
}

// Obeyed reports whether a reply to the present input has called a tool.
func (s *State) Obeyed() bool { return s.obeyed }

// Gap returns an entry of the log that was lost and that nobody has accepted, 0 if
// there is none.
func (s *State) Gap() int64 { return s.gap }

// Truncation says how the endpoint left out the beginning of the history that the
// last turn sent, "" if it did not.
func (s *State) Truncation() string { return s.run.truncation }

// ToldWindow returns what the endpoint said of the model's context, in tokens; 0
// if it said nothing.
func (s *State) ToldWindow() int64 { return s.window.told }

// Cache compares the last turn's request with the one before; nil for a session's
// first: there is nothing to compare it with.
func (s *State) Cache() *Cache { return s.cache.report() }

// Offer says which calls of the API's own tools can be run, and whether the tools
// are others than those of the last request.
func (s *State) Offer(kinds []item.Type, changed bool) { s.Kinds, s.cache.tools = kinds, changed }

// Apply folds the log's next entry.
func (s *State) Apply(e session.Entry) {
	if s.ReadKey != nil {
		s.reads.apply(e, s)
	}
	switch b := e.Body.(type) {
	case session.ReasoningDropped:
		s.accepted -= reasoningIn(s.view.Items(), s.accepted) // the rest moves up
	case session.ItemsWithdrawn:
		s.withdrawn(e, b)
		return
	}
	taken, behind := s.view.Taken(), s.view.Items().Len()-s.accepted
	s.view.Apply(e)
	if s.setup.Apply(e.Body) {
		s.cache.other = true // another model counts otherwise
	}
	s.server.apply(e.Body, s.setup.Endpoint)
	s.keeps(e)
	s.applyRun(e, s.view.Taken() > taken)
	s.applyCall(e)
	s.applyDecision(e.Body, behind)
}

// applyRun folds an entry about a run or a turn. Taken says that the view took an
// item from outside.
func (s *State) applyRun(e session.Entry, taken bool) {
	switch b := e.Body.(type) {
	case session.RunStarted:
		if !b.Resumes {
			s.run = runState{}
		}
		s.begun, s.over = true, false
		s.needs = s.needs || s.inTurn
		s.inTurn = false
	case session.Given:
		if taken {
			s.given(e.Seq, b.Item)
		}
	case session.TurnStarted:
		s.turnStarted(e.Seq, b.Turn)
	case session.Received:
		s.received(b.Item)
	case session.TurnEnded:
		s.turnEnded(b)
	case session.Noticed:
		s.noticed(e.Seq, b)
	case session.Stopped:
		s.over = true
	case session.StopAsked:
		if s.run.ask.Why == "" || !b.AfterTurn {
			s.run.ask = b
		}
	}
}

func (s *State) turnStarted(seq int64, turn int) {
	s.turn, s.inTurn, s.needs, s.turnAt = turn, true, false, seq
	s.run.turns++
	s.sent = s.view.Items().Len()
	s.cache.asked(&s.view)
	if s.Room.Measures() {
		s.fill.asked = s.size()
	}
	s.run.refusal, s.run.unanswerable, s.run.empty, s.called = false, "", true, false
}

// applyCall folds an entry about a call.
func (s *State) applyCall(e session.Entry) {
	switch b := e.Body.(type) {
	case session.ApprovalAsked:
		s.Wait(b.CallID, b.Number)
	case session.Approval:
		s.decided(b, e.Seq)
	case session.CallStarted:
		s.goOn(b.CallID, 0)
	case session.Nested:
		s.run.nested.Add(Spent{b.Turns, b.Tokens, b.Cost})
	case session.Paused:
		s.Wait(b.CallID, 0)
	case session.Answered:
		s.need(true)
	case session.Withdrawn:
		s.run.unanswerable = b.Reason
	}
}

// applyDecision folds a decision about what is sent. Behind is how many items
// followed the accepted ones before it.
func (s *State) applyDecision(body session.Body, behind int) {
	switch b := body.(type) {
	case session.ReasoningDropped:
		s.run.dropped = true
		s.fill.again()
		s.mended()
	case session.Quarantined:
		s.fill.again()
		if !s.inTurn { // else the reply under way is to the request without it
			s.mended()
		}
	case session.Compacted:
		s.accepted = max(0, s.view.Items().Len()-behind)
		s.fill.again()
		s.compacted(b)
	case session.Restored:
		if s.run.last.Class == classEncryptedContent {
			s.mended()
		}
		s.accepted = max(0, s.view.Items().Len()-behind)
		s.fill.again()
	case session.Collapsed:
		s.fill.again()
	case session.Superseded:
		s.accepted = max(0, s.view.Items().Len()-behind)
		s.fill.again()
	}
}

// noticed folds what a notice says of the log itself, that it is a copy of one
// that was damaged.
func (s *State) noticed(seq int64, b session.Noticed) {
	switch b.Kind {
	case session.NoticeEntryLost:
		s.gap = seq
	case session.NoticeGapsAccepted:
		s.gap = 0
		return
	case session.NoticePayloadLost, session.NoticeSalvaged:
	default:
		return
	}
	clear(s.run.waits)
}

// given decides whether an item from outside waits for an answer: all do but
// a finished reply.
func (s *State) given(seq int64, it item.Item) {
	switch {
	case it.IsCall(), it.Type() == item.TypeReasoning:
		return
	case it.Role() == item.RoleAssistant:
		phase, _ := it.Member("phase")
		s.needs = it.Status() == item.StatusIncomplete || phase == `"`+item.PhaseCommentary+`"` // more was to come
	default:
		s.needs = true
		if s.over || s.run.turns == 0 { // what is said while a run is under way goes on with its question
			s.obeyed = s.obeyed && it.IsOutput()
		}
	}
	s.asking = append(s.asking, asking{seq, s.needs})
}

// asking is an item from outside that no reply has answered yet, and whether
// something waits for an answer with it.
type asking struct {
	seq   int64
	needs bool
}

// need says whether something waits for an answer, whatever was given before.
func (s *State) need(yes bool) { s.needs, s.owes, s.asking = yes, yes, nil }

// withdrawn folds what a guard objected to. Input that is gone waits for no
// answer; what the last reply answered waits for another, if the reply is gone.
func (s *State) withdrawn(e session.Entry, b session.ItemsWithdrawn) {
	s.view.Apply(e)
	s.accepted = min(s.accepted, s.view.Items().Len())
	s.fill.again()
	asked := len(s.asking)
	s.asking = slices.DeleteFunc(s.asking, func(a asking) bool { return slices.Contains(b.Seqs, a.seq) })
	switch {
	case len(s.asking) == asked:
		s.needs = s.needs || !s.inTurn && slices.ContainsFunc(b.Seqs, func(seq int64) bool { return seq > s.turnAt })
	case len(s.asking) > 0:
		s.needs = s.asking[len(s.asking)-1].needs
	default:
		s.needs = s.owes
	}
}

// wait keeps a call from being run until the next run. A verdict comes before
// that.
func (s *State) Wait(callID string, number int) {
	c, ok := s.view.Call(callID, number)
	if !ok {
		return
	}
	if s.run.waits == nil {
		s.run.waits = map[int64]bool{}
	}
	s.run.waits[c.Seq] = true
}

// goOn says that a call does not wait any more.
func (s *State) goOn(callID string, number int) {
	if len(s.run.waits) == 0 { // as mostly
		return
	}
	if c, ok := s.view.Call(callID, number); ok {
		delete(s.run.waits, c.Seq)
	}
}

func (s *State) decided(b session.Approval, seq int64) {
	s.goOn(b.CallID, b.Number)
	if b.Remember != nil {
		rule := *b.Remember
		rule.From = fmt.Sprintf("the answer of entry %d", seq)
		s.rules = append(s.rules, rule)
	}
}

// serverKind is the kind of server that answers told, and whose they were.
type serverKind struct{ endpoint, profile string }

func (k *serverKind) apply(b session.Body, endpoint string) {
	if k.endpoint != endpoint {
		*k = serverKind{endpoint: endpoint}
	}
	if end, ok := b.(session.TurnEnded); ok && end.Profile != "" {
		k.profile = end.Profile
	}
}

func (s *State) received(it item.Item) {
	s.run.empty = s.run.empty && it.SaysNothing() // U6
	s.called = s.called || it.IsCall() || strings.HasSuffix(string(it.Type()), "_call")
	if it.IsCall() {
		s.run.repeats.add(it)
		return
	}
	if !strings.Contains(it.JSON(), `"refusal"`) {
		return // nearly all messages
	}
	if m, err := item.As[item.Message](it); err == nil {
		for _, p := range m.Content.Parts {
			_, refusal := p.(*item.Refusal)
			s.run.refusal = s.run.refusal || refusal
		}
	}
}

func (s *State) turnEnded(b session.TurnEnded) {
	s.inTurn = false
	s.run.last = b
	s.run.cost += b.Cost
	if u, _ := Counted(b.Usage); u != nil { // a log may be foreign
		s.run.tokens = Plus(s.run.tokens, u.TotalTokens)
	}
	if b.Window > 0 {
		s.window = window{told: b.Window}
	}
	was := s.cache.tokens
	truncated := s.cache.truncated(b, s.view.Items()) || s.window.filled(b)
	s.cache.told(b, truncated)
	if b.BrokeOff() {
		s.needs = true // what was asked is not answered
		return
	}
	s.need(s.needs)
	s.obeyed = s.obeyed || s.called
	s.accepted = s.sent
	s.run.compactions.retried = false
	if truncated {
		s.historyTruncated(was, b.Usage.InputTokens)
		return
	}
	if b.Usage != nil && b.Usage.InputTokens > s.window.truncated {
		s.window.truncated = 0 // it holds more than that by now
	}
	s.reported(b.Usage)
}

// mended makes the last turn one that is asked again.
func (s *State) mended() {
	s.run.last = session.TurnEnded{}
	s.needs = true
}

// Spent is what was used of a budget. Cost is in the unit of the prices.
type Spent struct {
	Turns  int     `json:"turns"`
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost,omitempty"`
}

// Add counts what o holds too.
func (s *Spent) Add(o Spent) {
	s.Turns += o.Turns
	s.Tokens = Plus(s.Tokens, o.Tokens)
	s.Cost += o.Cost
}

// maxCounted is more tokens than any reply has. A count above it is a mistake of
// the endpoint, and would make sums meaningless.
const maxCounted = 1 << 40

// counted returns the usage that counts: limits and sums rest on it, so it must
// not be less than its parts. What cannot be true is set right, and told: "" means
// that nothing was, but for a total that is missing.
func Counted(u *item.Usage) (right *item.Usage, wrong string) {
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
func Plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
