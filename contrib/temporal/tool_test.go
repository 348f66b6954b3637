// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// remotes returns a world whose agent has the tool as a remote one, and starts its worker.
// The model calls it once and answers.
func remotes(t *testing.T, tl tool.Tool, n int) *world {
	t.Helper()
	w := newWorld(t, sharedServer(t), &agent.Agent{Model: worksFor(n, "far"), Policy: agent.Policy{Allow: []string{"far"}}})
	far, err := w.Remote(tl, w.Queue+"-tools")
	must(t, err)
	w.agent.Tools = []tool.Tool{far}
	return w
}

// worksOn starts a worker for the tool.
func (w *world) worksOn(tl tool.Tool) (end func()) {
	w.t.Helper()
	one, err := w.ToolWorker(w.Queue+"-tools", worker.Options{}, tl)
	must(w.t, err)
	must(w.t, one.Start())
	w.t.Cleanup(one.Stop)
	return one.Stop
}

func far(f func(ctx context.Context) (string, error), o ...tool.Option) tool.Tool {
	return tool.Must("far", "Works far away.", func(ctx context.Context, _ struct{}) (string, error) { return f(ctx) }, o...)
}

// output returns the output of a call.
func (w *world) output(id, call string) string {
	w.t.Helper()
	for _, e := range w.log(id) {
		if b, ok := e.Body.(session.CallOutput); ok && b.CallID == call {
			return b.Item.JSON()
		}
	}
	return ""
}

// Calls run on the workers of their tool, by references, and the tool knows its key.
func TestRemote(t *testing.T) {
	large := strings.Repeat("Xylophone ", 500_000)
	var keys atomic.Value
	tl := far(func(ctx context.Context) (string, error) {
		c, _ := tool.FromContext(ctx)
		keys.Store(c.Key())
		if c.Number == 2 {
			return "", errors.New("the second time it breaks")
		}
		return large, nil
	})
	w := remotes(t, tl, 3)
	w.worksOn(tl)
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	if s := w.ends("s"); s.Status != Done || s.Why != string(agent.StopEndTurn) {
		t.Errorf("%+v", s)
	}
	must(t, agenttest.CheckLog(w.log("s")))
	if want := (tool.Call{ID: "c2", Session: "s", Number: 3}).Key(); keys.Load() != want {
		t.Errorf("the key was %v, not %s", keys.Load(), want)
	}
	if out := w.output("s", "c1"); !strings.Contains(out, "the second time it breaks") {
		t.Error(out)
	}
	if out := w.output("s", "c0"); !strings.Contains(out, "Xylophone") {
		t.Error("the output is missing")
	}
	ids := []string{"s"}
	for n := 1; n <= 2; n++ {
		id, err := w.agent.Tools[0].(*remote).id(t.Context(), tool.Call{Session: "s", Number: n})
		must(t, err)
		ids = append(ids, strings.TrimPrefix(id, w.WorkflowID("")))
	}
	for _, id := range ids {
		events, _ := w.history(id)
		if n := size(events); n > 20_000 || strings.Contains(fmt.Sprint(events), "Xylophone") || strings.Contains(fmt.Sprint(events), "breaks") {
			t.Errorf("%s: the history has %d bytes, or text of the conversation", id, n)
		}
	}
}

// The process of a step ends while a call is under way elsewhere. The next step takes the
// result, and the call does not run again.
func TestRemoteAfterCrash(t *testing.T) {
	for name, c := range map[string]struct {
		began  bool // the call was started
		output string
		runs   int32
	}{
		"under way":     {true, "done far away", 1},
		"never started": {false, "done far away", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			hold := make(chan bool)
			tl := far(func(context.Context) (string, error) {
				runs.Add(1)
				<-hold
				return "done far away", nil
			})
			w := remotes(t, tl, 1)
			w.worksOn(tl)
			s, err := session.Open(t.Context(), w.Store, "s")
			must(t, err)
			// This is the log of a process that ended in the middle of the call.
			_, err = s.Append(t.Context(), session.RunStarted{}, session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1},
				session.OutputItem{Turn: 1, Item: item.Call("c0", "far", "{}")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
				session.Approval{CallID: "c0", Allowed: true}, session.CallStarted{CallID: "c0", Repeatable: true})
			must(t, err)
			if c.began {
				ctx, cancel := context.WithCancel(t.Context())
				go func() { // the process that ends: its call goes on
					_, _ = w.agent.Tools[0].Run(ctx, tool.Call{ID: "c0", Name: "far", Arguments: "{}", Session: "s", Number: 1})
				}()
				for runs.Load() == 0 {
					time.Sleep(10 * time.Millisecond)
				}
				defer cancel()
			}
			w.works(worker.Options{})
			must(t, w.Wake(t.Context(), "s", ""))
			close(hold)
			w.ends("s")
			if out := w.output("s", "c0"); !strings.Contains(out, c.output) || runs.Load() != c.runs {
				t.Errorf("it ran %d times: %s", runs.Load(), out)
			}
		})
	}
}

// The worker of a tool ends in the middle of a call. Temporal does not repeat the call, and
// the model is told that its outcome is not known.
func TestRemoteWorkerEnds(t *testing.T) {
	var runs atomic.Int32
	hold := make(chan bool)
	tl := far(func(context.Context) (string, error) { runs.Add(1); <-hold; return "late", nil })
	w := remotes(t, tl, 1)
	// A worker that gives no sign of life: its activity does not beat.
	in := make(chan callInput, 1)
	one := worker.New(w.Client, w.Queue+"-tools", worker.Options{})
	one.RegisterWorkflowWithOptions(callWorkflow, registered(CallWorkflow))
	one.RegisterActivityWithOptions(func(_ context.Context, c callInput) (string, error) { runs.Add(1); in <- c; <-hold; return "", nil }, registeredActivity(ToolActivity))
	must(t, one.Start())
	t.Cleanup(one.Stop)
	t.Cleanup(func() { close(hold) })
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	if c := <-in; c.Session != "s" || c.Number != 1 || c.Attempts != 1 {
		t.Errorf("%+v", c)
	}
	w.ends("s")
	if out := w.output("s", "c0"); !strings.Contains(out, plan.OutcomeUnknown) || runs.Load() != 1 {
		t.Errorf("it ran %d times: %s", runs.Load(), out)
	}
}

// A request to stop ends a call that is under way elsewhere.
func TestRemoteStops(t *testing.T) {
	began, ended := make(chan bool), make(chan bool)
	tl := far(func(ctx context.Context) (string, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	})
	w := remotes(t, tl, 1)
	w.worksOn(tl)
	w.works(worker.Options{})
	w.begins("s")
	must(t, w.Wake(t.Context(), "s", ""))
	<-began
	_, err := w.Deliver(t.Context(), "s", "", session.Delivery{Delivered: session.Delivered{Key: "k"}, Bodies: []session.Body{session.StopAsked{}}})
	must(t, err)
	<-ended
	if s := w.ends("s"); s.Status != Done || s.Why != string(agent.StopRequested) {
		t.Errorf("%+v", s)
	}
}

// remembers is a client that knows each run that was started, and takes the first one for an id again, as Temporal does.
type remembers struct {
	client.Client
	known map[string]client.WorkflowRun
	blobs session.Blobs
}

type knownRun struct {
	client.WorkflowRun
	hash string
}

func (k knownRun) Get(_ context.Context, hash any) error {
	*hash.(*string) = k.hash
	return nil
}

func (r *remembers) ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	if _, ok := r.known[o.ID]; !ok {
		in := args[0].(callInput)
		var c keptCall
		if err := get(ctx, r.blobs, in.Call, &c); err != nil {
			return nil, err
		}
		hash, err := put(ctx, r.blobs, in.Session, keptResult{Text: append([]byte("did "), c.Bytes...)})
		if err != nil {
			return nil, err
		}
		r.known[o.ID] = knownRun{hash: hash}
	}
	return r.known[o.ID], nil
}

func (r *remembers) DescribeWorkflow(_ context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	if _, ok := r.known[id]; !ok {
		return nil, serviceerror.NewNotFound(id)
	}
	return nil, nil
}

func (r *remembers) GetWorkflow(_ context.Context, id, _ string) client.WorkflowRun {
	return r.known[id]
}

// A session that is begun anew under the id of a deleted one gets none of the results of the other, a call that is
// made again in one session is not, and the result of a call that an earlier version started is found.
func TestRemoteOfOtherConversation(t *testing.T) {
	store, err := openStore(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	var blobs session.Blobs = store
	known := &remembers{known: map[string]client.WorkflowRun{}, blobs: blobs}
	e := &Engine{Client: known, Store: store, Queue: "q"}
	one, err := e.Remote(far(func(context.Context) (string, error) { return "", nil }), "tools")
	must(t, err)
	begin := func() {
		s, err := session.Open(t.Context(), store, "work")
		must(t, err)
		_, err = s.Append(t.Context(), session.InputItem{Item: item.User("go")})
		must(t, err)
	}
	call := func(arguments string) tool.Call {
		return tool.Call{ID: "c0", Name: "far", Arguments: arguments, Session: "work", Number: 1}
	}
	gives := func(c tool.Call, want string) {
		t.Helper()
		res, err := one.Run(t.Context(), c)
		if must(t, err); res.Text != want {
			t.Errorf("the result is %q, want %q", res.Text, want)
		}
	}
	begin()
	gives(call(`{"a":1}`), `did {"a":1}`)
	gives(call(`{"a":2}`), `did {"a":1}`)
	must(t, store.Delete(t.Context(), "work"))
	begin()
	gives(call(`{"a":3}`), `did {"a":3}`)
	again := call(`{"a":3}`)
	again.Again = true
	asks := tool.AnnotationsOf(one).Inquirer
	if res, fate, err := asks.Inquire(t.Context(), again); err != nil || fate != tool.FateDone || res.Text != `did {"a":3}` {
		t.Errorf("%q, %v, %v", res.Text, fate, err)
	}
	again.Number = 2
	hash, err := put(t.Context(), blobs, "work", keptResult{Text: []byte("earlier")})
	must(t, err)
	known.known["antiphon/work#2"] = knownRun{hash: hash}
	if res, fate, err := asks.Inquire(t.Context(), again); err != nil || fate != tool.FateDone || res.Text != "earlier" {
		t.Errorf("%q, %v, %v", res.Text, fate, err)
	}
	again.Session = "gone"
	if _, err := one.Run(t.Context(), again); err == nil || !strings.Contains(err.Error(), "was not started") {
		t.Errorf("a call of no session: %v", err)
	}
}

// Results keep what they have on their way through a blob.
func TestKept(t *testing.T) {
	picture := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("picture"))
	res := tool.Result{Text: "bytes \xff", Long: strings.NewReader(" and more"), Parts: []item.Part{&item.InputImage{ImageURL: picture}}, Error: "half"}
	store := new(session.Memory)
	s, err := session.Open(t.Context(), store, "s")
	must(t, err)
	_, err = s.Append(t.Context(), session.InputItem{Item: item.User("go")})
	must(t, err)
	hash, err := put(t.Context(), store, "s", keep(res, errors.New("broken")))
	must(t, err)
	var k keptResult
	must(t, get(t.Context(), store, hash, &k))
	got, err := k.result()
	if err == nil || err.Error() != "broken" || got.Text != "bytes \xff and more" || got.Error != "half" || len(got.Parts) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if image, ok := got.Parts[0].(*item.InputImage); !ok || image.ImageURL != picture {
		t.Errorf("%#v", got.Parts[0])
	}
	if err := get(t.Context(), store, "00", &k); err == nil {
		t.Error("what is no hash is read")
	}
}

func TestRemoteRefuses(t *testing.T) {
	e := &Engine{Store: new(session.Memory)}
	sub, err := agent.AsTool("sub", "A subagent.", &agent.Agent{Model: agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply { return agenttest.Completed() })})
	must(t, err)
	for want, f := range map[string]func() (tool.Tool, error){
		"a subagent runs where its parent runs": func() (tool.Tool, error) { return e.Remote(sub, "q") },
		"name the task queue":                   func() (tool.Tool, error) { return e.Remote(far(nil), "") },
		"is asked again until its result":       func() (tool.Tool, error) { return e.Remote(far(nil, tool.Polling()), "q") },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What cannot be kept for the run is a failure that says so, and not left out.
func TestRemoteResultNotKept(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		res tool.Result
		err error
	}{
		"called again later":      {err: fmt.Errorf("wait: %w", &tool.NotYet{Reason: "the build"})},
		"page":                    {res: tool.Result{Text: "x", Page: &output.Page{}}},
		"definitions of tools":    {res: tool.Result{Text: "x", Found: []item.Tool{&item.FunctionTool{Name: "f"}}}},
		"results of a shell_call": {res: tool.Result{Text: "x", Commands: []item.ShellOutput{{Stdout: "x"}}}},
	} {
		kept := keep(c.res, c.err)
		if _, err := kept.result(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "remote") {
			t.Errorf("%s: %v", want, err)
		}
	}
	kept := keep(tool.Result{Text: "fine"}, nil)
	if res, err := kept.result(); err != nil || res.Text != "fine" {
		t.Errorf("%+v, %v", res, err)
	}
}
