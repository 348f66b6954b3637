// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Account is what a session has used: tokens and cost in total, by agent, by session, by
// tool and by model. [AccountOf] makes it from a session, whichever processes ran it. To
// keep the account of a run up to date, call [Account.Add] with each [Recorded] entry. The
// zero value is ready for use. An Account is not safe for concurrent use.
//
// Every token is counted once: Totals.All is the sum over Agents, and the sum over
// Sessions. A fork's account includes the entries that it shares with the session it was
// made from.
//
// Add knows of a subagent only what the parent's log says: its turns, its tokens and its
// cost, with the subagents inside it. AccountOf also reads the sessions of the subagents.
type Account struct {
	// Totals is the usage of the session's own turns and compactions. Nested is the
	// usage of its subagents.
	Totals
	// Agents has the usage by agent, each without its subagents, in the order in
	// which they were first used. The first is the session's own agent, with the name
	// "".
	Agents []AgentUsage `json:"agents,omitempty"`
	// Sessions has the usage by session, each without the sessions of its subagents. The
	// first is the session itself.
	Sessions []SessionUsage `json:"sessions,omitempty"`
	// Tools has the calls by agent and tool: first those of the session, in the order of
	// their first outputs, and then those of subagents.
	Tools []ToolUsage `json:"tools,omitempty"`
	// Models has the usage by model, as the endpoint reports the name, or as the request
	// had it: first of the session's own models, and then of those of subagents. Models
	// that guards ask are not included.
	Models []ModelUsage `json:"models,omitempty"`

	speaker, next string // names of handoffs: of the last request, and since then
	known         KnownCalls
	began         bool // a run has started
	setup         session.Setup
	subs          []subagent
}

// TokenUsage is a usage with its tokens by kind. Tokens of guards are of no kind, and
// neither are those of subagents whose sessions were not read.
type TokenUsage struct {
	Usage
	InputTokens     int64 `json:"input_tokens"`
	CachedTokens    int64 `json:"cached_tokens"`
	OutputTokens    int64 `json:"output_tokens"`
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// AgentUsage is the usage of an agent in an [Account].
type AgentUsage struct {
	// Agent is the name of the tool whose calls are runs of the agent, such as
	// "research", or "fork"; for an agent inside another one the names of both, such as
	// "research/ask". For an agent to which the session was handed over it is the name of
	// the [Handoff], however it got there. It is "" for the session's own agent, "<agent>"
	// for agents in messages of a file and "<guards>" for models that guards ask, and for requests
	// beside the conversation, such as for a title.
	Agent string `json:"agent"`
	// Sessions is the number of the agent's sessions.
	Sessions int `json:"sessions"`
	TokenUsage
}

// SessionUsage is the usage of a session in an [Account], with what its guards used.
type SessionUsage struct {
	// Session is the session's id; "" if [Account.Add] was not told it. Agent is the
	// agent that the session was started with.
	Session string `json:"session"`
	Agent   string `json:"agent"`
	TokenUsage
}

// ToolUsage is the use of a tool by an agent in an [Account].
type ToolUsage struct {
	// Agent is the agent that called the tool.
	Agent string `json:"agent,omitempty"`
	Tool  string `json:"tool"`
	// Calls counts the calls that ran, here or at the endpoint, and Failed those of them that failed. Refused
	// counts the calls that did not run.
	Calls   int `json:"calls"`
	Failed  int `json:"failed,omitempty"`
	Refused int `json:"refused,omitempty"`
	// OutputBytes is the size of the output items that the model got, as JSON.
	OutputBytes int64 `json:"output_bytes"`
	// Nested is the usage of the subagents that the calls started, with those inside
	// them.
	Nested Usage `json:"nested,omitzero"`
}

// ModelUsage is the usage of a model in an [Account].
type ModelUsage struct {
	Model string `json:"model"`
	TokenUsage
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

var errNoSession = errors.New("agent: the *Session is nil: make one by session.New or session.Open")

// AccountOf returns the account of a session. It reads the sessions of its subagents, and
// includes subagents that a crash interrupted. If one of these sessions cannot be read,
// the account counts it with the agent that it is inside of, without its tools and models,
// and AccountOf returns the account and an error.
func AccountOf(ctx context.Context, s *session.Session) (*Account, error) {
	if s == nil {
		return nil, errNoSession
	}
	a := new(Account)
	for _, e := range s.Log() {
		a.Add(e)
	}
	err := a.addInterrupted(ctx, s)
	if len(a.Sessions) > 0 {
		a.Sessions[0].Session = s.ID()
	}
	seen := map[string]bool{s.ID(): true}
	for _, sub := range a.subs {
		seen[sub.session] = true
	}
	return a, errors.Join(err, a.split(ctx, s, a.subs, seen))
}

// Add adds the next entry of the session's log.
func (a *Account) Add(e session.Entry) {
	call := a.follow(e)
	switch b := e.Body.(type) {
	case session.TurnEnded:
		a.Turns++
		a.use(cmp.Or(b.Model, a.setup.Model), 1, b.Usage, b.Cost)
	case session.Compacted:
		a.Compactions++
		a.use(a.setup.Model, 0, b.Usage, b.Cost)
	case session.OutputItem:
		if name, ok := plan.EndpointCall(b.Item); ok {
			a.addEndpointCall(name, b.Item)
		} else if call != nil && b.Item.IsOutput() { // of a shell in a container of the endpoint
			a.addEndpointCall(call.Tool, b.Item)
		}
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
		a.addOutput(call, b)
	}
}

// follow notes what the next entry says about later ones: the setup, the agent that
// speaks, and the calls. It returns the call that the entry is about, if any.
func (a *Account) follow(e session.Entry) *KnownCall {
	a.setup.Apply(e.Body)
	call := a.known.Add(e)
	switch b := e.Body.(type) {
	case session.Noticed:
		if b.Kind == session.NoticeHandoff && call != nil {
			a.next = cmp.Or(a.next, call.Tool)
		}
	case session.TurnStarted:
		a.speaker, a.next = cmp.Or(a.next, a.speaker), ""
	case session.RunStarted:
		a.began = true
	}
	return call
}

// addOutput counts a call that has its output.
func (a *Account) addOutput(call *KnownCall, b session.CallOutput) {
	t := a.tool(a.speaker, call.Tool)
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

// addEndpointCall counts a call that the endpoint made itself.
func (a *Account) addEndpointCall(name string, it item.Item) {
	t := a.tool(a.speaker, name)
	t.Calls++
	problem, has := it.Member("error")
	if it.Status() == item.StatusFailed || has && problem != "null" {
		t.Failed++
	}
	t.OutputBytes += int64(it.Size()) // it holds its output
}

// use adds the usage of a reply or a compaction.
func (a *Account) use(model string, turns int, u *api.Usage, cost float64) {
	used := TokenUsage{Usage: Usage{Turns: turns, Cost: cost}}
	if u != nil {
		a.count(u)
		used.Tokens, used.InputTokens, used.CachedTokens = u.TotalTokens, u.InputTokens, u.Cached()
		used.OutputTokens, used.ReasoningTokens = u.OutputTokens, u.Reasoning()
	}
	a.Cost += cost
	by := a.agent(a.speaker)
	by.Sessions = max(by.Sessions, 1)
	by.add(used)
	a.own().add(used)
	a.model(model).add(used)
}

// add adds o.
func (u *TokenUsage) add(o TokenUsage) {
	u.Add(o.Usage)
	u.InputTokens = plan.Plus(u.InputTokens, o.InputTokens)
	u.CachedTokens = plan.Plus(u.CachedTokens, o.CachedTokens)
	u.OutputTokens = plan.Plus(u.OutputTokens, o.OutputTokens)
	u.ReasoningTokens = plan.Plus(u.ReasoningTokens, o.ReasoningTokens)
}

// kinds returns only the tokens by kind.
func (u TokenUsage) kinds() TokenUsage {
	u.Usage = Usage{}
	return u
}

// own returns the usage of the session itself. It comes first, with its agent.
func (a *Account) own() *SessionUsage {
	if len(a.Sessions) == 0 {
		a.Sessions, a.Agents = []SessionUsage{{}}, []AgentUsage{{Sessions: 1}}
	}
	return &a.Sessions[0]
}

func (a *Account) agent(name string) *AgentUsage {
	a.own()
	return find(&a.Agents, func(u *AgentUsage) bool { return u.Agent == name }, AgentUsage{Agent: name})
}

func (a *Account) session(id, agent string) *SessionUsage {
	if a.own(); id == "" { // the models of guards and agents in messages have no session
		return a.own()
	}
	return find(&a.Sessions, func(u *SessionUsage) bool { return u.Session == id }, SessionUsage{Session: id, Agent: agent})
}

func (a *Account) tool(agent, name string) *ToolUsage {
	return find(&a.Tools, func(t *ToolUsage) bool { return t.Agent == agent && t.Tool == name }, ToolUsage{Agent: agent, Tool: name})
}

func (a *Account) model(name string) *ModelUsage {
	return find(&a.Models, func(m *ModelUsage) bool { return m.Model == name }, ModelUsage{Model: name})
}

// addSubagent adds what a subagent has used, with the subagents inside it.
func (a *Account) addSubagent(id, name string, used Usage) {
	a.Nested.Add(used)
	agent := a.agent(name)
	agent.Add(used)
	a.session(id, name).Add(used)
	if name != agentInMessage && name != guardsName {
		a.tool(a.speaker, name).Nested.Add(used)
	}
	sub := find(&a.subs, func(s *subagent) bool { return s.session == id && s.agent == name }, subagent{session: id, agent: name})
	if sub.used == (Usage{}) { // it is new
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

// split adds what the logs of subagents say, and moves the usage of agents inside them to
// names of their own. A session that was seen before is not counted again.
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
		b := accountInside(inner.Log())
		left := sub.used
		var deeper []subagent
		for _, d := range b.subs {
			if d.session != "" && seen[d.session] {
				continue
			}
			seen[d.session] = true
			d.agent = sub.agent + "/" + d.agent
			d.used = a.move(&left, d.used, sub, d.agent)
			a.agent(d.agent).Sessions++
			if d.session != "" {
				minus(&a.session(sub.session, sub.agent).Usage, d.used)
				a.session(d.session, d.agent).Add(d.used)
				deeper = append(deeper, d)
			}
		}
		a.addInside(sub, left, b)
		errs = append(errs, a.split(ctx, inner, deeper, seen))
	}
	return errors.Join(errs...)
}

// move moves usage of a subagent to another agent, at most what is left of it, and
// returns what it moved: the parent has counted all of it, except for what a crash hid.
func (a *Account) move(left *Usage, used Usage, from subagent, to string) Usage {
	used = Usage{Turns: min(used.Turns, left.Turns), Tokens: min(used.Tokens, left.Tokens), Cost: min(used.Cost, left.Cost)}
	minus(left, used)
	minus(&a.agent(from.agent).Usage, used)
	a.agent(to).Add(used)
	return used
}

// addInside adds what a subagent's own log says: its tools, its models, tokens by kind,
// and the agents that it was handed over to. What is left of its usage is its own.
func (a *Account) addInside(sub subagent, left Usage, b *Account) {
	inside := func(name string) string {
		if name == "" {
			return sub.agent
		}
		return sub.agent + "/" + name
	}
	for _, one := range b.Agents {
		if slices.ContainsFunc(b.subs, func(s subagent) bool { return s.agent == one.Agent }) {
			continue
		}
		to := a.agent(inside(one.Agent))
		to.add(one.kinds())
		if one.Agent != "" {
			to.Sessions++
			a.move(&left, one.Usage, sub, inside(one.Agent))
		}
	}
	if len(b.Sessions) > 0 {
		a.session(sub.session, sub.agent).add(b.Sessions[0].kinds())
	}
	for _, one := range b.Tools {
		t := a.tool(inside(one.Agent), one.Tool)
		t.Calls, t.Failed, t.Refused = t.Calls+one.Calls, t.Failed+one.Failed, t.Refused+one.Refused
		t.OutputBytes += one.OutputBytes
		t.Nested.Add(one.Nested)
	}
	for _, one := range b.Models {
		a.model(one.Model).add(one.TokenUsage)
	}
}

// accountInside returns the account of a subagent's log. The log of a fork begins with
// entries of its parent, which are not the fork's usage.
func accountInside(log []session.Entry) *Account {
	own := 0
	for i, e := range slices.Backward(log) {
		if out, ok := e.Body.(session.CallOutput); ok && isForkOutput(out.Item) {
			own = i + 1
			break
		}
	}
	a := new(Account)
	for i, e := range log {
		if i < own {
			a.follow(e)
		} else {
			a.Add(e)
		}
	}
	return a
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
