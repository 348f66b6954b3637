// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// Stream sends the request with stream set and yields the answer as the events
// of the Responses API, up to the response's last one. It does nothing before
// it is ranged over, and the request anew each time it is. Events are values that
// stay as they are.
//
// If anything is wrong, the last pair that is yielded holds an error, mostly an
// [*endpoint.Error]: a stream that ends before its choice gave a finish_reason
// is Truncated, unless it ended with its usage and [DONE], and an error in a
// chunk is yielded as an error event and then comes again as the error. An
// incomplete response is not one. A failure is retried only while no output was
// yielded, so that the events which begin a response may come twice.
//
// What is not a chunk, such as the pings of a proxy, is left out and reported to
// the function that [item.WithNotes] put into ctx; a stream of nothing else is an
// error. What has no place in the Responses API goes to Client.OnLoss, and words
// among it to that function too.
//
// Breaking off the range, or the end of ctx, closes the connection. Nothing is
// left running when the range ends.
func (c *Client) Stream(ctx context.Context, req *item.Request) iter.Seq2[item.Event, error] {
	return func(yield func(item.Event, error) bool) {
		s := &stream{client: c, yield: yield}
		err := c.send(ctx, req, true, func(k *wire.Call) (bool, error) {
			err := s.run(ctx, k)
			return !s.sent, err
		})
		if s.held.JSON() != "" && err != nil {
			s.pass(s.held)
		}
		if err != nil && !s.stopped {
			yield(item.Event{}, err)
		}
	}
}

// stream passes the events of one reply on.
type stream struct {
	client  *Client
	yield   func(item.Event, error) bool
	yielded int  // events
	sent    bool // output was among them
	stopped bool // the consumer has had enough

	// of one attempt:
	x       *wire.Exchange
	said    []byte          // the chunk being read, or the whole answer, as it came
	failure *endpoint.Error // that an event reported
	held    item.Event      // a failure before all else: yielded only when it is final
}

// run is one attempt.
func (s *stream) run(ctx context.Context, k *wire.Call) error {
	s.held, s.failure = item.Event{}, nil
	x, err := k.Open(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	s.x = x
	if x.Kind == wire.JSON {
		err = s.whole(ctx)
	} else {
		err = s.chunks(ctx)
	}
	if err == nil {
		return nil
	}
	var e *endpoint.Error
	if !errors.As(err, &e) {
		e = &endpoint.Error{Class: endpoint.Protocol, Err: err}
	}
	e = k.Fill(e, x.Response)
	e.Sent = s.sent
	return e
}

// usageGrace is how long a stream may go on when its choice has ended: the usage
// comes then.
const usageGrace = 5 * time.Second

// maxSkipped is how many events in a row may be no chunks, such as the pings of
// proxies. A stream that goes on so is not one of the API.
const maxSkipped = 100

var errNoChunk = errors.New("it is not a chunk")

// chunks reads a stream up to its end.
func (s *stream) chunks(ctx context.Context) error {
	var d Decoder
	defer func() { s.client.lostOf(ctx, s.x, d.Losses()) }()
	src := s.x.Events()
	skipped := 0
	s.x.Heard()
	var garbage error // the first that was skipped
	for {
		raw, err := src.Next()
		switch {
		case err != nil && garbage != nil && s.yielded == 0 && ctx.Err() == nil:
			return garbage
		case err != nil && (d.Reason() == "" || ctx.Err() != nil):
			return err
		case err != nil:
			return s.finish(&d) // all was said
		case wire.Done(raw.Data):
			s.x.Drain()
			d.Done()
			return s.finish(&d)
		}
		data := raw.Data
		if d := bytes.TrimSpace(data); len(d) == 0 || d[0] != '{' {
			if skipped++; skipped > maxSkipped || raw.Unterminated {
				return src.Unreadable(raw, errNoChunk)
			}
			if garbage == nil {
				garbage = src.Unreadable(raw, errNoChunk)
			}
			if take := item.NotesOf(ctx); take != nil && skipped <= 10 {
				take(item.Note{Kind: item.NoteSkipped, Event: item.EventType(raw.Type), OutputIndex: -1,
					Text: fmt.Sprintf("something in the stream is not a chunk, and was left out: %q", s.x.Quote(data, 60))})
			}
			continue
		}
		skipped = 0
		s.x.Heard()
		s.said = data
		if string(raw.Type) == "error" && item.JSON(data).Valid() == nil && member(trim(item.JSON(data)), "error") == "" {
			data = []byte(`{"error":` + string(data) + `}`)
		}
		if err := d.Decode(data, s.give); err != nil {
			if raw.Unterminated && d.Reason() != "" {
				return s.finish(&d) // what is missing came after the end
			}
			return src.Unreadable(raw, err)
		}
		switch {
		case s.failure != nil:
			return s.failure
		case s.stopped:
			return nil
		case d.Reason() != "":
			s.x.CancelAfter(usageGrace)
		}
	}
}

// finish ends the reply.
func (s *stream) finish(d *Decoder) error {
	switch err := d.Finish(s.give); {
	case errors.Is(err, ErrTruncated):
		return s.x.Fail(&endpoint.Error{Class: endpoint.Truncated, Message: err.Error()})
	case err != nil:
		return err
	case s.failure != nil:
		return s.failure
	}
	return nil
}

// give passes an event on, unless it is a failure that is worth another try.
func (s *stream) give(ev item.Event) bool {
	ev = *s.x.Clean(&ev)
	if e := s.failureOf(ev); e != nil {
		s.failure, ev = e, s.hidden(ev)
		if !s.sent && (e.SafeToRetry() || e.Class == endpoint.Auth) { // a new key may do
			s.held = ev
			return false
		}
	}
	return s.pass(ev)
}

func (s *stream) pass(ev item.Event) bool {
	if s.stopped {
		return false
	}
	s.yielded++
	switch ev.Type {
	case item.EventCreated, item.EventInProgress, item.EventFailed, item.EventError:
	default:
		s.sent = true
	}
	s.stopped = !s.yield(ev, nil)
	return !s.stopped
}

// failureOf is the error that an event reports, or nil.
func (s *stream) failureOf(ev item.Event) *endpoint.Error {
	if ev.Type != item.EventError && ev.Type != item.EventFailed {
		return nil
	}
	a, _ := ev.Err()
	return failure(s.x, a, s.said)
}

// hidden is an event that reports a failure, without the key, which servers
// repeat there.
func (s *stream) hidden(ev item.Event) item.Event {
	clean := s.x.Hide(ev.JSON())
	if clean == ev.JSON() {
		return ev
	}
	own, err := item.ParseEventString(clean)
	if err != nil { // it stood where JSON wants something else
		return item.Event{Type: ev.Type, SequenceNumber: ev.SequenceNumber, OutputIndex: -1, ContentIndex: -1, SummaryIndex: -1}
	}
	return own
}

// whole passes an answer that came in one piece on as the events that matter:
// each item done, then the last event.
func (s *stream) whole(ctx context.Context) error {
	r, text, err := s.client.read(ctx, s.x)
	if err != nil {
		return err
	}
	s.said = text
	for i, it := range r.Output {
		if err := s.event(&item.ItemDoneEvent{EventHead: item.EventHead{SequenceNumber: int64(i)}, OutputIndex: i, Item: it}); err != nil || s.stopped {
			return err
		}
	}
	last := item.ResponseEvent{EventHead: item.EventHead{SequenceNumber: int64(len(r.Output))}, Response: r}
	switch r.Status {
	case item.StatusFailed:
		err = s.event(&item.FailedEvent{ResponseEvent: last})
	case item.StatusIncomplete:
		err = s.event(&item.IncompleteEvent{ResponseEvent: last})
	default:
		err = s.event(&item.CompletedEvent{ResponseEvent: last})
	}
	if err == nil && s.failure != nil {
		return s.failure
	}
	return err
}

func (s *stream) event(v item.EventValue) error {
	ev, err := item.NewEvent(v)
	if err != nil {
		return errors.New("event " + strconv.Itoa(s.yielded) + ": " + err.Error())
	}
	s.give(ev)
	return nil
}
