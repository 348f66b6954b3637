// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

const pathResponse = "/responses/{response_id}"

// RetrieveOptions are what [Client.Retrieve] can ask for besides.
type RetrieveOptions struct {
	// Include is such as [item.IncludeEncryptedReasoning].
	Include []string
	// IncludeObfuscation is for streams; nil leaves it to the endpoint.
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

// include adds the parameter in the form that OpenAI's own clients give it.
func include(q url.Values, names []string) {
	if len(names) > 0 {
		q["include[]"] = names
	}
}

// Retrieve returns a response that the endpoint has stored, as far as it is
// made: see its Status. A response that failed is not an error here. Options may
// be nil.
//
// Of this and all other methods that ask for more than a new response: where
// the endpoint does not have it, or its profile says so beforehand, the error
// wraps [errors.ErrUnsupported].
func (c *Client) Retrieve(ctx context.Context, id string, options *RetrieveOptions) (*item.Response, error) {
	a := &ask{op: "retrieve response", method: http.MethodGet, path: pathResponse, ids: []string{id}, query: options.query(), part: partStored}
	return do(ctx, c, a, stored)
}

// Cancel ends a response that is made in the background, and returns it. One
// that has ended already is returned as it is. Endpoints refuse to cancel a
// response that is not of the background: end its context instead.
func (c *Client) Cancel(ctx context.Context, id string) (*item.Response, error) {
	a := &ask{op: "cancel response", method: http.MethodPost, path: pathResponse + "/cancel", ids: []string{id}, part: partStored}
	return do(ctx, c, a, stored)
}

func stored(x *wire.Exchange) (*item.Response, error) {
	r, _, err := readResponse(x)
	return r, err
}

// Delete deletes a stored response. Where there is none, or no more, the error
// is of the class [endpoint.NotFound]; but when an earlier attempt of this call
// was lost on its way, none is what was to be had, and no error.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.delete(ctx, &ask{op: "delete response", path: pathResponse, ids: []string{id}, part: partStored})
}

func (c *Client) delete(ctx context.Context, a *ask) error {
	a.method = http.MethodDelete
	lost := false
	a.excuse = func(e *endpoint.Error) error {
		if e.Class == endpoint.NotFound && lost {
			return nil
		}
		lost = lost || e.SafeToRetry() && !refused(e)
		return e
	}
	_, err := do(ctx, c, a, deleted)
	return err
}

// deleted reads a confirmation. The schema has none for responses, so its
// status alone may be one.
func deleted(x *wire.Exchange) (struct{}, error) {
	text, err := x.ReadAll()
	if err != nil || len(text) == 0 {
		return struct{}{}, err
	}
	d, err := item.ParseDeleted(text)
	if err != nil {
		return struct{}{}, isNot(x, "confirmation", text, err)
	}
	if !d.Deleted && has(d.Extra, "deleted") {
		return struct{}{}, x.Fail(&endpoint.Error{Class: endpoint.Protocol, Message: "the server says that it was not deleted"})
	}
	if _, failed := d.Extra.Get("error"); failed {
		return struct{}{}, isNot(x, "confirmation", text, nil)
	}
	return struct{}{}, nil
}
