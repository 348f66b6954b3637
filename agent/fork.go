// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

type forkInput struct {
	Command   string   `json:"command" jsonschema:"what the fork is to do"`
	Arguments []string `json:"arguments,omitempty" jsonschema:"what it is to do it with, one by one"`
}

const forkDescription = "Starts a copy of yourself that knows this conversation up to this call, and gives it a task. " +
	"The copy works on its own and with the same tools. Only its final answer comes back, as the output of this call; what it read and tried does not."

// ForkTool returns the tool fork, with which a model gives a task to a copy of
// itself: the same agent, in its own session that begins with the parent's history up
// to the call. The copy's work stays out of the parent's history and can be opened
// under the session id that entries and events name. The model gets only its answer.
// A fork cannot fork again unless [Limits].MaxDepth allows it.
//
// Options describe the tool, as for tool.New. A call of it needs no approval unless a
// rule asks; calls inside the fork are judged there. ForkTool panics if an option
// contradicts the tool, such as other parameters.
func ForkTool(opts ...tool.Option) tool.Tool {
	t, err := nest("fork", forkDescription, opts, func(ctx context.Context, sc *scope, in forkInput) (tool.Result, error) {
		s, err := sc.open(ctx)
		if err != nil {
			return tool.Result{}, err
		}
		if len(s.Log()) == 0 { // otherwise it was interrupted
			bodies, err := forked(sc.log, sc.call)
			if err != nil {
				return tool.Result{}, err
			}
			bodies = append(bodies, session.InputItem{Item: item.User(in.instruction())})
			if _, err := s.Append(ctx, bodies...); err != nil {
				return tool.Result{}, err
			}
		}
		sc.fork = true
		return sc.play(ctx, sc.run.first, s)
	})
	if err != nil {
		panic(err) // an option that contradicts the tool
	}
	return t
}

// instruction returns the task that the fork reads first.
func (in forkInput) instruction() string {
	if len(in.Arguments) == 0 {
		return in.Command
	}
	return in.Command + "\n\n" + strings.Join(in.Arguments, "\n")
}

// Outputs of calls in a fork.
const (
	youAreTheFork = "You are the fork that this call started. Your task follows."
	notInFork     = "The call was not run in this fork. It is the business of the conversation that the fork was started from."
)

// forked returns the log of a fork: the entries up to the end of the reply that made
// the call, and an output for every call of the reply. The fork's requests begin with
// the same items as the parent's.
func forked(log []session.Entry, call session.OpenCall) ([]session.Body, error) {
	var v session.View
	bodies := make([]session.Body, 0, len(log)+2)
	for _, e := range log {
		v.Apply(e)
		bodies = append(bodies, e.Body)
		if _, ended := e.Body.(session.TurnEnded); ended && e.Seq > call.Seq {
			break
		}
	}
	for _, c := range v.Open() {
		text, own := output.Envelope(true, plan.ToolName(c.Item), notInFork, ""), c.Seq == call.Seq
		if own {
			text = youAreTheFork
		}
		out, ok, err := item.OutputFor(c.Item, item.Text(text))
		switch {
		case err != nil:
			return nil, err
		case ok:
			bodies = append(bodies, session.CallOutput{CallID: c.CallID, Item: out, Failed: !own})
		default:
			bodies = append(bodies, session.CallDropped{CallID: c.CallID, Reason: notInFork})
		}
	}
	return bodies, nil
}

// isForkOutput reports whether an item is the output that separates what a fork shares
// with its parent from its own part.
func isForkOutput(it item.Item) bool {
	value, _ := it.Member("output")
	text, ok := value.Unquote()
	return ok && text == youAreTheFork
}
