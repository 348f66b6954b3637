// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/antiphon-go/antiphon/item"
)

// job is a response in the making. The writer is used by the backend alone; what
// others may read is under mu.
type job struct {
	s      *Server
	r      *Request
	w      *Writer
	to     func(item.Event) error // where events go at once, or nil
	ctx    context.Context        // of the backend
	cancel context.CancelFunc     // of one in the background
	id     string                 // once it began

	accepted bool           // it began: a failure is no longer a refusal
	began    chan struct{}  // closed then
	first    *item.Response // as it was then

	mu      sync.Mutex
	keep    bool
	rec     Record        // as it stands
	ended   bool          // nothing more happens to it
	changed chan struct{} // closed at the next change
}

// newJob begins nothing yet: the response begins when the backend does.
func (s *Server) newJob(r *Request) (*job, *Error) {
	base, err := s.base(r, s.newID("resp_"))
	if err != nil {
		s.release(r)
		return nil, Invalid("", "", "%v", err)
	}
	j := &job{s: s, r: r, began: make(chan struct{}), changed: make(chan struct{}), keep: s.keeps(r.Request)}
	j.rec = Record{Items: r.Items, Background: isSet(r.Background)}
	j.w = NewWriter(base, j.emit)
	j.w.StreamID, j.w.clock = r.streamID, s.now
	j.w.admit = func(id string) string { return s.admit(j, id) }
	return j, nil
}

// run has the backend make a response. It returns why the request was refused, or
// nil once the response began.
func (s *Server) run(ctx context.Context, j *job) *Error {
	defer s.leave(j)
	j.ctx = ctx
	err := cmp.Or(s.respond(j), j.w.err)
	if err == nil && !j.w.Ended() {
		err = j.w.Complete()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || errors.Is(err, errGone):
		if j.accepted {
			s.stop(j)
		}
		return nil
	}
	told := s.failure(err)
	if !j.accepted {
		return told
	}
	j.w.err = nil // what could not be written is left out; the failure is told
	_ = j.w.Fail(cmp.Or(told.Code, serverError), told.Message)
	return nil
}

// respond calls the backend. A panic in it must not end the program.
func (s *Server) respond(j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the backend: %v\n%s", p, debug.Stack())
		}
	}()
	return s.Backend.Respond(j.ctx, j.r, j.w)
}

// admit settles the id of a response. One that the backend wished for may be taken
// by another response that is kept.
func (s *Server) admit(j *job, wish string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.id = cmp.Or(wish, j.w.response.ID)
	if !j.keep {
		return j.id
	}
	if wish != "" {
		if _, err := s.store().Get(j.ctx, wish); s.jobs[wish] != nil || err == nil {
			s.again++
			j.id = fmt.Sprintf("%s_%d", wish, s.again)
		}
	}
	if s.jobs == nil {
		s.jobs = map[string]*job{}
	}
	s.jobs[j.id] = j
	return j.id
}

// emit takes an event of the writer. What it means for others is done before it
// is passed on, so that a client can rely on what it read.
func (j *job) emit(ev item.Event) error {
	if err := j.ctx.Err(); err != nil {
		return err
	}
	var err error
	switch {
	case !j.accepted:
		err = j.begin(ev)
	case ev.Terminal():
		err = j.s.settle(j, j.w.Response(), ev)
	default:
		j.note(ev)
	}
	if err != nil || j.to == nil {
		return err
	}
	if err = j.to(ev); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// begin takes the first event. What cannot be stored is refused.
func (j *job) begin(ev item.Event) error {
	j.first = j.w.Response()
	if j.keep {
		if err := j.s.store().Put(j.ctx, Record{Response: j.first, Items: j.r.Items, Background: j.rec.Background}); err != nil {
			return err
		}
	}
	j.note(ev)
	j.accepted = true
	close(j.began)
	return nil
}

// note brings the record up to date, and wakes those who follow.
func (j *job) note(ev item.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return
	}
	switch ev.Type {
	case item.EventCreated, item.EventInProgress, item.EventItemDone:
		j.rec.Response = j.w.Response()
	}
	if j.rec.Background {
		j.rec.Events = append(j.rec.Events, ev)
	}
	j.wake()
}

func (j *job) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// settle ends a response: it is stored, its conversation grows by it and is let
// go, and those who follow have the last event. Only the first end counts.
func (s *Server) settle(j *job, final *item.Response, last ...item.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return errCancelled
	}
	j.ended = true
	j.rec.Response = final
	if j.rec.Background {
		j.rec.Events = append(j.rec.Events, last...)
	}
	err := s.keep(j)
	if err == nil && final.Status == item.StatusCompleted {
		err = s.grow(j)
	}
	s.leave(j)
	j.wake()
	return err
}

// leave lets go of what a response held: its conversation, and its place among
// those that are being made. It may be called more than once.
func (s *Server) leave(j *job) {
	s.release(j.r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[j.id] == j {
		delete(s.jobs, j.id)
	}
}

// keep stores a response that has ended. One that was cancelled because its client
// went away is forgotten.
func (s *Server) keep(j *job) error {
	ctx := context.WithoutCancel(j.ctx)
	switch {
	case !j.keep:
		return nil
	case j.rec.Response.Status == item.StatusCancelled && !j.rec.Background:
		if err := s.store().Delete(ctx, j.id); err != ErrNotFound {
			return err
		}
		return nil
	}
	rec := j.rec
	if !isSet(j.r.Stream) {
		rec.Events = nil
	}
	return s.store().Put(ctx, rec)
}

// stop ends a response where it stands, unless it has ended.
func (s *Server) stop(j *job) {
	j.mu.Lock()
	r := *j.rec.Response
	j.mu.Unlock()
	r.Status = item.StatusCancelled
	if err := s.settle(j, &r); err != nil && err != errCancelled {
		s.logf("antiphon server: %v", err)
	}
	if j.cancel != nil {
		j.cancel()
	}
}

// record returns the response as it stands.
func (j *job) record() Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rec
}

// follow passes on the events after the one with the number after, each when it
// comes, up to the last one or to where the response was cancelled.
func (j *job) follow(ctx context.Context, after int, send func(item.Event) error) error {
	for next := after + 1; ; {
		j.mu.Lock()
		events, ended, changed := j.rec.Events, j.ended, j.changed
		j.mu.Unlock()
		for ; next < len(events); next++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := send(events[next]); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

var (
	// errCancelled stops the backend of a response that has ended.
	errCancelled = errors.New("the response was cancelled")
	// errGone stops the backend of a response that nobody listens to any more.
	errGone = errors.New("the client is gone")
)
