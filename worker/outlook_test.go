// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// waits returns what work waits for, and in how many seconds that may be over.
func (s *shared) waits(id string) (text string, next float64) {
	s.Helper()
	o, err := worker.Look(s.Context(), s.kept)
	if err != nil {
		s.Fatal(err)
	}
	now := time.Now()
	text, at := o.Waits(s.state(id), now)
	if !at.IsZero() {
		next = at.Sub(now).Round(time.Hour).Seconds()
	}
	return text, next
}

// Work that an endpoint keeps from beginning says so: a worker has told which endpoint its agent has.
func TestWaitsForEndpoint(t *testing.T) {
	s := newShared(t)
	if err := s.limits.Slow(t.Context(), s.server.URL, 10*time.Hour); err != nil {
		t.Fatal(err)
	}
	end := s.runs(s.a)
	defer end()
	id := s.leave("one", "hello")
	const known = "waits for its endpoint "
	text, next := s.waits(id)
	for looks := 0; looks < 10_000 && !strings.HasPrefix(text, known); looks++ {
		time.Sleep(time.Millisecond)
		text, next = s.waits(id)
	}
	if !strings.HasPrefix(text, known+s.server.URL+", which asked to wait for another ") || next != 36_000 {
		t.Errorf("%q in %v", text, next)
	}
	if err := s.limits.Stop(t.Context(), s.server.URL, "too dear"); err != nil {
		t.Fatal(err)
	}
	if text, next := s.waits(id); text != known+s.server.URL+", which was stopped: too dear" || next != 0 {
		t.Errorf("%q in %v", text, next)
	}
	o, err := worker.Look(t.Context(), s.kept)
	if err != nil {
		t.Fatal(err)
	}
	o.Brief = true
	if text, _ := o.Waits(s.state(id), time.Now()); text != known[:len(known)-1]+", which takes no run now" {
		t.Errorf("clients read %q", text)
	}
}

// Work waits for an endpoint or for its tenant only if they keep it from all workers that can do it.
func TestWaitsForNoWorker(t *testing.T) {
	s := newShared(t)
	const url = "http://small.example/v1"
	if err := s.limits.Stop(t.Context(), url, "too dear"); err != nil {
		t.Fatal(err)
	}
	job := s.job("one", "hello")
	job.Config.Store, job.Config.Session, job.Tenant = s.kept, "one", "anna"
	id := s.submit(job).Session.ID
	job.Config.Session, job.Key = "two", "two"
	two := s.submit(job).Session.ID
	agent := s.state(id).Agent
	if text, _ := s.waits(id); text != "waits for a worker" {
		t.Errorf("without workers: %q", text)
	}
	s.enters("stopped", fmt.Sprintf(`{"agents":[%q],"tenants":null,"endpoints":{%q:%q}}`, agent, agent, url), time.Hour)
	if text, _ := s.waits(id); text != "waits for its endpoint "+url+", which was stopped: too dear" {
		t.Errorf("with a worker of a stopped endpoint: %q", text)
	}
	s.enters("other", `{"agents":["another"],"tenants":null}`, time.Hour)
	s.enters("capped", fmt.Sprintf(`{"name":"capped","agents":[%q],"tenants":["anna"],"caps":{"anna":1}}`, agent), time.Hour)
	if text, _ := s.waits(id); text != "waits for a worker" {
		t.Errorf("with a worker that may begin it: %q", text)
	}
	if _, err := s.queue.Begin(t.Context(), s.state(two), "capped"); err != nil {
		t.Fatal(err)
	}
	s.enters("stopped", `{}`, time.Hour)
	if text, _ := s.waits(id); text != "waits for a run of the tenant anna to end, of which 1 may be under way at once" {
		t.Errorf("at the cap of its tenant: %q", text)
	}
	if text, _ := s.waits(two); text != "runs at capped" {
		t.Errorf("what runs: %q", text)
	}
	s.enters("capped", `{"name":"capped","ended":true}`, time.Hour)
	if text, _ := s.waits(two); text != "waits for a worker: capped, which ran it, is gone" {
		t.Errorf("what ran at a worker that was killed: %q", text)
	}
	if err := s.queue.Move(t.Context(), s.state(two), queue.Parked, "later"); err != nil {
		t.Fatal(err)
	}
	if text, _ := s.waits(id); text != "waits for a worker" {
		t.Errorf("when the other has ended: %q", text)
	}
}
