// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// Create sends the request without streaming and returns the whole response. A
// response that failed is returned together with its error. Endpoints that
// stream all the same are understood; where such a stream breaks off for good,
// the error is a [*PartialError] if items were complete.
func (c *Client) Create(ctx context.Context, req *item.Request) (*item.Response, error) {
	var resp *item.Response
	err := c.send(ctx, req, false, func(k *wire.Call) (bool, error) {
		resp = nil
		x, err := k.Open(ctx)
		if err != nil {
			return true, err
		}
		defer x.Close()
		if x.Kind == wire.Stream {
			resp, err = collect(x)
		} else {
			resp, _, err = readResponse(x)
		}
		if err == nil {
			err = outcome(x, resp)
		}
		if err == nil && pending(resp) && len(resp.Output) == 0 && !isTrue(req.Background) && !isTrue(resp.Background) {
			err = x.Fail(stillMade(resp))
		}
		return true, err
	})
	return resp, err
}

func isTrue(v *bool) bool { return v != nil && *v }

// collect puts a response together from a stream.
func collect(x *wire.Exchange) (*item.Response, error) {
	var acc item.Accumulator
	var unreadable error
	s := &stream{yield: func(ev item.Event, _ error) bool {
		_, err := acc.Add(ev)
		unreadable = cmp.Or(unreadable, err)
		return true
	}}
	if err := s.events(x); err != nil {
		return nil, s.partial(asError(err))
	}
	if unreadable != nil {
		return nil, x.Fail(&endpoint.Error{Class: endpoint.Protocol, Err: unreadable})
	}
	resp, _ := acc.Response()
	return resp, nil
}

// faults makes errors that say where they happened.
type faults interface {
	Fail(*endpoint.Error) *endpoint.Error
	FromAPI(*item.APIError) *endpoint.Error
}

// outcome is the error that a whole response reports, or nil.
func outcome(at faults, r *item.Response) error {
	if r.Error != nil {
		return at.FromAPI(r.Error)
	}
	switch r.Status {
	case item.StatusFailed:
		return failureOf(at, &item.Event{Type: item.EventFailed})
	case item.StatusCancelled:
		return failureOf(at, &item.Event{Type: item.EventCancelled})
	}
	return nil
}

// readResponse reads a body that is one response, and returns its text too.
func readResponse(x *wire.Exchange) (*item.Response, []byte, error) {
	text, err := x.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	r, err := item.ParseResponse(text)
	var syntax *item.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, nil, x.Unreadable("the answer", text, true, err)
	case err != nil, r.Output == nil && (r.ID == "" || cmp.Or(r.Status, item.StatusCompleted) == item.StatusCompleted):
		e := x.Refused(text)
		if e.Message == "" {
			e.Class, e.Err = endpoint.Protocol, err
			e.Message = "the answer is JSON but no response"
		}
		return nil, nil, x.Fail(e)
	}
	x.CleanResponse(r)
	return r, text, nil
}

// whole passes a response that came in one piece on as the events that matter:
// each item done, then the last event. What was passed on before is left out; a
// response that is to be waited for is none yet.
func (s *stream) whole(x *wire.Exchange) error {
	s.lenient = false // a response that is told as a whole exists, and may go on
	r, text, err := readResponse(x)
	if err != nil || s.background.goesOn(r) {
		return err
	}
	number, done, err := s.rest(x, r.Output)
	if done || err != nil {
		return err
	}
	status := cmp.Or(r.Status, item.StatusCompleted)
	if r.Error != nil {
		status = item.StatusFailed
	}
	last := `{"type":` + string(item.Quote("response."+status)) + `,"sequence_number":` + strconv.FormatInt(number, 10) + `,"response":`
	ev, err := item.ParseEventString(last + string(bytes.TrimSpace(text)) + `}`)
	if err != nil {
		return x.Unreadable("the answer", text, false, err)
	}
	if done, err := s.pass(x, &ev); done {
		return err
	}
	return x.Fail(&endpoint.Error{Class: endpoint.Truncated, Message: "the response is still " + status})
}

// rest passes those items on that were not before, as done. It returns the
// number for the next event, and whether the consumer has had enough.
func (s *stream) rest(x *wire.Exchange, items []item.Item) (number int64, done bool, err error) {
	number = s.background.next()
	for i, it := range items {
		if !s.background.untold(i, it) {
			continue
		}
		text := `{"type":"` + string(item.EventItemDone) + `","sequence_number":` + strconv.FormatInt(number, 10) + `,"output_index":` + strconv.Itoa(i) + `,"item":` + it.JSON() + `}`
		ev, err := item.ParseEventString(text)
		if err != nil {
			return number, false, x.Unreadable("item "+strconv.Itoa(i), []byte(it.JSON()), false, err)
		}
		number++
		if done, err := s.pass(x, &ev); done {
			return number, true, err
		}
	}
	return number, false, nil
}

// asError is err as the error type of this package.
func asError(err error) *endpoint.Error {
	var e *endpoint.Error
	if errors.As(err, &e) {
		return e
	}
	return &endpoint.Error{Class: endpoint.Protocol, Err: err}
}
