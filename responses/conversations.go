// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

const (
	pathConversations     = "/conversations"
	pathConversation      = "/conversations/{conversation_id}"
	pathConversationItems = "/conversations/{conversation_id}/items"
	pathConversationItem  = "/conversations/{conversation_id}/items/{item_id}"
)

func conversation(op, method, path string, ids ...string) *ask {
	return &ask{op: op, method: method, path: path, ids: ids, part: partConversations}
}

// CreateConversation has the endpoint store a new conversation. Nil is an empty
// one. [item.ConversationByID] makes its ID a part of requests. An answer that
// is lost may leave a conversation behind that nobody knows.
func (c *Client) CreateConversation(ctx context.Context, v *item.CreateConversation) (*item.Conversation, error) {
	body, err := cmp.Or(v, &item.CreateConversation{}).AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	a := conversation("create conversation", http.MethodPost, pathConversations)
	a.body = item.TextBody(string(body))
	return do(ctx, c, a, readConversation)
}

// RetrieveConversation returns a conversation, without its items.
func (c *Client) RetrieveConversation(ctx context.Context, id string) (*item.Conversation, error) {
	return do(ctx, c, conversation("retrieve conversation", http.MethodGet, pathConversation, id), readConversation)
}

// UpdateConversation changes a conversation's metadata.
func (c *Client) UpdateConversation(ctx context.Context, id string, v *item.UpdateConversation) (*item.Conversation, error) {
	body, err := v.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	a := conversation("update conversation", http.MethodPost, pathConversation, id)
	a.body = item.TextBody(string(body))
	return do(ctx, c, a, readConversation)
}

// DeleteConversation deletes a conversation; its items stay for as long as the
// endpoint likes. Where there is none, it is as with [Client.Delete].
func (c *Client) DeleteConversation(ctx context.Context, id string) error {
	return c.delete(ctx, conversation("delete conversation", http.MethodDelete, pathConversation, id))
}

func readConversation(x *wire.Exchange) (*item.Conversation, error) {
	return readObject(x, "conversation", item.ParseConversation, func(v *item.Conversation) bool { return v.ID != "" })
}

// ConversationItems yields the items of a conversation, as [Client.InputItems]
// does those of a response.
func (c *Client) ConversationItems(ctx context.Context, id string, options *ListOptions) iter.Seq2[item.Item, error] {
	return c.list(ctx, options, *conversation("list conversation items", http.MethodGet, pathConversationItems, id))
}

// AddConversationItems adds items, 20 at most, at the end of a conversation and
// returns them as they are stored, with their ids. It is sent again only where
// the server said that it would not begin: otherwise they could be there twice.
func (c *Client) AddConversationItems(ctx context.Context, id string, items *item.List, included ...string) ([]item.Item, error) {
	body, err := (&item.AddItems{Items: items}).Body()
	if err != nil {
		return nil, err
	}
	a := conversation("add conversation items", http.MethodPost, pathConversationItems, id)
	a.body, a.once, a.query = body, true, url.Values{}
	include(a.query, included)
	page, err := do(ctx, c, a, readAdded)
	if err != nil {
		return nil, err
	}
	return page.Data, nil
}

// readAdded also takes one item in place of a list.
func readAdded(x *wire.Exchange) (*item.ItemPage, error) {
	parse := func(text []byte) (*item.ItemPage, error) {
		page, err := item.ParseItemPage(text)
		if err != nil || has(page.Extra, "data") {
			return page, err
		}
		if it, err := item.Parse(text); err == nil && it.Type() != "" {
			return &item.ItemPage{Data: []item.Item{it}}, nil
		}
		return page, nil
	}
	return readObject(x, "list", parse, func(p *item.ItemPage) bool { return has(p.Extra, "data") })
}

// RetrieveConversationItem returns one item of a conversation.
func (c *Client) RetrieveConversationItem(ctx context.Context, id, itemID string, included ...string) (item.Item, error) {
	a := conversation("retrieve conversation item", http.MethodGet, pathConversationItem, id, itemID)
	a.query = url.Values{}
	include(a.query, included)
	return do(ctx, c, a, readItem)
}

func readItem(x *wire.Exchange) (item.Item, error) {
	return readObject(x, "item", item.Parse, func(it item.Item) bool { return it.Type() != "" })
}

// DeleteConversationItem deletes one item of a conversation. Where there is
// none, it is as with [Client.Delete].
func (c *Client) DeleteConversationItem(ctx context.Context, id, itemID string) error {
	return c.delete(ctx, conversation("delete conversation item", http.MethodDelete, pathConversationItem, id, itemID))
}
