// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tracing"
)

// release is a version of a worker. Its calls say which version ran them.
type release struct {
	world
	end func()
}

// release starts a worker of a version and makes the version current.
func (w *world) release(version string, behavior workflow.VersioningBehavior, hold <-chan bool) *release {
	w.t.Helper()
	r := &release{world: *w}
	e := *w.Engine
	r.Engine = &e
	r.agent = &agent.Agent{
		Model: worksFor(3, "act", "pay"), Policy: agent.Policy{Allow: []string{"act"}, Pause: true},
		Tools: []tool.Tool{
			tool.Must("act", "Acts.", func(context.Context, struct{}) (string, error) {
				<-hold
				return "acted in " + version, nil
			}),
			tool.Must("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid in " + version, nil }),
		},
	}
	r.Open = func(ctx context.Context, id, _ string) (*Opened, error) {
		s, err := session.Open(ctx, w.Store, id)
		return &Opened{Agent: r.agent, Session: s}, err
	}
	name := strings.ReplaceAll(w.Queue, "/", "-")
	r.end = r.works(worker.Options{DeploymentOptions: worker.DeploymentOptions{
		UseVersioning: true, Version: worker.WorkerDeploymentVersion{DeploymentName: name, BuildID: version}, DefaultVersioningBehavior: behavior,
	}})
	w.insists(func(ctx context.Context) error { // the server learns of the version by its first poll
		_, err := w.Client.WorkerDeploymentClient().GetHandle(name).SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: version})
		return err
	})
	return r
}

// allow answers the call that waits.
func (w *world) allow(id string) {
	w.t.Helper()
	s, err := session.Open(w.t.Context(), w.Store, id)
	must(w.t, err)
	pending, err := agent.PendingApprovals(w.t.Context(), s)
	must(w.t, err)
	for _, p := range pending {
		must(w.t, w.Decide(w.t.Context(), id, agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: true}))
	}
}

func open() <-chan bool {
	c := make(chan bool)
	close(c)
	return c
}

// A release comes in the middle of a call, and the old worker ends in order: the call
// ends where it began, and the new worker goes on. D2
func TestRelease(t *testing.T) {
	w := newWorld(t, sharedServer(t), nil)
	hold := make(chan bool)
	first := w.release("1", workflow.VersioningBehaviorUnspecified, hold)
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	w.until("s", func(State) bool { return started(w.log("s")) == 1 })
	second := w.release("2", workflow.VersioningBehaviorUnspecified, open())
	var ends sync.WaitGroup
	ends.Go(first.end)
	close(hold)
	ends.Wait()
	w.until("s", func(s State) bool { return s.Status == Waiting })
	w.allow("s")
	if s := w.ends("s"); s.Status != Done {
		t.Errorf("%+v", s)
	}
	agenttest.CheckTrajectory(t, w.log("s"), `
		turn 1
		  act {} = acted in 1
		turn 2
		  pay {} = paid in 2
		stopped: approval_wanted
		turn 3
		  act {} = acted in 2
		turn 4
		  > All is done.
		stopped: answered
	`)
	second.end()
}

// A workflow that is pinned stays with its version while others begin on the next one.
func TestPinned(t *testing.T) {
	w := newWorld(t, sharedServer(t), nil)
	w.release("1", workflow.VersioningBehaviorPinned, open())
	w.begins("old")
	must(t, w.Wake(t.Context(), "old", ""))
	w.until("old", func(s State) bool { return s.Status == Waiting })
	w.release("2", workflow.VersioningBehaviorPinned, open())
	w.begins("new")
	must(t, w.Wake(t.Context(), "new", ""))
	w.until("new", func(s State) bool { return s.Status == Waiting })
	for id, version := range map[string]string{"old": "1", "new": "2"} {
		w.allow(id)
		w.ends(id)
		if text := agenttest.Trajectory(w.log(id)); strings.Count(text, "in "+version) != 3 {
			t.Errorf("%s did not stay with version %s:\n%s", id, version, text)
		}
	}
}

// started counts the calls that have started.
func started(log []session.Entry) (n int) {
	for _, e := range log {
		if _, ok := e.Body.(session.CallStarted); ok {
			n++
		}
	}
	return n
}

// A session of 500 turns is several runs of its workflow, each with a short history, and
// no delivery is lost between two of them.
func TestManyTurns(t *testing.T) {
	turns := 500
	if testing.Short() {
		turns = 50
	}
	w := newWorld(t, sharedServer(t), &agent.Agent{
		Model: worksFor(turns, "look"), Limits: agent.Limits{MaxTurns: turns + 1},
		Tools: []tool.Tool{reading("look", func() (string, error) { return "A saw.", nil })},
	})
	w.StepsPerRun = turns / 5
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	var texts []string
	for i := range 20 {
		text := fmt.Sprintf("Word %d.", i)
		texts = append(texts, text)
		w.until("s", func(s State) bool { return s.Steps > i*turns/15 })
		_, err := w.Deliver(t.Context(), "s", "", session.Delivery{Delivered: session.Delivered{Key: text}, Bodies: []session.Body{session.InputItem{Item: item.User(text)}}})
		must(t, err)
	}
	if s := w.ends("s"); s.Status != Done || s.Why != string(agent.StopEndTurn) || s.Steps < turns {
		t.Errorf("%+v", s)
	}
	log := w.log("s")
	must(t, agenttest.CheckLog(log))
	must(t, heard(log, texts))
	if n := started(log); n != turns {
		t.Errorf("%d calls", n)
	}
	events, runs := w.history("s")
	if per := len(events) / runs; runs < 5 || per > 8*w.StepsPerRun+40 {
		t.Errorf("%d runs with %d events each", runs, per)
	}
}

// The spans of a run are inside those of the activities, and all of them in one trace.
func TestTracing(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	w := newWorld(t, sharedServer(t), &agent.Agent{Model: worksFor(0), Hooks: []agent.Hooks{tracing.New(tracing.Options{TracerProvider: provider, Agent: "clerk"})}})
	traced, err := Tracing(provider)
	must(t, err)
	c, err := client.DialContext(t.Context(), client.Options{HostPort: shared.address(), Logger: quiet{}, Interceptors: []interceptor.ClientInterceptor{traced}})
	must(t, err)
	t.Cleanup(c.Close)
	w.Client = c
	w.works(worker.Options{})
	w.begins("s")
	ctx, root := provider.Tracer("test").Start(t.Context(), "root")
	must(t, w.Wake(ctx, "s", ""))
	w.ends("s")
	root.End()
	parents := map[string]string{}
	for end := time.Now().Add(time.Minute); parents["chat"] == "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		names := map[string]string{}
		for _, s := range spans.Ended() {
			names[s.SpanContext().SpanID().String()] = s.Name()
		}
		for _, s := range spans.Ended() {
			if s.SpanContext().TraceID() != root.SpanContext().TraceID() {
				t.Fatalf("%s is in another trace", s.Name())
			}
			name, _, _ := strings.Cut(s.Name(), " ")
			parents[name] = names[s.Parent().SpanID().String()]
		}
	}
	if parents["invoke_agent"] != "RunActivity:"+StepActivity || parents["chat"] != "invoke_agent clerk" {
		t.Errorf("%v", parents)
	}
}

// A worker is told to stop, and a call takes longer than it may. The call is cancelled, the
// log says so, and another worker goes on.
func TestStoppedInTheMiddle(t *testing.T) {
	began := make(chan bool, 1)
	var runs atomic.Int32
	w := newWorld(t, sharedServer(t), &agent.Agent{
		Model: worksFor(1, "act"), Policy: agent.Policy{Allow: []string{"act"}},
		Tools: []tool.Tool{tool.Must("act", "Acts.", func(ctx context.Context, _ struct{}) (string, error) {
			runs.Add(1)
			began <- true
			<-ctx.Done()
			return "half of it", ctx.Err()
		})},
	})
	first := w.works(worker.Options{WorkerStopTimeout: 50 * time.Millisecond})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	<-began
	first()
	w.works(worker.Options{})
	if s := w.ends("s"); s.Status != Done || s.Why != string(agent.StopEndTurn) || runs.Load() != 1 {
		t.Errorf("%+v; it ran %d times", s, runs.Load())
	}
	must(t, agenttest.CheckLog(w.log("s")))
}
