// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/worker"

	_ "modernc.org/sqlite"
)

// shared is a store with limits, an endpoint, and two workers.
type shared struct {
	*rig
	kept   store.Store
	path   string // of its file
	queue  queue.Queue
	limits queue.Limits
	server *agenttest.Server
	a, b   *worker.Worker
}

func newShared(t *testing.T, answers ...agenttest.Reply) *shared {
	t.Helper()
	r := newRig(t, "<config model=\"m\"/>\n<tool name=\"append_to_file\" approval=\"allow\"/>\n", talk)
	path := filepath.Join(t.TempDir(), "s.db")
	kept, err := store.Open(t.Context(), path, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() }) // the test looked at what it holds
	s := &shared{rig: r, kept: kept, path: path, queue: kept.(queue.Queue), limits: kept.(queue.Limits), server: agenttest.NewServer(t, answers...)}
	s.a, s.b = s.of("a"), s.of("b")
	return s
}

// of returns a worker of the store.
func (s *shared) of(name string) *worker.Worker {
	w := s.another(name)
	w.Config.Store, w.Config.Endpoint.BaseURL = s.kept, s.server.URL
	s.agree(w)
	return w
}

// leave submits work of a session and returns its id.
func (s *shared) leave(name, text string) string {
	s.Helper()
	j := s.job(name, text)
	j.Config.Store, j.Config.Session = s.kept, name
	return s.submit(j).Session.ID
}

func (s *shared) state(id string) queue.Work {
	s.Helper()
	w, err := s.queue.Work(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// An endpoint that asks one worker to wait is left alone by the others, whose work waits.
// Nobody counts that as a failure of theirs.
func TestRetryAfterIsShared(t *testing.T) {
	s := newShared(t, agenttest.Failure(http.StatusTooManyRequests, "rate_limit_exceeded", "slow down").RetryAfter("3600"), agenttest.Completed(item.Assistant("Hello.")))
	one := s.leave("one", "hello")
	s.once(s.a)
	if w := s.state(one); w.State != queue.Ready || !w.Due.After(time.Now().Add(50*time.Minute)) {
		t.Errorf("the first: %+v", w)
	}
	two := s.leave("two", "hello")
	s.once(s.b)
	if w := s.state(two); w.State != queue.Ready || w.Attempts != 0 || w.Claim != 0 {
		t.Errorf("the second began: %+v", w)
	}
	if n := len(s.server.Requests()); n != 1 {
		t.Fatalf("%d requests were sent", n)
	}
	if err := s.limits.Stop(t.Context(), s.server.URL, ""); err != nil {
		t.Fatal(err)
	}
	s.once(s.b)
	if w := s.state(two); w.State != queue.Done || w.Endpoint != s.server.URL {
		t.Errorf("after the pause: %+v", w)
	}
}

// A subagent whose endpoint takes nothing for a time waits for it, as its caller would: its call does
// not fail, and goes on later.
func TestSubagentPauses(t *testing.T) {
	s := newShared(t)
	s.write(filepath.Join(filepath.Dir(s.file), "helper.md"), "<config model=\"m\"/>\n<system>Help.</system>\n")
	s.write(s.file, "<config model=\"m\"/>\n<tool name=\"helper\" agent=\"helper.md\" local description=\"Helps.\" approval=\"allow\"/>\n")
	s.agree(s.a)
	shut := []func() error{
		func() error { return s.limits.Slow(t.Context(), s.server.URL, time.Hour) },
		func() error { return s.limits.Stop(t.Context(), s.server.URL, "too dear") },
	}
	s.server.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		switch n % 3 {
		case 0:
			if err := shut[n/3](); err != nil {
				t.Error(err)
			}
			return agenttest.Completed(item.Call("call_1", "helper", `{"task":"help"}`))
		case 1:
			return agenttest.Completed(item.Assistant("Helped."))
		}
		return agenttest.Completed(item.Assistant("Done."))
	})
	for n, want := range []string{"takes no request for", "was stopped: too dear"} {
		id := s.leave(fmt.Sprint("talk", n), "hello")
		s.once(s.a)
		if w := s.state(id); w.State != queue.Waiting || w.Due.IsZero() || !strings.Contains(w.Reason, want) || len(s.server.Requests()) != 3*n+1 {
			t.Fatalf("%d requests, %+v", len(s.server.Requests()), w)
		}
		err := s.limits.Stop(t.Context(), s.server.URL, "")
		if err == nil {
			err = s.queue.Move(t.Context(), s.state(id), queue.Ready, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		s.once(s.a)
		log, err := session.Open(t.Context(), s.kept, id)
		if err != nil {
			t.Fatal(err)
		}
		outputs := 0
		for e := range log.Entries() {
			if o, ok := e.Body.(session.CallOutput); ok {
				if outputs++; o.Failed {
					t.Errorf("the call failed: %+v", o)
				}
			}
		}
		if w := s.state(id); w.State != queue.Done || outputs != 1 || len(s.server.Requests()) != 3*n+3 {
			t.Fatalf("%d requests, %d outputs, %+v", len(s.server.Requests()), outputs, w)
		}
	}
}

// While an endpoint has as many runs as it may have, work for it is left alone, and keeps nothing else
// from beginning. A run there whose worker died goes on, because it has its place.
func TestFullEndpoint(t *testing.T) {
	s := newShared(t, agenttest.Completed(item.Assistant("Hello.")), agenttest.Completed(item.Assistant("Hello again.")))
	count := &asked{Store: s.kept.(*sqlstore.Store)}
	s.a.Config.Store, s.a.Config.Endpoint.BaseURL, s.a.Runs = count, "", 1
	s.write(s.file, "<config model=\"m\" base_url=\""+s.server.URL+"\"/>\n")
	s.agree(s.a)
	if err := s.limits.Limit(t.Context(), s.server.URL, queue.Caps{Runs: 1}); err != nil {
		t.Fatal(err)
	}
	first, full := s.leave("first", "hello"), s.leave("full", "hello")
	unlock, err := s.kept.(session.Locker).Lock(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	w := s.state(first)
	w.Endpoint = s.server.URL
	if _, err := s.queue.Begin(t.Context(), w, "b"); err != nil {
		t.Fatal(err)
	}
	s.write(s.file, head)
	s.agree(s.a)
	other := s.leave("other", "hello")
	s.once(s.a)
	if w := s.state(other); w.State != queue.Done || count.begun.Load() != 1 || s.state(full).State != queue.Ready {
		t.Errorf("%d were begun; the other: %+v", count.begun.Load(), w)
	}
	if err := unlock(); err != nil { // the worker of the first has died
		t.Fatal(err)
	}
	s.once(s.a)
	for _, id := range []string{first, full} {
		if w := s.state(id); w.State != queue.Done {
			t.Errorf("%+v", w)
		}
	}
}

// A run that is under way sends nothing more once the endpoint has asked another worker to
// wait. It goes on later, and what finished does not run again.
func TestRunPauses(t *testing.T) {
	s := newShared(t)
	s.server.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		if n > 0 {
			return agenttest.Completed(item.Assistant("Noted."))
		}
		if err := s.limits.Slow(t.Context(), s.server.URL, time.Hour); err != nil {
			t.Error(err)
		}
		return agenttest.Completed(item.Call("call_1", "append_to_file", `{"path":"notes.txt","content":"once\n"}`))
	})
	id := s.leave("one", "note it")
	s.once(s.a)
	if w := s.state(id); w.State != queue.Ready || w.Attempts != 0 || !w.Due.After(time.Now().Add(50*time.Minute)) {
		t.Errorf("%+v", w)
	}
	if n := len(s.server.Requests()); n != 1 {
		t.Fatalf("%d requests were sent", n)
	}
	if err := s.limits.Stop(t.Context(), s.server.URL, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.queue.Move(t.Context(), s.state(id), queue.Ready, ""); err != nil {
		t.Fatal(err)
	}
	s.once(s.a)
	if w := s.state(id); w.State != queue.Done || len(s.server.Requests()) != 2 {
		t.Errorf("%d requests, %+v", len(s.server.Requests()), w)
	}
}
