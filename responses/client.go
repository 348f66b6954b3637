// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"

	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
)

// Client is a client of one endpoint of the Responses API. Its fields are those of
// [dialect.Config], which documents them:
//
//	c := &responses.Client{Key: endpoint.NewKey(key)}
//
// The zero value uses api.openai.com, without a key. A Client is safe for concurrent use while its
// fields do not change, and must not be copied after its first use. For a request that was sent,
// every error is or wraps an [*endpoint.Error]. A request that was not sent because the endpoint is
// known to refuse it gives an [*endpoint.RefusedError].
type Client dialect.Config

// link returns the configuration for the layer below.
func (c *Client) link() *transport.Config { return (*dialect.Config)(c).Transport() }

// RetryPolicy returns Retry. A run of package agent uses it, so that the client
// and the loop share one budget.
func (c *Client) RetryPolicy() endpoint.Retry {
	return dialect.Client{Config: (*dialect.Config)(c)}.RetryPolicy()
}

// Window returns the size of the model's context window in tokens, as the endpoint reports it, or
// 0. Few endpoints report it. Only these are asked, once for each model, and for at most a second.
func (c *Client) Window(ctx context.Context, model string) int64 {
	return c.link().Window(ctx, model)
}

// About says where requests go.
func (c *Client) About() endpoint.About { return c.link().About(endpoint.APIResponses) }

// Recall gives the client an earlier result of [Client.About] for this endpoint; see
// [dialect.Client.Recall].
func (c *Client) Recall(before endpoint.About) { c.link().Recall(before) }
