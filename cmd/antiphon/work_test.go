// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// stalling is an endpoint that answers with replies. An empty one never comes: reached
// gets a value when it is asked for.
func stalling(t *testing.T, replies ...[]item.Item) (url string, reached chan struct{}) {
	reached = make(chan struct{}, len(replies))
	over := make(chan struct{})
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		if i >= len(replies) {
			t.Errorf("request %d is one too many", i)
			return
		}
		if len(replies[i]) == 0 {
			reached <- struct{}{}
			<-over // until then, as a server that has hung
			return
		}
		agenttest.Wrap(http.NotFoundHandler(), func(int, agenttest.Request, agenttest.Reply) agenttest.Reply {
			return agenttest.Completed(replies[i]...)
		}).ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	return server.URL, reached
}

// Workers are killed and told to end in the middle of a conversation, and others go
// on: nothing is lost, and no call that finished runs again.
func TestWorkersDie(t *testing.T) {
	workersDie(t, filepath.Join(t.TempDir(), "s.db"))
}

// The same on a real server, where a killed worker leaves a lease behind.
func TestWorkersDieOnPostgres(t *testing.T) { workersDie(t, postgresStore(t)) }

func workersDie(t *testing.T, store string) {
	dir := t.TempDir()
	agents := filepath.Join(dir, "agents")
	t.Chdir(dir)
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(agents, "agent.md"), "<tool name=\"append_to_file\" approval=\"allow\"/>\n")
	calls := func(id, text string) []item.Item {
		return []item.Item{item.Call(id, "append_to_file", `{"path":"notes.txt","content":"`+text+`\n"}`)}
	}
	url, reached := stalling(t, calls("call_1", "one"), nil, calls("call_2", "two"), nil, calls("call_3", "three"), nil, []item.Item{item.Assistant("Done.")})
	defer program(t, "sessions", "--store", store, "rm", "--force", "talk")
	if o := program(t, "work", "submit", file, "talk", "Count", "--store", store); o.code != 0 {
		t.Fatal(o.err)
	}
	worker := []string{"work", "--store", store, "--agents", agents, "--trust", "--base-url", url, "--model", "m", "--json", "--drain-time", "1ms"}
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		p := start(t, nil, worker...)
		select {
		case <-reached:
		case <-time.After(15 * time.Second):
			p.signal(t, syscall.SIGKILL)
			_, rest := p.wait(t)
			t.Fatalf("the endpoint is not asked\n%s%s", rest, p.err.String())
		}
		p.signal(t, end)
		if code, rest := p.wait(t); code > 0 || end == syscall.SIGTERM && !strings.Contains(rest, "given back") {
			t.Errorf("%v: exit code %d\n%s%s", end, code, rest, p.err.String())
		}
	}
	if o := program(t, append(worker, "--once")...); o.code != 0 || !strings.Contains(o.out, `"state":"done"`) {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if text := read(t, filepath.Join(dir, "notes.txt")); text != "one\ntwo\nthree\n" {
		t.Errorf("the tool wrote %q", text)
	}
	o := program(t, "sessions", "export", "talk", "--store", store, "--to", "jsonl")
	for part, want := range map[string]int{`"kind":"call_started"`: 3, `"kind":"answered"`: 3, `"text":"Count"`: 1, `"text":"Done."`: 1, `"kind":"delivered"`: 1} {
		if n := strings.Count(o.out, part); n != want {
			t.Errorf("%s: %d times, want %d\n%s", part, n, want, o.out)
		}
	}
}

// J12: what is left for workers names the account of the person, as what is said by sessions
// commands does.
func TestWorkNamesTheAccount(t *testing.T) {
	dir := t.TempDir()
	store, agents := filepath.Join(dir, "s.db"), filepath.Join(dir, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(agents, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n")
	write(t, filepath.Join(agents, "agent.script"), "turn\n  say Yes.\nagain\nturn\n  say Yes again.\n")
	for _, args := range [][]string{
		{"work", "submit", file, "talk", "Hello"}, {"sessions", "say", "talk", "And more"}, {"work", "schedule", "add", "yearly", "@yearly", file, "Hello"}, {"work", "--agents", agents, "--once"},
	} {
		if o := program(t, append(args, "--store", store)...); o.code != 0 {
			t.Fatal(o.err)
		}
	}
	by := `"by":"` + accountName() + `"`
	if o := program(t, "sessions", "export", "talk", "--store", store, "--to", "jsonl"); strings.Count(o.out, by) != 2 {
		t.Errorf("the log: %s", o.out)
	}
	if o := program(t, "work", "schedule", "list", "--json", "--store", store); !strings.Contains(strings.ReplaceAll(o.out, " ", ""), by) {
		t.Errorf("the schedules: %s", o.out)
	}
}
