// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// endless answers every request with the same call under a new id.
func endless(n int, _ agenttest.Request) agenttest.Reply {
	return agenttest.Completed(call("c"+string(rune('a'+n)), "echo", "again"))
}

// L4: each limit stops the run with its reason, without an error; the work is
// kept, the history is valid, and a second run goes on from there.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		limits   agent.Limits
		why      agent.StopReason
		requests int
		detail   string
	}{
		{agent.Limits{MaxTurns: 3}, agent.StopMaxTurns, 3, "3 of 3 turns"},
		{agent.Limits{MaxTokens: 1}, agent.StopMaxTokens, 1, "tokens"},
		{agent.Limits{MaxRepeats: 4}, agent.StopRepeatedCall, 4, "echo was called 4 times"},
		{agent.Limits{MaxTurns: 3, MaxRepeats: math.MaxInt / 2}, agent.StopMaxTurns, 3, "3 of 3 turns"},
	} {
		t.Run(string(c.why), func(t *testing.T) {
			r := newRig(t)
			r.server.Otherwise(endless)
			r.agent.Tools = []tool.Tool{echo()}
			r.agent.Limits = c.limits
			res := r.run(item.User("go"))
			if res.Why != c.why || res.Turns != c.requests || res.Calls != c.requests || !strings.Contains(res.Detail, c.detail) {
				t.Errorf("result: %+v", res)
			}
			if n := len(history(r.session)); n != 1+2*c.requests {
				t.Errorf("%d items: the work was not kept", n)
			}
			r.reopen()
			r.server.Add(agenttest.Completed(item.Assistant("done")))
			if res := r.run(); res.Why != agent.StopEndTurn {
				t.Errorf("then: %+v", res)
			}
			if sent := r.last(); len(sent) != 1+2*c.requests {
				t.Errorf("then %d items were sent", len(sent))
			}
		})
	}
}

// L4: other calls in between are not a repetition.
func TestRepeatsInARow(t *testing.T) {
	r := newRig(t,
		agenttest.Completed(call("c1", "echo", "a"), call("c2", "echo", "b")),
		agenttest.Completed(call("c3", "echo", "a")),
		agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Limits.MaxRepeats = 2
	if res := r.run(item.User("go")); res.Why != agent.StopEndTurn {
		t.Errorf("result: %+v", res)
	}
}

// L4: two or three calls in turn are a repetition; calls of polling tools are not, and do
// not interrupt one.
func TestRepeatsInTurn(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls string // one reply each: p is a call of the polling tool
		turns int    // 0: it comes to its end
		text  string
	}{
		{name: "two in turn", calls: "ababab", turns: 6, text: "echo, echo were called in turn 3 times"},
		{name: "three in turn", calls: "xabcabcabc", turns: 10, text: "were called in turn 3 times"},
		{name: "four in turn", calls: "abcdabcdabcd"},
		{name: "no pattern", calls: "aabbaabba"},
		{name: "polling", calls: "pppppppp"},
		{name: "polling in between", calls: "apapap", turns: 5, text: "echo was called 3 times in a row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			for i, letter := range c.calls {
				name := "echo"
				if letter == 'p' {
					name = "poll"
				}
				r.server.Add(agenttest.Completed(call(fmt.Sprintf("c%d", i), name, string(letter))))
			}
			r.server.Add(agenttest.Completed(item.Assistant("done")))
			r.agent.Tools = []tool.Tool{echo(), textTool("poll", func(context.Context, string) (string, error) { return "not yet", nil }, tool.Polling())}
			r.agent.Limits.MaxRepeats = 3
			res := r.run(item.User("go"))
			switch {
			case c.turns == 0:
				if res.Why != agent.StopEndTurn {
					t.Errorf("%+v", res)
				}
			case res.Why != agent.StopRepeatedCall || res.Turns != c.turns || !strings.Contains(res.Detail, c.text):
				t.Errorf("%+v", res)
			}
		})
	}
}

// S3: an incomplete reply and a refusal are ends of their own, not errors.
func TestHowRepliesEnd(t *testing.T) {
	r := newRig(t, agenttest.Incomplete("max_output_tokens", item.Assistant("So far")))
	if res := r.run(item.User("go")); res.Why != agent.StopIncomplete || res.Detail != "max_output_tokens" || res.Text != "So far" {
		t.Errorf("incomplete: %+v", res)
	}
	r = newRig(t, agenttest.Completed(item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Parts(&item.Refusal{Refusal: "No."})})))
	if res := r.run(item.User("go")); res.Why != agent.StopRefused {
		t.Errorf("refusal: %+v", res)
	}
	r = newRig(t, agenttest.Failed("server_error", "it broke", item.Assistant("So far")))
	res, err := r.agent.Run(t.Context(), r.session, item.User("go"))
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != endpoint.Server || res.Why != agent.StopProviderError {
		t.Errorf("failed: %+v, %v", res, err)
	}
	want := []string{"user: go", "assistant: So far", brokenOff}
	if diff := cmp.Diff(want, outline(history(r.session))); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}

// S2: a model that just stops talking has not answered, and the error has its
// class.
func TestSilentEnd(t *testing.T) {
	m := &memory{replies: []any{listen(func(context.Context, func(api.Event, error) bool) {})}}
	a := &agent.Agent{Model: m}
	res, err := a.Run(t.Context(), session.New(), item.User("go"))
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != endpoint.Truncated || res.Why != agent.StopProviderError {
		t.Errorf("got %+v, %v", res, err)
	}
	cancelled := listen(func(_ context.Context, yield func(api.Event, error) bool) {
		yield(event(`{"type":"response.cancelled","response":{"id":"r","status":"cancelled","output":[]}}`), nil)
	})
	m.replies = []any{cancelled}
	if res, err = a.Run(t.Context(), session.New(), item.User("go")); err == nil || err.Error() == "" || res.Why != agent.StopProviderError {
		t.Errorf("got %+v, %v", res, err)
	}
}

// T13: a call that a limit of the endpoint cut is not run.
func TestCallCutByALimit(t *testing.T) {
	r := newRig(t, agenttest.Incomplete("max_output_tokens",
		item.Must(&item.FunctionCall{CallID: "c1", Name: "echo", Arguments: `{"text":"x"}`, Status: item.StatusIncomplete})),
		agenttest.Completed(item.Assistant("done")))
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("echo")}
	if res := r.run(item.User("go")); res.Why != agent.StopEndTurn || len(l.ran) != 0 {
		t.Errorf("result: %+v, ran: %v", res, l.ran)
	}
	contains(t, outputs(r.last())["c1"], "not started", "before the call was complete")
}

// E1 E2 E4 S2 S3: whatever an endpoint does instead of answering, the run ends
// with an error of the right class, what was complete is kept, and the session
// goes on with the next answer.
func TestBadEndpoints(t *testing.T) {
	said := agenttest.Completed(item.Assistant("One, two."), item.Assistant("Three, four."))
	all := []string{"user: go", "assistant: One, two.", "assistant: Three, four.", brokenOff}
	first := []string{"user: go", "assistant: One, two.", brokenOff}
	for _, c := range []struct {
		name     string
		answer   agenttest.Reply
		class    endpoint.Class
		retried  bool
		whatever []string // the history
	}{
		{"401", agenttest.Failure(401, "invalid_api_key", "no"), endpoint.Auth, false, all[:1]},
		{"403", agenttest.Failure(403, "forbidden", "no"), endpoint.Forbidden, false, all[:1]},
		{"404", agenttest.Failure(404, "not_found", "no"), endpoint.NotFound, false, all[:1]},
		{"400", agenttest.Failure(400, "bad", "no"), endpoint.BadRequest, false, all[:1]},
		{"429", agenttest.Failure(429, "rate_limit_exceeded", "later"), endpoint.RateLimit, true, all[:1]},
		{"500", agenttest.Failure(500, "server_error", "oh"), endpoint.Server, true, all[:1]},
		{"a web page", agenttest.WebPage(200, "Welcome"), endpoint.Protocol, false, all[:1]},
		{"a reset", agenttest.Reset(), endpoint.Network, true, all[:1]},
		{"an error event", agenttest.ErrorEvent("server_error", "oh", item.Assistant("One, two.")), endpoint.Server, false, first},
		{"a failed response", agenttest.Failed("server_error", "oh", item.Assistant("One, two.")), endpoint.Server, false, first},
		{"no last event", said.WithoutLast(), endpoint.Truncated, false, all},
		{"done without a last event", said.WithoutLast().WithDone(), endpoint.Truncated, false, all},
		{"an event that is not JSON", said.WithEvent(-2, "{oops"), endpoint.Protocol, false, append(all[:2:2], "assistant: Three, four. (incomplete)", brokenOff)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return c.answer })
			res, err := r.agent.Run(t.Context(), r.session, item.User("go"))
			var e *endpoint.Error
			if !errors.As(err, &e) || e.Class != c.class || res.Why != agent.StopProviderError || res.Detail == "" {
				t.Fatalf("got %+v, %v", res, err)
			}
			if n := len(r.server.Requests()); (n > 1) != c.retried {
				t.Errorf("%d requests", n)
			}
			if diff := cmp.Diff(c.whatever, outline(history(r.session))); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			r.reopen()
			r.server.Add(agenttest.Completed(item.Assistant("done")))
			if res := r.run(); res.Text != "done" {
				t.Errorf("then: %+v", res)
			}
			r.inputs()
		})
	}
}

// E4 S2 S8: wherever a stream is cut, what was shown is never asked for again
// by itself; what was complete is recorded, what was not is marked; the next run
// goes on with a valid history in which nothing stands twice.
func TestCutStreams(t *testing.T) {
	const said = "One, two, three, four, five."
	whole := agenttest.Completed(
		item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{&item.SummaryText{Text: "Count, then."}}, EncryptedContent: "gAAA"}),
		item.Assistant(said), call("c1", "echo", "x"))
	for cut := 0; ; cut += 211 {
		r := newRig(t, whole.CutAfter(cut))
		again := 0
		r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply {
			again++
			return agenttest.Completed(item.Assistant("And on."))
		})
		r.agent.Tools = []tool.Tool{echo()}
		var deltas strings.Builder
		var failure error
		events := 0
		for ev, err := range r.agent.Stream(t.Context(), r.session, item.User("count")) {
			failure = err
			switch ev := ev.(type) {
			case agent.Delta:
				if ev.Kind == agent.DeltaText {
					deltas.WriteString(ev.Text)
				}
				events++
			case agent.Progress:
				if ev.Kind == agent.ProgressModel {
					events++
				}
			case agent.Recorded:
				events += len(told[session.OutputItem]([]agent.Event{ev}))
			}
		}
		if failure == nil {
			if again != 1 {
				t.Errorf("cut at %d: no error after %d further requests", cut, again)
			}
			if deltas.Len() > len(said)+len("And on.") {
				t.Errorf("cut at %d: %q was shown", cut, deltas.String())
			}
			if cut > 0 && deltas.String() == said+"And on." {
				break // it was not cut at all
			}
			continue // cut before the first event, and asked again
		}
		var e *endpoint.Error
		if !errors.As(failure, &e) || events > 0 && again != 0 {
			t.Errorf("cut at %d: %v, after %d further requests", cut, failure, again)
		}
		checkCut(t, r, cut, said, deltas.String())
	}
}

// checkCut looks at the history after a cut and lets a second run go on.
func checkCut(t *testing.T, r *rig, cut int, said, shown string) {
	t.Helper()
	got := strings.Join(outline(history(r.session)), "\n")
	switch {
	case shown == "":
		if strings.Contains(got, "assistant") {
			t.Errorf("cut at %d: nothing was shown, and there is\n%s", cut, got)
		}
	case !strings.HasPrefix(said, shown):
		t.Errorf("cut at %d: %q was shown", cut, shown)
	case !strings.Contains(got, "assistant: "+shown+" (incomplete)") && !strings.HasSuffix(got, "assistant: "+said) && !strings.Contains(got, "assistant: "+said+"\n"):
		t.Errorf("cut at %d: %q was shown, and there is\n%s", cut, shown, got)
	}
	if strings.Contains(got, "c1") {
		t.Errorf("cut at %d: a call of a reply that broke off is sent:\n%s", cut, got)
	}
	r.reopen()
	if res := r.run(); res.Why != agent.StopEndTurn || res.Text != "And on." {
		t.Errorf("cut at %d: then %+v", cut, res)
	}
	if n := strings.Count(strings.Join(outline(r.last()), "\n"), "One, "); n > 1 {
		t.Errorf("cut at %d: the text was sent %d times", cut, n)
	}
}

// L6 S8: a cancel in the middle of text, over a real socket.
func TestCancelInText(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("One, two, three.")).StallAfter(5, nil), agenttest.Completed(item.Assistant("Four.")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	shown := ""
	var failure error
	var stopped session.Stopped
	for ev, err := range r.agent.Stream(ctx, r.session, item.User("count")) {
		failure = err
		switch ev := ev.(type) {
		case agent.Delta:
			shown += ev.Text
			cancel()
		case agent.Recorded:
			switch b := ev.Body.(type) {
			case session.TurnEnded:
				if b.Status != item.StatusCancelled {
					t.Errorf("the turn ended as %s", b.Status)
				}
			case session.Stopped:
				stopped = b
			}
		}
	}
	if !errors.Is(failure, context.Canceled) || stopped.Why != string(agent.StopCancelled) {
		t.Errorf("got %+v, %v", stopped, failure)
	}
	want := []string{"user: count", "assistant: " + shown + " (incomplete)", brokenOff}
	if diff := cmp.Diff(want, outline(history(r.session))); diff != "" || shown == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.reopen()
	r.run(item.User("go on"))
	want = append(want, "user: go on")
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("sent then (-want +got):\n%s", diff)
	}
}

// L6 T15: a cancel while tools run: each call has an output that says what is
// known of it.
func TestCancelInTool(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "one"), call("c2", "wait", ""), call("c3", "echo", "three")), agenttest.Completed(item.Assistant("I see.")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := textTool("wait", func(ctx context.Context, _ string) (string, error) {
		cancel()
		<-ctx.Done()
		return "so far", ctx.Err()
	})
	r.agent.Tools = []tool.Tool{echo(), wait}
	r.agent.Parallel = 1
	if _, err := r.agent.Run(ctx, r.session, item.User("go")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r.reopen()
	r.run()
	got := outputs(r.last())
	if got["c1"] != "one" {
		t.Errorf("the finished call: %q", got["c1"])
	}
	contains(t, got["c2"], "interrupted")
	contains(t, got["c3"], "not started")
}

// L6: stopping after the turn lets the reply and its calls finish.
func TestStopAfterTurn(t *testing.T) {
	for _, at := range []string{"turn_started", "received", "call_started", "answered"} {
		r := newRig(t, agenttest.Completed(call("c1", "echo", "one"), call("c2", "echo", "two")), agenttest.Completed(item.Assistant("done")))
		r.agent.Tools = []tool.Tool{echo()}
		run := r.agent.Start(r.session, item.User("go"))
		for ev, err := range run.Events(t.Context()) {
			if err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			if nameOf(ev) == at {
				run.StopAfterTurn()
			}
		}
		stopped := run.Result()
		if n := len(r.server.Requests()); stopped.Why != agent.StopRequested || stopped.Totals.Calls != 2 || n != 1 {
			t.Errorf("%s: %+v after %d requests", at, stopped, n)
		}
		r.reopen()
		r.run()
		if got := outputs(r.last()); got["c1"] != "one" || got["c2"] != "two" {
			t.Errorf("%s: %v", at, got)
		}
	}
}

// L6: a cancel is stronger than a wish to stop after the turn.
func TestStopAfterTurnThenCancel(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "cancel", ""), call("c2", "cancel", "")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.agent.Tools = []tool.Tool{textTool("cancel", func(context.Context, string) (string, error) { cancel(); return "ok", nil })}
	r.agent.Parallel = 1
	run := r.agent.Start(r.session, item.User("go"))
	var failure error
	for ev, err := range run.Events(ctx) {
		if failure = err; err == nil && nameOf(ev) == "received" {
			run.StopAfterTurn()
		}
	}
	if !errors.Is(failure, context.Canceled) {
		t.Errorf("got %v", failure)
	}
	got := outputs(history(r.session))
	if got["c1"] != "ok" {
		t.Errorf("the finished call: %q", got["c1"])
	}
	contains(t, got["c2"], "not started")
}

// L6: whoever leaves when the reply has ended has all of it: it is not asked for
// again.
func TestLeaveAtLastEventOfReply(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	for ev := range r.agent.Stream(t.Context(), r.session, item.User("go")) {
		if nameOf(ev) == "turn_ended" {
			break
		}
	}
	r.reopen()
	if _, err := r.agent.Run(t.Context(), r.session); !errors.Is(err, agent.ErrNothingToSend) {
		t.Errorf("then got %v", err)
	}
	if diff := cmp.Diff([]string{"user: go", "assistant: done"}, outline(history(r.session))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A wish to stop hides no failure.
func TestStopAfterTurnThatFails(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("One, two.")).CutAfter(1500))
	run := r.agent.Start(r.session, item.User("go"))
	var failure error
	for ev, err := range run.Events(t.Context()) {
		if failure = err; err == nil && nameOf(ev) == "turn_started" {
			run.StopAfterTurn()
		}
	}
	var e *endpoint.Error
	if !errors.As(failure, &e) || e.Class != endpoint.Truncated && e.Class != endpoint.Network {
		t.Errorf("got %v", failure)
	}
}

// P2: a call that nobody can answer leaves the view, the model reads why, and no answer is claimed.
func TestCallThatHasNoOutput(t *testing.T) {
	computer, err := item.ParseString(`{"type":"computer_call","id":"cu_1","call_id":"call_9","status":"completed","pending_safety_checks":[],"action":{"type":"screenshot"}}`)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, agenttest.Completed(computer), agenttest.Completed(item.Assistant("done")))
	if res := r.run(item.User("go")); res.Text != "done" {
		t.Errorf("result: %+v", res)
	}
	unanswered(t, r.last(), "This client does not run calls of type computer_call.")
}

// L5: what is said while the run goes on joins behind the pending outputs, once;
// said when the answer is there, it is asked at once; too late, it is refused.
func TestSay(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "one")), agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("more")))
	r.agent.Tools = []tool.Tool{echo()}
	run := r.agent.Start(r.session, item.User("go"))
	for ev, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		e, _ := ev.(agent.Recorded)
		switch b := e.Body.(type) {
		case session.CallStarted:
			if err := run.Say(item.User("wait")); err != nil {
				t.Error(err)
			}
		case session.TurnEnded:
			if b.Turn == 2 {
				if err := run.Say(item.User("one more thing")); err != nil {
					t.Error(err)
				}
			}
		case session.Stopped:
			if err := run.Say(item.User("too late")); !errors.Is(err, agent.ErrStopped) {
				t.Errorf("too late: %v", err)
			}
		}
	}
	if err := run.Say(item.User("far too late")); !errors.Is(err, agent.ErrStopped) {
		t.Errorf("far too late: %v", err)
	}
	want := []string{"user: go", `c1: echo({"text":"one"})`, "c1 = one", "user: wait", "assistant: done", "user: one more thing"}
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// L5 L6: what is said to a run that is being stopped is kept for the next one.
func TestSayWhileStopping(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("more")))
	run := r.agent.Start(r.session, item.User("go"))
	for ev, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if nameOf(ev) == "turn_ended" {
			run.StopAfterTurn()
			if err := run.Say(item.User("kept")); err != nil {
				t.Error(err)
			}
		}
	}
	r.run()
	if diff := cmp.Diff([]string{"user: go", "assistant: done", "user: kept"}, outline(r.last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The events of a run can be had once; a second range does nothing.
func TestRangedOverTwice(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	run := r.agent.Start(r.session, item.User("go"))
	if _, err := drain(run.Events(t.Context())); err != nil {
		t.Fatal(err)
	}
	if events, err := drain(run.Events(t.Context())); err == nil || len(events) > 0 {
		t.Errorf("got %v, %v", events, err)
	}
}

// An agent that cannot run says so before anything is recorded or sent.
func TestUnfitAgent(t *testing.T) {
	for name, break_ := range map[string]func(*agent.Agent){
		"no model":    func(a *agent.Agent) { a.Model = nil },
		"bad pattern": func(a *agent.Agent) { a.Policy.Deny = []string{"[a"} },
		"two tools":   func(a *agent.Agent) { a.Tools = []tool.Tool{echo(), echo()} },
	} {
		r := newRig(t)
		break_(r.agent)
		if _, err := r.agent.Run(t.Context(), r.session, item.User("go")); err == nil {
			t.Errorf("%s: no error", name)
		}
		for range r.session.Entries() {
			t.Errorf("%s: something was recorded", name)
		}
	}
}

// G8: a negative limit is an error, and a negative budget is one that is used up: what is
// left of a limit must not become no limit. Neither must NaN.
func TestNegativeLimits(t *testing.T) {
	for _, l := range []agent.Limits{{MaxTurns: -1}, {MaxTime: -1}, {MaxTokens: -1}, {MaxCost: -1}, {MaxCost: math.NaN()}, {MaxDepth: -1}, {MaxHandoffs: -1}} {
		r := newRig(t)
		r.agent.Limits = l
		if _, err := r.agent.Run(t.Context(), r.session, item.User("go")); err == nil || !strings.Contains(err.Error(), "a limit is positive") {
			t.Errorf("%+v: %v", l, err)
		}
	}
	r := newRig(t)
	r.agent.Limits.MaxRepeats = 1
	if _, err := r.agent.Run(t.Context(), r.session, item.User("go")); err == nil || !strings.Contains(err.Error(), "set 2 or more, or 0 for no limit") {
		t.Error(err)
	}
	for _, b := range []*agent.Budget{{Turns: -1}, {Tokens: -1}, {Cost: -1}, {Cost: math.NaN()}, {Time: -1}} {
		r := newRig(t)
		r.agent.Prices = func(string) (agent.Price, bool) { return agent.Price{}, true }
		res, err := r.agent.Run(agent.WithBudget(t.Context(), b), r.session, item.User("go"))
		if res == nil || len(r.server.Requests()) > 0 {
			t.Errorf("%d requests: %+v, %v", len(r.server.Requests()), res, err)
		}
	}
	if list := (*agent.Group)(nil).Run(t.Context()); len(list) != 0 {
		t.Error(list)
	}
}

// hollowError is an error whose nil pointer has no text.
type hollowError struct{ text string }

func (h *hollowError) Error() string { return h.text }

// D1: the log says for which cause the context of a run ended, but not at any length, and not by a cause that panics.
func TestCauseInTheLog(t *testing.T) {
	for name, cause := range map[string]error{"long": errors.New(strings.Repeat("ä", 100_000)), "nil": (*hollowError)(nil), "short": errors.New("enough")} {
		r := newRig(t)
		ctx, end := context.WithCancelCause(t.Context())
		end(cause)
		res, err := r.agent.Run(ctx, r.session, item.User("go"))
		if err == nil || res.Why != agent.StopCancelled {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		asked := bodies[session.StopAsked](r.session)
		if len(asked) != 1 || asked[0].Detail == "" || len(asked[0].Detail) > 2000 || name == "short" && asked[0].Detail != "enough" {
			t.Errorf("%s: %d requests to stop", name, len(asked))
		}
	}
}

// A context that was cancelled for a cause, as by signal.NotifyContext, is a cancelled
// context to errors.Is, and so is one whose time was over. The text is that of the cause.
func TestCancelIsACancel(t *testing.T) {
	enough := errors.New("enough")
	for _, c := range []struct {
		end func(context.Context) (context.Context, context.CancelFunc)
		is  error
	}{
		{func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, end := context.WithCancelCause(ctx)
			end(enough)
			return ctx, func() {}
		}, context.Canceled},
		{func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadlineCause(ctx, time.Unix(0, 0), enough)
		}, context.DeadlineExceeded},
	} {
		ctx, end := c.end(t.Context())
		r := newRig(t)
		_, err := r.agent.Run(ctx, r.session, item.User("go"))
		_, typed := agent.RunAs[string](ctx, r.agent, session.New(), item.User("go"))
		s := session.New()
		if _, err := s.Append(t.Context(), session.InputItem{Item: item.User("go")}); err != nil {
			t.Fatal(err)
		}
		_, step := r.agent.Step(ctx, s)
		for name, err := range map[string]error{"Run": err, "RunAs": typed, "Step": step} {
			if !errors.Is(err, c.is) || !errors.Is(err, enough) || err.Error() != "enough" {
				t.Errorf("%s: %v", name, err)
			}
		}
		end()
	}
}

// The caller may use the slice of the input again after Start. G8
func TestStartKeepsItsInput(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	input := []item.Item{item.User("go")}
	run := r.agent.Start(r.session, input...)
	input[0] = item.User("another thing")
	for _, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := outline(r.last()); len(got) != 1 || got[0] != "user: go" {
		t.Errorf("%q", got)
	}
}
