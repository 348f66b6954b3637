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

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// Stream sends the request with stream set and yields the events of the answer as they arrive, up
// to the response's last event. It sends nothing until the caller iterates, and each iteration
// sends the request anew. Events are values and do not change later.
//
// After a failure the last pair yielded holds an error, usually an [*endpoint.Error]. A stream
// without its last event is Truncated. A failed response or an error event is yielded as an event,
// and then again as the error. An incomplete response is not an error. A failure is retried only
// while no output was yielded, so the events that begin a response may appear twice, the second
// time for a new response. A failure after complete items is a [*PartialError] that holds the
// items. If the request has Background set, the stream continues after a lost connection like
// [Client.Follow], and the request is not sent again.
//
// Oddities that are not errors go to the function that [api.WithNotes] put into ctx, before the
// event that shows them is yielded. An example is a final text that differs from its deltas. Data
// that is not an event of the API, such as the pings of a proxy, is reported in the same way and
// left out; a stream with nothing else is an error.
//
// If the caller stops iterating or ctx is done, the connection is closed. No goroutine remains
// after the iteration.
func (c *Client) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		s := c.stream(req, yield)
		if s.background != nil {
			ctx = c.shared(ctx)
		}
		// A background response is continued, not repeated. A response in a conversation may
		// already be part of the conversation.
		s.lenient = s.background == nil && (req == nil || req.Conversation == "")
		err := c.send(ctx, req, true, func(k *transport.Call) (bool, error) {
			err := s.run(ctx, k)
			return s.fresh(), err
		})
		if s.lost(err) {
			err = c.follow(ctx, s, err)
		}
		s.end(err)
		s.recycle()
	}
}

func (c *Client) stream(req *api.Request, yield func(api.Event, error) bool) *stream {
	return &stream{yield: yield, background: c.backgroundOf(req), decoder: decoders.Get().(*api.EventDecoder)}
}

// stream passes on the events of one reply.
type stream struct {
	yield   func(api.Event, error) bool
	yielded int         // number of events
	sent    bool        // some of them were output
	lenient bool        // the response may start again while no output was yielded
	stopped bool        // the caller stopped iterating
	over    bool        // the response ended: its last event was yielded
	told    []api.Event // the events that begin and end items
	room    [4]api.Event
	decoder *api.EventDecoder
	shared  strings.Builder // the last deltas: see decode
	// take receives the oddities that the auditor finds; nil means that they are not reported.
	take    func(api.Note)
	auditor *api.Auditor
	skipped int       // number in a row
	garbage error     // the first skipped data, until an event is read
	event   api.Event // the event being passed on
	failure *endpoint.Error
	// background is nil unless the stream can be continued after a lost connection.
	background *background
	// held is a failure that was the first event. It is yielded only if the request is not
	// repeated.
	held api.Event
}

// run makes one attempt.
func (s *stream) run(ctx context.Context, k *transport.Call) error {
	s.held, s.failure = api.Event{}, nil
	x, err := k.Open(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	if x.Kind == transport.JSON {
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

// end yields the remaining event and error after the last attempt.
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
		s.yield(api.Event{}, s.partial(err))
	}
}

// recycle keeps the decoder for a later stream.
func (s *stream) recycle() {
	if s.over {
		s.decoder.Reset()
		decoders.Put(s.decoder)
	}
}

// partial adds the complete items to an error.
func (s *stream) partial(err error) error {
	if e, ok := err.(*endpoint.Error); ok {
		if items := s.items(); len(items) > 0 {
			return &PartialError{Err: e, Items: items}
		}
	}
	return err
}

// errorGrace is how long to wait after an error event for the failed response that has the details.
const errorGrace = 250 * time.Millisecond

// source is where the events of a response come from: a stream or a socket.
type source interface {
	// Next returns the next event that has data. The event is valid until the next call. At the
	// end, Next returns an error that says why.
	Next() (sse.Event, error)
	// Unreadable returns the error for an event that is not JSON.
	Unreadable(sse.Event, error) *endpoint.Error
}

// events reads a stream up to its last event.
func (s *stream) events(x *transport.Exchange) error { return s.read(x, x.Events()) }

// read passes on events up to the last one.
func (s *stream) read(x *transport.Exchange, src source) error {
	s.begin(x)
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
		if transport.Done(raw.Data) {
			if s.failure != nil {
				return s.failure
			}
			return x.Fail(&endpoint.Error{Class: endpoint.Truncated, Message: "the stream was declared done without its last event"})
		}
		if err := s.decode(x, raw.Data); err != nil {
			if err := s.skip(x, src, raw, err); err != nil {
				return err
			}
			continue
		}
		s.skipped, s.garbage = 0, nil
		ev := &s.event
		if ev.Type == "" {
			ev.Type = api.EventType(raw.Type)
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

// begin makes the stream ready for the events of an attempt. It is not part of read, whose frame
// is on the stack for as long as the stream is open: the auditor is large.
func (s *stream) begin(x *transport.Exchange) {
	if s.decoder == nil {
		s.decoder = new(api.EventDecoder)
	}
	s.decoder.Reset()
	s.take = api.NotesOf(x.Context())
	switch {
	case s.take == nil || s.background.continues():
	case s.auditor == nil:
		s.auditor = auditors.Get().(*api.Auditor)
	case s.background == nil:
		s.auditor.Reset() // the response starts again
	}
	if s.auditor != nil {
		s.auditor.Hide = x.Hide
	}
}

// decode reads the stream's current event. Copies of deltas that are passed on share memory: see
// [transport.Passing]. Items do not, because they are kept.
func (s *stream) decode(x *transport.Exchange, data []byte) (err error) {
	if !x.Passes() || len(data) > maxShared || !bytes.Contains(data[:min(len(data), 80)], []byte(`.delta"`)) {
		v, err := s.decoder.View(data)
		if err == nil {
			v.CopyTo(&s.event)
		}
		return err
	}
	at := s.shared.Len()
	if at+len(data) > s.shared.Cap() {
		size := min(max(2*s.shared.Cap(), firstShared), maxShared)
		s.shared, at = strings.Builder{}, 0
		s.shared.Grow(max(size, len(data)))
	}
	s.shared.Write(data)
	s.event, err = s.decoder.DecodeString(s.shared.String()[at:])
	return err
}

// The sizes of the memory that deltas share, in bytes.
const (
	firstShared = 512
	maxShared   = 16 << 10
)

// eventKeepalive is a keepalive in the form of an event.
const eventKeepalive api.EventType = "keepalive"

// maxSkipped is the number of non-events in a row after which a stream does not belong to the API.
const maxSkipped = 100

// skip ignores data that is not an event of the API: it is not an object, or its event name does
// not belong to the API, such as the pings of proxies. An incomplete or damaged object is an error,
// because it may have been part of the reply.
func (s *stream) skip(x *transport.Exchange, src source, raw sse.Event, err error) error {
	broken := src.Unreadable(raw, err)
	if !skippable(raw.Type, raw.Data) || raw.Unterminated && ofAPI(string(raw.Type)) {
		return broken
	}
	if s.skipped++; s.skipped > maxSkipped {
		return broken
	}
	if s.yielded == 0 && s.garbage == nil {
		s.garbage = broken
	}
	if s.take != nil && s.skipped <= 10 {
		s.take(api.Note{Kind: api.NoteSkipped, Event: api.EventType(raw.Type), OutputIndex: -1,
			Text: fmt.Sprintf("data in the stream is not an event and was left out: %q", x.Quote(raw.Data, 60))})
	}
	return nil
}

// pass passes on one event and reports whether it was the last one.
func (s *stream) pass(x *transport.Exchange, ev *api.Event) (done bool, err error) {
	ev = x.Clean(ev)
	failure := failureOf(x, ev)
	if failure == nil && ev.Type == api.EventCompleted {
		if failure = s.unfinished(x, ev); failure != nil {
			s.lenient = false // the response may still end normally
		}
	}
	if failure != nil {
		ev = hidden(x, ev)
	}
	if failure != nil && s.fresh() && mayPass(failure) && !s.background.follows() {
		s.held = *ev
		return true, failure
	}
	terminal := ev.Type != api.EventError && ev.Terminal()
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
	case failure != nil && ev.Type == api.EventError:
		x.CancelAfter(errorGrace)
		return false, nil
	}
	return failure != nil, s.failed()
}

// fresh reports whether the request may be sent again, given the events already yielded.
func (s *stream) fresh() bool { return s.yielded == 0 || s.lenient && !s.sent }

// mayPass reports whether the request may be sent again after the failure: unchanged, with another
// key, or with the whole history.
func mayPass(e *endpoint.Error) bool {
	return e.SafeToRetry() || e.Class == endpoint.Auth || e.Class == endpoint.PreviousResponse
}

// failed returns the failure as an error, or nil.
func (s *stream) failed() error {
	if s.failure == nil {
		return nil
	}
	return s.failure
}

// hidden returns the event without the secrets that were sent, which an error may repeat.
func hidden(x *transport.Exchange, ev *api.Event) *api.Event {
	text := x.Hide(ev.JSON())
	if text == ev.JSON() {
		return ev
	}
	clean, err := api.ParseEventString(text)
	if err != nil {
		return &api.Event{Type: ev.Type, SequenceNumber: ev.SequenceNumber, OutputIndex: -1, ContentIndex: -1, SummaryIndex: -1}
	}
	return &clean
}

// give yields an event, unless the caller has stopped iterating.
func (s *stream) give(ev *api.Event) bool {
	if s.stopped {
		return false
	}
	if s.auditor != nil {
		s.auditor.Add(ev, s.take)
	}
	s.yielded++
	s.background.note(ev)
	switch ev.Type {
	case api.EventCreated, api.EventInProgress, api.EventQueued, api.EventFailed, api.EventCancelled, api.EventError, "":
	case api.EventItemAdded, api.EventItemDone:
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

// auditors keeps auditors for later streams, like decoders.
var auditors = sync.Pool{New: func() any { return new(api.Auditor) }}

// decoders keeps decoders of ended streams for later ones.
var decoders = sync.Pool{New: func() any { return new(api.EventDecoder) }}

// items returns the complete items. The accumulator decides which events belong to the same item,
// as for every reader of the stream.
func (s *stream) items() []item.Item {
	var items []item.Item
	var acc api.Accumulator
	for i := range s.told {
		done, _ := acc.Add(s.told[i]) // an unreadable item is not complete
		items = append(items, done...)
	}
	return items
}

// unfinished returns the error for a last event whose response says that it is still running, if
// the response has no output. A response with output counts as ended.
func (s *stream) unfinished(at faults, ev *api.Event) *endpoint.Error {
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

// stillMade returns the error for a response that has not ended.
func stillMade(r *api.Response) *endpoint.Error {
	return &endpoint.Error{Class: endpoint.Truncated, Message: "the response is still " + r.Status}
}

// failureOf returns the error that an event reports, or nil.
func failureOf(at faults, ev *api.Event) *endpoint.Error {
	if strings.HasSuffix(string(ev.Type), ".delta") {
		return nil // shortcut for nearly all events
	}
	if a, ok := ev.Err(); ok {
		if e := endpoint.FromEvent([]byte(ev.JSON())); e != nil {
			e.Err = a
			return at.Fail(e) // the error may hold a status, as on a WebSocket
		}
		return at.FromAPI(a)
	}
	switch ev.Type {
	case api.EventCompleted, api.EventIncomplete:
		// The response's status may contradict the event's type.
		if text := ev.JSON(); !strings.Contains(text, `"`+item.StatusFailed+`"`) && !strings.Contains(text, `"`+item.StatusCancelled+`"`) {
			return nil
		}
		if r, err := ev.Response(); err == nil && (r.Status == item.StatusFailed || r.Status == item.StatusCancelled) {
			return failureOf(at, &api.Event{Type: api.EventType("response." + r.Status)})
		}
	case api.EventFailed:
		return at.Fail(&endpoint.Error{Class: endpoint.Server, Message: "the response failed, and the server gave no reason"})
	case api.EventCancelled:
		return at.Fail(&endpoint.Error{Class: endpoint.Canceled, Message: "the response was cancelled at the server"})
	}
	return nil
}
