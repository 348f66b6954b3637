// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// Follow yields the events of a background response up to its last event. It starts after the event
// with the sequence number after; -1 means from the beginning. Include takes values such as
// [api.IncludeEncryptedReasoning]. Errors and the lifetime of events are as in [Client.Stream].
//
// If the connection is lost, Follow continues after the last event it received, as often as the
// retry budget allows; raise Retry.Max if connections break often. It never skips an event or
// yields one twice, except that it always yields the last event, whatever after is.
//
// If the endpoint has no stream for the response, or no longer has one, Follow polls like
// [Client.Wait]. It then yields each remaining item as done, and the last event.
func (c *Client) Follow(ctx context.Context, id string, after int64, include ...string) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		after := max(after, -1)
		b := &background{id: id, after: after, last: after, options: RetrieveOptions{Include: include}}
		s := &stream{yield: yield, background: b}
		s.end(c.follow(c.shared(ctx), s, nil))
	}
}

// Wait returns a background response when it has ended. A failed response is returned together with
// its error. Wait polls the endpoint at the growing intervals of [Client.Retry] until the response
// ends or ctx is done.
func (c *Client) Wait(ctx context.Context, id string, include ...string) (*api.Response, error) {
	a := &ask{Op: "wait for response", Method: http.MethodGet, Path: pathResponse, IDs: []string{id}, Part: partStored}
	a.Query = (&RetrieveOptions{Include: include}).query()
	for n := 0; ; n++ {
		var failure error
		r, err := do(ctx, c, a, func(x *transport.Exchange) (*api.Response, error) {
			r, _, err := readResponse(x)
			if err == nil {
				failure = outcome(x, r)
			}
			return r, err
		})
		if err != nil {
			return nil, err
		}
		if !pending(r) {
			return r, failure
		}
		if err := c.pause(ctx, a.Op, n); err != nil {
			return nil, err
		}
	}
}

// pending reports whether a response has not ended yet.
func pending(r *api.Response) bool {
	return r.Status == item.StatusQueued || r.Status == item.StatusInProgress
}

// pause waits before the next poll; n is the number of polls so far.
func (c *Client) pause(ctx context.Context, op string, n int) error {
	return c.link().Pause(ctx, op, n)
}

func (c *Client) budget(ctx context.Context) *endpoint.Budget {
	if b := endpoint.BudgetFrom(ctx); b != nil {
		return b
	}
	return c.RetryPolicy().Budget()
}

// shared returns a context whose requests use one retry budget.
func (c *Client) shared(ctx context.Context) context.Context {
	return endpoint.WithBudget(ctx, c.budget(ctx))
}

// background is the state that a stream needs to continue a background response after a lost
// connection. It is nil for any other response.
type background struct {
	id      string // "" until the endpoint has sent it
	options RetrieveOptions

	after int64 // sequence number of the last event that the caller received earlier, or -1
	last  int64 // sequence number of the last event yielded since
	// loose is set after an event whose sequence number is out of order. The events after such an
	// event cannot be requested.
	loose bool
	done  []told

	following bool
	from      int64 // last event before the current attempt
	fresh     int   // number of events that the attempt yielded
	polls     bool  // there is no stream
	peeks     bool  // the last stream was empty, so there may be none
	waits     bool  // the response was pending at the last look
}

// told is an item that was yielded as done.
type told struct {
	index int
	item  item.Item
}

// backgroundOf returns nil if the request does not run in the background in the form that the
// endpoint receives.
func (c *Client) backgroundOf(req *api.Request) *background {
	if c == nil || req == nil || req.Background == nil || !*req.Background {
		return nil
	}
	link := c.link()
	profile, err := link.Known()
	if err != nil {
		return nil // creating the response will report this error
	}
	if req, err = link.Fit(req, profile); err != nil || req.Background == nil || !*req.Background {
		return nil
	}
	b := &background{after: -1, last: -1, options: RetrieveOptions{Include: req.Include}}
	if o := req.StreamOptions; o != nil {
		b.options.IncludeObfuscation = o.IncludeObfuscation
	}
	return b
}

// ask returns the request for the remaining events.
func (b *background) ask() *ask {
	a := &ask{Op: "follow response", Method: http.MethodGet, Path: pathResponse, IDs: []string{b.id}, Part: partBackground}
	a.Query = b.options.query()
	if b.polls = b.polls || b.loose; b.polls || b.peeks {
		return a
	}
	a.Accept = transport.TypeEvents
	a.Query.Set("stream", "true")
	if b.last >= 0 {
		a.Query.Set("starting_after", strconv.FormatInt(b.last, 10))
	}
	return a
}

// continues reports whether the caller received the first events earlier. The deltas of this stream
// are then not the whole of their texts.
func (b *background) continues() bool { return b != nil && b.after >= 0 }

func (b *background) follows() bool { return b != nil && b.following }

// note records an event that is yielded.
func (b *background) note(ev *api.Event) {
	if b == nil {
		return
	}
	b.fresh++
	if ev.SequenceNumber > b.last {
		b.last = ev.SequenceNumber
	} else if strings.HasPrefix(string(ev.Type), "response.") { // not a keepalive
		b.loose = true
	}
	switch ev.Type {
	case api.EventCreated, api.EventQueued, api.EventInProgress:
		if b.id == "" {
			if r, err := ev.Response(); err == nil {
				b.id = r.ID
			}
		}
	case api.EventItemDone:
		b.tell(ev)
	}
}

func (b *background) tell(ev *api.Event) {
	if it, err := ev.Item(); err == nil {
		b.done = append(b.done, told{ev.OutputIndex, it})
	}
}

// had reports whether an event was yielded before, judged by its sequence number.
func (b *background) had(ev *api.Event) bool {
	if b == nil || !b.following || ev.SequenceNumber < 0 || ev.SequenceNumber > b.from {
		return false
	}
	if ev.Type == api.EventItemDone && ev.SequenceNumber <= b.after {
		b.tell(ev)
	}
	return true
}

// late prepares the stream for a last event whose number was seen before. Either the caller
// received it before Follow, or the endpoint restarts its numbers on each connection, and events
// were wrongly skipped.
func (s *stream) late(x *transport.Exchange, ev *api.Event) {
	if r, err := ev.Response(); err == nil {
		_, _, _ = s.rest(x, r.Output) // the event reports errors in items too
	}
}

// next returns the sequence number for an event that the endpoint did not send.
func (b *background) next() int64 {
	if b == nil {
		return 0
	}
	return b.last + 1
}

// untold reports whether item i of the whole response has not been yielded yet.
func (b *background) untold(i int, it item.Item) bool {
	if b == nil {
		return true
	}
	for n, t := range b.done {
		id := it.ID()
		if id != "" && t.item.ID() == id || t.index == i && t.item.Type() == it.Type() || t.item == it {
			b.done = append(b.done[:n:n], b.done[n+1:]...) // each entry matches once
			return false
		}
	}
	return true
}

// goesOn reports whether the stream must wait for the response to end.
func (b *background) goesOn(r *api.Response) bool {
	if b == nil || !pending(r) {
		return false
	}
	b.id = cmp.Or(b.id, r.ID)
	b.waits = b.id != ""
	return b.waits
}

// lost reports whether the stream broke and can be continued.
func (s *stream) lost(err error) bool {
	b := s.background
	if b == nil || b.id == "" || s.stopped || s.failure != nil {
		return false
	}
	if err == nil {
		return b.waits
	}
	switch asError(err).Class {
	case endpoint.Truncated, endpoint.Network, endpoint.Idle:
		return true
	}
	return false
}

// follow continues the stream until the response has ended. If the stream was lost, its error uses
// the budget first: the new request is a further attempt.
func (c *Client) follow(ctx context.Context, s *stream, lost error) error {
	s.background.following = true
	k, err := c.prepare(ctx, s.background.ask())
	switch {
	case err != nil && lost == nil:
		return err
	case err != nil:
		return s.unfollowed(lost, err)
	}
	first := lost
	var idle error
	err = k.Retry(ctx, func() (bool, error) {
		err := first
		if first = nil; err == nil {
			err = c.attach(ctx, s)
		}
		if err == nil {
			return false, nil
		}
		e := *asError(err)
		e.Sent = false // retrying does not yield the same events again
		if idle = nil; e.Class == endpoint.Idle {
			idle, e.Class = err, endpoint.Truncated // a dead connection is silent too
		}
		return s.failure == nil && !s.stopped, &e
	})
	if idle != nil && err != nil && asError(err).Class == endpoint.Truncated {
		err = idle
	}
	return s.unfollowed(lost, err)
}

// unfollowed returns the error of a stream that could not be followed to its end.
func (s *stream) unfollowed(lost, err error) error {
	if err == nil {
		return nil
	}
	e := *asError(err)
	passing := e.SafeToRetry() || e.Class == endpoint.Idle
	hint := "response " + s.background.id + " may still be running at the server"
	switch {
	case s.failure != nil || e.Class == endpoint.Canceled:
	case passing:
		e.Hint = hint
	case lost != nil:
		hint += "; it cannot be followed: " + e.Error()
		e = *asError(lost)
		e.Hint = hint
	}
	e.Sent = s.sent
	return &e
}

// attach polls for the remaining events until an answer has them.
func (c *Client) attach(ctx context.Context, s *stream) error {
	for n := 0; ; n++ {
		waits, err := c.look(ctx, s)
		if err != nil || !waits {
			return err
		}
		if err := c.pause(ctx, "follow response", n); err != nil {
			return err
		}
	}
}

// look makes one request. It reports whether the response has no stream and is pending.
func (c *Client) look(ctx context.Context, s *stream) (waits bool, err error) {
	b, a := s.background, s.background.ask()
	peeked := b.peeks
	b.peeks = false
	k, err := c.prepare(ctx, a)
	if err != nil {
		return false, err
	}
	x, err := k.Open(ctx)
	if err != nil {
		err = a.Failed(c.link(), err)
		if b.polls || peeked || asError(err).Class != endpoint.BadRequest {
			return false, err
		}
		b.polls = true // the response has no stream, or its stream has expired
		return true, nil
	}
	defer x.Close()
	b.from, b.fresh, b.waits = b.last, 0, false
	if x.Kind == transport.JSON {
		err = s.whole(x)
		b.polls = b.polls || b.waits && !peeked
		return b.waits, err
	}
	err = s.events(x)
	if err != nil && b.fresh == 0 && s.failure == nil && emptied(x) {
		b.peeks = true
		return true, nil
	}
	return false, err
}

// emptied reports whether the body ended properly, with nothing missing.
func emptied(x *transport.Exchange) bool {
	x.CancelAfter(errorGrace)
	_, err := io.CopyN(io.Discard, x.Body, 64<<10)
	return err == io.EOF
}
