// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/transport"
)

const pathResponse = "/responses/{response_id}"

// RetrieveOptions are additional options of [Client.Retrieve].
type RetrieveOptions struct {
	// Include takes values such as [api.IncludeEncryptedReasoning].
	Include []string
	// IncludeObfuscation applies to streams; nil means the endpoint's default.
	IncludeObfuscation *bool
}

func (o *RetrieveOptions) query() url.Values {
	q := url.Values{}
	if o == nil {
		return q
	}
	include(q, o.Include)
	if o.IncludeObfuscation != nil {
		q.Set("include_obfuscation", strconv.FormatBool(*o.IncludeObfuscation))
	}
	return q
}

// include adds the parameter in the same form as OpenAI's own clients.
func include(q url.Values, names []string) {
	if len(names) > 0 {
		q["include[]"] = names
	}
}

// Retrieve returns a stored response in its current state; see its Status. A failed response does
// not make Retrieve return an error. Options may be nil.
//
// If the endpoint does not have this part of the API, or its profile says so, the error wraps
// [errors.ErrUnsupported]. This applies to all methods except those that create a response.
func (c *Client) Retrieve(ctx context.Context, id string, options *RetrieveOptions) (*api.Response, error) {
	a := &ask{Op: "retrieve response", Method: http.MethodGet, Path: pathResponse, IDs: []string{id}, Query: options.query(), Part: partStored}
	return do(ctx, c, a, stored)
}

// Cancel cancels a background response and returns it. A response that has already ended is
// returned unchanged. Endpoints refuse to cancel a response that does not run in the background;
// cancel its context instead.
func (c *Client) Cancel(ctx context.Context, id string) (*api.Response, error) {
	a := &ask{Op: "cancel response", Method: http.MethodPost, Path: pathResponse + "/cancel", IDs: []string{id}, Part: partStored}
	return do(ctx, c, a, stored)
}

func stored(x *transport.Exchange) (*api.Response, error) {
	r, _, err := readResponse(x)
	return r, err
}

// Delete deletes a stored response. If the response does not exist, the error has the class
// [endpoint.NotFound]. But if an earlier attempt of this call was lost, that attempt may have
// deleted the response, and Delete returns nil.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.link().Delete(ctx, &ask{Op: "delete response", Path: pathResponse, IDs: []string{id}, Part: partStored})
}
