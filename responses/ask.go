// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// ask is a request to one of the API's paths, except the one that creates responses.
type ask = transport.Ask

// part is a part of the API that not every endpoint has.
type part = transport.Part

var (
	partStored        = part{Has: func(p *endpoint.Profile) endpoint.Support { return p.Stored }, Instead: "keep what Create and Stream return"}
	partConversations = part{Has: func(p *endpoint.Profile) endpoint.Support { return p.Conversations }, Instead: "send the history with each request"}
	partCompact       = part{Has: func(p *endpoint.Profile) endpoint.Support { return p.Compact }, Instead: "have a model summarize the history"}
	partInputTokens   = part{Has: func(p *endpoint.Profile) endpoint.Support { return p.InputTokens }, Instead: "read the usage of a response"}
	partBackground    = part{Has: followable, Instead: "ask without background"}
)

func followable(p *endpoint.Profile) endpoint.Support {
	if p.Stored == endpoint.No {
		return endpoint.No
	}
	return p.Background
}

// prepare readies the request and encodes it once for all attempts. Its errors are local: nothing
// has been sent.
func (c *Client) prepare(ctx context.Context, a *ask) (*transport.Call, error) {
	return c.link().Prepare(ctx, a)
}

// fit returns the request in the form that the endpoint accepts.
func (c *Client) fit(a *ask, req *api.Request) (*api.Request, error) {
	if c == nil || req == nil {
		return nil, errNilCall
	}
	link := c.link()
	profile, err := link.KnownFor(a)
	if err != nil {
		return nil, err
	}
	return link.Fit(req, profile)
}

// do sends a request, with retries, and reads its answer. A POST is repeated only while no part of
// an answer has arrived.
func do[T any](ctx context.Context, c *Client, a *ask, read func(*transport.Exchange) (T, error)) (T, error) {
	return transport.Do(ctx, c.link(), a, read)
}

// readObject reads an answer that is one object; see [transport.Object].
func readObject[T any](x *transport.Exchange, what string, parse func([]byte) (T, error), whole func(T) bool) (T, error) {
	return transport.Object(x, what, parse, whole)
}

// has reports whether a required member was present.
func has(x item.Extra, name string) bool { return transport.HasMember(x, name) }
