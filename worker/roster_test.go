// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/worker"
)

// runs starts a worker that looks often, until end is called.
func (s *shared) runs(w *worker.Worker) (end func()) {
	w.Poll, w.Patience = 2*time.Millisecond, time.Hour
	ctx, stop := context.WithCancel(s.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := w.Run(ctx); err != nil {
			s.Error(err)
		}
	})
	return func() {
		stop()
		ended.Wait()
	}
}

// becomes waits until work is in a state, and checks that the reason contains a text. It looks again when the store says
// that work has changed, and now and then: time may change it, too. Work that does not change fails the test.
func (s *shared) becomes(id string, state queue.State, reason string) {
	s.Helper()
	changed := make(chan struct{}, 1)
	defer s.queue.Awaited(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for looks := 0; s.state(id).State != state; looks++ {
		if looks == 10_000 {
			s.Fatalf("it does not become %s: %+v", state, s.state(id))
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		}
	}
	if w := s.state(id); !strings.Contains(w.Reason, reason) {
		s.Errorf("%s because %q, want %q", w.State, w.Reason, reason)
	}
}

// enters tells that a worker with a card runs, or ended long ago.
func (s *shared) enters(name, card string, lasts time.Duration) {
	s.Helper()
	if err := s.kept.(queue.Roster).Enter(s.Context(), queue.Present{ID: name, Data: []byte(card)}, lasts); err != nil {
		s.Fatal(err)
	}
}

// Work that no worker that runs can do is parked at once, with what is missing, and also if it
// was begun and its machine is lost. Work that another one can do is left to it for as long as
// that runs.
func TestWorkThatNobodyCanDo(t *testing.T) {
	s := newShared(t)
	submit := func(name string, needs []string, place *worker.Place) string {
		t.Helper()
		j := s.job(name, "hello")
		j.Config.Store, j.Config.Session, j.Needs, j.Place = s.kept, name, needs, place
		return s.submit(j).Session.ID
	}
	agent := s.state(submit("first", []string{"nowhere"}, nil)).Agent
	card := func(more string) string {
		return `{"name":"far","agents":["` + agent + `"],"tenants":null,` + more + `}`
	}
	s.enters("far", card(`"host":"h9","labels":["gpu"],"folders":["/srv"]`), time.Hour)
	s.enters("strange", "not a card", time.Hour)

	remote := submit("remote", []string{"gpu"}, nil)
	there := submit("there", nil, &worker.Place{Host: "h9", Folder: "/srv/work"})
	defer s.runs(s.a)()
	none := submit("none", []string{"gpu", "printer"}, nil)
	s.becomes(none, queue.Parked, "needs a worker with the labels gpu, printer")
	s.becomes(submit("elsewhere", nil, &worker.Place{Host: "h8", Folder: "/srv/work"}), queue.Parked, "on the host h8")
	s.becomes(submit("outside", nil, &worker.Place{Host: "h9", Folder: "/etc"}), queue.Parked, "on the host h9")
	for _, id := range []string{remote, there} {
		if w := s.state(id); w.State != queue.Ready {
			t.Errorf("%+v", w)
		}
	}
	begun, err := s.queue.Begin(t.Context(), s.state(remote), "far")
	if err != nil {
		t.Fatal(err)
	}
	s.enters("far", card(`"host":"h9"`), -time.Second)
	s.becomes(remote, queue.Parked, "needs a worker with the labels gpu; it was begun by far, which died or was cut off")
	s.becomes(there, queue.Parked, "on the host h9")
	if got := s.state(remote); got.Claim != begun.Claim {
		t.Errorf("%+v", got)
	}
	s.enters("other", `{"name":"other","agents":["`+agent+`"],"tenants":["ann"],"labels":["gpu"]}`, time.Hour)
	s.enters("third", `{"name":"third","agents":["x"],"tenants":null,"labels":["gpu"]}`, time.Hour)
	s.becomes(submit("of others", []string{"gpu"}, nil), queue.Parked, "labels gpu")
}

// Work of a tenant whose work no worker does is parked, and goes on when one does it.
func TestTenantThatNobodyServes(t *testing.T) {
	s := newShared(t, agenttest.Completed(item.Assistant("Hello.")))
	s.a.Tenants = []string{"anna"}
	defer s.runs(s.a)()
	j := s.job("ben", "hello")
	j.Config.Store, j.Config.Session, j.Tenant = s.kept, "ben", "ben"
	id := s.submit(j).Session.ID
	s.becomes(id, queue.Parked, "needs a worker for the tenant ben")
	s.b.Tenants = []string{"ben"}
	defer s.runs(s.b)()
	s.becomes(id, queue.Done, "answered")
}

// A worker whose places are all taken parks what nobody can do all the same.
func TestFullWorkerLooksAfterWork(t *testing.T) {
	s := newShared(t)
	answer := make(chan struct{})
	answered := sync.OnceFunc(func() { close(answer) })
	s.server.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		<-answer
		return agenttest.Completed(item.Assistant("Hello."))
	})
	id := s.leave("long", "hello")
	s.a.Runs = 1
	defer s.runs(s.a)()
	defer answered() // also if the test fails: the server and the worker wait for it
	s.becomes(id, queue.Running, "")
	j := s.job("none", "hello")
	j.Config.Store, j.Config.Session, j.Needs = s.kept, "none", []string{"printer"}
	s.becomes(s.submit(j).Session.ID, queue.Parked, "labels printer")
	s.becomes(id, queue.Running, "")
	answered()
	s.becomes(id, queue.Done, "answered")
}

// A worker says what it has by itself: a key is a label, and an agent whose model has no
// endpoint here is left to those that have one.
func TestKeysAreLabels(t *testing.T) {
	hello := agenttest.Completed(item.Assistant("Hello."))
	s := newShared(t, hello, hello)
	keyed := func(w *worker.Worker, key string) {
		w.Config.Endpoint.BaseURL = ""
		w.Config.Environment = host.Environment{}
		if key != "" {
			w.Config.Environment = w.Config.Environment.WithKey(s.server.URL, endpoint.NewKey(key))
			w.Config.Endpoint.BaseURL = s.server.URL
		}
	}
	keyed(s.a, "")
	keyed(s.b, "secret")
	id := s.leave("ann", "hello")
	j := s.job("ben", "hello")
	j.Config.Store, j.Config.Session, j.Needs = s.kept, "ben", []string{"key=" + s.server.URL}
	other := s.submit(j).Session.ID
	defer s.runs(s.a)()
	s.becomes(id, queue.Parked, `needs a worker with an endpoint for it; here, no endpoint is configured for the model "m", which `+filepath.Base(s.file)+` names`)
	s.becomes(other, queue.Parked, "needs a worker with the labels key="+s.server.URL)
	end := sync.OnceFunc(s.runs(s.b))
	defer end()
	for _, id := range []string{id, other} {
		s.becomes(id, queue.Done, "answered")
	}
	cards, known, err := worker.Running(t.Context(), s.kept)
	if err != nil || !known || len(cards) != 2 {
		t.Fatalf("%+v, %t, %v", cards, known, err)
	}
	if _, known, err := worker.Running(t.Context(), session.Store(s.store)); err != nil || known {
		t.Errorf("a store without a roster: %t, %v", known, err)
	}
	end()
	if cards, _, err = worker.Running(t.Context(), s.kept); err != nil || len(cards) != 1 {
		t.Errorf("a worker has ended: %+v, %v", cards, err)
	}
}

// An agent that names no model is left to workers that have one for it.
func TestModelIsNeeded(t *testing.T) {
	s := newShared(t, agenttest.Completed(item.Assistant("Hello.")))
	file := filepath.Join(filepath.Dir(s.file), "silent.md")
	if err := os.WriteFile(file, []byte("<system>Be brief.</system>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := s.a.Config
	cfg.File, cfg.Trust = file, nil
	for _, w := range []*worker.Worker{s.a, s.b} {
		if _, err := w.Agents.Add(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	s.b.Config.Endpoint.Model = "m"
	j := s.job("ann", "hello")
	j.Config.Store, j.Config.File, j.Config.Session = s.kept, file, "ann"
	id := s.submit(j).Session.ID
	defer s.runs(s.a)()
	s.becomes(id, queue.Parked, "needs a worker with an endpoint for it; here, no model is configured")
	defer s.runs(s.b)()
	s.becomes(id, queue.Done, "answered")
}

// bounded is a store that notes whether a worker that tells it of its end waits for it for ever.
type bounded struct {
	*sqlstore.Store
	ended, ends bool
}

func (b *bounded) Enter(ctx context.Context, w queue.Present, lasts time.Duration) error {
	if strings.Contains(string(w.Data), `"ended":true`) {
		b.ended = true
		_, b.ends = ctx.Deadline()
	}
	return b.Store.Enter(ctx, w, lasts)
}

// A worker that ends does not wait for ever for a store that has hung.
func TestWorkerLeavesInTime(t *testing.T) {
	s := newShared(t, agenttest.Completed(item.Assistant("Hello.")))
	in := &bounded{Store: s.kept.(*sqlstore.Store)}
	s.a.Config.Store = in
	id := s.leave("ann", "hello")
	end := s.runs(s.a)
	s.becomes(id, queue.Done, "answered")
	end()
	if !in.ended || !in.ends {
		t.Errorf("told of its end: %t, with a time limit: %t", in.ended, in.ends)
	}
}
