// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// listedAs returns item n of the input of a response in the form that the API returns.
func listedAs(it item.Item, response string, n int) item.Item {
	return resource(it, fmt.Sprintf("%s_%s_%d", idPrefix(it.Type()), name(response), n))
}

// resource returns a stored item in the form that the API returns: with an id, a
// status, and the content of a message in parts. The id is used if the item has
// none.
func resource(it item.Item, id string) item.Item {
	if it.ID() == "" {
		it = with(it, "id", item.Quote(id))
	}
	switch it.Type() {
	case item.TypeMessage:
		it = messageResource(it)
	case item.TypeFunctionCall, item.TypeFunctionCallOutput, item.TypeCustomToolCall, item.TypeCustomToolCallOutput:
	default:
		return it
	}
	if it.Status() == "" {
		it = with(it, "status", item.Quote(item.StatusCompleted))
	}
	return it
}

func messageResource(it item.Item) item.Item {
	it = with(it, "type", item.Quote(string(item.TypeMessage)))
	m, err := item.As[item.Message](it)
	if err != nil || !m.Content.IsText() {
		return it
	}
	var part item.Part = &item.InputText{Text: m.Content.Text}
	if m.Role == item.RoleAssistant {
		part = textPart(m.Content.Text)
	}
	content, err := item.Parts(part).JSON()
	if err != nil {
		return it
	}
	return with(it, "content", content)
}

// with sets a member to a value that must be valid JSON.
func with(it item.Item, name string, value item.JSON) item.Item {
	if changed, err := it.With(name, value); err == nil {
		return changed
	}
	return it
}

// The sizes of a page.
const (
	defaultPage = 20
	maxPage     = 100
)

// distinct returns a list in which each item has an id of its own, as a client needs it that goes
// through the pages. Clients choose ids, and may send a history more than once: an id that an earlier
// item has gets a number.
func distinct(list []item.Item) []item.Item {
	list = slices.Clone(list)
	taken := make(map[string]bool, len(list))
	for _, it := range list {
		taken[it.ID()] = true
	}
	next := map[string]int{} // the number for the next item with an id, so that none is looked at twice
	for i, it := range list {
		id := it.ID()
		n, repeated := next[id]
		if !repeated {
			next[id] = 2
			continue
		}
		for taken[numbered(id, n)] {
			n++
		}
		taken[numbered(id, n)], next[id] = true, n+1
		list[i] = with(it, "id", item.Quote(numbered(id, n)))
	}
	return list
}

func numbered(id string, n int) string { return fmt.Sprintf("%s_%d", id, n) }

// pageOf returns the part of a list that the query selects. The list is ordered from
// oldest to newest.
func pageOf(query url.Values, list []item.Item) (*api.ItemPage, *Error) {
	list = distinct(list)
	limit, wrong := pageSize(query.Get("limit"))
	if wrong != nil {
		return nil, wrong
	}
	switch order := query.Get("order"); order {
	case "", "desc":
		slices.Reverse(list)
	case "asc":
	default:
		return nil, Invalid("invalid_value", "order", "Invalid value: '%s'. Supported values are: 'asc' and 'desc'.", order)
	}
	if after := query.Get("after"); after != "" {
		i := indexOf(list, after)
		if i < 0 {
			return nil, Invalid("", "after", "Invalid 'after': the list has no item with id '%s'.", after)
		}
		list = list[i+1:]
	}
	page := onePage(list[:min(limit, len(list))])
	page.HasMore = len(list) > limit
	return page, nil
}

// onePage returns a list as a single page.
func onePage(list []item.Item) *api.ItemPage {
	page := &api.ItemPage{Data: list}
	if n := len(list); n > 0 {
		page.FirstID, page.LastID = list[0].ID(), list[n-1].ID()
	}
	return page
}

func pageSize(v string) (int, *Error) {
	if v == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(v)
	switch {
	case err != nil:
		return 0, Invalid("invalid_type", "limit", "Invalid type for 'limit': expected an integer, but got '%s'.", v)
	case n < 1:
		return 0, Invalid("integer_below_min_value", "limit", "Invalid 'limit': integer below minimum value. Expected a value >= 1, but got %d instead.", n)
	case n > maxPage:
		return 0, Invalid("integer_above_max_value", "limit", "Invalid 'limit': integer above maximum value. Expected a value <= %d, but got %d instead.", maxPage, n)
	}
	return n, nil
}
