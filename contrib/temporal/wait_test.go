// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/tool"
)

// These tests perform steps without a server.

// A run that waits for the result of a polling tool uses no worker. The workflow goes on when
// the tool is to be asked again, also if it looks for nothing by itself.
func TestWaitsUntilDue(t *testing.T) {
	const wait = 3 * time.Hour
	var s *stage
	s = newStage(t, &Engine{Recheck: -1}, func(n int, in stepInput) (stepResult, error) {
		if n == 1 {
			return stepResult{Effect: "stop", Why: agent.StopNotYet, Entry: 9, Due: s.Now().Add(wait)}, nil
		}
		return stepResult{Effect: "stop", Why: agent.StopEndTurn, Entry: 20}, nil
	})
	s.RegisterDelayedCallback(func() {
		if state := s.state(t); state.Status != Waiting || state.Why != string(agent.StopNotYet) || state.Next.IsZero() {
			t.Errorf("%+v", state)
		}
	}, wait/2)
	s.run(Task{Session: "s"})
	must(t, s.GetWorkflowError())
	if state := s.state(t); state.Status != Done || len(s.steps) != 2 || s.times[1].Sub(s.times[0]) < wait {
		t.Errorf("%+v, steps at %v", state, s.times)
	}
}

// walk is a session whose steps a test performs.
type walk struct {
	*testing.T
	*Engine
	agent *agent.Agent
	store *sqlstore.Store
	env   *testsuite.TestActivityEnvironment
}

func newWalk(t *testing.T, a *agent.Agent) *walk {
	store, err := openStore(t.Context(), filepath.Join(t.TempDir(), "s.db"))
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	must(t, store.Append(t.Context(), "s", 0, []session.Entry{{Seq: 1, Body: session.InputItem{Item: item.User("Go on.")}}}))
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	w := &walk{T: t, agent: a, store: store, env: suite.NewTestActivityEnvironment(), Engine: &Engine{Store: store}}
	w.Open = func(ctx context.Context, id, _ string) (*Opened, error) {
		s, err := session.Open(ctx, store, id)
		return &Opened{Agent: a, Session: s}, err
	}
	w.env.RegisterActivity(w.Engine.step)
	return w
}

// until performs steps until the run stops.
func (w *walk) until() stepResult {
	w.Helper()
	for range 20 {
		if r := w.step(); r.Why != "" || r.Idle {
			return r
		}
	}
	w.Fatal("the run does not stop")
	return stepResult{}
}

func (w *walk) step() (r stepResult) {
	w.Helper()
	v, err := w.env.ExecuteActivity(w.Engine.step, stepInput{Session: "s"})
	must(w.T, err)
	must(w.T, v.Get(&r))
	return r
}

// A polling tool is asked again when its time has come, and not before.
func TestPollingToolInSteps(t *testing.T) {
	after, asked := time.Hour, 0
	poll := func(context.Context, struct{}) (string, error) {
		if asked++; asked == 1 {
			return "", &tool.NotYet{After: after, Reason: "a build"}
		}
		return "It is built.", nil
	}
	w := newWalk(t, &agent.Agent{Model: worksFor(1, "build"), Tools: []tool.Tool{tool.Must("build", "Builds.", poll, tool.Polling())}, Policy: agent.Policy{Allow: []string{"*"}}, Park: -1})
	r := w.until()
	if r.Why != agent.StopNotYet || r.Due.Before(time.Now().Add(after/2)) {
		t.Fatalf("%+v", r)
	}
	if r := w.step(); !r.Idle || r.Why != agent.StopNotYet || r.Due.IsZero() || asked != 1 {
		t.Errorf("before its time: %+v, asked %d times", r, asked)
	}

	w, after, asked = w.again(), time.Second, 0
	for w.until().Why != agent.StopEndTurn {
		time.Sleep(20 * time.Millisecond)
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// again returns another session of the same agent.
func (w *walk) again() *walk { return newWalk(w.T, w.agent) }

// An approval that nobody gives in time is neither consent nor a refusal: the call does not
// run, and the log and the model read that nobody answered.
func TestNobodyAnswersInTime(t *testing.T) {
	ran, read := 0, ""
	model := agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
		for _, it := range req.Input.All() {
			if out, err := item.As[item.FunctionCallOutput](it); err == nil && it.CallID() == "c1" {
				read = out.Output.Display()
				return agenttest.Completed(item.Assistant("Well."))
			}
		}
		return agenttest.Completed(item.Call("c1", "pay", "{}"))
	})
	pay := tool.Must("pay", "Pays.", func(context.Context, struct{}) (string, error) { ran++; return "paid", nil })
	agentOf := func() *agent.Agent {
		return &agent.Agent{Model: model, Tools: []tool.Tool{pay}, Policy: agent.Policy{Ask: []string{"pay"}, Pause: true}}
	}

	w := newWalk(t, agentOf())
	w.ApprovalTime = time.Hour
	first := w.until()
	if first.Why != agent.StopApprovalPending || first.Due.Before(time.Now().Add(30*time.Minute)) || ran != 0 {
		t.Fatalf("%+v", first)
	}
	if r := w.step(); !r.Idle || !r.Due.Equal(first.Due) {
		t.Errorf("before the time is over: %+v, want due %v", r, first.Due)
	}
	w.ApprovalTime = time.Nanosecond
	if r := w.until(); r.Why != agent.StopEndTurn || ran != 0 || !strings.Contains(read, "Nobody answered") {
		t.Errorf("%+v, the call ran %d times, the model reads %q", r, ran, read)
	}
	var got []session.Approval
	for e, err := range w.store.Load(t.Context(), "s", 0) {
		must(t, err)
		if a, ok := e.Body.(session.Approval); ok {
			got = append(got, a)
		}
	}
	if len(got) != 1 || got[0].Allowed || got[0].Decided != session.DeciderUnanswered || got[0].By != "" {
		t.Errorf("%+v", got)
	}

	// An answer that came before counts, whenever it is read.
	w = newWalk(t, agentOf())
	w.until()
	s, err := session.Open(t.Context(), w.store, "s")
	must(t, err)
	must(t, agent.Decide(t.Context(), s, agent.Decision{CallID: "c1", Allow: true}))
	w.ApprovalTime = time.Nanosecond
	if r := w.until(); r.Why != agent.StopEndTurn || ran != 1 || !strings.Contains(read, "paid") {
		t.Errorf("%+v, the call ran %d times, the model reads %q", r, ran, read)
	}
}

// What a workflow does not have is an error that names it, before anything is kept or begun.
func TestElsewhere(t *testing.T) {
	w := newWalk(t, &agent.Agent{})
	q := queue.Queue(w.store)
	must(t, q.Enqueue(t.Context(), queue.Work{Session: "s", Agent: "a", Needs: []string{"host=h1"}}))
	d := session.Delivery{Delivered: session.Delivered{Key: "k"}, Bodies: []session.Body{session.InputItem{Item: item.User("hello")}}}
	for name, do := range map[string]func() error{
		"deliver": func() error { _, err := w.Deliver(t.Context(), "s", "", d); return err },
		"decide":  func() error { return w.Decide(t.Context(), "s", agent.Decision{CallID: "c1", Allow: true}) },
		"wake":    func() error { return w.Wake(t.Context(), "s", "") },
	} {
		if err := do(); !errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "host=h1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for d, err := range w.store.Deliveries(t.Context(), "s") {
		t.Errorf("it was delivered: %+v, %v", d, err)
	}
	must(t, q.Enqueue(t.Context(), queue.Work{Session: "s", Agent: "a"}))
	if err := w.Wake(t.Context(), "s", ""); !errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "antiphon work park") {
		t.Errorf("work that is ready: %v", err)
	}

	lazy, err := client.NewLazyClient(client.Options{Logger: quiet{}})
	must(t, err)
	defer lazy.Close()
	w.Client = lazy
	must(t, w.store.Limit(t.Context(), "https://localhost/v1", queue.Caps{Runs: 2}))
	if _, err := w.Worker(t.Context(), worker.Options{}); !errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "https://localhost/v1") {
		t.Errorf("a worker of a store with limits: %v", err)
	}
}

// If the runs at an endpoint are limited while a worker runs, its steps do nothing until that is taken
// back, except that a run can be stopped.
func TestLimitedMeanwhile(t *testing.T) {
	const url = "https://localhost/v1"
	asked := 0
	model := agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply {
		asked++
		return agenttest.Completed(item.Call(fmt.Sprint("c", asked), "look", "{}"))
	})
	look := tool.Must("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	w := newWalk(t, &agent.Agent{Model: model, Tools: []tool.Tool{look}, Policy: agent.Policy{Allow: []string{"*"}}})
	w.step()
	allow := func() {
		must(t, w.store.Limit(t.Context(), url, queue.Caps{}))
	}
	limit := func() error { return w.store.Limit(t.Context(), url, queue.Caps{Runs: 2}) }
	must(t, limit())
	var failed *temporal.ApplicationError
	_, err := w.env.ExecuteActivity(w.Engine.step, stepInput{Session: "s"})
	if !errors.As(err, &failed) || !failed.NonRetryable() || !strings.Contains(failed.Message(), url) || asked != 1 {
		t.Errorf("%v after %d requests", err, asked)
	}
	allow()
	for w.step(); asked < 2; {
		w.step()
	}
	must(t, limit())
	v, err := w.env.ExecuteActivity(w.Engine.step, stepInput{Session: "s", Mode: stop, Key: "k"})
	must(t, err)
	var r stepResult
	if must(t, v.Get(&r)); r.Why != agent.StopRequested || asked != 2 {
		t.Errorf("%+v after %d requests", r, asked)
	}
}

// Steps send nothing to an endpoint that was stopped or asked another worker to wait. They say until when, no attempt is counted, and the
// run goes on then. The tokens of steps count for all workers.
func TestEndpointIsClosed(t *testing.T) {
	reply := agenttest.Completed(item.Assistant("Hello."))
	server := agenttest.NewServer(t, reply)
	w := newWalk(t, &agent.Agent{Model: &responses.Client{BaseURL: server.URL}, Request: api.Request{Model: "m"}})
	url := (&responses.Client{BaseURL: server.URL}).About().URL
	closed := func(mode mode, why string, least time.Duration) {
		t.Helper()
		v, err := w.env.ExecuteActivity(w.Engine.step, stepInput{Session: "s", Mode: mode})
		must(t, err)
		var r stepResult
		must(t, v.Get(&r))
		if r.Why != "" || r.Idle || !strings.Contains(r.Closed, url) || !strings.Contains(r.Closed, why) || time.Until(r.Due) < least || len(server.Requests()) != 0 {
			t.Errorf("%+v after %d requests", r, len(server.Requests()))
		}
	}
	must(t, w.store.Stop(t.Context(), url, "too dear"))
	closed(usual, "was stopped: too dear", time.Second)
	must(t, w.store.Stop(t.Context(), url, ""))
	must(t, w.store.Slow(t.Context(), url, time.Hour))
	closed(again, "takes no request for", time.Minute)
	must(t, w.store.Stop(t.Context(), url, "")) // and ends the pause
	must(t, w.store.Limit(t.Context(), url, queue.Caps{Tokens: 1}))
	v, err := w.env.ExecuteActivity(w.Engine.step, stepInput{Session: "s", Mode: again})
	must(t, err)
	var r stepResult
	must(t, v.Get(&r))
	for r.Why == "" {
		r = w.step()
	}
	if r.Why != agent.StopEndTurn || len(server.Requests()) != 1 {
		t.Errorf("%+v after %d requests", r, len(server.Requests()))
	}
	next, err := w.store.Send(t.Context(), url, time.Millisecond)
	if must(t, err); next.Wait <= time.Second {
		t.Errorf("after a reply: %+v", next)
	}
}

// signaled is a client that counts the workflows that are woken.
type signaled struct {
	client.Client
	woken []string
}

func (c *signaled) SignalWithStartWorkflow(_ context.Context, id, _ string, _ any, _ client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	c.woken = append(c.woken, id)
	return nil, nil
}

// A session whose work in the store's queue is done is the workflow's from the first delivery,
// answer or signal on: no worker of antiphon work begins it.
func TestTakesDoneWork(t *testing.T) {
	d := session.Delivery{Delivered: session.Delivered{Key: "k"}, Bodies: []session.Body{session.InputItem{Item: item.User("hello")}}}
	for name, do := range map[string]func(w *walk) error{
		"deliver": func(w *walk) error { _, err := w.Deliver(w.Context(), "s", "", d); return err },
		"again": func(w *walk) error {
			_, err := w.Deliver(w.Context(), "s", "", d)
			must(w.T, err)
			_, err = w.Deliver(w.Context(), "s", "", d)
			return err
		},
		"decide": func(w *walk) error {
			w.until()
			s, err := session.Open(w.Context(), w.store, "s")
			must(w.T, err)
			pending, err := agent.PendingApprovals(w.Context(), s)
			must(w.T, err)
			return w.Decide(w.Context(), "s", agent.Decision{CallID: pending[0].CallID, Allow: true})
		},
		"wake": func(w *walk) error { return w.Wake(w.Context(), "s", "") },
	} {
		t.Run(name, func(t *testing.T) {
			pay := tool.Must("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
			w := newWalk(t, &agent.Agent{Model: worksFor(1, "pay"), Tools: []tool.Tool{pay}, Policy: agent.Policy{Ask: []string{"pay"}, Pause: true}})
			c := new(signaled)
			w.Client = c
			q := queue.Queue(w.store)
			must(t, q.Enqueue(t.Context(), queue.Work{Session: "s", Agent: "a"}))
			row, err := q.Work(t.Context(), "s")
			must(t, err)
			row, err = q.Begin(t.Context(), row, "worker")
			must(t, err)
			must(t, q.Finish(t.Context(), row, queue.Outcome{State: queue.Done, Reason: "it answered"}))
			must(t, do(w))
			if len(c.woken) == 0 {
				t.Error("no workflow was woken")
			}
			if row, err := q.Work(t.Context(), "s"); err != nil || row.State != queue.Parked || !strings.Contains(row.Reason, "Temporal") {
				t.Errorf("%+v, %v", row, err)
			}
		})
	}
}
