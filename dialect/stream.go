// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// PartialError is an error after output: the reply broke off or failed when some of its items were
// complete. The client does not send the request again, because the model would repeat these items.
// errors.As finds the wrapped [*endpoint.Error].
type PartialError struct {
	// Err is the cause.
	Err *endpoint.Error
	// Items are the complete items, in the order in which they arrived. Calls among them are whole.
	// The caller decides whether to run them, since the model did not finish its turn.
	Items []item.Item
}

// Error returns the cause's message and the number of complete items.
func (e *PartialError) Error() string {
	n := fmt.Sprintf("%d items were", len(e.Items))
	if len(e.Items) == 1 {
		n = "1 item was"
	}
	return fmt.Sprintf("%v (%s complete)", e.Err, n)
}

// Unwrap returns the cause.
func (e *PartialError) Unwrap() error { return e.Err }

// Stream sends the request with stream set and yields the answer as events of the Responses API, up
// to the response's last event. It sends nothing until the caller iterates, and each iteration
// sends the request anew. Events are values and do not change later.
//
// After a failure the last pair yielded holds an error, usually an [*endpoint.Error]. A stream that
// ends before the reply does is Truncated. An error that the server reports is yielded as an event,
// and then again as the error. An incomplete response is not an error. A failure is retried only
// while no output was yielded, so the events that begin a response may appear twice. A failure
// after complete items is a [*PartialError] that holds the items.
//
// Data that is not an event of the dialect, such as the ping of a proxy, is left out and reported
// to the function that [api.WithNotes] put into ctx; a stream with nothing else is an error. What
// the Responses API cannot express goes to Config.OnLoss; lost content also goes to the function of
// [api.WithNotes].
//
// If the caller stops iterating or ctx is done, the connection is closed. No goroutine remains
// after the iteration.
func (c Client) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		s := &stream{client: c, yield: yield}
		err := c.send(ctx, req, true, func(k *transport.Call) (bool, error) {
			err := s.run(ctx, k)
			return !s.sent, err
		})
		if s.held.JSON() != "" && err != nil {
			s.pass(s.held)
		}
		if err != nil && !s.stopped {
			yield(api.Event{}, s.partial(err))
		}
	}
}

// Create sends the request without streaming and returns the whole response. A failed response is
// returned together with its error. If the endpoint streams anyway, Create reads the stream. If
// such a stream breaks off after complete items and cannot be retried, the error is a
// [*PartialError].
func (c Client) Create(ctx context.Context, req *api.Request) (*api.Response, error) {
	var resp *api.Response
	err := c.send(ctx, req, false, func(k *transport.Call) (bool, error) {
		resp = nil
		x, err := k.Open(ctx)
		if err != nil {
			return true, err
		}
		defer x.Close()
		var text []byte
		if x.Kind == transport.Stream {
			resp, err = c.collect(ctx, x)
		} else {
			resp, text, err = c.read(ctx, x, c.Dialect.NewDecoder())
		}
		if err == nil && (resp.Error != nil || resp.Status == item.StatusFailed) {
			err = failure(x, resp.Error, text)
		}
		return true, err
	})
	return resp, err
}

// collect assembles a response from a stream.
func (c Client) collect(ctx context.Context, x *transport.Exchange) (*api.Response, error) {
	var acc api.Accumulator
	var unreadable error
	s := &stream{client: c, x: x, decoder: c.Dialect.NewDecoder(), yield: func(ev api.Event, _ error) bool {
		_, err := acc.Add(ev)
		unreadable = errors.Join(unreadable, err)
		return true
	}}
	if err := s.events(ctx); err != nil {
		return nil, s.partial(asError(x, err))
	}
	if unreadable != nil {
		return nil, x.Fail(&endpoint.Error{Class: endpoint.Protocol, Err: unreadable})
	}
	resp, _ := acc.Response()
	return resp, nil
}

// asError returns err as an *endpoint.Error.
func asError(x *transport.Exchange, err error) *endpoint.Error {
	var e *endpoint.Error
	if !errors.As(err, &e) {
		e = x.Fail(&endpoint.Error{Class: endpoint.Protocol, Err: err})
	}
	return e
}

// failure returns the error that a server reports in its answer. Other facts in said, such as a
// status, are used too. A nil a means that the server gave no reason.
func failure(x *transport.Exchange, a *api.APIError, said []byte) *endpoint.Error {
	if a == nil {
		return x.Fail(&endpoint.Error{Class: endpoint.Server, Message: "the reply failed, and the server gave no reason"})
	}
	for i, m := range a.Extra { // the exchange cleans the other members
		if clean := x.Hide(string(m.Value)); clean != string(m.Value) {
			a.Extra[i].Value = item.Quote(clean)
		}
	}
	if e := endpoint.FromEvent(said); e != nil {
		e.Err = a
		return x.Fail(e)
	}
	return x.FromAPI(a)
}

// read reads a body that is one answer, and also returns its text.
func (c Client) read(ctx context.Context, x *transport.Exchange, d Decoder) (*api.Response, []byte, error) {
	text, err := x.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	r, err := d.Response(text)
	var syntax *item.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, nil, x.Unreadable("the answer", text, true, err)
	case err != nil:
		e := x.Refused(text)
		if e.Message == "" {
			e.Class, e.Err = endpoint.Protocol, err
			e.Message = "the answer is JSON but not an answer of " + c.Dialect.Info().Title + ": " + err.Error()
		}
		return nil, nil, x.Fail(e)
	}
	c.lostOf(ctx, x, d)
	x.CleanResponse(r)
	return r, text, nil
}

// maxNamed is how many losses the note about one reply lists.
const maxNamed = 10

// lostOf reports what was lost of a reply. Lost content, such as a second choice, is also noted, so
// that the log of a run shows that it is missing.
func (c Client) lostOf(ctx context.Context, x *transport.Exchange, d Decoder) {
	losses := d.Losses()
	for i := range losses {
		losses[i].Reply = true
	}
	c.lost(losses)
	take := api.NotesOf(ctx)
	if take == nil {
		return
	}
	var named []string
	for _, l := range losses {
		if l.Kind == LostContent && len(named) < maxNamed {
			named = append(named, l.String())
		}
	}
	if len(named) > 0 {
		take(api.Note{Kind: api.NoteLost, OutputIndex: -1,
			Text: x.Hide("the reply holds data that a response cannot hold, and it is not kept: " + strings.Join(named, "; "))})
	}
}

// stream passes on the events of one reply.
type stream struct {
	client  Client
	yield   func(api.Event, error) bool
	yielded int         // number of events
	sent    bool        // some of them were output
	stopped bool        // the caller stopped iterating
	told    []api.Event // the events that begin and end items

	// The state of one attempt:
	x       *transport.Exchange
	decoder Decoder
	said    []byte          // the event being read, or the whole answer, as received
	failure *endpoint.Error // reported by an event
	held    api.Event       // a failure that was the first event; yielded only if it is final
}

// run makes one attempt.
func (s *stream) run(ctx context.Context, k *transport.Call) error {
	s.held, s.failure, s.told = api.Event{}, nil, nil
	x, err := k.Open(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	s.x, s.decoder = x, s.client.Dialect.NewDecoder()
	if x.Kind == transport.JSON {
		err = s.whole(ctx)
	} else {
		err = s.events(ctx)
	}
	if err == nil {
		if s.decoder.State() == Over && !s.stopped {
			x.Recycle()
		}
		return nil
	}
	e := asError(x, err)
	e.Sent = s.sent
	return e
}

// partial adds the complete items to an error. The accumulator decides which events belong to the
// same item, as for every reader of the stream.
func (s *stream) partial(err error) error {
	e, ok := err.(*endpoint.Error)
	if !ok {
		return err
	}
	var items []item.Item
	var acc api.Accumulator
	for i := range s.told {
		done, _ := acc.Add(s.told[i]) // an unreadable item is not complete
		items = append(items, done...)
	}
	if len(items) == 0 {
		return err
	}
	return &PartialError{Err: e, Items: items}
}

// settledGrace is how long a stream may continue after the reply is whole, for example to send the
// usage.
const settledGrace = 5 * time.Second

// maxSkipped is the number of non-events in a row, such as the pings of proxies, after which a
// stream does not belong to the API.
const maxSkipped = 100

// events reads a stream up to its end.
func (s *stream) events(ctx context.Context) error {
	d := s.decoder
	defer s.client.lostOf(ctx, s.x, d)
	src := s.x.Events()
	give := s.give // one function value for all events
	skipped := 0
	s.x.Heard()
	var garbage error // the first skipped data
	for {
		raw, err := src.Next()
		switch {
		case err != nil && garbage != nil && s.yielded == 0 && ctx.Err() == nil:
			return garbage
		case err != nil && (d.State() == Unfinished || ctx.Err() != nil):
			return err
		case err != nil:
			return s.finish(false, give) // the reply is whole
		case transport.Done(raw.Data):
			s.x.Drain()
			return s.finish(true, give)
		}
		s.said = raw.Data
		err = d.Decode(raw.Type, raw.Data, give)
		switch {
		case errors.Is(err, ErrNotEvent):
			if skipped++; skipped > maxSkipped || raw.Unterminated {
				return src.Unreadable(raw, err)
			}
			if garbage == nil {
				garbage = src.Unreadable(raw, err)
			}
			if take := api.NotesOf(ctx); take != nil && skipped <= 10 {
				take(api.Note{Kind: api.NoteSkipped, Event: api.EventType(raw.Type), OutputIndex: -1,
					Text: fmt.Sprintf("data in the stream is not an event and was left out: %q", s.x.Quote(raw.Data, 60))})
			}
			continue
		case err != nil && raw.Unterminated && d.State() != Unfinished:
			return s.finish(false, give) // the truncated event comes after the reply's end
		case err != nil:
			return src.Unreadable(raw, err)
		}
		skipped = 0
		s.x.Heard()
		switch state := d.State(); {
		case s.failure != nil:
			return s.failure
		case s.stopped:
			return nil
		case state == Over:
			s.x.Drain()
			return s.finish(false, give)
		case state == Settled:
			s.x.CancelAfter(settledGrace)
		}
	}
}

// finish ends the reply.
func (s *stream) finish(done bool, give func(api.Event) bool) error {
	switch err := s.decoder.Finish(done, give); {
	case errors.Is(err, ErrTruncated):
		return s.x.Fail(&endpoint.Error{Class: endpoint.Truncated, Message: err.Error()})
	case err != nil:
		return err
	case s.failure != nil:
		return s.failure
	}
	return nil
}

// give passes on an event, unless it is a failure that may be retried.
func (s *stream) give(ev api.Event) bool {
	ev = *s.x.Clean(&ev)
	if ev.Type == api.EventError || ev.Type == api.EventFailed {
		a, _ := ev.Err()
		s.failure, ev = failure(s.x, a, s.said), s.hidden(ev)
		if !s.sent && (s.failure.SafeToRetry() || s.failure.Class == endpoint.Auth) { // a new key may help
			s.held = ev
			return false
		}
	}
	return s.pass(ev)
}

func (s *stream) pass(ev api.Event) bool {
	if s.stopped {
		return false
	}
	s.yielded++
	switch ev.Type {
	case api.EventCreated, api.EventInProgress, api.EventFailed, api.EventError:
	case api.EventItemAdded, api.EventItemDone:
		s.sent = true
		s.told = append(s.told, ev)
	default:
		s.sent = true
	}
	s.stopped = !s.yield(ev, nil)
	return !s.stopped
}

// hidden returns an event that reports a failure without the key, which servers may repeat in
// errors.
func (s *stream) hidden(ev api.Event) api.Event {
	clean := s.x.Hide(ev.JSON())
	if clean == ev.JSON() {
		return ev
	}
	own, err := api.ParseEventString(clean)
	if err != nil { // replacing the key made the JSON invalid
		return api.Event{Type: ev.Type, SequenceNumber: ev.SequenceNumber, OutputIndex: -1, ContentIndex: -1, SummaryIndex: -1}
	}
	return own
}

// whole passes on an answer that arrived as one object, as its important events: each item done,
// then the last event.
func (s *stream) whole(ctx context.Context) error {
	r, text, err := s.client.read(ctx, s.x, s.decoder)
	if err != nil {
		return err
	}
	s.said = text
	for i, it := range r.Output {
		if err := s.event(&api.ItemDoneEvent{EventHead: api.EventHead{SequenceNumber: int64(i)}, OutputIndex: i, Item: it}); err != nil || s.stopped {
			return err
		}
	}
	last := api.ResponseEvent{EventHead: api.EventHead{SequenceNumber: int64(len(r.Output))}, Response: r}
	switch r.Status {
	case item.StatusFailed:
		err = s.event(&api.FailedEvent{ResponseEvent: last})
	case item.StatusIncomplete:
		err = s.event(&api.IncompleteEvent{ResponseEvent: last})
	default:
		err = s.event(&api.CompletedEvent{ResponseEvent: last})
	}
	if err == nil && s.failure != nil {
		return s.failure
	}
	return err
}

func (s *stream) event(v api.EventValue) error {
	ev, err := api.NewEvent(v)
	if err != nil {
		return errors.New("event " + strconv.Itoa(s.yielded) + ": " + err.Error())
	}
	s.give(ev)
	return nil
}
