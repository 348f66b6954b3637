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

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// ListOptions say what of a list of items is wanted, and how it is fetched.
type ListOptions struct {
	// After is the id of the item after which the list begins.
	After string
	// Limit is how many items are fetched at once, 1 to 100; 0 leaves it to the
	// endpoint. It does not limit the list.
	Limit int
	// Order is [Ascending] or [Descending]; empty leaves it to the endpoint,
	// which by its schema begins with the newest.
	Order string
	// Include is such as [item.IncludeInputImageURLs].
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

// InputItems yields the input of a stored response, item by item, and fetches
// the pages of the list as they are needed. It does nothing before it is ranged
// over. An error is the last that is yielded. Options may be nil.
func (c *Client) InputItems(ctx context.Context, id string, options *ListOptions) iter.Seq2[item.Item, error] {
	return c.list(ctx, options, ask{op: "list input items", path: pathResponse + "/input_items", ids: []string{id}, part: partStored})
}

// maxPages bounds a list, and with it what a server that never ends can do.
const maxPages = 10_000

// list yields the items of all pages. What one page has and a later one has
// again, by its id, is yielded once.
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
				yield(item.Item{}, a.fault(endpoint.Protocol, "the server says that the list goes on and repeats itself"))
				return
			}
		}
		yield(item.Item{}, a.fault(endpoint.TooLarge, fmt.Sprintf("the list has more than %d pages", maxPages)))
	}
}

// unseen returns the items that no earlier page had.
func unseen(items []item.Item, seen map[string]bool) []item.Item {
	fresh := make([]item.Item, 0, len(items))
	for _, it := range items {
		if id := it.ID(); id == "" || !seen[id] {
			fresh = append(fresh, it)
		}
	}
	for _, it := range fresh { // a page may have two of one id
		seen[it.ID()] = true
	}
	return fresh
}

// turn makes the request that of the next page, unless it would be the same.
func (a *ask) turn(page *item.ItemPage, fresh int) bool {
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

// fault is an error of what came over several requests.
func (a *ask) fault(class endpoint.Class, message string) error {
	return &endpoint.Error{Op: a.op, Class: class, Message: message}
}

func readPage(x *wire.Exchange) (*item.ItemPage, error) {
	return readObject(x, "list", item.ParseItemPage, func(p *item.ItemPage) bool { return has(p.Extra, "data") })
}

// has reports whether a required member was there: Extra tells where not.
func has(x item.Extra, name string) bool {
	_, missing := x.Get(name)
	return !missing
}

// CountTokens returns how many tokens the request's input has, as the endpoint
// counts them: instructions, tools and images among them. No response is made.
func (c *Client) CountTokens(ctx context.Context, req *item.Request) (int64, error) {
	a := &ask{op: "count input tokens", method: http.MethodPost, path: "/responses/input_tokens", part: partInputTokens}
	fit, err := c.fit(a, req)
	if err != nil {
		return 0, err
	}
	if a.body, err = item.CountOf(fit).Body(); err != nil {
		return 0, err
	}
	n, err := do(ctx, c, a, readCount)
	if err != nil {
		return 0, err
	}
	return n.InputTokens, nil
}

func readCount(x *wire.Exchange) (*item.TokenCount, error) {
	return readObject(x, "count of tokens", item.ParseTokenCount, func(n *item.TokenCount) bool { return has(n.Extra, "input_tokens") })
}
