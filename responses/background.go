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

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// Follow yields the events of a response that is made in the background, up to
// its last one, beginning after the event with the sequence number after; -1
// is the beginning. Include is such as [item.IncludeEncryptedReasoning]. Errors
// and the life of events are as with [Client.Stream].
//
// A connection that is lost is taken up again after the last event that came,
// as often as the retry budget allows; raise Retry.Max where that is often. No
// event is yielded twice or left out, and the last one is yielded in any case,
// whatever after is.
//
// Where the endpoint has no stream of the response, or no more, Follow waits as
// [Client.Wait] does. Then the items that it has not yielded come as done, and
// the last event.
func (c *Client) Follow(ctx context.Context, id string, after int64, include ...string) iter.Seq2[item.Event, error] {
	return func(yield func(item.Event, error) bool) {
		after := max(after, -1)
		b := &background{id: id, after: after, last: after, options: RetrieveOptions{Include: include}}
		s := &stream{yield: yield, background: b}
		s.end(c.follow(c.shared(ctx), s, nil))
	}
}

// Wait returns a response that is made in the background as soon as it has come
// to its end; one that failed is returned together with its error. It asks
// again and again, in the growing intervals of [Client.Retry], and has no limit
// but ctx.
func (c *Client) Wait(ctx context.Context, id string, include ...string) (*item.Response, error) {
	a := &ask{op: "wait for response", method: http.MethodGet, path: pathResponse, ids: []string{id}, part: partStored}
	a.query = (&RetrieveOptions{Include: include}).query()
	for n := 0; ; n++ {
		var failure error
		r, err := do(ctx, c, a, func(x *wire.Exchange) (*item.Response, error) {
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
		if err := c.pause(ctx, a.op, n); err != nil {
			return nil, err
		}
	}
}

// pending reports that a response is not yet at its end.
func pending(r *item.Response) bool {
	return r.Status == item.StatusQueued || r.Status == item.StatusInProgress
}

// pause waits between two looks at a response, n of which have been.
func (c *Client) pause(ctx context.Context, op string, n int) error {
	d, top := cmp.Or(c.Retry.Base, endpoint.DefaultBase), cmp.Or(c.Retry.Cap, endpoint.DefaultCap)
	for ; n > 0 && d < top; n-- {
		d *= 2
	}
	if c.budget(ctx).Sleep(ctx, min(d, top)) == nil {
		return nil
	}
	return &endpoint.Error{Op: op, Class: endpoint.Canceled, Err: context.Cause(ctx)}
}

func (c *Client) budget(ctx context.Context) *endpoint.Budget {
	if b := endpoint.BudgetFrom(ctx); b != nil {
		return b
	}
	return c.Retry.Budget()
}

// shared returns a context whose requests draw on one budget.
func (c *Client) shared(ctx context.Context) context.Context {
	return endpoint.WithBudget(ctx, c.budget(ctx))
}

// background is what a stream has to know of a response that is made in the
// background, to be taken up again. A nil one is that of any other response.
type background struct {
	id      string // "" until the endpoint has told it
	options RetrieveOptions

	after int64 // sequence number of the last event that the caller had before, or -1
	last  int64 // and of the last one that was yielded since
	// loose is set once an event came that does not follow its number: what is
	// after it cannot be asked for.
	loose bool
	done  []told

	following bool
	from      int64 // what the current attempt asked for
	fresh     int   // events that it yielded
	polls     bool  // there is no stream
	peeks     bool  // there may be none, as the last one had nothing
	waits     bool  // the response was found to be pending
}

// told is an item that was yielded as done.
type told struct {
	index int
	item  item.Item
}

// backgroundOf is nil for a request that is not for the background, or not in
// the shape in which the endpoint gets it.
func (c *Client) backgroundOf(req *item.Request) *background {
	if c == nil || req == nil || req.Background == nil || !*req.Background {
		return nil
	}
	link := c.link()
	profile, err := link.Known()
	if err != nil {
		return nil // as creating it will say
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

// ask is the request for what has not come yet.
func (b *background) ask() *ask {
	a := &ask{op: "follow response", method: http.MethodGet, path: pathResponse, ids: []string{b.id}, part: partBackground}
	a.query = b.options.query()
	if b.polls = b.polls || b.loose; b.polls || b.peeks {
		return a
	}
	a.accept = wire.TypeEvents
	a.query.Set("stream", "true")
	if b.last >= 0 {
		a.query.Set("starting_after", strconv.FormatInt(b.last, 10))
	}
	return a
}

// continues reports that the caller had the first events before: then the deltas
// that it gets are not all of their texts.
func (b *background) continues() bool { return b != nil && b.after >= 0 }

func (b *background) follows() bool { return b != nil && b.following }

// note remembers an event that is yielded.
func (b *background) note(ev *item.Event) {
	if b == nil {
		return
	}
	b.fresh++
	if ev.SequenceNumber > b.last {
		b.last = ev.SequenceNumber
	} else if strings.HasPrefix(string(ev.Type), "response.") { // no sign of life
		b.loose = true
	}
	switch ev.Type {
	case item.EventCreated, item.EventQueued, item.EventInProgress:
		if b.id == "" {
			if r, err := ev.Response(); err == nil {
				b.id = r.ID
			}
		}
	case item.EventItemDone:
		b.tell(ev)
	}
}

func (b *background) tell(ev *item.Event) {
	if it, err := ev.Item(); err == nil {
		b.done = append(b.done, told{ev.OutputIndex, it})
	}
}

// had reports an event that was yielded before, by its number.
func (b *background) had(ev *item.Event) bool {
	if b == nil || !b.following || ev.SequenceNumber < 0 || ev.SequenceNumber > b.from {
		return false
	}
	if ev.Type == item.EventItemDone && ev.SequenceNumber <= b.after {
		b.tell(ev)
	}
	return true
}

// late readies the stream for a last event that was had by its number: before
// this Follow, or else the endpoint counts anew on each connection, and what
// was taken for had was not.
func (s *stream) late(x *wire.Exchange, ev *item.Event) {
	if r, err := ev.Response(); err == nil {
		_, _, _ = s.rest(x, r.Output) // what is wrong with an item, the event says too
	}
}

// next is the sequence number for an event that the endpoint did not send.
func (b *background) next() int64 {
	if b == nil {
		return 0
	}
	return b.last + 1
}

// untold reports whether item i of the whole response has yet to be yielded.
func (b *background) untold(i int, it item.Item) bool {
	if b == nil {
		return true
	}
	for n, t := range b.done {
		id := it.ID()
		if id != "" && t.item.ID() == id || t.index == i && t.item.Type() == it.Type() || t.item == it {
			b.done = append(b.done[:n:n], b.done[n+1:]...) // it counts once
			return false
		}
	}
	return true
}

// goesOn reports a response that is to be waited for.
func (b *background) goesOn(r *item.Response) bool {
	if b == nil || !pending(r) {
		return false
	}
	b.id = cmp.Or(b.id, r.ID)
	b.waits = b.id != ""
	return b.waits
}

// lost reports a stream that can be taken up again.
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

// follow takes the stream up until the response has come to its end. The error
// by which it was lost, if it was, draws on the budget first: what follows is a
// further attempt, though not of the same request.
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
		e.Sent = false // what was yielded is not yielded again
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

// unfollowed is the error of a stream that could not be followed to its end.
func (s *stream) unfollowed(lost, err error) error {
	if err == nil {
		return nil
	}
	e := *asError(err)
	passing := e.SafeToRetry() || e.Class == endpoint.Idle
	hint := "response " + s.background.id + " may go on at the server"
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

// attach asks for the rest until there is an answer that brings it.
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

// look asks once. It reports a response that has no stream and is pending.
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
		err = a.failed(c, err)
		if b.polls || peeked || asError(err).Class != endpoint.BadRequest {
			return false, err
		}
		b.polls = true // not of a stream, or of one that is too old
		return true, nil
	}
	defer x.Close()
	b.from, b.fresh, b.waits = b.last, 0, false
	if x.Kind == wire.JSON {
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

// emptied reports a stream that came to a proper end: nothing is missing.
func emptied(x *wire.Exchange) bool {
	x.CancelAfter(errorGrace)
	_, err := io.CopyN(io.Discard, x.Body, 64<<10)
	return err == io.EOF
}
