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
)

type forkInput struct {
	Command   string   `json:"command" jsonschema:"what the fork is to do"`
	Arguments []string `json:"arguments,omitempty" jsonschema:"what it is to do it with, one by one"`
}

const forkDescription = "Starts a copy of yourself that knows this conversation up to this call, and gives it a task. " +
	"The copy works on its own and with the same tools. Only its final answer comes back, as the output of this call; what it read and tried does not."

// ForkTool returns the tool fork, by which a model gives a task to a copy of
// itself: the same agent, in a session of its own that begins as the run's own
// does up to the call. What the copy does stays out of this history and can be
// opened under the id that entries and events name; the model gets its answer.
// A fork cannot fork again unless [Limits].MaxDepth allows it.
//
// Options that say what the tool does are those of tool.New. It asks for no
// approval unless a rule does: what its run does is asked about there.
func ForkTool(opts ...tool.Option) tool.Tool {
	t, err := nest("fork", forkDescription, opts, func(ctx context.Context, sc *scope, in forkInput) (tool.Result, error) {
		s, err := sc.open(ctx)
		if err != nil {
			return tool.Result{}, err
		}
		if len(s.Log()) == 0 { // else it was interrupted
			bodies, err := forked(sc.log, sc.call)
			if err != nil {
				return tool.Result{}, err
			}
			bodies = append(bodies, session.Given{Item: item.User(in.instruction())})
			if _, err := s.Append(ctx, bodies...); err != nil {
				return tool.Result{}, err
			}
		}
		return sc.play(ctx, sc.run.agent, s)
	})
	if err != nil {
		panic(err) // an option that contradicts the tool
	}
	return t
}

// instruction is what the fork reads first.
func (in forkInput) instruction() string {
	if len(in.Arguments) == 0 {
		return in.Command
	}
	return in.Command + "\n\n" + strings.Join(in.Arguments, "\n")
}

// What stands as the output of calls in a fork.
const (
	youAreTheFork = "You are the fork that this call started. Your task follows."
	notInFork     = "The call was not run in this fork. It is the business of the conversation that the fork was started from."
)

// forked returns the log of a fork that the call starts: the entries up to the
// end of the reply that made it, and an output for every call of that reply.
// What a request of it carries begins with what the run's own requests did.
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
		text, own := tool.Envelope(true, plan.ToolName(c.Item), notInFork, ""), c.Seq == call.Seq
		if own {
			text = youAreTheFork
		}
		out, ok, err := item.OutputFor(c.Item, item.Text(text))
		switch {
		case err != nil:
			return nil, err
		case ok:
			bodies = append(bodies, session.Answered{CallID: c.CallID, Item: out, Failed: !own})
		default:
			bodies = append(bodies, session.Withdrawn{CallID: c.CallID, Reason: notInFork})
		}
	}
	return bodies, nil
}
