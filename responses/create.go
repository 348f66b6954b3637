// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Create sends the request without streaming and returns the whole response. A
// response that failed is returned together with its error. Endpoints that
// stream all the same are understood.
func (c *Client) Create(ctx context.Context, req *item.Request) (*item.Response, error) {
	k, err := c.newCall(ctx, req, false)
	if err != nil {
		return nil, err
	}
	var resp *item.Response
	err = k.retry(ctx, func() (bool, error) {
		resp = nil
		x, err := k.open(ctx)
		if err != nil {
			return true, err
		}
		defer x.close()
		if x.kind == kindStream {
			resp, err = k.collect(x)
		} else {
			resp, _, err = x.response()
		}
		if err == nil {
			err = x.outcome(resp)
		}
		return true, err
	})
	return resp, err
}

// collect puts a response together from a stream.
func (k *call) collect(x *exchange) (*item.Response, error) {
	var acc item.Accumulator
	var unreadable error
	s := &stream{call: k, yield: func(ev item.Event, _ error) bool {
		_, err := acc.Add(ev)
		unreadable = cmp.Or(unreadable, err)
		return true
	}}
	if err := s.events(x); err != nil {
		return nil, err
	}
	if unreadable != nil {
		return nil, x.fail(&endpoint.Error{Class: endpoint.Protocol, Err: unreadable})
	}
	resp, _ := acc.Response()
	return resp, nil
}

// outcome is the error that a whole response reports, or nil.
func (x *exchange) outcome(r *item.Response) error {
	if r.Error != nil {
		return x.fromAPI(r.Error)
	}
	switch r.Status {
	case item.StatusFailed:
		return failureOf(x, &item.Event{Type: item.EventFailed})
	case item.StatusCancelled:
		return failureOf(x, &item.Event{Type: item.EventCancelled})
	}
	return nil
}

// response reads a body that is one JSON text, and returns the text too.
func (x *exchange) response() (*item.Response, []byte, error) {
	text, err := x.readAll()
	if err != nil {
		return nil, nil, err
	}
	r, err := item.ParseResponse(text)
	var syntax *item.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, nil, x.unreadable("the answer", text, true, err)
	case err != nil, r.Output == nil && (r.ID == "" || cmp.Or(r.Status, item.StatusCompleted) == item.StatusCompleted):
		e := endpoint.FromResponse(x.resp, text)
		if e.Message == "" {
			e.Class, e.Err = endpoint.Protocol, err
			e.Message = "the answer is JSON but no response"
		}
		return nil, nil, x.fail(e)
	}
	return r, text, nil
}

// readAll reads the body within the client's limit.
func (x *exchange) readAll() ([]byte, error) {
	limit := cmp.Or(x.call.client.MaxBody, DefaultMaxBody)
	var buf bytes.Buffer
	if n := x.resp.ContentLength; n > 0 {
		buf.Grow(int(min(n, limit, 16<<20)) + bytes.MinRead)
	}
	n, err := io.Copy(&buf, io.LimitReader(x.body, limit+1))
	switch {
	case err != nil:
		return nil, x.broken(err)
	case n > limit:
		return nil, x.fail(&endpoint.Error{Class: endpoint.TooLarge, Message: fmt.Sprintf("the answer is larger than %d bytes", limit)})
	}
	return buf.Bytes(), nil
}

// whole passes a response that came in one piece on as the events that matter:
// each item done, then the last event.
func (s *stream) whole(x *exchange) error {
	r, text, err := x.response()
	if err != nil {
		return err
	}
	for i, it := range r.Output {
		n := strconv.Itoa(i)
		ev, err := item.ParseEvent([]byte(`{"type":"` + string(item.EventItemDone) + `","sequence_number":` + n + `,"output_index":` + n + `,"item":` + it.JSON() + `}`))
		if err != nil {
			return x.unreadable("item "+n, []byte(it.JSON()), false, err)
		}
		if done, err := s.event(x, &ev); done {
			return err
		}
	}
	status := cmp.Or(r.Status, item.StatusCompleted)
	if r.Error != nil {
		status = item.StatusFailed
	}
	last := `{"type":` + string(item.Quote("response."+status)) + `,"sequence_number":` + strconv.Itoa(len(r.Output)) + `,"response":`
	ev, err := item.ParseEvent([]byte(last + string(bytes.TrimSpace(text)) + `}`))
	if err != nil {
		return x.unreadable("the answer", text, false, err)
	}
	if done, err := s.event(x, &ev); done {
		return err
	}
	return x.fail(&endpoint.Error{Class: endpoint.Truncated, Message: "the response is still " + status})
}

// asError is err as the error type of this package.
func asError(err error) *endpoint.Error {
	var e *endpoint.Error
	if errors.As(err, &e) {
		return e
	}
	return &endpoint.Error{Class: endpoint.Protocol, Err: err}
}
