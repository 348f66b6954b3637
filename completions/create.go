// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"context"
	"errors"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// Create sends the request without streaming and returns the whole response. A
// response that failed is returned together with its error. Endpoints that
// stream all the same are understood.
func (c *Client) Create(ctx context.Context, req *item.Request) (*item.Response, error) {
	var resp *item.Response
	err := c.send(ctx, req, false, func(k *wire.Call) (bool, error) {
		resp = nil
		x, err := k.Open(ctx)
		if err != nil {
			return true, err
		}
		defer x.Close()
		var text []byte
		if x.Kind == wire.Stream {
			resp, err = c.collect(ctx, x)
		} else {
			resp, text, err = c.read(ctx, x)
		}
		if err == nil && (resp.Error != nil || resp.Status == item.StatusFailed) {
			err = failure(x, resp.Error, text)
		}
		return true, err
	})
	return resp, err
}

// collect puts a response together from a stream.
func (c *Client) collect(ctx context.Context, x *wire.Exchange) (*item.Response, error) {
	var acc item.Accumulator
	var unreadable error
	s := &stream{client: c, x: x, yield: func(ev item.Event, _ error) bool {
		_, err := acc.Add(ev)
		unreadable = errors.Join(unreadable, err)
		return true
	}}
	if err := s.chunks(ctx); err != nil {
		var e *endpoint.Error
		if !errors.As(err, &e) {
			e = x.Fail(&endpoint.Error{Class: endpoint.Protocol, Err: err})
		}
		return nil, e
	}
	if unreadable != nil {
		return nil, x.Fail(&endpoint.Error{Class: endpoint.Protocol, Err: unreadable})
	}
	resp, _ := acc.Response()
	return resp, nil
}

// failure is the error that a server reports where it might have answered. What
// it says besides, such as a status, counts too; nil is one without a word.
func failure(x *wire.Exchange, a *item.APIError, said []byte) *endpoint.Error {
	if a == nil {
		return x.Fail(&endpoint.Error{Class: endpoint.Server, Message: "the reply failed, and the server does not say why"})
	}
	hide(x, a)
	if e := endpoint.FromEvent(said); e != nil {
		e.Err = a
		return x.Fail(e)
	}
	return x.FromAPI(a)
}

// hide takes secrets out of what a server says besides; the rest is the
// exchange's to clean.
func hide(x *wire.Exchange, a *item.APIError) {
	for i, m := range a.Extra {
		if clean := x.Hide(string(m.Value)); clean != string(m.Value) {
			a.Extra[i].Value = item.Quote(clean)
		}
	}
}

// read reads a body that is one chat completion, and returns its text too.
func (c *Client) read(ctx context.Context, x *wire.Exchange) (*item.Response, []byte, error) {
	text, err := x.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	r, losses, err := ParseResponse(text)
	var syntax *item.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, nil, x.Unreadable("the answer", text, true, err)
	case err != nil:
		e := x.Refused(text)
		if e.Message == "" {
			e.Class, e.Err = endpoint.Protocol, err
			e.Message = "the answer is JSON but no chat completion: " + err.Error()
		}
		return nil, nil, x.Fail(e)
	}
	c.lostOf(ctx, x, losses)
	x.CleanResponse(r)
	return r, text, nil
}
