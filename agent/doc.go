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
// arrived. The loop asks again, before any output and with a changed request, in the
// cases that docs/endpoints.md lists: without reasoning that the endpoint cannot
// read, with a marker in place of an item that it refuses and, if [Compaction] is
// on, without older items of a history that it finds too long. These are recorded
// decisions; the first two draw on the client's retry budget.
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

// The files of the package, in the order in which one reads them:
//
//	agent.go            Agent, Limits, Result; Agent.Run and Agent.Stream
//	run.go              Run: the loop, which performs the effects that package plan decides
//	step.go             Step: one effect, so that another process may perform the next
//	ask.go              one request to the model, and its reply
//	calls.go            the calls of a reply: start, run, finish
//	record.go           entries are written, events wait until they are durable, barriers
//
//	events.go           the events of a run
//	events_json.go      their JSON form
//	order.go            deltas in the order of the stored texts
//	notice.go           what the client reports beside the stream becomes notices and deltas
//
//	source.go           the tools of the next request
//	tool_identity.go    which tool an approval was about
//	kinds.go            calls of the API's own kinds as calls of tools, and their outputs
//	invoke.go           a call that a person makes
//	output_store.go     limits of outputs, and the store of what they leave out
//	note_to_model.go    messages for the model about results that their outputs have no place for
//	typed.go            RunAs and StreamAs: the answer as a Go value
//	answer.go           Answer: what the answer of a run must be, and repairs
//
//	approval.go         Policy and Approver; interfaces of tools that need approvals
//	approval_run.go     the verdict on each call of a reply
//	decide.go           pending approvals, and answers from anybody who has the log
//	deliveries.go       the run's side of the session's inbox
//
//	hooks.go            Hooks, and the order in which they are called
//	objections.go       what hooks object to is withdrawn
//	unanswered.go       input that no reply has answered, and the hooks that have to see it
//	guard.go            Guards, beside a request and before it
//
//	budget.go           budgets, limits and prices
//	usage.go            usage that is impossible is corrected
//	account.go          what a session used, by agent, session, tool and model
//
//	nest.go             subagents: AsTool, and the state that a subagent inherits
//	fork.go             ForkTool: a subagent that knows the history
//	handoff.go          Handoff: another agent goes on with the conversation
//	group.go            Group: several runs over one budget
//	fallback.go         Fallback: other models when one cannot answer
//	fallback_trust.go   what another model or endpoint must not get
//
//	compact.go          Compaction: the settings, and the window of a model
//	compact_run.go      compactions in a run and by Agent.Compact; Restore
//	compact_summary.go  summaries by a model
//	compact_text.go     a history as text for a summary
//	collapse.go         markers in place of outputs that a later call repeated
//
//	setup.go            the description of the endpoint, recorded and recalled
//	conversation.go     conversations that the endpoint keeps
//	mend.go             a refused request is asked again, without what was refused
//	images.go           the same for images
//
//	preview.go          the next request, without sending it
//	known_calls.go      which calls of a log have no output yet
//	disarm.go           an imported log, without what would let tools run
