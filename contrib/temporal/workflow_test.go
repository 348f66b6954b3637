// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/tool"
)

// These tests run the workflow without a server, in time that passes at once.

// stage is a workflow whose steps are a function.
type stage struct {
	*testsuite.TestWorkflowEnvironment
	engine *Engine
	steps  []stepInput
	times  []time.Time
}

func newStage(t *testing.T, e *Engine, step func(n int, in stepInput) (stepResult, error)) *stage {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	s := &stage{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), engine: e}
	s.SetTestTimeout(time.Minute)
	s.RegisterWorkflowWithOptions(e.session, workflow.RegisterOptions{Name: SessionWorkflow})
	s.RegisterActivityWithOptions(func(_ context.Context, in stepInput) (stepResult, error) {
		s.steps, s.times = append(s.steps, in), append(s.times, s.Now())
		return step(len(s.steps), in)
	}, activity.RegisterOptions{Name: StepActivity})
	t.Cleanup(func() {
		if !s.IsWorkflowCompleted() {
			t.Error("the workflow is not over")
		}
	})
	return s
}

func (s *stage) run(task Task) { s.ExecuteWorkflow(SessionWorkflow, task) }

func (s *stage) state(t *testing.T) (state State) {
	t.Helper()
	v, err := s.QueryWorkflow(QueryState)
	must(t, err)
	must(t, v.Get(&state))
	return state
}

func (s *stage) modes() (list []mode) {
	for _, in := range s.steps {
		list = append(list, in.Mode)
	}
	return list
}

// A workflow waits six weeks for a person. It looks into the inbox less and less often,
// and not at all without Recheck.
func TestWaitsForWeeks(t *testing.T) {
	const weeks = 6 * 7 * 24 * time.Hour
	for name, c := range map[string]struct {
		recheck     time.Duration
		least, most int
	}{
		"with looks":    {0, 6*7*4 + 5, 6*7*4 + 12},
		"without looks": {-1, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			over := false
			s := newStage(t, &Engine{Recheck: c.recheck}, func(n int, _ stepInput) (stepResult, error) {
				if over {
					return stepResult{Effect: "stop", Why: agent.StopEndTurn, Entry: 20}, nil
				}
				return stepResult{Idle: n > 1, Why: agent.StopApprovalPending, Entry: 9}, nil
			})
			s.RegisterDelayedCallback(func() {
				if state := s.state(t); state.Status != Waiting || state.Why != string(agent.StopApprovalPending) || state.Entry != 9 || state.Next.IsZero() != (c.recheck < 0) {
					t.Errorf("%+v", state)
				}
				over = true
				s.SignalWorkflow(SignalWake, nil)
			}, weeks)
			s.run(Task{Session: "s"})
			must(t, s.GetWorkflowError())
			if n := len(s.steps); n < c.least || n > c.most {
				t.Errorf("%d steps", n)
			}
			if state := s.state(t); state.Status != Done || state.Entry != 20 {
				t.Errorf("%+v", state)
			}
		})
	}
}

// A run that the endpoint fails is tried a few times, with growing pauses, and then
// parked. Only a delivery or a retry goes on with it. D4
func TestAttempts(t *testing.T) {
	s := newStage(t, &Engine{Attempts: 3, Backoff: time.Second, Recheck: -1}, func(n int, in stepInput) (stepResult, error) {
		switch {
		case in.Mode == mailOnly:
			return stepResult{Idle: true}, nil
		case n < 5:
			return stepResult{Effect: "stop", Why: agent.StopProviderError, Entry: int64(n)}, nil
		}
		return stepResult{Effect: "stop", Why: agent.StopEndTurn, Entry: 9}, nil
	})
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(SignalWake, nil) }, time.Hour)
	s.RegisterDelayedCallback(func() {
		if state := s.state(t); state.Status != Parked || state.Why != string(agent.StopProviderError) || state.Failed != 3 || state.Entry != 3 {
			t.Errorf("%+v", state)
		}
		s.SignalWorkflow(SignalRetry, nil)
	}, 2*time.Hour)
	s.run(Task{Session: "s"})
	must(t, s.GetWorkflowError())
	if got, want := s.modes(), []mode{usual, again, again, mailOnly, again}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if one, two := s.times[1].Sub(s.times[0]).Round(time.Second), s.times[2].Sub(s.times[1]).Round(time.Second); one != time.Second || two != 2*time.Second {
		t.Errorf("the pauses are %v and %v", one, two)
	}
}

// A session waits for an endpoint that takes no request, however often, and no attempt is counted.
func TestWaitsForEndpoint(t *testing.T) {
	var s *stage
	s = newStage(t, &Engine{Attempts: 2, Recheck: -1}, func(n int, in stepInput) (stepResult, error) {
		if n < 5 {
			return stepResult{Effect: "stop", Entry: int64(n), Closed: "the endpoint takes no request for 1h0m0s", Due: s.Now().Add(time.Hour)}, nil
		}
		return stepResult{Effect: "stop", Why: agent.StopEndTurn, Entry: 9}, nil
	})
	s.RegisterDelayedCallback(func() {
		if state := s.state(t); state.Status != Waiting || state.Why != WhyEndpoint || state.Failed != 0 || !strings.Contains(state.Problem, "no request") || state.Next.IsZero() {
			t.Errorf("%+v", state)
		}
	}, 150*time.Minute)
	s.run(Task{Session: "s"})
	must(t, s.GetWorkflowError())
	if got, want := s.modes(), []mode{usual, again, again, again, again}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if passed := s.times[4].Sub(s.times[0]).Round(time.Minute); passed != 4*time.Hour {
		t.Errorf("it waited %v", passed)
	}
	if state := s.state(t); state.Status != Done || state.Problem != "" {
		t.Errorf("%+v", state)
	}
}

// A step that cannot be performed parks the session with the reason.
func TestStepFails(t *testing.T) {
	s := newStage(t, &Engine{Attempts: 3, Recheck: -1}, func(n int, _ stepInput) (stepResult, error) {
		if n <= 3 {
			return stepResult{}, failure(errors.New("the store is away\nwith more text"))
		}
		return stepResult{Effect: "stop", Why: agent.StopEndTurn}, nil
	})
	s.RegisterDelayedCallback(func() {
		if state := s.state(t); state.Status != Parked || state.Why != WhyStep || state.Problem != "the store is away" || len(s.steps) != 3 {
			t.Errorf("%+v after %d steps", state, len(s.steps))
		}
		s.SignalWorkflow(SignalRetry, nil)
	}, time.Hour)
	s.run(Task{Session: "s"})
	must(t, s.GetWorkflowError())
}

// A workflow continues as new with what it knows, but not while a delivery is unread.
func TestContinuesAsNew(t *testing.T) {
	s := newStage(t, &Engine{StepsPerRun: 3}, func(n int, _ stepInput) (stepResult, error) {
		r := stepResult{Effect: "ask", Entry: int64(n), Agent: "clerk@1"}
		if n < 5 {
			r.Unread = 1
		}
		return r, nil
	})
	s.run(Task{Session: "s", Agent: "clerk"})
	var next *workflow.ContinueAsNewError
	if err := s.GetWorkflowError(); !errors.As(err, &next) || len(s.steps) != 5 {
		t.Fatalf("%v after %d steps", err, len(s.steps))
	}
	var task Task
	must(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &task))
	if task.Session != "s" || task.Agent != "clerk@1" || task.State == nil || task.State.Steps != 5 || task.State.Entry != 5 {
		t.Errorf("%+v", task)
	}
	if last := s.steps[4]; last.Agent != "clerk@1" || last.Mode != unread {
		t.Errorf("%+v", last)
	}
}

// A workflow that waits stays what it is in its next run.
func TestParkedContinuesAsNew(t *testing.T) {
	began := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	s := newStage(t, &Engine{Recheck: -1}, func(n int, in stepInput) (stepResult, error) {
		if in.Mode == mailOnly {
			return stepResult{Idle: true}, nil
		}
		return stepResult{Effect: "stop", Why: agent.StopEndTurn}, nil
	})
	s.RegisterDelayedCallback(func() {
		if state := s.state(t); state.Status != Parked || state.Why != WhyStep || !state.Since.Equal(began) || state.Problem != "why" {
			t.Errorf("%+v", state)
		}
		s.SignalWorkflow(SignalRetry, nil)
	}, time.Hour)
	s.run(Task{Session: "s", State: &State{Session: "s", Status: Parked, Why: WhyStep, Problem: "why", Since: began, Steps: 4}, Looks: 3})
	must(t, s.GetWorkflowError())
}

// Another writer is waited for without end, and without using up attempts.
func TestBusyForDays(t *testing.T) {
	s := newStage(t, &Engine{Attempts: 1}, func(n int, _ stepInput) (stepResult, error) {
		if n < 500 {
			return stepResult{Busy: true}, nil
		}
		return stepResult{Effect: "stop", Why: agent.StopEndTurn}, nil
	})
	s.run(Task{Session: "s", State: &State{Session: "s", Status: Running}})
	var next *workflow.ContinueAsNewError // after 300 steps
	if err := s.GetWorkflowError(); !errors.As(err, &next) || len(s.steps) != 300 {
		t.Errorf("%v after %d steps", err, len(s.steps))
	}
	if took := s.times[299].Sub(s.times[0]); took < 2*time.Hour {
		t.Errorf("it looked 300 times in %v", took)
	}
}

// A cancelled workflow performs the last steps of its run.
func TestCancelled(t *testing.T) {
	s := newStage(t, &Engine{}, func(n int, in stepInput) (stepResult, error) {
		switch {
		case in.Mode == stop && n < 4:
			return stepResult{Busy: true}, nil
		case in.Mode == stop:
			return stepResult{Effect: "stop", Why: agent.StopRequested}, nil
		}
		return stepResult{Effect: "stop", Why: agent.StopApprovalPending}, nil
	})
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Hour)
	s.run(Task{Session: "s"})
	if err := s.GetWorkflowError(); !temporal.IsCanceledError(err) {
		t.Error(err)
	}
	if state := s.state(t); state.Status != Done || state.Why != string(agent.StopRequested) {
		t.Errorf("%+v", state)
	}
}

var update = flag.Bool("update", false, "record the histories in testdata anew; needs a server")

// The workflow decides about recorded histories as it did: a worker of the next release
// goes on with what one of the last release began. If a change of the workflow fails here,
// it needs workflow.GetVersion; a new record would hide that.
func TestReplays(t *testing.T) {
	if *update {
		record(t)
	}
	files, err := filepath.Glob("testdata/*.json")
	must(t, err)
	if len(files) < 2 {
		t.Fatalf("%d histories", len(files))
	}
	for _, file := range files {
		r := worker.NewWorkflowReplayer()
		r.RegisterWorkflowWithOptions((&Engine{}).session, workflow.RegisterOptions{Name: SessionWorkflow})
		if err := r.ReplayWorkflowHistoryFromJSONFile(quiet{}, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// record writes the histories of two sessions: one waits for an approval and gets it, the
// other is parked and tried again.
func record(t *testing.T) {
	w := newWorld(t, sharedServer(t), &agent.Agent{Model: worksFor(3, "pay"), Policy: agent.Policy{Pause: true}, Tools: []tool.Tool{
		tool.Must("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil }),
	}})
	must(t, w.AddSearchAttributes(t.Context()))
	for !w.hasAttributes(t.Context()) {
		time.Sleep(20 * time.Millisecond)
	}
	missing := true
	open := w.Open
	w.Open = func(ctx context.Context, id, name string) (*Opened, error) {
		if id == "parked" && missing {
			return nil, ErrMissing
		}
		return open(ctx, id, name)
	}
	w.Recheck = time.Second
	w.works(worker.Options{})
	for _, id := range []string{"approval", "parked"} {
		w.begins(id)
		must(t, w.Wake(t.Context(), id, ""))
	}
	w.until("parked", func(s State) bool { return s.Status == Parked })
	missing = false
	must(t, w.Retry(t.Context(), "parked"))
	for _, id := range []string{"approval", "parked"} {
		for entry, n := int64(0), 0; n < 3; n++ {
			entry = w.until(id, func(s State) bool { return s.Status == Waiting && s.Entry > entry }).Entry
			w.allow(id)
		}
	}
	host, err := os.Hostname()
	must(t, err)
	must(t, os.MkdirAll("testdata", 0o755))
	for _, id := range []string{"approval", "parked"} {
		w.ends(id)
		events, _ := w.history(id)
		text, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(&history.History{Events: events})
		must(t, err)
		text = bytes.ReplaceAll(text, []byte(host), []byte("host")) // names of sticky queues contain it
		must(t, os.WriteFile(filepath.Join("testdata", id+".json"), text, 0o644))
	}
}
