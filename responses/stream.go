// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
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
// nothing was yielded.
//
// Breaking off the range, or the end of ctx, closes the connection. Nothing is
// left running when the range ends.
func (c *Client) Stream(ctx context.Context, req *item.Request) iter.Seq2[item.Event, error] {
	return func(yield func(item.Event, error) bool) {
		k, err := c.newCall(ctx, req, true)
		if err != nil {
			yield(item.Event{}, err)
			return
		}
		s := &stream{call: k, yield: yield}
		err = k.retry(ctx, func() (bool, error) {
			err := s.run(ctx)
			return s.yielded == 0, err
		})
		if s.held.JSON() != "" && err != nil {
			s.give(&s.held)
		}
		if err != nil && !s.stopped {
			yield(item.Event{}, err)
		}
	}
}

// stream passes the events of one call on.
type stream struct {
	call    *call
	yield   func(item.Event, error) bool
	yielded int  // events
	sent    bool // output was among them
	stopped bool // the consumer has had enough
	failure *endpoint.Error
	// held is a failure that came before all else: it is yielded only when the
	// request is not repeated.
	held item.Event
}

// run is one attempt.
func (s *stream) run(ctx context.Context) error {
	s.held, s.failure = item.Event{}, nil
	x, err := s.call.open(ctx)
	if err != nil {
		return err
	}
	defer x.close()
	if x.kind == kindJSON {
		err = s.whole(x)
	} else {
		err = s.events(x)
	}
	if err == nil {
		return nil
	}
	e := s.call.fill(asError(err), x.resp)
	e.Sent = s.sent
	return e
}

// errorGrace is how long an error event may be followed by the failed response
// that holds the details.
const errorGrace = 250 * time.Millisecond

// events reads a stream up to its last event.
func (s *stream) events(x *exchange) error {
	rd := sse.NewReader(x.body, sse.Options{MaxEvent: s.call.client.MaxEvent})
	var decoder item.EventDecoder
	for n := 1; ; n++ {
		raw, err := rd.Next()
		if s.failure != nil && (err != nil || x.ctx.Err() != nil) {
			return s.failure
		}
		if err != nil || x.outer.Err() != nil {
			return x.broken(err)
		}
		if len(raw.Data) == 0 {
			continue // a sign of life
		}
		if raw.Data[0] != '{' && bytes.Equal(bytes.TrimSpace(raw.Data), []byte("[DONE]")) {
			if s.failure != nil {
				return s.failure
			}
			return x.fail(&endpoint.Error{Class: endpoint.Truncated, Message: "the stream was declared done without its last event"})
		}
		ev, err := decoder.Decode(raw.Data)
		if err != nil {
			return x.unreadable(fmt.Sprintf("event %d of the stream", n), raw.Data, raw.Unterminated, err)
		}
		if ev.Type == "" {
			ev.Type = item.EventType(raw.Type)
		}
		if done, err := s.event(x, ev); done {
			return err
		}
	}
}

// event passes one event on and reports whether it was the last.
func (s *stream) event(x *exchange, ev *item.Event) (done bool, err error) {
	failure := failureOf(x, ev)
	if failure != nil && s.yielded == 0 && failure.SafeToRetry() {
		s.held = ev.Keep()
		return true, failure
	}
	terminal := ev.Type != item.EventError && ev.Terminal()
	goOn := s.give(ev)
	if failure != nil {
		s.failure = failure
	}
	switch {
	case terminal:
		x.drain()
		return true, s.failed()
	case !goOn:
		return true, nil
	case failure != nil && ev.Type == item.EventError:
		x.cancelAfter(errorGrace)
		return false, nil
	}
	return failure != nil, s.failed()
}

// failed is the failure as an error, nil if there was none.
func (s *stream) failed() error {
	if s.failure == nil {
		return nil
	}
	return s.failure
}

// give yields an event, unless the consumer has had enough.
func (s *stream) give(ev *item.Event) bool {
	if s.stopped {
		return false
	}
	s.yielded++
	switch ev.Type {
	case item.EventCreated, item.EventInProgress, item.EventQueued, item.EventFailed, item.EventCancelled, item.EventError, "":
	default:
		s.sent = true
	}
	s.stopped = !s.yield(*ev, nil)
	return !s.stopped
}

// failureOf is the error that an event reports, or nil.
func failureOf(x *exchange, ev *item.Event) *endpoint.Error {
	if strings.HasSuffix(string(ev.Type), ".delta") {
		return nil // nearly all events; the rest is looked into
	}
	if a, ok := ev.Err(); ok {
		return x.fromAPI(a)
	}
	switch ev.Type {
	case item.EventFailed:
		return x.fail(&endpoint.Error{Class: endpoint.Server, Message: "the response failed, and the server does not say why"})
	case item.EventCancelled:
		return x.fail(&endpoint.Error{Class: endpoint.Canceled, Message: "the response was cancelled at the server"})
	}
	return nil
}
