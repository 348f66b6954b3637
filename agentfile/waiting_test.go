// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// waitingAgent is the file's agent with a tool that asks and one that does not.
func waitingAgent(t *testing.T, path, out string, srv *agenttest.Server, ran map[string]int) (*agent.Agent, *session.Session) {
	t.Helper()
	f, s := open(t, path, out)
	a := f.Agent(srv.Client())
	a.Request.Model = "m"
	a.Policy = agent.Policy{Pause: true}
	var mu sync.Mutex
	act := func(name string, opts ...tool.Option) tool.Tool {
		return tool.Must(name, "Acts.", func(context.Context, struct{}) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[name]++
			return name + " is done", nil
		}, opts...)
	}
	a.Tools = []tool.Tool{act("write"), act("look", tool.ReadOnly())}
	return a, s
}

func waitingServer(t *testing.T) *agenttest.Server {
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply {
		if strings.Contains(string(r.Body), `"call_2"`) {
			return agenttest.Completed(item.Assistant("Done."))
		}
		return agenttest.Completed(item.Call("call_1", "look", "{}"), item.Call("call_2", "write", "{}"), item.Call("call_3", "write", "{}"))
	})
	return srv
}

// TestTranscriptWaits proves that calls which wait for an approval are answered
// in another process that knows the transcript alone, under the same numbers. L7
// M9
func TestTranscriptWaits(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	srv := waitingServer(t)
	ran := map[string]int{}
	a, s := waitingAgent(t, path, out, srv, ran)
	res, err := a.Run(t.Context(), s)
	if err != nil || res.Why != agent.StopApprovalPending || len(res.Pending) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	size := len(read(t, out))
	for range 2 { // asked again, and not written again
		a, s = waitingAgent(t, path, out, srv, ran)
		if again, err := a.Run(t.Context(), s); err != nil || again.Why != agent.StopApprovalPending || len(srv.Requests()) != 1 {
			t.Fatalf("%+v, %v", again, err)
		}
		if now := len(read(t, out)); now != size {
			t.Fatalf("the transcript grew by %d bytes:\n%s", now-size, read(t, out))
		}
	}
	a, s = waitingAgent(t, path, out, srv, ran)
	wanted, err := agent.PendingApprovals(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range wanted {
		p.Reason, p.Rules = res.Pending[i].Reason, res.Pending[i].Rules
		if diff := cmp.Diff(res.Pending[i], p); diff != "" {
			t.Errorf("(-live +read back):\n%s", diff)
		}
	}
	if len(wanted) != 2 {
		t.Fatalf("%d calls wait:\n%s", len(wanted), read(t, out))
	}
	yes, no := wanted[0], wanted[1]
	err = agent.Decide(t.Context(), s, agent.Decision{Number: yes.Number, CallID: yes.CallID, Allow: true}, agent.Decision{Number: no.Number, CallID: no.CallID})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := a.Run(t.Context(), s); err != nil || res.Text != "Done." {
		t.Fatalf("%+v, %v", res, err)
	}
	if diff := cmp.Diff(map[string]int{"look": 1, "write": 1}, ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	_, s = open(t, path, out)
	if left, err := agent.PendingApprovals(t.Context(), s); err != nil || len(left) > 0 {
		t.Errorf("still wanted: %v, %v", left, err)
	}
}

// TestTranscriptWaitsNoMore proves that a call that waited and was started may
// have run, wherever a crash cut the transcript off. J1 M9
func TestTranscriptWaitsNoMore(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: cuts a transcript at every place")
	}
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	srv := waitingServer(t)
	a, s := waitingAgent(t, path, out, srv, map[string]int{})
	if _, err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	waits := len(read(t, out))
	if err := agent.Decide(t.Context(), s, agent.Decision{CallID: "call_2", Allow: true}, agent.Decision{CallID: "call_3"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	text := read(t, out)
	const started = `<call tool_call_id="call_2" state="started"/>`
	begun := strings.Index(text, started)
	if begun < 0 {
		t.Fatalf("the start is not told:\n%s", text)
	}
	for cut := waits; cut <= len(text); cut++ {
		if err := os.WriteFile(out, []byte(text[:cut]), 0o644); err != nil {
			t.Fatal(err)
		}
		ran := map[string]int{}
		a, s := waitingAgent(t, path, out, srv, ran)
		a.Policy = agent.Policy{Allow: []string{"*"}}
		if _, err := a.Run(t.Context(), s, item.User("go on")); err != nil {
			t.Fatalf("cut at %d: %v\n%s", cut, err, read(t, out))
		}
		if cut >= begun+len(started) && ran["write"] > 1 {
			t.Fatalf("cut at %d: it is run again\n%s", cut, text[:cut])
		}
		if cut == waits && ran["write"] != 2 {
			t.Errorf("cut at %d: ran %v", cut, ran)
		}
	}
}

// TestTranscriptForkCannotWait proves that a transcript, which keeps no forks, has
// none of their calls wait: the fork is told at once, and what is read back later
// has its answer. L7 L8 A4
func TestTranscriptForkCannotWait(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply {
		body := string(r.Body)
		fork := strings.Contains(body, "You are the fork")
		switch {
		case fork && !strings.Contains(body, "cannot wait for one here"):
			return agenttest.Completed(item.Call("call_2", "write", "{}"))
		case fork:
			return agenttest.Completed(item.Assistant("I was not allowed to."))
		case !strings.Contains(body, `"call_1"`):
			return agenttest.Completed(item.Call("call_1", "fork", `{"command":"write it"}`))
		}
		return agenttest.Completed(item.Assistant("Done."))
	})
	ran := map[string]int{}
	a, s := waitingAgent(t, path, out, srv, ran)
	a.Tools = append(a.Tools, agent.ForkTool())
	res, err := a.Run(t.Context(), s)
	if err != nil || res.Text != "Done." || len(res.Pending) > 0 || len(ran) > 0 {
		t.Fatalf("%+v, %v, ran %v", res, err, ran)
	}
	if text := read(t, out); !strings.Contains(text, "I was not allowed to.") || strings.Contains(text, `state="waiting"`) {
		t.Errorf("the transcript:\n%s", text)
	}
}
