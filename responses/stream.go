// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// Stream sends the request with stream set and yields the events of the answer
// as they come, up to the response's last one. It does nothing before it is
// ranged over, and the request anew each time it is. An event is a view that
// holds until the next; see [item.Event.Keep].
//
// If anything is wrong, the last pair that is yielded holds an error, mostly an
// [*endpoint.Error]: a stream that ends without its last event is Truncated, and
// a failed response or an error event is yielded as such and then comes again
// as the error. An incomplete response is none. A failure is retried only while
// nothing was yielded; one that comes after complete items is a [*PartialError]
// that holds them. But the stream of a request with Background set is taken up
// again where it broke, as [Client.Follow] does; nothing is sent again for that.
//
// Breaking off the range, or the end of ctx, closes the connection. Nothing is
// left running when the range ends.
func (c *Client) Stream(ctx context.Context, req *item.Request) iter.Seq2[item.Event, error] {
	return func(yield func(item.Event, error) bool) {
		s := &stream{yield: yield, background: c.backgroundOf(req), scratch: scratches.Get().(*scratch)}
		if s.background != nil {
			ctx = c.shared(ctx)
		}
		err := c.send(ctx, req, true, func(k *wire.Call) (bool, error) {
			err := s.run(ctx, k)
			return s.fresh(), err
		})
		if s.lost(err) {
			err = c.follow(ctx, s, err)
		}
		s.end(err)
		if s.over {
			s.scratch.free()
		}
	}
}

// stream passes the events of one reply on.
type stream struct {
	yield    func(item.Event, error) bool
	yielded  int            // events
	sent     bool           // output was among them
	lenient  bool           // the response may begin again while none was
	stopped  bool           // the consumer has had enough
	over     bool           // the response came to its end: the last event was told
	complete []completeItem // items that were complete
	room     [4]completeItem
	scratch  *scratch
	failure  *endpoint.Error
	// background is nil unless the stream can be taken up again.
	background *background
	// held is a failure that came before all else: it is yielded only when the
	// request is not repeated.
	held item.Event
}

// run is one attempt.
func (s *stream) run(ctx context.Context, k *wire.Call) error {
	s.held, s.failure = item.Event{}, nil
	x, err := k.Open(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	if x.Kind == wire.JSON {
		err = s.whole(x)
	} else {
		err = s.events(x)
	}
	if err == nil {
		if s.over {
			x.Recycle()
		}
		return nil
	}
	e := k.Fill(asError(err), x.Response)
	e.Sent = s.sent
	return e
}

// end yields what is left to say when there is no further attempt.
func (s *stream) end(err error) {
	if s.held.JSON() != "" && err != nil {
		s.give(&s.held)
	}
	if err != nil && !s.stopped {
		s.yield(item.Event{}, s.partial(err))
	}
}

// partial adds the items that were complete to an error.
func (s *stream) partial(err error) error {
	if e, ok := err.(*endpoint.Error); ok && len(s.complete) > 0 {
		return &PartialError{Err: e, Items: s.items()}
	}
	return err
}

// errorGrace is how long an error event may be followed by the failed response
// that holds the details.
const errorGrace = 250 * time.Millisecond

// source is where the events of a response come from: a stream or a socket.
type source interface {
	// Next returns the next event that has data, which holds until the one
	// after it, or why there is none.
	Next() (sse.Event, error)
	// Unreadable is the error for an event that is no JSON.
	Unreadable(sse.Event, error) *endpoint.Error
}

// events reads a stream up to its last event.
func (s *stream) events(x *wire.Exchange) error { return s.read(x, x.Events()) }

// read passes events on up to the last one.
func (s *stream) read(x *wire.Exchange, src source) error {
	if s.scratch == nil {
		s.scratch = new(scratch)
	}
	decoder := &s.scratch.decoder
	decoder.Reset()
	for {
		raw, err := src.Next()
		if s.failure != nil && (err != nil || x.Ended()) {
			return s.failure
		}
		if err != nil {
			return err
		}
		if wire.Done(raw.Data) {
			if s.failure != nil {
				return s.failure
			}
			return x.Fail(&endpoint.Error{Class: endpoint.Truncated, Message: "the stream was declared done without its last event"})
		}
		ev, err := decoder.Decode(raw.Data)
		if err != nil {
			return src.Unreadable(raw, err)
		}
		if ev.Type == "" {
			ev.Type = item.EventType(raw.Type)
		}
		if s.background.had(ev) {
			if !ev.Terminal() {
				continue
			}
			s.late(x, ev)
		}
		if done, err := s.event(x, ev); done {
			return err
		}
	}
}

// event passes one event on and reports whether it was the last.
func (s *stream) event(x *wire.Exchange, ev *item.Event) (done bool, err error) {
	failure := failureOf(x, ev)
	if failure != nil {
		ev = hidden(x, ev)
	}
	if failure != nil && s.fresh() && mayPass(failure) && !s.background.follows() {
		s.held = ev.Keep()
		return true, failure
	}
	terminal := ev.Type != item.EventError && ev.Terminal()
	if terminal && failure == nil {
		last := ev.Keep() // which is good for as long as anybody keeps it
		ev, s.over = &last, true
	}
	goOn := s.give(ev)
	if failure != nil {
		s.failure = failure
	}
	switch {
	case terminal:
		x.Drain()
		return true, s.failed()
	case !goOn:
		return true, nil
	case failure != nil && ev.Type == item.EventError:
		x.CancelAfter(errorGrace)
		return false, nil
	}
	return failure != nil, s.failed()
}

// fresh reports that the request may be sent once more, for all that was yielded.
func (s *stream) fresh() bool { return s.yielded == 0 || s.lenient && !s.sent }

// mayPass reports a failure after which the request may be sent once more: as
// it is, with another key, or with the whole history.
func mayPass(e *endpoint.Error) bool {
	return e.SafeToRetry() || e.Class == endpoint.Auth || e.Class == endpoint.PreviousResponse
}

// failed is the failure as an error, nil if there was none.
func (s *stream) failed() error {
	if s.failure == nil {
		return nil
	}
	return s.failure
}

// hidden is the event without the secrets that were sent, which an error may
// repeat.
func hidden(x *wire.Exchange, ev *item.Event) *item.Event {
	text := x.Hide(ev.JSON())
	if text == ev.JSON() {
		return ev
	}
	clean, err := item.ParseEvent([]byte(text))
	if err != nil {
		return &item.Event{Type: ev.Type, SequenceNumber: ev.SequenceNumber, OutputIndex: -1, ContentIndex: -1, SummaryIndex: -1}
	}
	return &clean
}

// give yields an event, unless the consumer has had enough.
func (s *stream) give(ev *item.Event) bool {
	if s.stopped {
		return false
	}
	s.yielded++
	s.background.note(ev)
	switch ev.Type {
	case item.EventCreated, item.EventInProgress, item.EventQueued, item.EventFailed, item.EventCancelled, item.EventError, "":
	case item.EventItemDone:
		s.sent = true
		s.done(ev)
	default:
		s.sent = true
	}
	s.stopped = !s.yield(*ev, nil)
	return !s.stopped
}

// completeItem is a complete item: its output index, and where in the scratch's
// text it stands.
type completeItem struct{ place, from, to int }

// done takes a complete item. One that is told twice is one item. It is read
// only where it is wanted, which is seldom.
func (s *stream) done(ev *item.Event) {
	v, ok := ev.Member("item")
	if !ok || v[0] != '{' {
		return
	}
	if s.scratch == nil {
		s.scratch = new(scratch)
	}
	m := s.scratch
	told := completeItem{ev.OutputIndex, len(m.text), len(m.text) + len(v)}
	m.text = append(m.text, v...)
	for i, w := range s.complete {
		if w.place == told.place && (told.place >= 0 || string(m.text[w.from:w.to]) == string(v)) {
			s.complete[i] = told
			return
		}
	}
	if s.complete == nil {
		s.complete = s.room[:0]
	}
	s.complete = append(s.complete, told)
}

// scratch is memory that reading a stream takes, and that another one can use
// when nobody looks at what the first has yielded any more.
type scratch struct {
	decoder item.EventDecoder
	text    []byte // the JSON of the items that were complete, one after the other
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratch bounds what is kept of a text.
const maxScratch = 32 << 10

func (m *scratch) free() {
	if m.text = m.text[:0]; cap(m.text) > maxScratch {
		m.text = nil
	}
	m.decoder.Reset()
	scratches.Put(m)
}

// items are the complete items.
func (s *stream) items() []item.Item {
	var items []item.Item
	for _, w := range s.complete {
		if it, err := item.Parse(s.scratch.text[w.from:w.to]); err == nil {
			items = append(items, it)
		}
	}
	return items
}

// failureOf is the error that an event reports, or nil.
func failureOf(at faults, ev *item.Event) *endpoint.Error {
	if strings.HasSuffix(string(ev.Type), ".delta") {
		return nil // nearly all events; the rest is looked into
	}
	if a, ok := ev.Err(); ok {
		if e := endpoint.FromEvent([]byte(ev.JSON())); e != nil {
			e.Err = a
			return at.Fail(e) // it may say a status, as those of a WebSocket do
		}
		return at.FromAPI(a)
	}
	switch ev.Type {
	case item.EventFailed:
		return at.Fail(&endpoint.Error{Class: endpoint.Server, Message: "the response failed, and the server does not say why"})
	case item.EventCancelled:
		return at.Fail(&endpoint.Error{Class: endpoint.Canceled, Message: "the response was cancelled at the server"})
	}
	return nil
}
