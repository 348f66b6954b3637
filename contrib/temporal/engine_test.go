// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// history returns the events of a workflow, of all of its runs.
func (w *world) history(id string) (events []*history.HistoryEvent, runs int) {
	w.t.Helper()
	run := ""
	for next := ""; ; runs++ {
		run, next = next, ""
		if runs == 0 {
			run = w.firstRun(id)
		}
		it := w.Client.GetWorkflowHistory(w.t.Context(), w.WorkflowID(id), run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			e, err := it.Next()
			must(w.t, err)
			events = append(events, e)
			next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
		if next == "" {
			return events, runs + 1
		}
	}
}

// firstRun returns the id of the first run of a workflow.
func (w *world) firstRun(id string) string {
	w.t.Helper()
	d, err := w.Client.DescribeWorkflow(w.t.Context(), w.WorkflowID(id), "")
	must(w.t, err)
	return d.RawResponse.WorkflowExecutionInfo.FirstRunId
}

// steps returns the number of activities of a workflow that have ended.
func (w *world) steps(id string) (n int) {
	w.t.Helper()
	events, _ := w.history(id)
	for _, e := range events {
		if e.EventType == enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED {
			n++
		}
	}
	return n
}

func size(events []*history.HistoryEvent) (n int) {
	for _, e := range events {
		n += proto.Size(e)
	}
	return n
}

func reading(name string, f func() (string, error)) tool.Tool {
	return tool.Must(name, "Reads something.", func(context.Context, struct{}) (string, error) { return f() }, tool.ReadOnly())
}

// A session is run to its end, with the log of any other run.
func TestRuns(t *testing.T) {
	w := newWorld(t, sharedServer(t), &agent.Agent{
		Model: worksFor(2, "look"), Tools: []tool.Tool{reading("look", func() (string, error) { return "A saw.", nil })},
	})
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	s := w.ends("s")
	if s.Status != Done || s.Why != string(agent.StopEndTurn) || s.Session != "s" || s.Steps != 6 {
		t.Errorf("%+v", s)
	}
	log := w.log("s")
	agenttest.CheckTrajectory(t, log, `
		turn 1
		  look {} = A saw.
		turn 2
		  look {} = A saw.
		turn 3
		  > All is done.
		stopped: answered
	`)
	must(t, agenttest.CheckLog(log))
	if s.Entry != log[len(log)-1].Seq {
		t.Errorf("the state ends at entry %d, the log at %d", s.Entry, log[len(log)-1].Seq)
	}
	// A workflow that is woken without news writes nothing.
	must(t, w.Wake(t.Context(), "s", ""))
	if s := w.ends("s"); s.Status != Done || s.Why != string(agent.StopEndTurn) || len(w.log("s")) != len(log) {
		t.Errorf("%+v, and the log has %d entries more", s, len(w.log("s"))-len(log))
	}
}

// Deliveries start the workflow, and are read once each, whatever happens to signals. D1
func TestDeliveries(t *testing.T) {
	w := newWorld(t, sharedServer(t), &agent.Agent{Model: agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant("I have heard it."))
	})})
	w.works(worker.Options{})
	w.begins("s")
	for i := range 20 {
		d := session.Delivery{Delivered: session.Delivered{Key: fmt.Sprint("k", i), From: "a test"}, Bodies: []session.Body{session.InputItem{Item: item.User(fmt.Sprintf("Word %d.", i))}}}
		for range 1 + i%2 { // some are delivered twice
			if r, err := w.Deliver(t.Context(), "s", "", d); err != nil || r.Number != int64(i+1) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	}
	w.ends("s")
	said := agenttest.Trajectory(w.log("s"))
	for e := range w.Store.Deliveries(t.Context(), "s") {
		t.Errorf("%+v is still unread", e)
	}
	for i := range 20 {
		n := 0
		for _, e := range w.log("s") {
			if b, ok := e.Body.(session.InputItem); ok && strings.Contains(b.Item.JSON(), fmt.Sprintf("Word %d.", i)) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("word %d is there %d times\n%s", i, n, said)
		}
	}
}

// What a workflow keeps is small, however large the outputs are, and has no text of the
// conversation.
func TestReferencesOnly(t *testing.T) {
	const secret = "Xylophone"
	large := strings.Repeat("A line with "+secret+".\n", 5<<20/24)
	w := newWorld(t, sharedServer(t), &agent.Agent{
		Model: worksFor(4, "look"), Tools: []tool.Tool{reading("look", func() (string, error) { return large, nil })},
		Request: api.Request{Instructions: secret},
	})
	w.works(worker.Options{})
	w.begins("s")
	_, err := w.Deliver(t.Context(), "s", "", session.Delivery{Delivered: session.Delivered{Key: "k", From: secret}, Bodies: []session.Body{session.InputItem{Item: item.User(secret)}}})
	must(t, err)
	w.ends("s")
	events, _ := w.history("s")
	if n := size(events); n > 40_000 {
		t.Errorf("the history has %d bytes", n)
	}
	if strings.Contains(fmt.Sprint(events), secret) {
		t.Error("the history has text of the conversation")
	}
}

// The text of a failed run is in the log, not in the history.
func TestParked(t *testing.T) {
	const secret = "Xylophone"
	var fails atomic.Bool
	fails.Store(true)
	var asked atomic.Int32
	w := newWorld(t, sharedServer(t), &agent.Agent{Model: agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply {
		if asked.Add(1); fails.Load() {
			return agenttest.Failure(400, "bad", secret)
		}
		return agenttest.Completed(item.Assistant("Now it works."))
	})})
	w.Attempts = 3
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	s := w.until("s", func(s State) bool { return s.Status == Parked })
	if s.Why != string(agent.StopProviderError) || !strings.Contains(s.Detail, secret) || s.Failed != 3 || asked.Load() != 3 || !s.Next.IsZero() {
		t.Errorf("%+v, after %d requests", s, asked.Load())
	}
	// A signal without a delivery is no reason for another attempt.
	must(t, w.Wake(t.Context(), "s", ""))
	w.begins("other")
	must(t, w.Wake(t.Context(), "other", ""))
	w.until("other", func(s State) bool { return s.Status == Parked })
	if again := w.until("s", func(s State) bool { return s.Status == Parked }); again.Entry != s.Entry || asked.Load() != 6 {
		t.Errorf("%+v, after %d requests", again, asked.Load())
	}
	events, _ := w.history("s")
	if strings.Contains(fmt.Sprint(events), secret) {
		t.Error("the history has text of the conversation")
	}
	fails.Store(false)
	must(t, w.Retry(t.Context(), "s"))
	if s := w.ends("s"); s.Status != Done || s.Why != string(agent.StopEndTurn) || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// A session whose agent is not here is parked at once, and says what is missing.
func TestMissing(t *testing.T) {
	w := newWorld(t, sharedServer(t), &agent.Agent{Model: worksFor(0)})
	open := w.Open
	var tries atomic.Int32
	w.Open = func(ctx context.Context, id, name string) (*Opened, error) {
		if tries.Add(1); name != "clerk" {
			return nil, fmt.Errorf("the agent %q: %w", name, ErrMissing)
		}
		return open(ctx, id, name)
	}
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", "lawyer"))
	s := w.until("s", func(s State) bool { return s.Status == Parked })
	if s.Why != WhyStep || !strings.Contains(s.Problem, `the agent "lawyer"`) || tries.Load() != 1 {
		t.Errorf("%+v, after %d attempts", s, tries.Load())
	}
	w.begins("s2")
	must(t, w.Wake(t.Context(), "s2", "clerk"))
	w.ends("s2")
}

// A call waits for a person. The workflow does nothing meanwhile, and goes on when the
// answer is in the log: the signal does not contain it.
func TestApproval(t *testing.T) {
	var ran atomic.Int32
	w := newWorld(t, sharedServer(t), &agent.Agent{
		Model: worksFor(2, "pay"), Policy: agent.Policy{Pause: true},
		Tools: []tool.Tool{tool.Must("pay", "Pays.", func(context.Context, struct{}) (string, error) { ran.Add(1); return "paid", nil })},
	})
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	waits := func(entry int64) State {
		return w.until("s", func(s State) bool {
			return s.Status == Waiting && s.Entry > entry && s.Why == string(agent.StopApprovalPending)
		})
	}
	s := waits(0)
	if ran.Load() != 0 || !strings.Contains(s.Detail, "pay") || !s.Next.IsZero() {
		t.Errorf("%+v; it ran %d times", s, ran.Load())
	}
	// A signal without an answer changes nothing.
	before, steps := len(w.log("s")), w.steps("s")
	must(t, w.Wake(t.Context(), "s", ""))
	w.until("s", func(State) bool { return w.steps("s") > steps })
	// Input for later waits for the answer of the run.
	_, err := w.Deliver(t.Context(), "s", "", session.Delivery{Delivered: session.Delivered{Key: "later", Queued: true}, Bodies: []session.Body{session.InputItem{Item: item.User("Thank you.")}}})
	must(t, err)
	w.until("s", func(State) bool { return w.steps("s") > steps+1 })
	answer := func(allow bool) {
		t.Helper()
		other, err := session.Open(t.Context(), w.Store, "s")
		must(t, err)
		pending, err := agent.PendingApprovals(t.Context(), other)
		must(t, err)
		if len(pending) != 1 {
			t.Fatalf("%+v", pending)
		}
		p := pending[0]
		must(t, w.Decide(t.Context(), "s", agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: allow, By: "Ada", Reason: "not this"}))
	}
	if n := len(w.log("s")); n != before {
		t.Errorf("a signal without an answer added %d entries", n-before)
	}
	answer(true)
	s = waits(s.Entry)
	if ran.Load() != 1 {
		t.Errorf("it ran %d times", ran.Load())
	}
	answer(false)
	if s := w.ends("s"); s.Status != Done || s.Why != string(agent.StopEndTurn) || ran.Load() != 1 {
		t.Errorf("%+v; it ran %d times", s, ran.Load())
	}
	must(t, agenttest.CheckLog(w.log("s")))
	must(t, heard(w.log("s"), []string{"Thank you."}))
}

// A program that knows nothing of Temporal delivers, and the workflow finds it by itself.
func TestNoSignal(t *testing.T) {
	w := newWorld(t, sharedServer(t), &agent.Agent{
		Model: worksFor(1, "pay"), Policy: agent.Policy{Pause: true},
		Tools: []tool.Tool{tool.Must("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })},
	})
	w.Recheck = 200 * time.Millisecond
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	w.until("s", func(s State) bool { return s.Status == Waiting && !s.Next.IsZero() })
	other, err := session.Open(t.Context(), w.Store, "s")
	must(t, err)
	pending, err := agent.PendingApprovals(t.Context(), other)
	must(t, err)
	must(t, agent.Decide(t.Context(), other, agent.Decision{Session: "s", Number: pending[0].Number, CallID: pending[0].CallID, Allow: true}))
	if s := w.ends("s"); s.Status != Done {
		t.Errorf("%+v", s)
	}
}

// Another program writes to the session. The workflow waits for it, and no attempt is
// used up.
func TestBusy(t *testing.T) {
	w := newWorld(t, sharedServer(t), &agent.Agent{Model: worksFor(0)})
	w.Attempts = 1
	w.works(worker.Options{})
	w.begins("s")
	other, err := session.Open(t.Context(), w.Store, "s")
	must(t, err)
	unlock, err := other.Lock(t.Context())
	must(t, err)
	must(t, w.Wake(t.Context(), "s", ""))
	w.until("s", func(s State) bool { return s.Why == WhyBusy && s.Status == Running })
	must(t, unlock())
	if s := w.ends("s"); s.Status != Done {
		t.Errorf("%+v", s)
	}
}

// A workflow that is cancelled stops its run.
func TestCancel(t *testing.T) {
	began := make(chan bool)
	w := newWorld(t, sharedServer(t), &agent.Agent{
		Model: worksFor(5, "stay"), Policy: agent.Policy{Allow: []string{"*"}},
		Tools: []tool.Tool{tool.Must("stay", "Stays.", func(ctx context.Context, _ struct{}) (string, error) {
			close(began)
			<-ctx.Done()
			return "", ctx.Err()
		})},
	})
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	<-began
	must(t, w.Client.CancelWorkflow(t.Context(), w.WorkflowID("s"), ""))
	if err := w.Client.GetWorkflow(t.Context(), w.WorkflowID("s"), "").Get(t.Context(), nil); err == nil {
		t.Error("it was not cancelled")
	}
	log := w.log("s")
	if stopped, ok := log[len(log)-1].Body.(session.Stopped); !ok || stopped.Why != string(agent.StopRequested) {
		t.Errorf("the log ends with %#v", log[len(log)-1].Body)
	}
	must(t, agenttest.CheckLog(log))
	if s, err := w.State(t.Context(), "s"); err != nil || s.Status != Done || s.Why != string(agent.StopRequested) {
		t.Errorf("%+v, %v", s, err)
	}
}

// Workflows are found by their search attributes, where the server has them.
func TestSearchAttributes(t *testing.T) {
	w := newWorld(t, sharedServer(t), &agent.Agent{Model: worksFor(0)})
	must(t, w.AddSearchAttributes(t.Context()))
	must(t, w.AddSearchAttributes(t.Context()))
	// The server's cache learns of them a little later.
	for !w.hasAttributes(t.Context()) {
		time.Sleep(20 * time.Millisecond)
	}
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", "clerk"))
	w.ends("s")
	query := fmt.Sprintf("AntiphonSession = 's' AND AntiphonStatus = 'done' AND AntiphonWhy = 'answered' AND AntiphonAgent = 'clerk' AND TaskQueue = '%s'", w.Queue)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		list, err := w.Client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err == nil && len(list.Executions) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v, %v", list, err)
		}
	}
}
