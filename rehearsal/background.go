// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// run is a response that is made in the background. Nothing runs: each event
// has its time, and how far the response is follows from the clock.
type run struct {
	began time.Time
	log   []told

	mu        sync.Mutex
	cancelled chan struct{} // closed by cancel
	last      int           // events that were before, once it is closed
}

// told is an event of a run.
type told struct {
	at   time.Duration // since the run began
	typ  item.EventType
	data []byte
}

// newRun writes down what a stream of the answer would be.
func newRun(a *answer) *run {
	r := &run{began: time.Now(), cancelled: make(chan struct{})}
	a.stream(&stream{to: &scribe{run: r}})
	return r
}

// scribe is a sink that writes down.
type scribe struct {
	run *run
	at  time.Duration
}

func (s *scribe) wait(d time.Duration) error {
	s.at += max(d, 0)
	return nil
}

func (s *scribe) send(typ item.EventType, data []byte) error {
	s.run.log = append(s.run.log, told{s.at, typ, data})
	return nil
}

func (r *run) size() (bytes int) {
	for _, t := range r.log {
		bytes += len(t.data)
	}
	return bytes
}

// told returns how many events have been, and whether there will be no more.
func (r *run) told(now time.Time) (n int, cancelled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.toldLocked(now)
}

func (r *run) toldLocked(now time.Time) (n int, cancelled bool) {
	select {
	case <-r.cancelled:
		return r.last, true
	default:
	}
	since := now.Sub(r.began)
	return sort.Search(len(r.log), func(i int) bool { return r.log[i].at > since }), false
}

// progress tells how far the run is.
func (r *run) progress(now time.Time) (status string, done int) {
	n, cancelled := r.told(now)
	for _, t := range r.log[:n] {
		if t.typ == item.EventItemDone {
			done++
		}
	}
	switch {
	case n == len(r.log):
		return item.StatusCompleted, done
	case cancelled:
		return item.StatusCancelled, done
	}
	return item.StatusInProgress, done
}

// cancel ends a run that is not at its end.
func (r *run) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, cancelled := r.toldLocked(time.Now()); !cancelled && n < len(r.log) {
		r.last = n
		close(r.cancelled)
	}
}

// follow sends the events after the one with the number after, each in its
// time, up to the last one or to where the run was cancelled.
func (r *run) follow(ctx context.Context, after int, to sink) error {
	for i := after + 1; i < len(r.log); i++ {
		if err := r.reach(ctx, i); err != nil {
			return err
		}
		if n, cancelled := r.told(time.Now()); cancelled && i >= n {
			return nil
		}
		if err := to.send(r.log[i].typ, r.log[i].data); err != nil {
			return err
		}
	}
	return nil
}

// reach waits until it is time for event i, or the run was cancelled.
func (r *run) reach(ctx context.Context, i int) error {
	t := time.NewTimer(time.Until(r.began.Add(r.log[i].at)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.cancelled:
	case <-t.C:
	}
	return nil
}

// follow answers with the stream of a response that is made in the background.
func (c *call) follow(rec *record, after int) *problem {
	_ = rec.run.follow(c.r.Context(), after, c.live()) // a client that is gone is not an error
	return nil
}
