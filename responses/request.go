// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"errors"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
)

// errNilCall reports a nil client or request.
var errNilCall = errors.New("responses: the *Client or the *Request is nil")

// send makes the request, with retries.
func (c *Client) send(ctx context.Context, req *api.Request, stream bool, try func(*transport.Call) (again bool, err error)) error {
	if c == nil || req == nil {
		return errNilCall
	}
	if attempt := try; req.Conversation != "" {
		// A failed attempt may still have added to the conversation.
		try = func(k *transport.Call) (bool, error) {
			again, err := attempt(k)
			return again && (err == nil || transport.NotStarted(err)), err
		}
	}
	link := c.link()
	return link.Send(ctx, func(profile *endpoint.Profile) (*transport.Shaped, error) {
		fitted, err := link.Fit(req, profile)
		if err != nil {
			return nil, err
		}
		k, err := create(ctx, link, profile, fitted, req, stream)
		return &transport.Shaped{Call: k, Given: req.Input, Sent: fitted.Input}, err
	}, try)
}

// create readies a request that fits the endpoint and encodes it once for all attempts.
func create(ctx context.Context, link *transport.Config, profile *endpoint.Profile, fitted, given *api.Request, stream bool) (*transport.Call, error) {
	m, err := Dialect{}.Encode(dialect.Outgoing{Request: fitted, Given: given, Stream: stream, Profile: profile, Table: link.Table})
	if err != nil {
		return nil, err
	}
	r := transport.Request{Op: opCreate, Path: cmp.Or(m.Path, responsesPath), Body: m.Body, Secrets: transport.ToolSecrets(given.Tools)}
	if stream {
		r.Accept = transport.TypeEvents
	}
	return link.Call(ctx, r)
}
