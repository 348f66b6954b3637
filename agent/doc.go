// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent runs tool-calling conversations: it asks a model, runs the
// calls it makes and asks again, until there is an answer or a reason to stop.
//
// A whole program, with a tool and an answer that is shown as it is written:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"os"
//
//		"github.com/antiphon-go/antiphon/agent"
//		"github.com/antiphon-go/antiphon/endpoint"
//		"github.com/antiphon-go/antiphon/item"
//		"github.com/antiphon-go/antiphon/responses"
//		"github.com/antiphon-go/antiphon/session"
//		"github.com/antiphon-go/antiphon/tool"
//	)
//
//	type place struct {
//		City string `json:"city" jsonschema:"the city's name"`
//	}
//
//	func weather(_ context.Context, p place) (string, error) { return "Rain in " + p.City + ".", nil }
//
//	func main() {
//		a := &agent.Agent{
//			Model: &responses.Client{Key: endpoint.NewKey(os.Getenv("OPENAI_API_KEY"))},
//			Tools: []tool.Tool{tool.Must("weather", "Tells the weather of a city.", weather, tool.ReadOnly())},
//		}
//		a.Request.Model = "gpt-5.1"
//		for ev, err := range a.Stream(context.Background(), session.New(), item.User("Do I need an umbrella in Oslo?")) {
//			if err != nil {
//				log.Fatal(err)
//			}
//			if d, ok := ev.(agent.Delta); ok && d.Kind == agent.DeltaText {
//				fmt.Print(d.Text)
//			}
//		}
//	}
//
// To try it without a key, start a rehearsal.Server, and set its base URL as the BaseURL in
// place of the Key; its ReadOnly says which tools the mock model calls. A tool needs an
// approval unless it is ReadOnly or the [Policy] allows it.
//
// Deciding and acting are separate. Package plan folds a session's log and decides
// what to do next, without clock, I/O or randomness. A [Run] performs the decision
// and appends the outcome. To resume a session after a crash, the run reads the log
// and decides again. There is only one loop: [Agent.Run] drains the events of
// [Agent.Stream].
//
// [RunAs] and [StreamAs] return the answer as a Go value. An [Answer] demands JSON that
// fits a schema in every run of an agent.
//
// To stop a run, call [Run.StopAfterTurn] or cancel its context. To answer a call
// that waits for an approval, call [Decide]. To compact a session, call
// [Agent.Compact].
//
// A client repeats only an unchanged request, and only before any of its reply
// arrived. The loop asks again in a few cases, before any output and with something
// left out: reasoning that the endpoint cannot read, an item that it refuses and, if
// [Compaction] is on, older items of a history that it finds too long. These are
// recorded decisions; the first two draw on the client's retry budget.
//
// Near the end of the model's context a run can send a summary in place of older
// items; see [Compaction], [Agent.Compact] and [Restore]. Content that a tool reads
// again can be sent once; see [Agent].CollapseReads. The log keeps everything.
//
// If a call needs an approval and no approver is available, the call is refused, or
// it waits: the run stops, the log holds the pending approval, and any process with
// the log can answer it at any later time. See [Policy], [PendingApprovals] and [Decide].
//
// A tool can start a subagent: a copy that knows the history so far ([ForkTool]), or
// another agent ([AsTool]). A subagent runs the same loop on its own session. It
// inherits the limits, budgets and denials of its parent run, and ends with it. Its
// events arrive as [SubagentEvent].
//
// A model can also hand the whole conversation to another agent, which goes on in the
// same session: see [Handoff]. If a model cannot answer, another one can be asked: see
// [Fallback].
//
// A [Guard] checks input and replies, and can object to them. [Hooks] see each request and
// each call, and can change or stop them. A [Group] runs several agents over one budget.
// [AccountOf] says what a session used, by agent, session, tool and model.
package agent
