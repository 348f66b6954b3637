// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/antiphon-go/antiphon/api"
)

// scribe keeps the events of a streamed background response in a [Resumer] or a
// [ProgressStore]. An event is sent once it is kept, so that a stream that is taken up after
// a crash has the same events. Events that come while others are written are written
// together. V2
type scribe struct {
	keep eventKeeper
	more chan struct{} // has an element if there may be something to write
	next time.Time     // the time of the next batch; only for the goroutine that writes

	// whole means that the end of the response is stored with all events.
	whole bool

	// Guarded by the mu of the job.
	pending []api.Event
	writing []api.Event // those that are being written
	over    bool        // nothing follows
	last    bool        // and this is the end of the stream
	done    bool        // the last one was written, or writing failed
	stored  bool        // the end was stored with all events: nothing more is written
}

// batchTime is the least time from one batch to the next. It is how late an event may be.
const batchTime = 20 * time.Millisecond

// eventKeeper is the part of a [Resumer] and of a [ProgressStore] that keeps events.
type eventKeeper interface {
	AddEvents(ctx context.Context, id string, from int64, events []api.Event, last bool) error
}

// records returns what keeps the events of a request's response while it is made, or nil.
func (s *Server) records(r *Request) eventKeeper {
	if !isSet(r.Background) || !isSet(r.Stream) {
		return nil
	}
	if k := s.resumer(); k != nil {
		return k
	}
	if p, ok := s.store().(ProgressStore); ok && s.keeper() == nil {
		return p
	}
	return nil
}

// write begins to keep the events of a job. The caller has called enter for it.
func (j *job) write(k eventKeeper) {
	j.scribe = &scribe{keep: k, whole: j.progress != nil, more: make(chan struct{}, 1)}
	go func() {
		defer j.s.running.Done()
		for j.writeBatch() {
		}
	}()
}

func (c *scribe) stir() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// add leaves events for the scribe. The caller must hold mu.
func (j *job) add(events ...api.Event) {
	if c := j.scribe; c == nil {
		j.rec.Events = append(j.rec.Events, events...) // who follows reads only those that were there
	} else if !c.over && !j.w.differs {
		c.pending = append(c.pending, events...)
		if !c.done {
			c.stir()
		}
	}
}

// finish ends the work of the scribe; last means that the stream has ended, too. The caller
// must hold mu.
func (j *job) finish(last bool) {
	if c := j.scribe; c != nil && !c.over {
		c.over, c.last = true, last
		c.stir()
	}
}

// writeBatch waits for events and writes them. It returns false when nothing follows.
func (j *job) writeBatch() bool {
	c := j.scribe
	<-c.more
	time.Sleep(time.Until(c.next)) // events that come soon after each other are written together
	c.next = time.Now().Add(batchTime)
	j.mu.Lock()
	batch, over, last := c.pending, c.over, c.last
	c.pending, c.writing = nil, batch
	from, done := int64(len(j.rec.Events)), c.done || c.stored
	j.mu.Unlock()
	if done {
		return false
	}
	var err error
	if len(batch) > 0 || last {
		err = c.keep.AddEvents(context.WithoutCancel(j.ctx), j.id, from, batch, last)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	c.writing = nil
	if c.done || c.stored { // meanwhile
		return false
	}
	if err != nil {
		if !errors.Is(err, ErrLeft) {
			j.s.logf("antiphon server: the stream of %s: %v", j.id, err)
		}
		if c.whole { // the stream breaks off, and its end is stored with the response
			c.pending = append(batch, c.pending...)
		} else {
			c.over, c.pending = true, nil
		}
	} else {
		j.rec.Events = append(j.rec.Events, batch...)
	}
	c.done = err != nil || over
	j.wake()
	return !c.done
}

// told reports whether followers have all events that there will be. The caller must hold mu.
func (j *job) told() bool {
	if j.scribe != nil {
		return j.scribe.done
	}
	return j.ended
}

// events returns what has the events of responses that are not made here, or nil: see
// [Resumer] and [EventStore].
func (s *Server) events() func(ctx context.Context, id string, from int64) iter.Seq2[api.Event, error] {
	if k := s.resumer(); k != nil {
		return k.Events
	}
	if k, ok := s.store().(EventStore); ok && s.keeper() == nil {
		return k.Events
	}
	return nil
}

// stored sends the events of a response that is not made here, from number after+1 on. It
// reports whether events are kept.
func (c *call) stored(s *Server, events func(context.Context, string, int64) iter.Seq2[api.Event, error], id string, after int) (bool, *Error) {
	j := &job{id: id}
	w := s.stream(c.w)
	defer w.end()
	send := c.live(j, w)
	some := false
	for ev, err := range events(c.r.Context(), id, max(0, int64(after))) { // from the last one that the client has: there may be no later one
		switch {
		case err != nil && !some && errors.Is(err, ErrNotFound):
			return false, nil
		case err != nil && !some && c.r.Context().Err() == nil:
			return true, s.failure(err)
		case err != nil:
			if c.r.Context().Err() == nil {
				s.logf("antiphon server: the stream of %s: %v", id, err)
			}
			return true, nil // the client sees that the stream broke off
		case ev.SequenceNumber <= int64(after):
			w.start(func() { c.streams(j) })
			w.begin()
		case send(ev) != nil:
			return true, nil // the client is gone
		}
		some = true
	}
	if !some && c.r.Context().Err() == nil {
		return true, Invalid("", "starting_after", "Invalid 'starting_after': the response has no event %d.", after)
	}
	return true, nil
}
