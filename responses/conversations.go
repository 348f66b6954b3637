// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

const (
	pathConversations     = "/conversations"
	pathConversation      = "/conversations/{conversation_id}"
	pathConversationItems = "/conversations/{conversation_id}/items"
	pathConversationItem  = "/conversations/{conversation_id}/items/{item_id}"
)

func conversation(op, method, path string, ids ...string) *ask {
	return &ask{Op: op, Method: method, Path: path, IDs: ids, Part: partConversations}
}

// CreateConversation asks the endpoint to store a new conversation. A nil v means an empty one. Use
// the ID with [api.ConversationByID] in requests. If the answer is lost, the conversation may exist
// without the caller knowing its ID.
func (c *Client) CreateConversation(ctx context.Context, v *api.CreateConversation) (*api.Conversation, error) {
	body, err := cmp.Or(v, &api.CreateConversation{}).AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	a := conversation("create conversation", http.MethodPost, pathConversations)
	a.Body = item.TextBody(string(body))
	return do(ctx, c, a, readConversation)
}

// RetrieveConversation returns a conversation, without its items.
func (c *Client) RetrieveConversation(ctx context.Context, id string) (*api.Conversation, error) {
	return do(ctx, c, conversation("retrieve conversation", http.MethodGet, pathConversation, id), readConversation)
}

// UpdateConversation changes a conversation's metadata.
func (c *Client) UpdateConversation(ctx context.Context, id string, v *api.UpdateConversation) (*api.Conversation, error) {
	body, err := v.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	a := conversation("update conversation", http.MethodPost, pathConversation, id)
	a.Body = item.TextBody(string(body))
	return do(ctx, c, a, readConversation)
}

// DeleteConversation deletes a conversation. The endpoint decides how long it keeps the items. A
// conversation that does not exist is handled as in [Client.Delete].
func (c *Client) DeleteConversation(ctx context.Context, id string) error {
	return c.link().Delete(ctx, conversation("delete conversation", http.MethodDelete, pathConversation, id))
}

func readConversation(x *transport.Exchange) (*api.Conversation, error) {
	return readObject(x, "conversation", api.ParseConversation, func(v *api.Conversation) bool { return v.ID != "" })
}

// ConversationItems yields the items of a conversation, like [Client.InputItems] for a response.
func (c *Client) ConversationItems(ctx context.Context, id string, options *ListOptions) iter.Seq2[item.Item, error] {
	return c.list(ctx, options, *conversation("list conversation items", http.MethodGet, pathConversationItems, id))
}

// AddConversationItems appends at most 20 items to a conversation and returns them as stored, with
// their ids. A failed request is repeated only if the server reported that it did not start.
// Otherwise the items might be added twice.
func (c *Client) AddConversationItems(ctx context.Context, id string, items *item.List, included ...string) ([]item.Item, error) {
	body, err := (&api.AddItems{Items: items}).Body()
	if err != nil {
		return nil, err
	}
	a := conversation("add conversation items", http.MethodPost, pathConversationItems, id)
	a.Body, a.Repeat, a.Query = body, transport.Never, url.Values{}
	include(a.Query, included)
	page, err := do(ctx, c, a, readAdded)
	if err != nil {
		return nil, err
	}
	return page.Data, nil
}

// readAdded also accepts one item in place of a list.
func readAdded(x *transport.Exchange) (*api.ItemPage, error) {
	parse := func(text []byte) (*api.ItemPage, error) {
		page, err := api.ParseItemPage(text)
		if err != nil || has(page.Extra, "data") {
			return page, err
		}
		if it, err := item.Parse(text); err == nil && it.Type() != "" {
			return &api.ItemPage{Data: []item.Item{it}}, nil
		}
		return page, nil
	}
	return readObject(x, "list", parse, func(p *api.ItemPage) bool { return has(p.Extra, "data") })
}

// RetrieveConversationItem returns one item of a conversation.
func (c *Client) RetrieveConversationItem(ctx context.Context, id, itemID string, included ...string) (item.Item, error) {
	a := conversation("retrieve conversation item", http.MethodGet, pathConversationItem, id, itemID)
	a.Query = url.Values{}
	include(a.Query, included)
	return do(ctx, c, a, readItem)
}

func readItem(x *transport.Exchange) (item.Item, error) {
	return readObject(x, "item", item.Parse, func(it item.Item) bool { return it.Type() != "" })
}

// DeleteConversationItem deletes one item of a conversation. An item that does not exist is handled
// as in [Client.Delete].
func (c *Client) DeleteConversationItem(ctx context.Context, id, itemID string) error {
	return c.link().Delete(ctx, conversation("delete conversation item", http.MethodDelete, pathConversationItem, id, itemID))
}
