// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// ListOptions select the items of a list and control how they are fetched.
type ListOptions struct {
	// After is the id of the item before the first one listed.
	After string
	// Limit is the number of items per page, from 1 to 100; 0 means the endpoint's default. It does
	// not limit the list.
	Limit int
	// Order is [Ascending] or [Descending]. Empty means the endpoint's default; the schema's
	// default is newest first.
	Order string
	// Include takes values such as [api.IncludeInputImageURLs].
	Include []string
}

// The values of [ListOptions.Order].
const (
	Ascending  = "asc" // oldest first
	Descending = "desc"
)

func (o *ListOptions) query() url.Values {
	q := url.Values{}
	if o == nil {
		return q
	}
	for name, value := range map[string]string{"after": o.After, "order": o.Order} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if o.Limit != 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	include(q, o.Include)
	return q
}

// InputItems yields the input items of a stored response. It fetches the pages of the list as
// needed, and nothing before the caller iterates. An error is the last pair yielded. Options may be
// nil.
func (c *Client) InputItems(ctx context.Context, id string, options *ListOptions) iter.Seq2[item.Item, error] {
	return c.list(ctx, options, ask{Op: "list input items", Path: pathResponse + "/input_items", IDs: []string{id}, Part: partStored})
}

// list yields the items of all pages. An item that appears in several pages, judged by its id, is
// yielded once.
func (c *Client) list(ctx context.Context, options *ListOptions, a ask) iter.Seq2[item.Item, error] {
	a.Query = options.query()
	return transport.List(ctx, c.link(), a, item.Item.ID, readPage)
}

func readPage(x *transport.Exchange) (transport.Page[item.Item], error) {
	page, err := readObject(x, "list", api.ParseItemPage, func(p *api.ItemPage) bool { return has(p.Extra, "data") })
	if err != nil {
		return transport.Page[item.Item]{}, err
	}
	return transport.Page[item.Item]{Data: page.Data, LastID: page.LastID, More: page.HasMore}, nil
}

// CountTokens returns the number of tokens in the request's input, as the endpoint counts them. The
// count includes instructions, tools and images. No response is created.
func (c *Client) CountTokens(ctx context.Context, req *api.Request) (int64, error) {
	a := &ask{Op: "count input tokens", Method: http.MethodPost, Path: "/responses/input_tokens", Part: partInputTokens}
	fit, err := c.fit(a, req)
	if err != nil {
		return 0, err
	}
	if a.Body, err = api.CountOf(fit).Body(); err != nil {
		return 0, err
	}
	n, err := do(ctx, c, a, readCount)
	if err != nil {
		return 0, err
	}
	return n.InputTokens, nil
}

func readCount(x *transport.Exchange) (*api.TokenCount, error) {
	return readObject(x, "count of tokens", api.ParseTokenCount, func(n *api.TokenCount) bool { return has(n.Extra, "input_tokens") })
}
