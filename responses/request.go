// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

const opCreate = "create response"

// errNilCall is about a client or a request that is nil.
var errNilCall = errors.New("responses: the *Client or the *Request is nil")

// send makes the request, over all its attempts. An endpoint of which nothing
// is known, and which cannot make sense of the request, gets it once more in
// the shape of its profile's fallback, where that is another.
func (c *Client) send(ctx context.Context, req *item.Request, stream bool, try func(*wire.Call) (again bool, err error)) error {
	if c == nil || req == nil {
		return errNilCall
	}
	link := c.link()
	profile, err := link.Known()
	if err != nil {
		return err
	}
	if attempt := try; req.Conversation != "" {
		// An attempt that came to nothing here may have added to the conversation.
		try = func(k *wire.Call) (bool, error) {
			again, err := attempt(k)
			return again && (err == nil || refused(err)), err
		}
	}
	k, sent, err := shaped(ctx, link, profile, req, stream)
	if err != nil {
		return err
	}
	err = wire.Refusal(k.Retry(ctx, func() (bool, error) { return try(k) }), req.Input, sent)
	fallback := link.Fallback(profile, err)
	if fallback == nil {
		return err
	}
	other, sent, unfit := shaped(ctx, link, fallback, req, stream)
	if unfit != nil || !k.Instead(other) {
		return err
	}
	second := wire.Refusal(other.Retry(ctx, func() (bool, error) { return try(other) }), req.Input, sent)
	if link.Adopt(profile, fallback, second) {
		return second
	}
	return err
}

// shaped readies a request in the shape of a profile, and returns the input that
// it sends.
func shaped(ctx context.Context, link *wire.Link, profile *endpoint.Profile, req *item.Request, stream bool) (*wire.Call, *item.List, error) {
	fitted, err := link.Fit(req, profile)
	if err == nil {
		err = wire.Nothing(fitted, profile)
	}
	if err != nil {
		return nil, nil, err
	}
	k, err := create(ctx, link, profile, fitted, stream)
	return k, fitted.Input, err
}

// create readies a request that fits the endpoint, encoded once for all its
// attempts.
func create(ctx context.Context, link *wire.Link, profile *endpoint.Profile, req *item.Request, stream bool) (*wire.Call, error) {
	body, err := encode(req, stream || streams(profile))
	if err != nil {
		return nil, err
	}
	r := wire.Request{Op: opCreate, Path: cmp.Or(profile.ResponsesPath, responsesPath), Body: body}
	if stream {
		r.Accept = wire.TypeEvents
	}
	return link.Call(ctx, r)
}

const responsesPath = "/responses"

// streams reports an endpoint that answers with streams only.
func streams(p *endpoint.Profile) bool { return p.Set["stream"] == "true" }

// encode returns the body of a request, which it changes. Only stream is decided
// here.
func encode(r *item.Request, stream bool) (item.Body, error) {
	r.Extra = slices.Clone(r.Extra)
	r.Extra.Delete("stream")
	if stream {
		r.Stream = &stream
	} else if r.Stream != nil && *r.Stream {
		r.Stream = nil
	}
	body, err := r.Body()
	if err == nil {
		err = body.Check()
	}
	return body, err
}
