// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
	"github.com/antiphon-go/antiphon/tool"
)

// deliver delivers as another process would: through the store alone.
func (r *rig) deliver(id string, d session.Delivery) {
	r.t.Helper()
	if _, err := r.store.Deliver(context.Background(), id, d); err != nil {
		r.t.Errorf("delivering %q: %v", d.Key, err)
	}
}

func delivery(key string, bodies ...session.Body) session.Delivery {
	return session.Delivery{Delivered: session.Delivered{Key: key, By: "anna", From: "phone"}, Bodies: bodies}
}

func letter(key, text string) session.Delivery {
	return delivery(key, session.InputItem{Item: item.User(text)})
}

// begin makes the session, so that there is something to deliver to.
func (r *rig) begin() {
	r.t.Helper()
	if _, err := r.session.Append(r.t.Context(), session.Note{Item: item.User("a note")}); err != nil {
		r.t.Fatal(err)
	}
}

// left are the deliveries that were not taken.
func (r *rig) left(id string) (keys []string) {
	for d, err := range r.store.Deliveries(r.t.Context(), id) {
		if err != nil {
			r.t.Fatal(err)
		}
		keys = append(keys, d.Key)
	}
	return keys
}

// D1: input that was delivered before the run, or while a tool works, is part of the
// next request, once and in order, and a run needs no input of its own.
func TestDeliveredInput(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "one")), agenttest.Completed(item.Assistant("done")))
	r.begin()
	r.deliver("s", letter("1", "first"))
	r.deliver("s", letter("2", "second"))
	r.agent.Tools = []tool.Tool{textTool("echo", func(_ context.Context, text string) (string, error) {
		r.deliver("s", letter("3", "third"))
		r.deliver("s", letter("2", "second")) // again
		return text, nil
	})}
	if res := r.run(); res.Why != agent.StopEndTurn || res.Text != "done" {
		t.Fatalf("%+v", res)
	}
	want := []string{"user: first", "user: second", `c1: echo({"text":"one"})`, "c1 = one", "user: third"}
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	var keys []string
	for _, d := range bodies[session.Delivered](r.session) {
		if keys = append(keys, d.Key); d.Entries != 1 || d.By != "anna" || d.From != "phone" || d.Problem != "" {
			t.Errorf("recorded: %+v", d)
		}
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, keys); diff != "" || len(r.left("s")) > 0 {
		t.Errorf("taken (-want +got):\n%s left: %v", diff, r.left("s"))
	}
}

// D1: queued input waits until the run has its answer, one after another, and whatever
// came meanwhile goes first.
func TestDeliveredInputQueued(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "one")), agenttest.Completed(item.Assistant("answer 1")),
		agenttest.Completed(item.Assistant("answer 2")), agenttest.Completed(item.Assistant("answer 3")))
	r.begin()
	for _, key := range []string{"later", "last"} {
		d := letter(key, key)
		d.Queued = true
		r.deliver("s", d)
	}
	r.agent.Tools = []tool.Tool{textTool("echo", func(_ context.Context, text string) (string, error) {
		r.deliver("s", letter("now", "now"))
		return text, nil
	})}
	if res := r.run(item.User("go")); res.Why != agent.StopEndTurn || res.Text != "answer 3" {
		t.Fatalf("%+v", res)
	}
	want := []string{"user: go", `c1: echo({"text":"one"})`, "c1 = one", "user: now", "assistant: answer 1", "user: later", "assistant: answer 2", "user: last"}
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	// A run that cannot go on leaves what is queued to the next one.
	d := letter("for the next", "for the next")
	d.Queued = true
	r.deliver("s", d)
	r.agent.Limits.MaxTurns = 1
	r.server.Add(agenttest.Completed(call("c2", "echo", "two")))
	if res := r.run(item.User("more")); res.Why != agent.StopMaxTurns {
		t.Fatalf("%+v", res)
	}
	if got := r.left("s"); !slices.Equal(got, []string{"for the next"}) {
		t.Errorf("left: %v", got)
	}
	r.agent.Limits.MaxTurns = 0
	r.server.Add(agenttest.Completed(item.Assistant("yes")), agenttest.Completed(item.Assistant("and yes")))
	if res := r.run(); res.Text != "and yes" {
		t.Errorf("%+v", res)
	}
}

// D1: what waits for the answer of a run that is stopped begins the next run: the stopped reply is not continued before it.
// If the run was to go on elsewhere, it goes on first.
func TestDeliveredInputQueuedAndStopped(t *testing.T) {
	for _, after := range []bool{false, true} {
		r := newRig(t, agenttest.Completed(call("c1", "wait", "one")), agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("done")),
			agenttest.Completed(item.Assistant("done")))
		r.begin()
		r.agent.Tools = []tool.Tool{textTool("wait", func(ctx context.Context, text string) (string, error) {
			for _, key := range []string{"later", "last"} {
				d := letter(key, key)
				d.Queued = true
				r.deliver("s", d)
			}
			r.deliver("s", delivery("stop", session.StopAsked{AfterTurn: after}))
			if !after {
				<-ctx.Done()
			}
			return text, ctx.Err()
		})}
		if res := r.run(item.User("go")); res.Why != agent.StopRequested {
			t.Fatalf("after the turn %v: %+v", after, res)
		}
		if res := r.run(); res.Text != "done" {
			t.Fatalf("after the turn %v: %+v", after, res)
		}
		want := 3 // requests: two of them answer what waited
		if after {
			want++
		}
		if got := len(r.server.Requests()); got != want {
			t.Errorf("after the turn %v: %d requests, want %d", after, got, want)
		}
		if got := outline(r.last()); got[len(got)-1] != "user: last" || !slices.Contains(got, "user: later") {
			t.Errorf("after the turn %v: %q", after, got)
		}
	}
}

// D1: what waits for the answer of a run goes behind it if nobody has stopped that run for good: it was killed, its context ended because its
// worker did or its work was parked, it was moved, or somebody spoke after the stop.
func TestDeliveredInputQueuedGoesBehind(t *testing.T) {
	stopped := func(ask session.StopAsked) []session.Body {
		if ask.Why == "" {
			ask.Why = string(agent.StopRequested)
		}
		return []session.Body{session.RunStarted{}, session.InputItem{Item: item.User("first")}, session.TurnStarted{Turn: 1}, session.TurnEnded{Status: item.StatusCancelled},
			ask, session.Stopped{Why: ask.Why}}
	}
	byPerson := session.Noticed{Kind: session.NoticeStoppedByPerson}
	second := session.InputItem{Item: item.User("second")}
	cancelled := session.StopAsked{Why: string(agent.StopCancelled)}
	for name, c := range map[string]struct {
		log  []session.Body
		next bool
	}{
		"stopped":                         {log: stopped(session.StopAsked{}), next: true},
		"stopped at its terminal":         {log: append(stopped(cancelled), byPerson), next: true},
		"stopped there before the notice": {log: stopped(session.StopAsked{Why: string(agent.StopCancelled), Detail: session.DetailStoppedByPerson}), next: true},
		"killed":                          {log: append(stopped(session.StopAsked{}), session.RunStarted{}, second, session.TurnStarted{Turn: 2})},
		"killed before its request":       {log: append(stopped(session.StopAsked{}), session.RunStarted{}, second)},
		"killed after one at a terminal":  {log: append(stopped(cancelled), byPerson, session.RunStarted{}, second, session.TurnStarted{Turn: 2})},
		"spoken to since":                 {log: append(stopped(session.StopAsked{}), second)},
		"cancelled":                       {log: stopped(cancelled)},
		"moved now":                       {log: stopped(session.StopAsked{Run: 1})},
		"moved":                           {log: stopped(session.StopAsked{Run: 1, AfterTurn: true})},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(item.Assistant("answer 1")), agenttest.Completed(item.Assistant("answer 2")))
			if _, err := r.session.Append(t.Context(), c.log...); err != nil {
				t.Fatal(err)
			}
			d := letter("later", "later")
			d.Queued = true
			r.deliver("s", d)
			r.run()
			first := r.inputs()[0]
			if got := outline(first); slices.Contains(got, "user: later") != c.next {
				t.Errorf("the first request is %q", got)
			}
			if got := outline(r.last()); !slices.Contains(got, "user: later") {
				t.Errorf("the last request is %q", got)
			}
		})
	}
}

// D2: a request to stop that names a run ends no later one, also if it is not to go on elsewhere. The log has such a request
// without the number, by which readers know that the session moves.
func TestDeliveredStopNamesARun(t *testing.T) {
	named := func(run int64) session.Delivery {
		return delivery("stop", session.StopAsked{Why: string(agent.StopRequested), Run: run, Detail: "too dear"})
	}
	r := newRig(t, agenttest.Completed(call("c1", "wait", "one")), agenttest.Completed(item.Assistant("answer")))
	r.begin()
	r.deliver("s", named(1)) // a run that has ended
	r.agent.Tools = []tool.Tool{textTool("wait", func(ctx context.Context, text string) (string, error) {
		for e := range r.session.Entries() {
			if _, ok := e.Body.(session.RunStarted); ok {
				d := named(e.Seq)
				d.Key = "now"
				r.deliver("s", d)
			}
		}
		<-ctx.Done()
		return text, ctx.Err()
	})}
	res := r.run(item.User("go"))
	if res.Why != agent.StopRequested || res.Detail != "too dear" {
		t.Errorf("it ended: %s, %s", res.Why, res.Detail)
	}
	var problems []string
	for e := range r.session.Entries() {
		switch b := e.Body.(type) {
		case session.Delivered:
			problems = append(problems, b.Problem)
		case session.StopAsked:
			if b.Run != 0 {
				t.Errorf("%+v", b)
			}
		}
	}
	if !slices.Equal(problems, []string{"the run that it was for has ended", ""}) {
		t.Errorf("%q", problems)
	}
}

// D1: a run whose context ends for the cause of a worker goes on elsewhere, and what waits for its answer goes behind it.
func TestDeliveredInputQueuedAndGivenBack(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "wait", "one")), agenttest.Completed(item.Assistant("answer 1")), agenttest.Completed(item.Assistant("answer 2")))
	r.begin()
	ctx, end := context.WithCancelCause(t.Context())
	r.agent.Tools = []tool.Tool{textTool("wait", func(ctx context.Context, text string) (string, error) {
		d := letter("later", "later")
		d.Queued = true
		r.deliver("s", d)
		end(errors.New("the worker stops"))
		<-ctx.Done()
		return text, ctx.Err()
	})}
	if res, err := r.agent.Run(ctx, r.session, item.User("go")); err == nil || res.Why != agent.StopCancelled {
		t.Fatalf("%+v, %v", res, err)
	}
	r.run()
	if got := r.inputs(); len(got) != 3 || slices.Contains(outline(got[1]), "user: later") || !slices.Contains(outline(got[2]), "user: later") {
		t.Errorf("%d requests, the last one is %q", len(got), outline(r.last()))
	}
}

// D1: a delivered request to stop ends the work in progress at once, or lets the turn
// be completed, and the run ends without an error.
func TestDeliveredStop(t *testing.T) {
	for _, after := range []bool{false, true} {
		r := newRig(t, agenttest.Completed(call("c1", "wait", "one")), agenttest.Completed(item.Assistant("done")))
		r.begin()
		ended := make(chan error, 1)
		r.agent.Tools = []tool.Tool{textTool("wait", func(ctx context.Context, text string) (string, error) {
			r.deliver("s", delivery("stop", session.StopAsked{Why: "nonsense", AfterTurn: after}))
			if !after {
				<-ctx.Done()
			}
			ended <- ctx.Err()
			return text, ctx.Err()
		})}
		res := r.run(item.User("go"))
		if res.Why != agent.StopRequested || len(r.server.Requests()) != 1 {
			t.Errorf("after the turn %v: %+v after %d requests", after, res, len(r.server.Requests()))
		}
		if err := <-ended; (err == nil) != after {
			t.Errorf("after the turn %v: the tool ended with %v", after, err)
		}
		asked := bodies[session.StopAsked](r.session)
		if len(asked) != 1 || asked[0].AfterTurn != after || !strings.Contains(asked[0].Detail, "by anna (phone)") {
			t.Errorf("after the turn %v: %+v", after, asked)
		}
		// It concerned this run only.
		if res := r.run(item.User("go on")); res.Text != "done" {
			t.Errorf("after the turn %v: then %+v", after, res)
		}
	}
}

// D1: a request to stop that waits for a run ends it before it asks anybody.
func TestDeliveredStopBefore(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.deliver("s", delivery("stop", session.StopAsked{}))
	if res := r.run(item.User("go")); res.Why != agent.StopRequested || len(r.server.Requests()) > 0 {
		t.Errorf("%+v after %d requests", res, len(r.server.Requests()))
	}
}

// D1: an answer about a call, from whoever is first; the second one is told who was.
func TestDeliveredApproval(t *testing.T) {
	r, l := pausing(t)
	res := r.run(item.User("go"))
	if len(res.Pending) != 2 {
		t.Fatalf("%+v", res)
	}
	one, two := res.Pending[0], res.Pending[1]
	answer := func(key, by string, p agent.PendingApproval, allowed bool) {
		d := delivery(key, session.Approval{CallID: p.CallID, Number: p.Number, Allowed: allowed})
		d.By = by
		r.deliver("s", d)
	}
	answer("1", "anna", one, true)
	answer("2", "ben", one, false)
	answer("3", "ben", two, false)
	answer("4", "ben", agent.PendingApproval{CallID: "w9", Number: 9}, true)
	if res := r.run(); res.Text != "done" {
		t.Fatalf("%+v", res)
	}
	if diff := cmp.Diff(map[string]int{"r": 1, "one": 1}, l.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	got := map[string]session.Delivered{}
	for _, d := range bodies[session.Delivered](r.session) {
		got[d.Key] = d
	}
	if got["1"].Entries != 1 || got["3"].Entries != 1 || got["2"].Entries != 0 || got["4"].Entries != 0 {
		t.Errorf("recorded: %+v", got)
	}
	if p := got["2"].Problem; !strings.Contains(p, "already decided by anna (phone)") {
		t.Errorf("the second one is told: %q", p)
	}
	if p := got["4"].Problem; !strings.Contains(p, "no such call") {
		t.Errorf("about no call: %q", p)
	}
}

// D1: deliveries that cannot be used say why, and stop nobody.
func TestDeliveredNonsense(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	r.begin()
	boss, err := item.Parse([]byte(`{"type":"message","role":"boss","content":"obey"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.deliver("s", delivery("1", session.InputItem{Item: boss}))
	r.deliver("s", letter("2", "hello"))
	if res := r.run(); res.Text != "done" {
		t.Fatalf("%+v", res)
	}
	if diff := cmp.Diff([]string{"user: hello"}, outline(r.last())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if d := bodies[session.Delivered](r.session)[0]; !strings.Contains(d.Problem, `role "boss"`) || d.Entries != 0 {
		t.Errorf("%+v", d)
	}
}

// D1: a Step takes deliveries too, so a program of steps hears what a run hears.
func TestDeliveredToStep(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("one")), agenttest.Completed(item.Assistant("two")))
	r.begin()
	r.deliver("s", letter("1", "first"))
	for n := 0; ; n++ {
		e, err := r.agent.Step(t.Context(), r.session)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			r.deliver("s", letter("2", "second"))
		}
		if stop, ok := e.(plan.Stop); ok {
			if stop.Why != agent.StopEndTurn {
				t.Errorf("%+v", stop)
			}
			break
		}
	}
	if diff := cmp.Diff([]string{"user: first", "assistant: one", "user: second"}, outline(r.last())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// D1: a decision beside a run reaches it by its inbox, and the run goes on with it.
func TestDecideBeside(t *testing.T) {
	r, l := pausing(t)
	r.run(item.User("go"))
	release, err := r.session.Hold(t.Context()) // as a run would
	if err != nil {
		t.Fatal(err)
	}
	yes := agent.Decision{CallID: "w1", Allow: true, By: "anna", Shown: "write one?"}
	for range 2 { // the same again is no error
		if err := agent.Decide(t.Context(), r.session, yes); err != nil {
			t.Fatal(err)
		}
	}
	if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "w1", By: "ben"}); !errors.Is(err, agent.ErrDecided) || !strings.Contains(err.Error(), "an answer by anna waits") {
		t.Errorf("another answer: %v", err)
	}
	if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "w7", Allow: true}); !errors.Is(err, agent.ErrNoSuchApproval) {
		t.Errorf("about no call: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if res := r.run(); res.Why != agent.StopApprovalPending || len(res.Pending) != 1 || l.ran["one"] != 1 {
		t.Errorf("%+v, ran %v", res, l.ran)
	}
	if d := bodies[session.Delivered](r.session); len(d) != 1 || len(d[0].Shown) != 64 {
		t.Errorf("recorded: %+v", d)
	}
}

// D1: an answer about the call of a subagent is delivered to the subagent's session.
func TestDeliveredInside(t *testing.T) {
	r, l := pausing(t)
	inner := *r.agent
	r.agent = &agent.Agent{Model: r.agent.Model, Policy: agent.Policy{Allow: []string{"*"}, Pause: true}, Request: r.agent.Request}
	asks := agenttest.Completed(item.Call("a1", "ask", `{"task":"go"}`))
	r.server = agenttest.NewServer(t)
	inner.Model = r.client()
	r.agent.Model = inner.Model
	ask, err := agent.AsTool("ask", "Asks another.", &inner)
	if err != nil {
		t.Fatal(err)
	}
	r.agent.Tools = []tool.Tool{ask}
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		switch body := string(req.Body); {
		case strings.Contains(body, `"a1"`), strings.Contains(body, `"w1"`):
			return agenttest.Completed(item.Assistant("done"))
		case strings.Contains(body, "outer"):
			return asks
		}
		return agenttest.Completed(call("w1", "write", "one"))
	})
	res := r.run(item.User("outer"))
	if len(res.Pending) != 1 {
		t.Fatalf("%+v", res)
	}
	p := res.Pending[0]
	r.deliver(p.Session, delivery("1", session.Approval{CallID: p.CallID, Number: p.Number, Allowed: true}))
	if res = r.run(); res.Text != "done" || l.ran["one"] != 1 {
		t.Errorf("%+v, ran %v", res, l.ran)
	}
}

// D1: whatever many senders deliver while runs come and go, the log has it once, in the
// order of its arrival, and every request pairs.
func TestDeliveriesFromMany(t *testing.T) {
	r := newRig(t)
	r.server.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		if n%3 == 0 {
			return agenttest.Completed(call(fmt.Sprintf("c%d", n), "echo", "x"))
		}
		return agenttest.Completed(item.Assistant(fmt.Sprint("answer ", n)))
	})
	r.agent.Tools = []tool.Tool{echo()}
	r.begin()
	const senders, each = 4, 20
	var all sync.WaitGroup
	for n := range senders {
		all.Go(func() {
			for i := range each {
				d := letter(fmt.Sprintf("%d/%02d", n, i), fmt.Sprintf("%d/%02d", n, i))
				d.Queued = i%4 == 3
				r.deliver("s", d)
				r.deliver("s", d)
			}
		})
	}
	done := make(chan bool)
	go func() { all.Wait(); close(done) }()
	for last := false; !last; {
		select {
		case <-done:
			last = true // one more run takes what is left
		default:
		}
		r.reopen()
		if _, err := r.agent.Run(t.Context(), r.session); err != nil && !errors.Is(err, agent.ErrNothingToSend) {
			t.Fatal(err)
		}
	}
	if left := r.left("s"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	seen := map[string]int{}
	for _, b := range bodies[session.InputItem](r.session) {
		m, err := item.As[item.Message](b.Item)
		if err != nil {
			t.Fatal(err)
		}
		seen[m.Content.Display()]++
	}
	for n := range senders {
		for i := range each {
			if key := fmt.Sprintf("%d/%02d", n, i); seen[key] != 1 {
				t.Errorf("%s: %d times", key, seen[key])
			}
		}
	}
	for _, req := range r.server.Requests() {
		var items []item.Item
		for _, it := range req.Parse(t).Input.All() {
			items = append(items, it)
		}
		if err := agenttest.CheckPairing(items...); err != nil {
			t.Error(err)
		}
	}
}

// I1 D1: what Say has accepted reaches the next run, if this one dies before it takes it.
func TestSayIsKept(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "one")), agenttest.Completed(item.Assistant("done")))
	broken := errors.New("the process has died")
	var dead bool
	dying := storetest.StepStore(r.store, func(s storetest.Step) error {
		if dead && strings.HasPrefix(s.Name, "append/") {
			return broken
		}
		return nil
	})
	s, err := session.Open(t.Context(), dying, "s")
	if err != nil {
		t.Fatal(err)
	}
	var run *agent.Run
	r.agent.Tools = []tool.Tool{textTool("echo", func(_ context.Context, text string) (string, error) {
		err := run.Say(item.User("kept"))
		dead = true
		return text, err
	})}
	run = r.agent.Start(s, item.User("go"))
	if _, err := drain(run.Events(t.Context())); !errors.Is(err, broken) {
		t.Fatalf("the first run: %v", err)
	}
	r.reopen()
	r.run()
	if sent := outline(r.last()); sent[len(sent)-1] != "user: kept" {
		t.Errorf("sent: %q", sent)
	}
}

// lateBox is an inbox whose store does not have at once what a run writes. Somebody
// delivers when it has been read.
type lateBox struct {
	session.Inbox
	read func()
}

func (b *lateBox) Deliveries(ctx context.Context, id string) iter.Seq2[session.Delivery, error] {
	return func(yield func(session.Delivery, error) bool) {
		for d, err := range b.Inbox.Deliveries(ctx, id) {
			if !yield(d, err) {
				return
			}
		}
		b.read()
	}
}

// D1: a delivery that the run has taken is still in the inbox until the entries are
// durable. A run that reads the inbox again before that takes it once all the same.
func TestDeliveredBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes, so nothing is written behind
		store := new(session.Memory)
		if err := store.Create(t.Context(), session.Info{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		deliver := func(key string) {
			if _, err := store.Deliver(t.Context(), "s", letter(key, key)); err != nil {
				t.Error(err)
			}
		}
		deliver("first")
		s, err := session.Open(t.Context(), &lateBox{store, sync.OnceFunc(func() { deliver("second") })}, "s")
		if err != nil {
			t.Fatal(err)
		}
		run := (&agent.Agent{Model: &memory{}}).Start(s)
		run.StopAfterTurn()
		for _, err := range run.Events(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
		var got []string
		for e := range s.Entries() {
			if d, ok := e.Body.(session.Delivered); ok {
				got = append(got, d.Key)
			}
		}
		if diff := cmp.Diff([]string{"first", "second"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// runs returns the number of the entry with which each run of a session began.
func runs(s *session.Session) (seqs []int64) {
	for _, e := range s.Log() {
		if _, ok := e.Body.(session.RunStarted); ok {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// D1 D2: a request to stop that names a run ends this run alone. Another one, which goes
// on with the session, takes it and goes on.
func TestStopOfOneRun(t *testing.T) {
	for _, after := range []bool{false, true} {
		r := newRig(t, agenttest.Completed(call("c1", "wait", "one")), agenttest.Completed(call("c2", "wait", "two")), agenttest.Completed(item.Assistant("done")))
		r.begin()
		calls := 0
		r.agent.Tools = []tool.Tool{textTool("wait", func(ctx context.Context, text string) (string, error) {
			seqs := runs(r.session)
			if calls++; calls == 1 {
				r.deliver("s", delivery("other", session.StopAsked{Run: 1}))
				r.deliver("s", delivery("own", session.StopAsked{Run: seqs[len(seqs)-1], AfterTurn: after}))
				if !after {
					<-ctx.Done()
				}
			}
			return text, ctx.Err()
		})}
		if res := r.run(item.User("go")); res.Why != agent.StopRequested || calls != 1 {
			t.Fatalf("after the turn %v: %+v after %d calls", after, res, calls)
		}
		r.deliver("s", delivery("late", session.StopAsked{Run: runs(r.session)[0], AfterTurn: after}))
		if res := r.run(); res.Text != "done" || calls != 2 {
			t.Errorf("after the turn %v: then %+v after %d calls", after, res, calls)
		}
		for _, d := range bodies[session.Delivered](r.session) {
			if own := d.Key == "own"; own != (d.Problem == "") || !own && d.Problem != "the run that it was for has ended" {
				t.Errorf("after the turn %v: %+v", after, d)
			}
		}
	}
}

// That nobody answered in time is neither consent nor a refusal, and is nobody's answer.
func TestDeliveredUnanswered(t *testing.T) {
	r, l := pausing(t)
	res := r.run(item.User("go"))
	if len(res.Pending) != 2 {
		t.Fatalf("%+v", res)
	}
	for i, p := range res.Pending {
		for _, allowed := range []bool{true, false} {
			r.deliver("s", delivery(fmt.Sprint(i, allowed), session.Approval{CallID: p.CallID, Number: p.Number, Allowed: allowed, Decided: session.DeciderUnanswered}))
		}
	}
	if res := r.run(); res.Text != "done" || l.ran["one"]+l.ran["two"] > 0 {
		t.Errorf("%+v, ran %v", res, l.ran)
	}
	for _, d := range bodies[session.Delivered](r.session) {
		if nonsense := strings.HasSuffix(d.Key, "true"); nonsense != strings.Contains(d.Problem, "nobody answered, so nobody has allowed it") {
			t.Errorf("%+v", d)
		}
	}
	n := 0
	for _, a := range bodies[session.Approval](r.session) {
		if a.Decided != session.DeciderUnanswered {
			continue // the call that only reads
		}
		if n++; a.Allowed || a.By != "" || !strings.HasPrefix(a.Reason, "Nobody answered") {
			t.Errorf("%+v", a)
		}
	}
	if n != 2 {
		t.Errorf("%d calls are unanswered", n)
	}
}
