// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// State is the fold of a session's log: the view for the next request, and the
// remaining work. [State.Apply] folds one entry, and [State.Next] returns the next
// effect. Both are pure: the same entries always give the same effect. A run keeps
// its own State; a program needs one only to find out what a log would lead to. A
// State is not safe for concurrent use.
type State struct {
	// Limits bound the run. They do not include a time limit, because the package has
	// no clock; an entry records that the time is over.
	Limits Limits
	// Room bounds the size of requests. The zero ContextBudget never shortens the
	// history.
	Room ContextBudget
	// Kinds are the types of the API's own tool calls that the run can execute, such
	// as item.TypeApplyPatchCall.
	Kinds []item.Type
	// ReadKey returns a key for the content that a call reads. Arguments are the ones
	// that the call was run with, or "" for its own. It reports false for a call that
	// reads nothing repeatable, and must be pure. If it is set, content that is read
	// again is sent once; if it is nil, every output is sent.
	ReadKey func(call item.Item, arguments string) (key string, ok bool)
	// Polls reports whether a tool, by its name, is meant to be called again and again
	// with the same arguments. It must be pure; nil means that no tool is.
	Polls func(tool string) bool
	// Keep makes the state track what the endpoint stores for the session: see
	// [State.Join] and [State.LastExchange].
	Keep bool

	view     session.View
	turn     int   // the last turn's number
	turnAt   int64 // the entry that started it
	inTurn   bool  // the last turn has not ended
	needs    bool  // something waits for an answer
	owes     bool  // the value of needs without the items in asking
	asking   []asking
	called   bool           // the current or last reply calls a tool
	obeyed   bool           // a reply to the current input called a tool
	begun    bool           // a run has started
	runAt    int64          // the entry that started the last run
	over     bool           // the last run has stopped
	gap      int64          // an entry that was lost and not accepted as lost; 0 if there is none
	rules    []session.Rule // remembered rules of the session
	sent     int            // number of items in the last request
	accepted int            // how many of them an endpoint has accepted
	cache    cacheState
	fill     fill
	window   window
	setup    session.Setup // as the log records it
	server   serverKind
	kept     kept
	speaker  speaker
	reads    reads

	run runState
}

// runState holds the values that restart with each run.
type runState struct {
	turns      int
	tokens     int64
	cost       float64
	nested     Usage          // usage of subagents
	waits      map[int64]bool // calls, by entry, that wait for an approval, their own or their subagent's
	last       session.TurnEnded
	refusal    bool  // the last reply is a refusal
	empty      bool  // the last reply says nothing
	dropped    bool  // reasoning was left out
	lastTokens int64 // of the last complete reply
	lastCost   float64
	mustAnswer string   // why the next turn has to be an answer
	answering  string   // why the last turn had to be an answer
	handoffs   int      // handoffs of this run
	fallbacks  int      // how often another model was asked
	failed     []string // why, since the last complete reply
	truncation string   // why the beginning of the history is known to be left out
	ask        session.StopAsked
	repeats    repeats

	compactions compactions
}

// Limits bound a run by the usage in its log, which includes subagents. Zero means
// no limit, except for MaxTurns, where 0 means [DefaultMaxTurns].
type Limits struct {
	// MaxTurns bounds the number of requests to the model; 0 means
	// [DefaultMaxTurns].
	MaxTurns int
	// MaxTokens bounds the total tokens that the endpoint reports, and MaxCost their
	// cost. Both are checked between turns, so the last turn may exceed them.
	MaxTokens int64
	MaxCost   float64
	// MaxRepeats stops a model that makes the same call, with the same arguments, this
	// many times in a row, or the same two or three calls in turn. Calls that
	// [State.Polls] names do not count.
	MaxRepeats int
	// AnswerNow uses the last turn for an answer: see [State.AnswerNow].
	AnswerNow bool
}

// View returns the state's view.
func (s *State) View() *session.View { return &s.view }

// Turn returns the number of the last turn, and TurnEntry the entry that started it.
// Both are 0 before the first turn.
func (s *State) Turn() int { return s.turn }

// TurnEntry returns the number of the entry that started the last turn; see
// [State.Turn].
func (s *State) TurnEntry() int64 { return s.turnAt }

// StopAsked returns the pending request to stop the run. Its Why is "" if there is
// none.
func (s *State) StopAsked() session.StopAsked { return s.run.ask }

// UnderWay reports whether a run has started and not stopped.
func (s *State) UnderWay() bool { return s.begun && !s.over }

// Answered reports whether nothing waits for an answer of the model, and no call for its
// output.
func (s *State) Answered() bool {
	var room [4]session.OpenCall
	return !s.needs && !s.inTurn && len(s.view.AppendOpen(room[:0])) == 0
}

// RunEntry returns the number of the entry that started the last run, or 0. A run
// that another process resumes keeps the number.
func (s *State) RunEntry() int64 { return s.runAt }

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

// Used returns the usage of the last run so far, including the subagents that have a
// [session.SubagentUsage] entry in its log.
func (s *State) Used() Usage {
	used := Usage{Turns: s.run.turns, Tokens: s.run.tokens, Cost: s.run.cost}
	used.Add(s.run.nested)
	return used
}

// Fallbacks returns how often the run asked another model because one did not answer:
// in all, and since the last complete reply. See [session.NoticeFallback].
func (s *State) Fallbacks() (all, now int) { return s.run.fallbacks, len(s.run.failed) }

// Rules returns the rules that the session remembers. The caller must not change
// them.
func (s *State) Rules() []session.Rule { return slices.Clip(s.rules) }

// Setup returns the setup of the next turn, as the log records it. The caller must
// not change it.
func (s *State) Setup() *session.Setup { return &s.setup }

// Server returns the endpoint in the log and the server profile that its replies
// revealed. Unknown values are "".
func (s *State) Server() (endpoint, profile string) { return s.server.endpoint, s.server.profile }

// ServerOf returns the values of [State.Server] for the entries, without building a
// State.
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

// Obeyed reports whether a reply to the current input called a tool.
func (s *State) Obeyed() bool { return s.obeyed }

// Gap returns the number of an entry that was lost and has not been accepted as lost,
// or 0.
func (s *State) Gap() int64 { return s.gap }

// Truncation describes how the endpoint left out the beginning of the history in the
// last turn, or is "".
func (s *State) Truncation() string { return s.run.truncation }

// ToldWindow returns the size of the model's context that the endpoint stated, in
// tokens, or 0.
func (s *State) ToldWindow() int64 { return s.window.told }

// Cache compares the last turn's request with the previous one. It is nil for the
// first request of a session.
func (s *State) Cache() *Cache { return s.cache.report() }

// Offer sets the types of the API's own tool calls that can be run, and whether the
// tools changed since the last request.
func (s *State) Offer(kinds []item.Type, changed bool) { s.Kinds, s.cache.tools = kinds, changed }

// Apply folds the log's next entry.
func (s *State) Apply(e session.Entry) {
	if s.ReadKey != nil {
		s.reads.apply(e, s)
	}
	switch b := e.Body.(type) {
	case session.ReasoningDropped:
		s.accepted -= reasoningIn(s.view.Items(), s.accepted) // later items move up
	case session.ItemsWithdrawn:
		s.withdrawn(e, b)
		return
	}
	taken, behind := s.view.Len(), s.view.Items().Len()-s.accepted
	s.view.Apply(e)
	was := session.Setup{Model: s.setup.Model, Endpoint: s.setup.Endpoint, Instructions: s.setup.Instructions, Tools: s.setup.Tools}
	if s.setup.Apply(e.Body) {
		s.cache.other = true // another model counts tokens differently
		s.cache.moved(&was, &s.setup)
		if was.Model != s.setup.Model || was.Endpoint != s.setup.Endpoint {
			s.window = window{}
		}
	}
	s.server.apply(e.Body, s.setup.Endpoint)
	s.keeps(e)
	s.applyRun(e, s.view.Len() > taken)
	s.applyCall(e)
	s.applyDecision(e.Body, behind)
}

// applyRun folds an entry about a run or a turn. Taken reports whether the view
// accepted an input item from it.
func (s *State) applyRun(e session.Entry, taken bool) {
	switch b := e.Body.(type) {
	case session.RunStarted:
		if !b.Resumes {
			s.run, s.runAt = runState{}, e.Seq
		}
		s.begun, s.over = true, false
		s.needs = s.needs || s.inTurn
		s.inTurn = false
	case session.InputItem:
		if taken {
			s.given(e.Seq, b.Item)
		}
	case session.TurnStarted:
		s.turnStarted(e.Seq, b.Turn)
	case session.OutputItem:
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
	if next := s.speaker.next; next != "" {
		s.speaker = speaker{path: append(slices.Clip(s.speaker.path), next)}
		s.obeyed = false // the other agent may force a call of its own
	}
	s.run.answering, s.run.mustAnswer = s.run.mustAnswer, ""
	s.run.turns++
	s.sent = s.view.Items().Len()
	s.cache.asked(&s.view)
	if s.Room.Measures() {
		s.fill.asked = s.size()
	}
	s.run.refusal, s.run.empty, s.called = false, true, false
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
	case session.SubagentUsage:
		s.run.nested.Add(Usage{b.Turns, b.Tokens, b.Cost})
	case session.Paused:
		s.Wait(b.CallID, 0)
	case session.CallOutput:
		s.need(true)
	}
}

// applyDecision folds a decision about the items to send. Behind is the number of
// items that followed the accepted ones before it.
func (s *State) applyDecision(body session.Body, behind int) {
	switch b := body.(type) {
	case session.ReasoningDropped:
		s.run.dropped = true
		s.fill.again()
		s.mended()
	case session.Quarantined:
		s.fill.again()
		if !s.inTurn { // otherwise the current reply is to a request without the item
			s.mended()
		}
	case session.Compacted:
		s.speaker.cut = s.speaker.next != "" && b.Failure == ""
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

// noticed folds a notice about the log itself, such as that it is a copy of a damaged
// log.
func (s *State) noticed(seq int64, b session.Noticed) {
	switch b.Kind {
	case session.NoticeEntryLost:
		s.gap = seq
	case session.NoticeGapsAccepted:
		s.gap = 0
		return
	case session.NoticeFallback:
		s.run.fallbacks++
		s.run.failed = append(s.run.failed, b.Text)
		s.mended()
		return
	case session.NoticeHandoff:
		s.handedOver(b.CallID)
		return
	case session.NoticeAnswerNow:
		s.run.mustAnswer = b.Text
		return
	case session.NoticePayloadLost, session.NoticeSalvaged:
	default:
		return
	}
	clear(s.run.waits)
}

// given decides whether an input item waits for an answer. All do, except a finished
// reply.
func (s *State) given(seq int64, it item.Item) {
	switch {
	case it.IsCall(), it.Type() == item.TypeReasoning:
		return
	case it.Role() == item.RoleAssistant:
		phase, _ := it.Member("phase")
		s.needs = it.Status() == item.StatusIncomplete || phase == `"`+item.PhaseCommentary+`"` // the reply is unfinished
	default:
		s.needs = true
		if s.over || s.run.turns == 0 { // input during a run continues its question
			s.obeyed = s.obeyed && it.IsOutput()
		}
	}
	s.asking = append(s.asking, asking{seq, s.needs})
}

// asking is an input item that no reply has answered yet. Needs reports whether
// something waits for an answer from that item on.
type asking struct {
	seq   int64
	needs bool
}

// need sets whether something waits for an answer, and forgets earlier input.
func (s *State) need(yes bool) { s.needs, s.owes, s.asking = yes, yes, nil }

// withdrawn folds the items that a guard objected to. Removed input does not wait for
// an answer. If the last reply is removed, its input waits again.
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

// Wait keeps a call from running until the next run or an earlier verdict.
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

// goOn marks a call as no longer waiting.
func (s *State) goOn(callID string, number int) {
	if len(s.run.waits) == 0 { // the usual case
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

// serverKind is the server profile that replies revealed, and the endpoint that sent
// them.
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
	s.run.empty = s.run.empty && it.SaysNothing() // one item with content is enough
	s.called = s.called || it.IsCall() || strings.HasSuffix(string(it.Type()), "_call")
	if it.IsCall() {
		if name, arguments := CalledBy(it); s.Limits.MaxRepeats > 0 && (s.Polls == nil || !s.Polls(name)) {
			s.run.repeats.add(name, string(arguments), s.Limits.MaxRepeats)
		}
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
	if u, _ := Counted(b.Usage); u != nil { // another program may have written the log
		s.run.tokens = Plus(s.run.tokens, u.TotalTokens)
	}
	if b.Window > 0 {
		s.window = window{told: b.Window}
	}
	was := s.cache.tokens
	truncated := s.cache.truncated(b, s.view.Items()) || s.window.filled(b)
	s.cache.told(b, truncated)
	if b.BrokeOff() {
		s.needs = true // the request was not answered
		return
	}
	s.need(s.needs)
	if u, _ := Counted(b.Usage); u != nil {
		s.run.lastTokens = u.TotalTokens
	}
	s.run.lastCost = b.Cost
	s.obeyed = s.obeyed || s.called
	s.accepted = s.sent
	s.run.compactions.retried, s.run.failed = false, nil
	if truncated {
		s.historyTruncated(was, b.Usage.InputTokens)
		return
	}
	if b.Usage != nil && b.Usage.InputTokens > s.window.truncated {
		s.window.truncated = 0 // the window is larger than assumed
	}
	s.reported(b.Usage)
}

// mended makes the run ask for the last turn again.
func (s *State) mended() {
	s.run.last = session.TurnEnded{}
	s.needs = true
}

// Usage is the usage that counts against limits and budgets. Cost is in the unit of
// the prices.
type Usage struct {
	Turns  int     `json:"turns"`
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost,omitempty"`
}

// Add adds o to s. Sums saturate: they stay numbers that JSON can hold.
func (s *Usage) Add(o Usage) {
	s.Turns = int(min(Plus(int64(s.Turns), int64(o.Turns)), math.MaxInt))
	s.Tokens = Plus(s.Tokens, o.Tokens)
	s.Cost = min(s.Cost+o.Cost, math.MaxFloat64)
}

// maxCounted is larger than the token count of any real reply. A larger count is an
// error of the endpoint and would make sums meaningless.
const maxCounted = 1 << 40

// Counted returns the usage with impossible counts corrected, because limits and sums
// depend on it: the total must not be less than its parts. Wrong describes the
// corrections; it is "" if there are none except a missing total.
func Counted(u *api.Usage) (right *api.Usage, wrong string) {
	if u == nil || plausible(u) {
		return u, ""
	}
	own := *u
	var list []string
	set := func(n *int64, what string) {
		if was := *n; was < 0 || was > maxCounted {
			*n = min(max(was, 0), maxCounted)
			list = append(list, fmt.Sprintf("%d %s, counted as %d", was, what, *n))
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
			list = append(list, fmt.Sprintf("%d tokens in all for %d and %d, counted as %d", own.TotalTokens, own.InputTokens, own.OutputTokens, parts))
		}
		own.TotalTokens = parts
	}
	if len(list) > 0 {
		wrong = "the endpoint's count of tokens cannot be true: it reports " + strings.Join(list, "; ")
	}
	return &own, wrong
}

// plausible reports whether the counts need no correction.
func plausible(u *api.Usage) bool {
	fits := func(n int64) bool { return n >= 0 && n <= maxCounted }
	return fits(u.InputTokens) && fits(u.OutputTokens) && fits(u.TotalTokens) && u.TotalTokens >= u.InputTokens+u.OutputTokens &&
		(u.InputDetails == nil || fits(u.InputDetails.CachedTokens)) && (u.OutputDetails == nil || fits(u.OutputDetails.ReasoningTokens))
}

// Plus adds counts. The sum saturates at the largest int64.
func Plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
