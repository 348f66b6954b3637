// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"context"
	"fmt"
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
// ranged over, and the request anew each time it is. Events are values that stay as
// they are.
//
// If anything is wrong, the last pair that is yielded holds an error, mostly an
// [*endpoint.Error]: a stream that ends without its last event is Truncated, and
// a failed response or an error event is yielded as such and then comes again as
// the error. An incomplete response is not one. A failure is retried only while
// no output was yielded, so that the events which begin a response may come
// twice, the second time of another one; a failure that comes after complete
// items is a [*PartialError] that holds them. But the stream of a request with
// Background set is taken up again where it broke, as [Client.Follow] does;
// nothing is sent again for that.
//
// What is odd about a stream and not an error, such as a text that is another one
// at its end than its deltas were, is reported to the function that
// [item.WithNotes] put into ctx, before the event that shows it is yielded. What is
// not an event of the API, such as the pings of a proxy, is reported so and left
// out; a stream of nothing else is an error.
//
// Breaking off the range, or the end of ctx, closes the connection. Nothing is
// left running when the range ends.
func (c *Client) Stream(ctx context.Context, req *item.Request) iter.Seq2[item.Event, error] {
	return func(yield func(item.Event, error) bool) {
		s := &stream{yield: yield, background: c.backgroundOf(req), decoder: decoders.Get().(*item.EventDecoder)}
		if s.background != nil {
			ctx = c.shared(ctx)
		}
		// What runs in the background is taken up again where it broke, and what was
		// begun in a conversation may be a part of it.
		s.lenient = s.background == nil && (req == nil || req.Conversation == "")
		err := c.send(ctx, req, true, func(k *wire.Call) (bool, error) {
			err := s.run(ctx, k)
			return s.fresh(), err
		})
		if s.lost(err) {
			err = c.follow(ctx, s, err)
		}
		s.end(err)
		if s.over {
			s.decoder.Reset()
			decoders.Put(s.decoder)
		}
	}
}

// stream passes the events of one reply on.
type stream struct {
	yield   func(item.Event, error) bool
	yielded int          // events
	sent    bool         // output was among them
	lenient bool         // the response may begin again while none was
	stopped bool         // the consumer has had enough
	over    bool         // the response came to its end: the last event was told
	told    []item.Event // those that begin and end items
	room    [4]item.Event
	decoder *item.EventDecoder
	// take is told what is odd about the stream, which the auditor finds; nil if
	// nobody wants to know.
	take    func(item.Note)
	auditor *item.Auditor
	skipped int        // in a row
	garbage error      // the first that was skipped, as long as nothing else came
	event   item.Event // the one that is passed on
	failure *endpoint.Error
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
	defer func() {
		if s.auditor != nil {
			s.auditor.Reset()
			auditors.Put(s.auditor)
			s.auditor = nil
		}
	}()
	if s.held.JSON() != "" && err != nil {
		s.give(&s.held)
	}
	if err != nil && !s.stopped {
		s.yield(item.Event{}, s.partial(err))
	}
}

// partial adds the items that were complete to an error.
func (s *stream) partial(err error) error {
	if e, ok := err.(*endpoint.Error); ok {
		if items := s.items(); len(items) > 0 {
			return &PartialError{Err: e, Items: items}
		}
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
	// Unreadable is the error for an event that is not JSON.
	Unreadable(sse.Event, error) *endpoint.Error
}

// events reads a stream up to its last event.
func (s *stream) events(x *wire.Exchange) error { return s.read(x, x.Events()) }

// read passes events on up to the last one.
func (s *stream) read(x *wire.Exchange, src source) error {
	if s.decoder == nil {
		s.decoder = new(item.EventDecoder)
	}
	s.decoder.Reset()
	s.take = item.NotesOf(x.Context())
	switch {
	case s.take == nil || s.background.continues():
	case s.auditor == nil:
		s.auditor = auditors.Get().(*item.Auditor)
	case s.background == nil:
		s.auditor.Reset() // the response begins again
	}
	if s.auditor != nil {
		s.auditor.Hide = x.Hide
	}
	s.skipped, s.garbage = 0, nil
	x.Heard()
	for {
		raw, err := src.Next()
		if s.failure != nil && (err != nil || x.Ended()) {
			return s.failure
		}
		if err != nil && s.garbage != nil && !x.Ended() {
			return s.garbage
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
		if s.event, err = s.decoder.Decode(raw.Data); err != nil {
			if err := s.skip(x, src, raw, err); err != nil {
				return err
			}
			continue
		}
		s.skipped, s.garbage = 0, nil
		ev := &s.event
		if ev.Type == "" {
			ev.Type = item.EventType(raw.Type)
		}
		if ev.Type != eventKeepalive {
			x.Heard()
		}
		if s.background.had(ev) {
			if !ev.Terminal() {
				continue
			}
			s.late(x, ev)
		}
		if done, err := s.pass(x, ev); done {
			return err
		}
	}
}

// eventKeepalive is a sign of life in the form of an event.
const eventKeepalive item.EventType = "keepalive"

// maxSkipped is how many events in a row may be none. A stream that goes on so is
// not one of the API.
const maxSkipped = 100

// skip passes over what is not an event of the API: not an object, or one by a
// name that the API does not have, such as the pings of proxies. An object that
// is incomplete or damaged is an error, for it may have been part of the reply.
func (s *stream) skip(x *wire.Exchange, src source, raw sse.Event, err error) error {
	broken := src.Unreadable(raw, err)
	if data := bytes.TrimSpace(raw.Data); (len(data) > 0 && data[0] == '{' || raw.Unterminated) && ofAPI(string(raw.Type)) {
		return broken
	}
	if s.skipped++; s.skipped > maxSkipped {
		return broken
	}
	if s.yielded == 0 && s.garbage == nil {
		s.garbage = broken
	}
	if s.take != nil && s.skipped <= 10 {
		s.take(item.Note{Kind: item.NoteSkipped, Event: item.EventType(raw.Type), OutputIndex: -1,
			Text: fmt.Sprintf("something in the stream is not an event, and was left out: %q", x.Quote(raw.Data, 60))})
	}
	return nil
}

// ofAPI reports a name that an event of the API may have.
func ofAPI(name string) bool {
	return name == "" || name == "message" || name == string(item.EventError) || strings.HasPrefix(name, "response.")
}

// pass passes one event on and reports whether it was the last.
func (s *stream) pass(x *wire.Exchange, ev *item.Event) (done bool, err error) {
	ev = x.Clean(ev)
	failure := failureOf(x, ev)
	if failure == nil && ev.Type == item.EventCompleted {
		if failure = s.unfinished(x, ev); failure != nil {
			s.lenient = false // that response may come to its end yet
		}
	}
	if failure != nil {
		ev = hidden(x, ev)
	}
	if failure != nil && s.fresh() && mayPass(failure) && !s.background.follows() {
		s.held = *ev
		return true, failure
	}
	terminal := ev.Type != item.EventError && ev.Terminal()
	if terminal && failure == nil {
		s.over = true
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
	clean, err := item.ParseEventString(text)
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
	if s.auditor != nil {
		s.auditor.Add(ev, s.take)
	}
	s.yielded++
	s.background.note(ev)
	switch ev.Type {
	case item.EventCreated, item.EventInProgress, item.EventQueued, item.EventFailed, item.EventCancelled, item.EventError, "":
	case item.EventItemAdded, item.EventItemDone:
		s.sent = true
		if s.told == nil {
			s.told = s.room[:0]
		}
		s.told = append(s.told, *ev)
	default:
		s.sent = true
	}
	s.stopped = !s.yield(*ev, nil)
	return !s.stopped
}

// auditors are for streams to come, like decoders.
var auditors = sync.Pool{New: func() any { return new(item.Auditor) }}

// decoders are for streams to come, when one has come to its end.
var decoders = sync.Pool{New: func() any { return new(item.EventDecoder) }}

// items are the complete items. Which events are about the same one is for the
// accumulator to say, here as for every reader of the stream.
func (s *stream) items() []item.Item {
	var items []item.Item
	var acc item.Accumulator
	for i := range s.told {
		done, _ := acc.Add(s.told[i]) // one that cannot be read is not complete
		items = append(items, done...)
	}
	return items
}

// unfinished is the error of a last event whose response says that it is still
// made, when nothing of it came. One that has output is taken at the event's word.
func (s *stream) unfinished(at faults, ev *item.Event) *endpoint.Error {
	text := ev.JSON()
	if len(s.told) > 0 || !strings.Contains(text, `"`+item.StatusInProgress+`"`) && !strings.Contains(text, `"`+item.StatusQueued+`"`) {
		return nil
	}
	r, err := ev.Response()
	if err != nil || !pending(r) || len(r.Output) > 0 {
		return nil
	}
	return at.Fail(stillMade(r))
}

// stillMade is the error of a response that has not come to its end.
func stillMade(r *item.Response) *endpoint.Error {
	return &endpoint.Error{Class: endpoint.Truncated, Message: "the response is still " + r.Status}
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
	case item.EventCompleted, item.EventIncomplete:
		// A response may say otherwise than its event.
		if text := ev.JSON(); !strings.Contains(text, `"`+item.StatusFailed+`"`) && !strings.Contains(text, `"`+item.StatusCancelled+`"`) {
			return nil
		}
		if r, err := ev.Response(); err == nil && (r.Status == item.StatusFailed || r.Status == item.StatusCancelled) {
			return failureOf(at, &item.Event{Type: item.EventType("response." + r.Status)})
		}
	case item.EventFailed:
		return at.Fail(&endpoint.Error{Class: endpoint.Server, Message: "the response failed, and the server does not say why"})
	case item.EventCancelled:
		return at.Fail(&endpoint.Error{Class: endpoint.Canceled, Message: "the response was cancelled at the server"})
	}
	return nil
}
