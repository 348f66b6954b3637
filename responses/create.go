// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// Create sends the request without streaming and returns the whole response. A failed response is
// returned together with its error. If the endpoint streams anyway, Create reads the stream. If
// such a stream breaks off and cannot be continued, and items were complete, the error is a
// [*PartialError].
func (c *Client) Create(ctx context.Context, req *api.Request) (*api.Response, error) {
	var resp *api.Response
	err := c.send(ctx, req, false, func(k *transport.Call) (bool, error) {
		resp = nil
		x, err := k.Open(ctx)
		if err != nil {
			return true, err
		}
		defer x.Close()
		if x.Kind == transport.Stream {
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

// collect assembles a response from a stream.
func collect(x *transport.Exchange) (*api.Response, error) {
	var acc api.Accumulator
	var unreadable error
	s := &stream{yield: func(ev api.Event, _ error) bool {
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

// faults makes errors that name the request and the endpoint.
type faults interface {
	Fail(*endpoint.Error) *endpoint.Error
	FromAPI(*api.APIError) *endpoint.Error
}

// outcome returns the error that a whole response reports, or nil.
func outcome(at faults, r *api.Response) error {
	if r.Error != nil {
		return at.FromAPI(r.Error)
	}
	switch r.Status {
	case item.StatusFailed:
		return failureOf(at, &api.Event{Type: api.EventFailed})
	case item.StatusCancelled:
		return failureOf(at, &api.Event{Type: api.EventCancelled})
	}
	return nil
}

// readResponse reads a body that is one response, and also returns its text.
func readResponse(x *transport.Exchange) (*api.Response, []byte, error) {
	text, err := x.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	r, err := api.ParseResponseString(jsonx.String(text)) // we own the text and do not change it
	var syntax *item.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, nil, x.Unreadable("the answer", text, true, err)
	case err != nil, r.Output == nil && (r.ID == "" || cmp.Or(r.Status, item.StatusCompleted) == item.StatusCompleted):
		e := x.Refused(text)
		if e.Message == "" {
			e.Class, e.Err = endpoint.Protocol, err
			e.Message = "the answer is JSON but not a response"
		}
		return nil, nil, x.Fail(e)
	}
	x.CleanResponse(r)
	return r, text, nil
}

// whole passes on a response that arrived as one object, as its important events: each item done,
// then the last event. It leaves out items that were passed on before. A response that must be
// waited for passes nothing on.
func (s *stream) whole(x *transport.Exchange) error {
	s.lenient = false // a response that was received whole exists, and may still be running
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
	ev, err := api.ParseEventString(last + string(bytes.TrimSpace(text)) + `}`)
	if err != nil {
		return x.Unreadable("the answer", text, false, err)
	}
	if done, err := s.pass(x, &ev); done {
		return err
	}
	return x.Fail(&endpoint.Error{Class: endpoint.Truncated, Message: "the response is still " + status})
}

// rest passes on, as done, the items that were not passed on before. It returns the sequence number
// for the next event, and whether the caller stopped iterating.
func (s *stream) rest(x *transport.Exchange, items []item.Item) (number int64, done bool, err error) {
	number = s.background.next()
	for i, it := range items {
		if !s.background.untold(i, it) {
			continue
		}
		text := `{"type":"` + string(api.EventItemDone) + `","sequence_number":` + strconv.FormatInt(number, 10) + `,"output_index":` + strconv.Itoa(i) + `,"item":` + it.JSON() + `}`
		ev, err := api.ParseEventString(text)
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

// asError returns err as an *endpoint.Error.
func asError(err error) *endpoint.Error { return transport.AsError(err) }
