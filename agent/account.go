// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Account is what a session has used: tokens and cost in total, by agent, by tool and
// by model. [AccountOf] makes it from a session, whichever processes ran it. To keep
// the account of a run up to date, call [Account.Add] with each [Recorded] entry. The
// zero value is ready for use. An Account is not safe for concurrent use.
//
// Every token is counted once: the sum over Agents is Totals.All. A fork's account
// includes the entries that it shares with the session it was made from.
type Account struct {
	// Totals is the usage of the session's own turns and compactions. Nested is the
	// usage of its subagents.
	Totals
	// Agents has the usage by agent, each without its subagents, in the order in
	// which they were first used. The first is the session's own agent, with the name
	// "".
	Agents []AgentUsage `json:"agents,omitempty"`
	// Tools has the calls by tool, in the order of their first outputs. Calls of
	// subagents are not included.
	Tools []ToolUsage `json:"tools,omitempty"`
	// Models has the session's own usage by model, as the endpoint reports the name,
	// or as the request had it.
	Models []ModelUsage `json:"models,omitempty"`

	speaker, next string // names of handoffs: of the last request, and since then
	known         KnownCalls
	began         bool // a run has started
	setup         session.Setup
	subs          []subagent
}

// AgentUsage is the usage of an agent in an [Account].
type AgentUsage struct {
	// Agent is the name of the tool whose calls are runs of the agent, such as
	// "research", or "fork"; for an agent inside another one the names of both, such as
	// "research/ask". For an agent to which the session was handed over it is the name of
	// the [Handoff], however it got there. It is "" for the session's own agent, "<agent>"
	// for agents in messages of a file and "<guards>" for models that guards ask.
	Agent string `json:"agent"`
	// Sessions is the number of the agent's sessions.
	Sessions int `json:"sessions"`
	Usage
}

// ToolUsage is the use of a tool in an [Account].
type ToolUsage struct {
	Tool string `json:"tool"`
	// Calls counts the calls that ran, here or at the endpoint, and Failed those of them that failed. Refused
	// counts the calls that did not run.
	Calls   int `json:"calls"`
	Failed  int `json:"failed,omitempty"`
	Refused int `json:"refused,omitempty"`
	// OutputBytes is the size of the output items that the model got, as JSON.
	OutputBytes int64 `json:"output_bytes"`
	// Nested is the usage of the subagents that the calls started.
	Nested Usage `json:"nested,omitzero"`
}

// ModelUsage is the usage of a model in an [Account].
type ModelUsage struct {
	Model string `json:"model"`
	Usage
	InputTokens     int64 `json:"input_tokens"`
	CachedTokens    int64 `json:"cached_tokens"`
	OutputTokens    int64 `json:"output_tokens"`
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// subagent is the usage of one session of a subagent, with the sessions inside it.
type subagent struct {
	session, agent string
	used           Usage
}

// agentInMessage is the name of an agent in a message.
const agentInMessage = "<agent>"

// guardsName is the name of the agents that guards ask.
const guardsName = "<guards>"

// AccountOf returns the account of a session. It reads the sessions of its subagents
// to tell agents inside agents apart, and includes subagents that a crash interrupted.
// If one of these sessions cannot be read, the account counts it with the agent that
// it is inside of, and AccountOf returns the account and an error.
func AccountOf(ctx context.Context, s *session.Session) (*Account, error) {
	if s == nil {
		return nil, errors.New("agent: the session is nil")
	}
	a := new(Account)
	for _, e := range s.Log() {
		a.Add(e)
	}
	err := a.addInterrupted(ctx, s)
	seen := map[string]bool{s.ID(): true}
	for _, sub := range a.subs {
		seen[sub.session] = true
	}
	return a, errors.Join(err, a.split(ctx, s, a.subs, seen))
}

// Add adds the next entry of the session's log.
func (a *Account) Add(e session.Entry) {
	a.setup.Apply(e.Body)
	call := a.known.Add(e)
	switch b := e.Body.(type) {
	case session.Noticed:
		if b.Kind == session.NoticeHandoff && call != nil {
			a.next = cmp.Or(a.next, call.Tool)
		}
	case session.TurnStarted:
		a.speaker, a.next = cmp.Or(a.next, a.speaker), ""
	case session.TurnEnded:
		a.Turns++
		a.use(cmp.Or(b.Model, a.setup.Model), 1, b.Usage, b.Cost)
	case session.Compacted:
		a.Compactions++
		a.use(a.setup.Model, 0, b.Usage, b.Cost)
	case session.RunStarted:
		a.began = true
	case session.OutputItem:
		a.addEndpointCall(b.Item)
	case session.SubagentUsage:
		name := agentInMessage
		if a.began {
			name = guardsName
		}
		if call != nil {
			name = call.Tool
		}
		a.addSubagent(b.Session, name, Usage{Turns: b.Turns, Tokens: b.Tokens, Cost: b.Cost})
	case session.CallOutput:
		if call == nil || b.Item.Type() == item.TypeMCPApprovalResponse && !b.Failed {
			return // the endpoint's own call is counted when it is there
		}
		t := find(&a.Tools, func(t *ToolUsage) bool { return t.Tool == call.Tool }, ToolUsage{Tool: call.Tool})
		t.OutputBytes += int64(b.Item.Size())
		switch {
		case !call.Ran:
			t.Refused++
			a.RefusedCalls++
			return
		case b.Failed:
			t.Failed++
			a.FailedCalls++
		}
		t.Calls++
		a.Calls++
	}
}

// addEndpointCall counts a call that the endpoint made itself.
func (a *Account) addEndpointCall(it item.Item) {
	name, ok := plan.EndpointCall(it)
	if !ok {
		return
	}
	t := find(&a.Tools, func(t *ToolUsage) bool { return t.Tool == name }, ToolUsage{Tool: name})
	t.Calls++
	problem, has := it.Member("error")
	if it.Status() == item.StatusFailed || has && problem != "null" {
		t.Failed++
	}
	t.OutputBytes += int64(it.Size()) // it holds its output
}

// use adds the usage of a reply or a compaction.
func (a *Account) use(model string, turns int, u *api.Usage, cost float64) {
	own := Usage{Turns: turns, Cost: cost}
	m := find(&a.Models, func(m *ModelUsage) bool { return m.Model == model }, ModelUsage{Model: model})
	if u != nil {
		a.count(u)
		own.Tokens = u.TotalTokens
		m.InputTokens = plan.Plus(m.InputTokens, u.InputTokens)
		m.CachedTokens = plan.Plus(m.CachedTokens, u.Cached())
		m.OutputTokens = plan.Plus(m.OutputTokens, u.OutputTokens)
		m.ReasoningTokens = plan.Plus(m.ReasoningTokens, u.Reasoning())
	}
	a.Cost += cost
	m.Add(own)
	by := a.agent(a.speaker)
	by.Sessions = max(by.Sessions, 1)
	by.Add(own)
}

// own returns the usage of the session's own agent.
func (a *Account) own() *AgentUsage {
	if len(a.Agents) == 0 {
		a.Agents = []AgentUsage{{Sessions: 1}}
	}
	return &a.Agents[0]
}

func (a *Account) agent(name string) *AgentUsage {
	a.own()
	return find(&a.Agents, func(u *AgentUsage) bool { return u.Agent == name }, AgentUsage{Agent: name})
}

// addSubagent adds what a subagent has used, with the subagents inside it.
func (a *Account) addSubagent(id, name string, used Usage) {
	a.Nested.Add(used)
	agent := a.agent(name)
	agent.Add(used)
	if name != agentInMessage {
		find(&a.Tools, func(t *ToolUsage) bool { return t.Tool == name }, ToolUsage{Tool: name}).Nested.Add(used)
	}
	sub := find(&a.subs, func(s *subagent) bool { return s.session == id }, subagent{})
	if sub.agent == "" { // it is new
		sub.session, sub.agent = id, name
		agent.Sessions++
	}
	sub.used.Add(used)
}

// addInterrupted adds the usage of subagents that were interrupted: the session's log
// does not have it yet.
func (a *Account) addInterrupted(ctx context.Context, s *session.Session) error {
	state := fold(s)
	if !state.UnderWay() {
		return nil
	}
	state.Apply(session.Entry{Body: session.RunStarted{Resumes: true}}) // marks the calls in progress as paused
	var errs []error
	for _, c := range state.View().Open() {
		used, err := unreported(ctx, s, []session.OpenCall{c})
		if used != (Usage{}) {
			a.addSubagent(c.Paused, plan.ToolName(c.Item), used)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// split moves the usage of agents inside the subagents to names of their own. A
// session that was seen before is not counted again: the log of a fork begins with
// entries of its parent.
func (a *Account) split(ctx context.Context, s *session.Session, subs []subagent, seen map[string]bool) error {
	var errs []error
	for _, sub := range subs {
		if sub.session == "" {
			continue
		}
		inner, err := s.Nested(ctx, sub.session)
		if err != nil {
			errs = append(errs, fmt.Errorf("the account of %q: %w", s.ID(), err))
			continue
		}
		var b Account
		for _, e := range inner.Log() {
			b.Add(e)
		}
		left := sub.used
		var deeper []subagent
		for _, d := range b.subs {
			if seen[d.session] {
				continue
			}
			seen[d.session] = true
			// Its parent has counted it, except for what a crash hid.
			d.used = Usage{Turns: min(d.used.Turns, left.Turns), Tokens: min(d.used.Tokens, left.Tokens), Cost: min(d.used.Cost, left.Cost)}
			d.agent = sub.agent + "/" + d.agent
			minus(&left, d.used)
			minus(&a.agent(sub.agent).Usage, d.used)
			to := a.agent(d.agent)
			to.Sessions++
			to.Add(d.used)
			deeper = append(deeper, d)
		}
		errs = append(errs, a.split(ctx, inner, deeper, seen))
	}
	return errors.Join(errs...)
}

func minus(u *Usage, o Usage) {
	u.Turns -= o.Turns
	u.Tokens -= o.Tokens
	u.Cost -= o.Cost
}

// find returns the element of a list, and appends it first if it is missing.
func find[T any](list *[]T, is func(*T) bool, added T) *T {
	for i := range *list {
		if is(&(*list)[i]) {
			return &(*list)[i]
		}
	}
	*list = append(*list, added)
	return &(*list)[len(*list)-1]
}
