// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// conversation returns a stored conversation.
func (s *Server) conversation(ctx context.Context, id string) (StoredObject, *Error) {
	rec, err := s.store().Get(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && rec.Conversation == nil:
		return rec, notFound("Conversation", id)
	case err != nil:
		return rec, s.failure(err)
	}
	return rec, nil
}

// change changes a conversation with f, and returns the result of f.
func (s *Server) change(ctx context.Context, id string, f func(*StoredObject) (object, *Error)) (object, *Error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	rec, wrong := s.conversation(ctx, id)
	if wrong != nil {
		return nil, wrong
	}
	v, wrong := f(&rec)
	if wrong != nil {
		return nil, wrong
	}
	if err := s.store().Put(ctx, rec); err != nil {
		return nil, s.failure(err)
	}
	return v, nil
}

// added returns items in the form that they have in a conversation: with ids.
func (s *Server) added(list []item.Item) (added []item.Item) {
	for _, it := range list {
		added = append(added, resource(it, s.newID(idPrefix(it.Type())+"_")))
	}
	return added
}

// anew is added for a conversation that has items: those whose ids it has already get others, because
// a client names items by their ids.
func (s *Server) anew(ctx context.Context, id string, list []item.Item) ([]item.Item, *Error) {
	if !slices.ContainsFunc(list, func(it item.Item) bool { return it.ID() != "" }) {
		return s.added(list), nil
	}
	list = s.added(list)
	have, wrong := s.itemsOf(ctx, id)
	if wrong != nil {
		return nil, wrong
	}
	taken := map[string]bool{}
	for _, it := range have {
		taken[it.ID()] = true
	}
	return s.renamed(list, taken), nil
}

// renamed gives ids to messages, calls and outputs whose ids are taken. The ids of other items, such as
// reasoning, mean something to whoever made them, and stay.
func (s *Server) renamed(list []item.Item, taken map[string]bool) []item.Item {
	for i, it := range list {
		switch it.Type() {
		case item.TypeMessage, item.TypeFunctionCall, item.TypeFunctionCallOutput, item.TypeCustomToolCall, item.TypeCustomToolCallOutput:
			if taken[it.ID()] {
				list[i] = with(it, "id", item.Quote(s.newID(idPrefix(it.Type())+"_")))
			}
		}
		taken[list[i].ID()] = true
	}
	return list
}

// itemsOf returns the items of a conversation.
func (s *Server) itemsOf(ctx context.Context, id string) ([]item.Item, *Error) {
	if _, wrong := s.conversation(ctx, id); wrong != nil {
		return nil, wrong
	}
	items, err := s.store().Items(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, notFound("Conversation", id)
	case err != nil:
		return nil, s.failure(err)
	}
	for i, it := range items { // a store may have items of responses, whose input needs no ids
		items[i] = listedAs(it, id, i)
	}
	return items, nil
}

// converse reserves the conversation of a request until it is released: only one
// response at a time may continue a conversation.
func (s *Server) converse(ctx context.Context, r *Request) ([]item.Item, *Error) {
	id, ok := api.ConversationID(r.Conversation)
	if !ok {
		return nil, Invalid("invalid_type", "conversation", "Invalid type for 'conversation': expected an id, or an object that has one.")
	}
	if wrong := unknownMembers("conversation.", others(r.Conversation, "id")); wrong != nil {
		return nil, wrong
	}
	if !s.has(Conversations) {
		return nil, Invalid("unsupported_parameter", "conversation", "Unsupported parameter: 'conversation' is not supported here.")
	}
	if wrong := s.hold(ctx, id, r); wrong != nil {
		return nil, wrong
	}
	r.conversation = id
	if k := s.keeper(); k != nil {
		if _, wrong := s.conversation(ctx, id); wrong != nil {
			return nil, wrong
		}
		return s.waiting(ctx, k, id)
	}
	r.previous = id
	return s.itemsOf(ctx, id)
}

// others returns the members of an object besides those that are named. The value may be of another kind.
func others(v item.JSON, named ...string) (others item.Extra) {
	if object, err := item.ParseString(string(v)); err == nil {
		jsonx.EachMember(object.JSON(), func(literal, value string) {
			if name := jsonx.Unquote(literal); !slices.Contains(named, name) {
				others = append(others, item.Member{Name: name, Value: item.JSON(value)})
			}
		})
	}
	return others
}

// unknownMembers returns an error for members that the API does not have. In begins their names, unless it is "".
func unknownMembers(in string, members item.Extra) *Error {
	for _, m := range members {
		if m.Value != "" && m.Value != "null" { // "" is a member that is missing
			return Invalid("unknown_parameter", in+m.Name, "Unknown parameter: '%s%s'.", in, m.Name)
		}
	}
	return nil
}

func locked() *Error {
	return Invalid("conversation_locked", "", "Another process is currently operating on this conversation. Please retry in a few seconds.")
}

// hold reserves a conversation for a request, also among servers over one store.
func (s *Server) hold(ctx context.Context, id string, r *Request) *Error {
	if !s.holdHere(id, r) {
		return locked()
	}
	k, ok := s.store().(ConversationLocker)
	if !ok || s.keeper() != nil {
		return nil
	}
	unlock, err := k.LockConversation(ctx, id)
	s.mu.Lock()
	if r.unlock = unlock; err != nil {
		delete(s.held, id)
	}
	s.mu.Unlock()
	switch {
	case errors.Is(err, ErrLocked):
		return locked()
	case err != nil:
		return s.failure(err)
	}
	return nil
}

// holdHere reserves a conversation among the requests of this server.
func (s *Server) holdHere(id string, r *Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[id] != nil {
		return false
	}
	if s.held == nil {
		s.held = map[string]*Request{}
	}
	s.held[id] = r
	return true
}

// release frees the conversation of a request. It may be called more than once.
func (s *Server) release(r *Request) {
	s.mu.Lock()
	unlock := r.unlock
	r.unlock = nil
	if s.held[r.conversation] == r {
		delete(s.held, r.conversation)
	}
	s.mu.Unlock()
	if unlock == nil {
		return
	}
	if err := unlock(); err != nil {
		s.logf("antiphon server: the lock of the conversation %s: %v", r.conversation, err)
	}
}

// grow adds a response to its conversation, together with its input.
func (s *Server) grow(j *job, rec StoredObject) error {
	ctx := context.WithoutCancel(j.ctx)
	own, wrong := s.anew(ctx, j.r.conversation, slices.Clip(j.r.own()))
	if wrong != nil && wrong.Status != http.StatusNotFound {
		return wrong
	}
	items := append(own, s.added(lasting(rec.Response))...)
	var err error
	if j.progress != nil {
		err = j.progress.Join(ctx, rec, items...)
	} else {
		err = s.store().Add(ctx, j.r.conversation, items...)
	}
	if errors.Is(err, ErrNotFound) { // it was deleted meanwhile
		return nil
	}
	return err
}

// createConversation serves POST /conversations.
func (s *Server) createConversation(c *call) *Error {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	v := new(api.CreateConversation)
	if len(body) > 0 {
		var err error
		if v, err = api.ParseCreateConversation(body); err != nil {
			return unreadable(err)
		}
	}
	items, wrong := listed(v.Items, v.Extra)
	if wrong == nil {
		wrong = mayAnswer(c.r.Context(), items, "items")
	}
	if wrong == nil {
		wrong = mayName(c.r.Context(), items, "items")
	}
	if wrong == nil {
		items, _, wrong = s.withFiles(c.r.Context(), items, "items")
	}
	if wrong != nil {
		return wrong
	}
	metadata, wrong := checkMetadata(v.Metadata)
	if wrong != nil {
		return wrong
	}
	rec := StoredObject{Conversation: &api.Conversation{ID: s.newID("conv_"), CreatedAt: int64(s.now()), Metadata: metadata}, Input: s.renamed(s.added(items), map[string]bool{})}
	if err := s.store().Put(c.r.Context(), rec); err != nil {
		return s.failure(err)
	}
	return c.send(rec.Conversation)
}

// listed returns the items to add. Extra holds a value that is not a list.
func listed(l *item.List, x item.Extra) ([]item.Item, *Error) {
	if v, _ := x.Get("items"); v != "" && v != "null" {
		return nil, Invalid("invalid_type", "items", "Invalid type for 'items': expected a list.")
	}
	if wrong := unknownMembers("", x); wrong != nil {
		return nil, wrong
	}
	var items []item.Item
	for _, it := range l.All() {
		items = append(items, it)
	}
	return items, checkAdded(items)
}

// maxAdded is the maximum number of items that the API accepts at once.
const maxAdded = 20

func checkAdded(items []item.Item) *Error {
	if len(items) > maxAdded {
		return Invalid("array_above_max_length", "items",
			"Invalid 'items': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", maxAdded, len(items))
	}
	for i, it := range items {
		if it.Type() == item.TypeItemReference {
			return Invalid("", fmt.Sprintf("items[%d]", i), "Invalid 'items[%d]': items are not added by their id.", i)
		}
	}
	if p := checkItems(items); p != nil {
		p.Param = strings.Replace(p.Param, "input[", "items[", 1)
		p.Message = strings.Replace(p.Message, "'input[", "'items[", 1)
		return p
	}
	return nil
}

// retrieveConversation serves GET /conversations/{id}.
func (s *Server) retrieveConversation(c *call) *Error {
	rec, wrong := s.conversation(c.r.Context(), c.ids[0])
	if wrong != nil {
		return wrong
	}
	return c.send(rec.Conversation)
}

// updateConversation serves POST /conversations/{id}.
func (s *Server) updateConversation(c *call) *Error {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	v, err := api.ParseUpdateConversation(body)
	if err != nil {
		return unreadable(err)
	}
	if wrong := unknownMembers("", v.Extra); wrong != nil {
		return wrong
	}
	if v.Metadata == "" { // it would lose what there is
		return Invalid("missing_required_parameter", "metadata", "Missing required parameter: 'metadata'.")
	}
	metadata, wrong := checkMetadata(v.Metadata)
	if wrong != nil {
		return wrong
	}
	return s.changed(c, func(rec *StoredObject) (object, *Error) {
		updated := *rec.Conversation
		updated.Metadata = metadata
		rec.Conversation = &updated
		return rec.Conversation, nil
	})
}

// changed sends the result of change.
func (s *Server) changed(c *call, f func(*StoredObject) (object, *Error)) *Error {
	v, wrong := s.change(c.r.Context(), c.ids[0], f)
	if wrong != nil {
		return wrong
	}
	return c.send(v)
}

// deleteConversation serves DELETE /conversations/{id}. A response that is made in it has to end first: it
// is to be added to the conversation.
func (s *Server) deleteConversation(c *call) *Error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if _, wrong := s.conversation(c.r.Context(), c.ids[0]); wrong != nil {
		return wrong
	}
	reserved := &Request{conversation: c.ids[0]}
	if wrong := s.hold(c.r.Context(), c.ids[0], reserved); wrong != nil {
		if wrong.Code == "conversation_locked" {
			wrong.Status = http.StatusConflict
		}
		return wrong
	}
	defer s.release(reserved)
	if err := s.store().Delete(c.r.Context(), c.ids[0]); err != nil {
		return s.failure(err)
	}
	return c.send(&api.Deleted{ID: c.ids[0], Deleted: true})
}

// conversationItems serves GET /conversations/{id}/items.
func (s *Server) conversationItems(c *call) *Error {
	items, wrong := s.itemsOf(c.r.Context(), c.ids[0])
	if wrong != nil {
		return wrong
	}
	page, wrong := pageOf(c.r.URL.Query(), items)
	if wrong != nil {
		return wrong
	}
	return c.send(page)
}

// addConversationItems serves POST /conversations/{id}/items.
func (s *Server) addConversationItems(c *call) *Error {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	v, err := api.ParseAddItems(body)
	if err != nil {
		return unreadable(err)
	}
	items, wrong := listed(v.Items, v.Extra)
	if wrong == nil && len(items) == 0 {
		wrong = Invalid("missing_required_parameter", "items", "Missing required parameter: 'items' with at least one item.")
	}
	if wrong == nil {
		wrong = mayAnswer(c.r.Context(), items, "items")
	}
	if wrong == nil {
		wrong = mayName(c.r.Context(), items, "items")
	}
	if wrong == nil {
		items, _, wrong = s.withFiles(c.r.Context(), items, "items")
	}
	if wrong != nil {
		return wrong
	}
	if s.other != nil && s.other.Beside == s { // which may take the conversation
		s.changing.Lock()
		defer s.changing.Unlock()
	}
	if _, wrong := s.conversation(c.r.Context(), c.ids[0]); wrong != nil {
		return wrong
	}
	if items, wrong = s.anew(c.r.Context(), c.ids[0], items); wrong != nil {
		return wrong
	}
	switch err := s.store().Add(c.r.Context(), c.ids[0], items...); {
	case errors.Is(err, ErrNotFound):
		return notFound("Conversation", c.ids[0])
	case err != nil:
		return s.failure(err)
	}
	return c.send(onePage(items))
}

// conversationItem serves GET /conversations/{id}/items/{id}.
func (s *Server) conversationItem(c *call) *Error {
	items, wrong := s.itemsOf(c.r.Context(), c.ids[0])
	if wrong != nil {
		return wrong
	}
	items = distinct(items)
	i := indexOf(items, c.ids[1])
	if i < 0 {
		return notFound("Item", c.ids[1])
	}
	return c.send(encoded(items[i].JSON()))
}

// deleteConversationItem serves DELETE /conversations/{id}/items/{id}.
func (s *Server) deleteConversationItem(c *call) *Error {
	rec, wrong := s.conversation(c.r.Context(), c.ids[0])
	if wrong != nil {
		return wrong
	}
	switch err := s.store().Remove(c.r.Context(), c.ids[0], c.ids[1]); {
	case errors.Is(err, ErrNotFound):
		if items, _ := s.itemsOf(c.r.Context(), c.ids[0]); indexOf(distinct(items), c.ids[1]) >= 0 {
			return Invalid("unsupported_operation", "", "The item '%s' was stored with the id of an earlier item, and cannot be deleted alone: delete the conversation.", c.ids[1])
		}
		return notFound("Item", c.ids[1])
	case err != nil:
		return s.failure(err)
	}
	return c.send(rec.Conversation)
}
