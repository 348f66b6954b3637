// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Handoff is a tool with which a model hands the conversation to another agent. From
// the next request on the other agent speaks in the same session, with its own model,
// instructions, tools and policy: set [Agent].Handoffs. To give another agent a task
// and get its answer back, use [AsTool].
//
//   - The log records each handoff as the notice [session.NoticeHandoff]. Later runs of
//     the first agent on the session, in any process, go on with the agent that the
//     conversation was handed to last.
//   - Of several handoffs in one reply the first counts, and the others fail. The other
//     calls of the reply belong to the agent that made them.
//   - Limits, Budget, OutputStore and CollapseReads are those of the first agent and count
//     over all agents. [Limits].MaxHandoffs bounds the handoffs of a run. Prices are the
//     other agent's or, if it has none, the first agent's.
//   - What the Policy of an earlier agent denies stays denied, as in a subagent: a handoff
//     never gives permission. Everything else is decided by the other agent's policy, and
//     by the answers that the session remembers.
//   - Hooks and Guards of the first agent stay. The other agent's are added, except for
//     those with a Name that is there already; its BeforeRun and AfterRun are not called.
//     Before its first request, the other agent's own BeforeInput hooks and Input guards
//     are asked about all messages of the history that it gets, and the guards about the
//     outputs if they want them.
//
// A handoff needs no approval unless a rule asks about its Name.
type Handoff struct {
	// Name is the name of the tool, such as transfer_to_billing. The log names the
	// handoff by it, so it should not change while sessions exist.
	Name string
	// Description tells the model when to hand over.
	Description string
	// Agent is the agent that goes on. Its Request must have no Conversation and no
	// PreviousResponseID. It may have handoffs of its own, also back.
	Agent *Agent
	// History is what the other agent gets of the history. What it does not get is
	// recorded as a compaction, which [Restore] undoes.
	History HandoffHistory
}

// HandoffHistory says what an agent gets of the history when the conversation is handed
// to it.
type HandoffHistory string

const (
	// HistoryWhole is all of the history.
	HistoryWhole HandoffHistory = ""
	// HistorySummary passes on the messages of people and programs, and a summary of
	// everything else, which the previous agent writes. If the summary fails,
	// everything else is dropped.
	HistorySummary HandoffHistory = session.BySummary
	// HistoryDropped is only what people and programs said, and the reason that the model
	// gave.
	HistoryDropped HandoffHistory = session.ByDropping
)

// defaultHandoffs bounds the handoffs of a run that sets no limit.
const defaultHandoffs = 10

// handoffInput are the arguments of a handoff.
type handoffInput struct {
	Reason string `json:"reason,omitempty" jsonschema:"why the conversation is handed over, and what is to be known for it"`
}

// handedOver is the output of a handoff, for the agent that goes on.
const handedOver = "The conversation was handed over. You go on with it from here."

// handoffTool is the tool of a handoff.
type handoffTool struct {
	tool.Tool
	handoff *Handoff
}

// Annotations implements [tool.Annotated].
func (h handoffTool) Annotations() tool.Annotations { return tool.AnnotationsOf(h.Tool) }

// tool returns the tool of the handoff. It runs alone, so that the first handoff of a
// reply is the first to finish.
func (h *Handoff) tool() (tool.Tool, error) {
	t, err := tool.New(h.Name, h.Description, func(context.Context, handoffInput) (string, error) {
		return handedOver, nil
	}, tool.ReadOnly(), tool.Exclusive(), tool.Idempotent())
	return handoffTool{t, h}, err
}

// handoffTools returns the tools of the agent's handoffs.
func (a *Agent) handoffTools() ([]tool.Tool, error) {
	var list []tool.Tool
	for i := range a.Handoffs {
		t, err := a.Handoffs[i].tool()
		if err != nil {
			return nil, fmt.Errorf("agent: handoff %d: %w", i+1, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// handoff returns the agent's handoff with a name, or nil.
func (a *Agent) handoff(name string) *Handoff {
	for i := range a.Handoffs {
		if a.Handoffs[i].Name == name {
			return &a.Handoffs[i]
		}
	}
	return nil
}

// lend returns another agent with what it has from a, the first agent of the run.
func (a *Agent) lend(to *Agent) *Agent {
	if to == a {
		return a
	}
	own := *to
	own.Limits, own.Budget, own.OutputStore, own.CollapseReads = a.Limits, a.Budget, a.OutputStore, a.CollapseReads
	own.HoldOutput = own.HoldOutput || a.HoldOutput
	if own.Prices == nil {
		own.Prices = a.Prices
	}
	own.Setup.Program = cmp.Or(own.Setup.Program, a.Setup.Program)
	if own.Setup.Files == nil {
		own.Setup.Files = a.Setup.Files
	}
	own.Hooks = slices.Clip(a.Hooks)
	for _, h := range to.Hooks {
		if h.Name == "" || !slices.ContainsFunc(a.Hooks, func(o Hooks) bool { return o.Name == h.Name }) {
			own.Hooks = append(own.Hooks, h)
		}
	}
	own.Guards = slices.Clip(a.Guards)
	for _, g := range to.Guards {
		if g.Name == "" || !slices.ContainsFunc(a.Guards, func(o Guard) bool { return o.Name == g.Name }) {
			own.Guards = append(own.Guards, g)
		}
	}
	return &own
}

// ruler is an agent whose denials bind other agents.
type ruler struct {
	policy Policy
	rules  []session.Rule
	tools  *tool.Set
}

// denies returns the ruling on a call of a tool with the given annotations.
func (by *ruler) denies(t tool.Tool, call tool.Call, annotations tool.Annotations) (plan.Ruling, bool) {
	if own, ok := by.tools.Lookup(call.Name); ok {
		annotations.Approval = tool.AnnotationsOf(own).Approval
	}
	j := by.policy.judge(t, call, annotations, by.rules)
	return j, j.Verdict == session.Deny
}

// after returns the agent that speaks after handoffs, by their names, and the earlier
// agents.
func (a *Agent) after(handoffs []string) (*Agent, []*Agent, error) {
	now := a
	var before []*Agent
	for _, name := range handoffs {
		h := now.handoff(name)
		if h == nil || h.Agent == nil {
			return nil, nil, fmt.Errorf("agent: the log says that the conversation was handed over by %s, and the agent has no such handoff", output.PlainName(name))
		}
		before = append(before, now)
		now = h.Agent
	}
	return a.lend(now), before, nil
}

// checkHandoffs returns an error for an agent that cannot be used, among all to which
// the conversation can be handed.
func (r *Run) checkHandoffs() error {
	known := []*Agent{r.first}
	for i := 0; i < len(known); i++ {
		a := known[i]
		if err := r.checkAgent(r.first.lend(a)); err != nil {
			return err
		}
		if len(a.Handoffs) > 0 && a.Request.PreviousResponseID != "" {
			return errors.New("agent: Request.PreviousResponseID is set, and there are Handoffs: another agent's endpoint may not have the history before the session")
		}
		if _, err := a.handoffTools(); err != nil {
			return err
		}
		if a != r.first && a.ToolSource == nil { // the run makes the tools of the first agent at once
			if _, err := a.ToolSet(context.Background()); err != nil {
				return err
			}
		}
		for _, h := range a.Handoffs {
			switch {
			case h.Agent == nil:
				return fmt.Errorf("agent: handoff %s has no Agent", h.Name)
			case !isThere(h.Agent.Model):
				return fmt.Errorf("agent: handoff %s: its Agent has no Model", h.Name)
			case h.History != HistoryWhole && h.History != HistorySummary && h.History != HistoryDropped:
				return fmt.Errorf("agent: handoff %s: History is %q, want %q, %q or nothing", h.Name, h.History, HistorySummary, HistoryDropped)
			case h.Agent != r.first && (h.Agent.Request.Conversation != "" || h.Agent.Request.PreviousResponseID != ""):
				return fmt.Errorf("agent: handoff %s: the agent's Request has a Conversation or a PreviousResponseID, which would be another history", h.Name)
			}
			if !slices.Contains(known, h.Agent) {
				known = append(known, h.Agent)
			}
		}
	}
	return nil
}

// speak makes the agent after the given handoffs the agent of the run.
func (r *Run) speak(ctx context.Context, handoffs []string) error {
	whole, before, err := r.first.after(handoffs)
	if err != nil {
		return err
	}
	var rulers []ruler
	for _, a := range before {
		tools, err := a.ToolSet(ctx) // its sources' tools may be declared as denied, too
		if err != nil {
			return err
		}
		rulers = append(rulers, ruler{policy: a.Policy, tools: tools})
	}
	r.whole, r.rulers = whole, rulers
	r.handoffs = len(handoffs)
	r.agreed, r.shown.inherited = nil, 0 // it may have other guards and hooks
	r.base, r.found, r.tools, r.swapped = nil, nil, nil, r.tools != nil
	all, _ := r.state.Fallbacks()
	r.narrow(all % len(whole.models()))
	r.sifted = false
	return r.adapt()
}

// handOver carries out a handoff that the log records: it shortens the history if the
// handoff says so, and lets the other agent speak. It reports done if it has recorded
// something, so that the run has to decide again.
func (r *Run) handOver(ctx context.Context) (done bool, err error) {
	path, next, cut := r.state.Speaker()
	if next == "" {
		return false, nil
	}
	h := r.whole.handoff(next)
	if h != nil && h.History != "" && !cut {
		if e, ok := r.state.Cut(string(h.History)); ok {
			if agreed, err := r.guardFirst(ctx, anyGuard); !agreed {
				return true, err
			}
			return true, r.compactFor(ctx, e, h)
		}
	}
	if err := r.speak(ctx, append(slices.Clip(path), next)); err != nil {
		return true, r.stopFor(err)
	}
	return false, nil
}

// takeUp lets the agent speak that the log names, at the start of a run. A handoff is
// carried out before the next request, because calls of its reply may be open.
func (r *Run) takeUp(ctx context.Context) error {
	path, _, _ := r.state.Speaker()
	if len(path) == 0 {
		return r.pick()
	}
	if err := r.speak(ctx, path); err != nil {
		return err
	}
	r.swapped = false // the session's last request had these tools
	return r.equip(ctx)
}

// speaker returns the name of the handoff to the agent that made the last request, or ""
// for the first agent.
func (r *Run) speaker() string {
	path, _, _ := r.state.Speaker()
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// inputHooks returns the hooks that see new input: those of the agent, and of the one
// that the conversation is being handed to.
func (r *Run) inputHooks() []Hooks {
	path, next, _ := r.state.Speaker()
	if next == "" {
		return r.agent.Hooks
	}
	to, _, err := r.first.after(append(slices.Clip(path), next))
	if err != nil {
		return r.agent.Hooks
	}
	return to.Hooks
}

// handing reports whether the call handed the conversation over. If it may not, its
// outcome becomes a failure that says why.
func (r *Run) handing(f *finished) bool {
	t, _ := r.tools.Lookup(f.seen.Call.Name)
	h, ok := t.(handoffTool)
	if !ok || f.out.Failed {
		return false
	}
	_, next, _ := r.state.Speaker()
	most := cmp.Or(r.first.Limits.MaxHandoffs, defaultHandoffs)
	problem := ""
	switch {
	case next != "":
		problem = fmt.Sprintf("The conversation was not handed over by this call: %s did it before, in the same reply.", next)
	case r.state.Handoffs() >= most:
		problem = fmt.Sprintf("The conversation was not handed over: it was handed over %d times in this run, and no more is allowed. Answer, or say what is missing.", most)
	default:
		return true
	}
	f.out.Failed, f.out.Failure, f.out.Error = true, tool.NotRun, problem
	f.out.Content = item.Text(output.Envelope(true, h.handoff.Name, problem, ""))
	return false
}

// handoffNotice returns the entry that records a handoff.
func handoffNotice(f *finished) session.Noticed {
	return session.Noticed{Turn: f.seen.Turn, Kind: session.NoticeHandoff, CallID: f.call.CallID,
		Text: fmt.Sprintf("the conversation was handed over by %s", f.seen.Call.Name)}
}

const (
	// handoffHead begins the summary that another agent gets.
	handoffHead = "[This conversation was handed to you by another agent. This is a summary of the %d items that are left out here: what that agent said and did. Messages of people stand before it.]\n\n"
	// handoffCut is sent in place of the items that another agent does not get.
	handoffCut = "[This conversation was handed to you by another agent. %d items are left out here: what that agent said and did. Messages of people stand before this one.%s]"
)

// cutText returns the text that is sent in place of what the agent before said.
func cutText(h *Handoff, gone []item.Item) string {
	reason := ""
	for _, it := range slices.Backward(gone) {
		if name, arguments := plan.CalledBy(it); it.IsCall() && name == h.Name {
			var in handoffInput
			text, quoted := arguments.Unquote()
			if !quoted {
				text = string(arguments)
			}
			if json.Unmarshal([]byte(text), &in) == nil && strings.TrimSpace(in.Reason) != "" {
				said, _ := output.Sanitize(in.Reason)
				reason = fmt.Sprintf(" It gave this reason: %q", clip(said))
			}
			break
		}
	}
	return fmt.Sprintf(handoffCut, len(gone), reason)
}
