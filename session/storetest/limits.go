// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// limiter is a store with a queue and the limits of endpoints.
type limiter interface {
	keeper
	queue.Limits
}

// endpointOf returns what a store knows about an endpoint.
func endpointOf(t *testing.T, q limiter, url string) queue.Endpoint {
	t.Helper()
	list, err := q.Endpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.URL == url {
			return e
		}
	}
	return queue.Endpoint{}
}

// send asks for the time of a request.
func send(t *testing.T, q limiter, url string) queue.Endpoint {
	t.Helper()
	e, err := q.Send(t.Context(), url, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What an endpoint asks for and what an operator says holds for all who send to it, and
// for nobody else.
func testLimits(t *testing.T, s session.Store) {
	q := has[limiter](t, s)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const url, other = "http://localhost:1/v1", "http://localhost:2/v1"
	if e := send(t, q, url); e.Wait > 0 || e.Stopped != "" || e.URL != url {
		t.Errorf("an endpoint that nobody knows: %+v", e)
	}
	check(q.Slow(t.Context(), url, time.Hour))
	check(q.Slow(t.Context(), url, time.Minute)) // shorter
	check(q.Slow(t.Context(), other, 0))
	for _, e := range []queue.Endpoint{send(t, q, url), endpointOf(t, q, url)} {
		if e.Wait <= time.Minute || e.Wait > time.Hour || e.Pause != time.Hour {
			t.Errorf("after a request to wait: %+v", e)
		}
	}
	if e := send(t, q, other); e.Wait > 0 {
		t.Errorf("the other endpoint waits, too: %+v", e)
	}
	check(q.Stop(t.Context(), url, "too dear"))
	for _, e := range []queue.Endpoint{send(t, q, url), endpointOf(t, q, url)} {
		if e.Stopped != "too dear" {
			t.Errorf("stopped: %+v", e)
		}
	}
	check(q.Stop(t.Context(), url, ""))
	if e := send(t, q, url); e.Stopped != "" || e.Wait > 0 || e.Pause != 0 {
		t.Errorf("allowed again: %+v", e)
	}

	caps := queue.Caps{Requests: 1, Tokens: 1000, Runs: 1}
	check(q.Limit(t.Context(), url, caps))
	if e := endpointOf(t, q, url); e.Caps != caps {
		t.Errorf("caps %+v", e)
	}
	if first, second := send(t, q, url), send(t, q, url); first.Wait > 0 || second.Wait <= 0 || second.Wait > time.Minute {
		t.Errorf("one request in a minute, then %+v and %+v", first, second)
	}
	if e := send(t, q, url); e.Wait <= time.Minute {
		t.Errorf("the third waits for the second: %+v", e)
	}
	if e := send(t, q, url); e.Wait > 2*time.Minute {
		t.Errorf("a time that is too late was reserved: %+v", e)
	}
	check(q.Limit(t.Context(), url, queue.Caps{Tokens: 1000}))
	check(q.Used(t.Context(), other, 5000, 0))
	check(q.Used(t.Context(), url, 1000, time.Hour)) // they were free by now
	if e := send(t, q, url); e.Wait > time.Minute {
		t.Errorf("used long ago: %+v", e)
	}
	check(q.Used(t.Context(), url, 60_000, 0))
	if e := send(t, q, url); e.Wait < 50*time.Minute || e.Wait > time.Hour+time.Second {
		t.Errorf("after an hour's tokens: %+v", e)
	}
	if err := q.Limit(t.Context(), url, queue.Caps{Runs: -1}); err == nil {
		t.Error("negative caps")
	}
	if err := q.Stop(t.Context(), "", "x"); err == nil {
		t.Error("no endpoint")
	}
}

// An endpoint has as many runs as it may have, of all workers together. A run whose worker
// died keeps its place for itself.
func testLimitOfRuns(t *testing.T, s session.Store) {
	q := has[limiter](t, s)
	const url = "http://localhost:1/v1"
	if err := q.Limit(t.Context(), url, queue.Caps{Runs: 1}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, queue.Work{Session: "a"}, queue.Work{Session: "b"}, queue.Work{Session: "c"})
	try := func(id, url string) (queue.Work, error) {
		w := workOf(t, q, id)
		w.Endpoint = url
		return q.Begin(t.Context(), w, "worker")
	}
	first, err := try("a", url)
	if err != nil || first.Endpoint != url {
		t.Fatalf("%+v, %v", first, err)
	}
	if e := endpointOf(t, q, url); e.Running != 1 {
		t.Errorf("%+v", e)
	}
	if _, err := try("b", url); !errors.Is(err, queue.ErrFull) {
		t.Errorf("a second run: %v", err)
	}
	if _, err := try("c", "http://localhost:2/v1"); err != nil {
		t.Errorf("a run elsewhere: %v", err)
	}
	again, err := try("a", url)
	if err != nil {
		t.Fatalf("the run goes on: %v", err)
	}
	finish(t, q, again, queue.Outcome{State: queue.Done, Well: true})
	if _, err := try("b", url); err != nil {
		t.Errorf("after its end: %v", err)
	}
}
