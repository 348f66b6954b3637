// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"cmp"
	"context"
	"slices"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

const (
	opCreate = "create chat completion"
	chatPath = "/chat/completions"
)

// send makes the request, over all its attempts. An endpoint of which nothing is
// known, and which cannot make sense of the request, gets it once more in the
// shape of its profile's fallback, where that is another.
func (c *Client) send(ctx context.Context, req *item.Request, stream bool, try func(*wire.Call) (again bool, err error)) error {
	link := c.link()
	profile, err := link.Known()
	if err != nil {
		return err
	}
	k, err := c.call(ctx, link, profile, req, stream)
	if err != nil {
		return err
	}
	err = k.Retry(ctx, func() (bool, error) { return try(k) })
	fallback := link.Fallback(profile, err)
	if fallback == nil {
		return c.refused(err, link, profile, req)
	}
	other, unfit := c.call(ctx, link, fallback, req, stream)
	if unfit != nil || !k.Instead(other) {
		return c.refused(err, link, profile, req)
	}
	second := other.Retry(ctx, func() (bool, error) { return try(other) })
	if link.Adopt(profile, fallback, second) {
		return c.refused(second, link, fallback, req)
	}
	return c.refused(err, link, profile, req)
}

// call prepares the request in the shape of a profile, encoded once for all its
// attempts.
func (c *Client) call(ctx context.Context, link *wire.Link, profile *endpoint.Profile, req *item.Request, stream bool) (*wire.Call, error) {
	if len(profile.APIs) > 0 && !slices.Contains(profile.APIs, endpoint.APIChat) {
		return nil, &endpoint.RefusedError{By: profile.Name, Problem: "this endpoint has no Chat Completions", Hint: "use its Responses API"}
	}
	fitted, err := link.Fit(req, profile)
	if err != nil {
		return nil, err
	}
	own := *fitted
	own.Include = req.Include // what was added is for the Responses API
	own.Stream = nil
	own.Extra = slices.Clone(own.Extra)
	own.Extra.Delete("stream")
	if stream {
		own.Stream = &stream
	}
	body, err := c.encode(&own, profile)
	if err != nil {
		return nil, err
	}
	_, path := c.address()
	r := wire.Request{Op: opCreate, Path: cmp.Or(path, profile.ChatPath, chatPath), Body: body}
	if stream {
		r.Accept = wire.TypeEvents
	}
	return link.Call(ctx, r)
}

// encode returns the body. The messages are kept with the history: what was
// written once is not written again.
func (c *Client) encode(r *item.Request, profile *endpoint.Profile) (item.Body, error) {
	o := c.options(r.Model, profile)
	var losses []Loss
	at := place{to: &losses}
	messages, err := inputOf(r).Derive(o.key(), func(dst, src *item.List, from int) error {
		if err := o.write(dst, src, from, at.at("input")); err != nil {
			return err
		}
		return refuse(losses, profile)
	})
	if err != nil {
		return nil, err
	}
	head, tail, err := o.around(r, messages.Len(), at)
	if err != nil {
		return nil, err
	}
	c.lost(losses)
	body := item.ListBody(string(head), messages, string(tail))
	return body, body.Check()
}

// options are the caller's, or those of the profile. A gateway to a model that is
// known to reason passes its limit on, and such models take the newer one alone.
func (c *Client) options(model string, profile *endpoint.Profile) Options {
	if c.Options != nil {
		return *c.Options
	}
	o := OptionsFor(profile)
	if m, _ := c.Table.Model(model); m.Reasoning == endpoint.Yes && (profile.Name == endpoint.Careful.Name || profile.Name == endpoint.Careful.Fallback) {
		o.MaxTokens = ""
	}
	return o
}

// refuse is an error if the model would not see something that it was meant to.
func refuse(losses []Loss, profile *endpoint.Profile) error {
	for _, l := range losses {
		if l.Kind == LostContent {
			return &endpoint.RefusedError{By: profile.Name, Param: l.Path, Problem: l.What}
		}
	}
	return nil
}
