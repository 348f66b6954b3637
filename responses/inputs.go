// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
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
	return c.list(ctx, options, ask{op: "list input items", path: pathResponse + "/input_items", ids: []string{id}, part: partStored})
}

// maxPages limits the length of a list, in case a server never ends it.
const maxPages = 10_000

// list yields the items of all pages. An item that appears in several pages, judged by its id, is
// yielded once.
func (c *Client) list(ctx context.Context, options *ListOptions, a ask) iter.Seq2[item.Item, error] {
	a.method = http.MethodGet
	return func(yield func(item.Item, error) bool) {
		a, seen := a, map[string]bool{}
		a.query = options.query()
		for range maxPages {
			page, err := do(ctx, c, &a, readPage)
			if err != nil {
				yield(item.Item{}, err)
				return
			}
			fresh := unseen(page.Data, seen)
			for _, it := range fresh {
				if !yield(it, nil) {
					return
				}
			}
			if !page.HasMore {
				return
			}
			if !a.turn(page, len(fresh)) {
				yield(item.Item{}, a.fault(endpoint.Protocol, "the server says that the list has more items, but sends the same ones again"))
				return
			}
		}
		yield(item.Item{}, a.fault(endpoint.TooLarge, fmt.Sprintf("the list has more than %d pages", maxPages)))
	}
}

// unseen returns the items that were not in an earlier page.
func unseen(items []item.Item, seen map[string]bool) []item.Item {
	fresh := make([]item.Item, 0, len(items))
	for _, it := range items {
		if id := it.ID(); id == "" || !seen[id] {
			fresh = append(fresh, it)
		}
	}
	for _, it := range fresh { // a page may hold two items with the same id
		seen[it.ID()] = true
	}
	return fresh
}

// turn changes the request to fetch the next page. It returns false if the request would be the
// same.
func (a *ask) turn(page *api.ItemPage, fresh int) bool {
	next := page.LastID
	if next == "" && len(page.Data) > 0 {
		next = page.Data[len(page.Data)-1].ID()
	}
	if next == "" || fresh == 0 || next == a.query.Get("after") {
		return false
	}
	a.query.Set("after", next)
	return true
}

// fault returns an error about the list, which is made of several requests.
func (a *ask) fault(class endpoint.Class, message string) error {
	return &endpoint.Error{Op: a.op, Class: class, Message: message}
}

func readPage(x *transport.Exchange) (*api.ItemPage, error) {
	return readObject(x, "list", api.ParseItemPage, func(p *api.ItemPage) bool { return has(p.Extra, "data") })
}

// has reports whether a required member was present: Extra records missing ones.
func has(x item.Extra, name string) bool {
	_, missing := x.Get(name)
	return !missing
}

// CountTokens returns the number of tokens in the request's input, as the endpoint counts them. The
// count includes instructions, tools and images. No response is created.
func (c *Client) CountTokens(ctx context.Context, req *api.Request) (int64, error) {
	a := &ask{op: "count input tokens", method: http.MethodPost, path: "/responses/input_tokens", part: partInputTokens}
	fit, err := c.fit(a, req)
	if err != nil {
		return 0, err
	}
	if a.body, err = api.CountOf(fit).Body(); err != nil {
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
