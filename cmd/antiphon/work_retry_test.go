// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// fill puts a row into each state: parked by hand, by a drain and because its endpoint was
// stopped; ready, running, waiting and done. Their sessions have these names.
func (s *toldStore) fill(t *testing.T, url string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, tenant := range map[string]string{"hand": "anna", "drained": "ben", "stopped": "carl", "ready": "anna", "ready2": "ben", "running": "ben", "waiting": "anna", "done": "anna"} {
		must(s.Create(t.Context(), session.Info{ID: id, Path: "/agent.md"}))
		must(s.Enqueue(t.Context(), queue.Work{Session: id, Agent: "0123456789 of " + id, Tenant: tenant}))
		w, err := s.Work(t.Context(), id)
		must(err)
		if parked := map[string]string{"hand": "by hand", "drained": drainedBy + "anna", "stopped": stoppedEndpoint(url) + ": too dear"}[id]; parked != "" {
			must(s.Store.Move(t.Context(), w, queue.Parked, parked))
		}
		if !slices.Contains([]string{"running", "waiting", "done"}, id) {
			continue
		}
		w, err = s.Begin(t.Context(), w, "worker")
		must(err)
		if id != "running" {
			must(s.Finish(t.Context(), w, queue.Outcome{State: queue.State(id), Reason: "it is " + id}))
		}
	}
	must(s.Store.Stop(t.Context(), url, "too dear"))
}

// in returns the sessions whose work is in a state.
func (s *toldStore) in(t *testing.T, state queue.State) (ids []string) {
	t.Helper()
	for w, err := range s.Works(t.Context(), state) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, w.Session)
	}
	return ids
}

// Each flag of antiphon work retry makes ready what it names, and nothing else.
func TestRetryFlags(t *testing.T) {
	const url = "http://localhost:1/v1"
	for name, tt := range map[string]struct {
		args    []string
		want    []string // become ready
		stopped bool     // the endpoint stays so
	}{
		"what drain parked":   {[]string{"--drained"}, []string{"drained"}, true},
		"all":                 {[]string{"--all"}, []string{"drained", "hand", "stopped"}, true},
		"a tenant":            {[]string{"--tenant", "anna"}, []string{"hand"}, true},
		"drained of anna":     {[]string{"--tenant", "anna", "--drained"}, nil, true},
		"drained of ben":      {[]string{"--tenant", "ben", "--drained"}, []string{"drained"}, true},
		"an endpoint":         {[]string{"--endpoint", url}, []string{"stopped"}, false},
		"the hash":            {[]string{"--agent", "0123456789 of hand"}, []string{"hand"}, true},
		"another hash":        {[]string{"--agent", "0123456789 of nobody"}, nil, true},
		"a hash that runs":    {[]string{"--agent", "0123456789 of running"}, nil, true},
		"a file that is gone": {[]string{"--agent", "/agent.md"}, []string{"drained", "hand", "stopped"}, true},
		"another file":        {[]string{"--agent", "/agents.md"}, nil, true},
		"a session":           {[]string{"hand"}, []string{"hand"}, true},
		"what is not parked":  {[]string{"waiting", "done"}, []string{"done", "waiting"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newToldStore(t)
			s.fill(t, url)
			before := s.in(t, queue.Ready)
			o := program(t, append([]string{"work", "--store", s.Place(), "retry"}, tt.args...)...)
			code := exitOK
			if strings.HasPrefix(name, "another ") { // the name may be wrong
				code = exitUsage
			}
			if o.code != code || code != exitOK && !strings.Contains(o.err, "there is no such file here") {
				t.Fatalf("exit status %d, want %d: %s", o.code, code, o.err)
			}
			got := slices.DeleteFunc(s.in(t, queue.Ready), func(id string) bool { return slices.Contains(before, id) })
			if !slices.Equal(got, tt.want) {
				t.Errorf("ready are %q, want %q\n%s", got, tt.want, o.out)
			}
			if got := s.in(t, queue.Running); !slices.Equal(got, []string{"running"}) {
				t.Errorf("running are %q", got)
			}
			list, err := s.Endpoints(t.Context())
			if err != nil || len(list) != 1 || (list[0].Stopped != "") != tt.stopped {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// antiphon work retry --endpoint also tries what failed there and is to be tried later, and leaves other work its time.
func TestRetryAfterThePauseOfAnEndpoint(t *testing.T) {
	const url = "http://localhost:1/v1"
	s := newToldStore(t)
	later := time.Now().Add(time.Hour)
	for id, at := range map[string]string{"failed": url, "elsewhere": "http://localhost:2/v1", "later": ""} {
		if err := s.Create(t.Context(), session.Info{ID: id, Path: "/agent.md"}); err != nil {
			t.Fatal(err)
		}
		w := queue.Work{Session: id, Agent: "x", Tenant: "anna"}
		if at == "" {
			w.Due = later
		}
		err := s.Enqueue(t.Context(), w)
		if err == nil && at != "" {
			if w, err = s.Work(t.Context(), id); err == nil {
				w.Endpoint = at
				if w, err = s.Begin(t.Context(), w, "worker"); err == nil {
					err = s.Finish(t.Context(), w, queue.Outcome{State: queue.Ready, Due: later, Reason: "429 Too Many Requests"})
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if o := program(t, "work", "--store", s.Place(), "retry", "--endpoint", url, "--tenant", "anna"); o.code != exitOK || o.out != "1 session: ready\n" {
		t.Errorf("exit status %d: %s%s", o.code, o.out, o.err)
	}
	for id, waits := range map[string]bool{"failed": false, "elsewhere": true, "later": true} {
		if w, err := s.Work(t.Context(), id); err != nil || time.Now().Before(w.Due) != waits {
			t.Errorf("%s: %+v, %v", id, w, err)
		}
	}
}

// antiphon work drain parks what is ready and nothing else, and returns when nothing runs any
// more, or says what does.
func TestDrainWaitsForWhatRuns(t *testing.T) {
	drain := func(s *toldStore, c workDrainCommand) error {
		var out bytes.Buffer
		all := new(workCommand).sessions()
		all.hide = environment{}.Hider()
		return c.drain(t.Context(), stdio{strings.NewReader(""), &out, &out}, s, all)
	}
	const url = "http://localhost:1/v1"
	s := newToldStore(t)
	s.fill(t, url)
	if err := drain(s, workDrainCommand{Wait: time.Nanosecond}); err == nil || !strings.Contains(err.Error(), "1 session still run") {
		t.Errorf("one runs: %v", err)
	}
	for state, want := range map[queue.State][]string{queue.Ready: nil, queue.Waiting: {"waiting"}, queue.Done: {"done"}, queue.Running: {"running"}, queue.Parked: {"drained", "hand", "ready", "ready2", "stopped"}} {
		if got := s.in(t, state); !slices.Equal(got, want) {
			t.Errorf("%s are %q, want %q", state, got, want)
		}
	}

	s = newToldStore(t)
	s.fill(t, url)
	if err := drain(s, workDrainCommand{Tenant: "anna", Wait: time.Minute}); err != nil { // what runs is another's
		t.Error(err)
	}
	if got := s.in(t, queue.Ready); !slices.Equal(got, []string{"ready2"}) {
		t.Errorf("of another tenant, ready are %q", got)
	}

	run, err := s.Work(t.Context(), "running")
	if err != nil {
		t.Fatal(err)
	}
	ctx, ended := context.WithCancel(t.Context())
	go func() {
		defer ended()
		if err := drain(s, workDrainCommand{Wait: time.Hour}); err != nil {
			t.Error(err)
		}
		if now, err := s.Work(t.Context(), "running"); err != nil || now.State != queue.Done {
			t.Errorf("it did not wait: %+v, %v", now, err)
		}
	}()
	for len(s.in(t, queue.Ready)) > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := s.Finish(t.Context(), run, queue.Outcome{State: queue.Done, Well: true}); err != nil {
		t.Error(err)
	}
	<-ctx.Done()
}
