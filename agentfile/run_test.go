// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// slowTools are a tool that is done at once, one that says that it runs and
// then waits for its context, and one that comes after it.
func slowTools(running chan<- struct{}) []tool.Tool {
	return []tool.Tool{
		tool.Must("quick", "Is done at once.", func(context.Context, struct{}) (string, error) { return "quick is done", nil }, tool.ReadOnly()),
		tool.Must("slow", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
			running <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}, tool.ReadOnly()),
		tool.Must("after", "Is never reached.", func(context.Context, struct{}) (string, error) { return "after is done", nil }, tool.ReadOnly(), tool.Exclusive()),
	}
}

func calls() agenttest.Reply {
	return agenttest.Completed(item.Assistant("I work."), item.Call("call_1", "quick", "{}"), item.Call("call_2", "slow", "{}"), item.Call("call_3", "after", "{}"))
}

// TestInterruptTool proves that a cancel in the middle of a tool leaves a
// transcript in which every call has an output that says what is known of it,
// and that the next run goes on from there. L6 P1 P2 T15
func TestInterruptTool(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	srv := agenttest.NewServer(t, calls(), agenttest.Completed(item.Assistant("Done.")))
	f, s := open(t, path, out)
	running := make(chan struct{}, 1)
	a := f.Agent(srv.Client())
	a.Request.Model = "m"
	a.Tools = slowTools(running)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var why agent.StopReason
	var known agent.KnownCalls
	var err error
	for ev, failure := range a.Stream(ctx, s) {
		if e, ok := ev.(agent.Recorded); ok {
			call := known.Add(e.Entry)
			switch b := e.Body.(type) {
			case session.CallOutput:
				if call != nil && call.Tool == "quick" {
					<-running
					cancel()
				}
			case session.Stopped:
				why = agent.StopReason(b.Why)
			}
		}
		err = failure
	}
	if !errors.Is(err, context.Canceled) || why != agent.StopCancelled {
		t.Fatalf("%q %v", why, err)
	}
	text := read(t, out)
	for _, want := range []string{"I work.", "quick is done", `<tool_response tool_call_id="call_2"`, "The call was not started"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "after is done") {
		t.Error("a tool was started after the cancel")
	}

	f, s = open(t, path, out)
	a = f.Agent(srv.Client())
	a.Request.Model = "m"
	if res, err := a.Run(t.Context(), s); err != nil || res.Text != "Done." {
		t.Fatalf("%+v %v", res, err)
	}
	pairs(t, srv, 1)
}

// pairs checks that request n pairs, and returns it.
func pairs(t *testing.T, srv *agenttest.Server, n int) string {
	t.Helper()
	r := srv.Requests()[n]
	var items []item.Item
	for _, it := range r.Parse(t).Input.All() {
		items = append(items, it)
	}
	if err := agenttest.CheckPairing(items...); err != nil {
		t.Errorf("%v\n%s", err, r.Body)
	}
	return string(r.Body)
}

var errDead = errors.New("dead")

// dying is a store that takes so many appends and then none.
type dying struct {
	session.Store
	left int
}

func (d *dying) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if d.left--; d.left < 0 {
		return errDead
	}
	return d.Store.Append(ctx, id, after, entries)
}

// TestCrashAnywhere proves that wherever a run dies, the next one on the same
// transcript sends a request that pairs and holds all that was written, and
// that a call without an output is reported as of unknown outcome if it was
// started, and only then. A reply that was cut behind its message is asked for
// again. J1 M9 P1 P2
func TestCrashAnywhere(t *testing.T) {
	dir := t.TempDir()
	path := write(t, prompt, dir, "agent.md")
	died := true
	for n := 0; died; n++ {
		out := filepath.Join(t.TempDir(), "talk.md")
		f, store, err := agentfile.OpenTranscript(t.Context(), path, out, agentfile.Options{Consent: trust.Everything})
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(t.Context(), &dying{store, n}, out)
		if err != nil {
			t.Fatal(err)
		}
		reply := calls()
		srv := agenttest.NewServer(t, reply, agenttest.Completed(item.Assistant("The end.")))
		a := f.Agent(srv.Client())
		a.Request.Model = "m"
		running := make(chan struct{}, 1)
		a.Tools = slowTools(running)
		a.Tools[1] = tool.Must("slow", "Is quick for once.", func(context.Context, struct{}) (string, error) { return "slow is done", nil }, tool.ReadOnly())
		_, err = a.Run(t.Context(), s)
		died = errors.Is(err, errDead)
		if err != nil && !died {
			t.Fatal(err)
		}
		f.Close()
		srv.Close()

		text := ""
		if n > 0 && !died || n > 1 {
			text = read(t, out)
		}
		f, s = open(t, path, out)
		input := nextRequest(t, f, s)
		if input == nil && strings.Count(text, `<turn_end number="2" status="completed"`) == 0 {
			t.Errorf("after %d appends there is nothing to ask:\n%s", n, text)
		}
		outputs := map[string]string{}
		for _, it := range input {
			if it.IsOutput() {
				outputs[it.CallID()] = it.JSON()
			}
		}
		for id, done := range map[string]string{"call_1": "quick is done", "call_2": "slow is done", "call_3": "after is done"} {
			if input == nil || strings.Contains(text, done) {
				continue
			}
			started := strings.Contains(text, `<call tool_call_id="`+id+`" state="started"`)
			if unknown := strings.Contains(outputs[id], "Whether it took effect is not known"); unknown != started {
				t.Errorf("after %d appends, %s: started %v, %q", n, id, started, outputs[id])
			}
		}
	}
}
