// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// conversation is items that the server keeps together. It is guarded by the
// server's memory.
type conversation struct {
	id       string
	created  int64
	metadata item.JSON
	items    []item.Item // as they are handed out
	bytes    int
	// locked is set while a request about it is looked at, and pending is the
	// last response that goes on from it, until it has come to its end.
	locked  bool
	pending *record
	made    int
}

func (t *conversation) size() int { return t.bytes }

func (t *conversation) add(list []item.Item) (added []item.Item) {
	for _, it := range list {
		t.made++
		it = resource(it, strings.TrimPrefix(t.id, "conv_"), t.made)
		t.items = append(t.items, it)
		added = append(added, it)
	}
	return added
}

// settle adds what the last response brought. One that was not completed leaves
// nothing behind, its question neither.
func (t *conversation) settle() {
	if t.pending == nil {
		return
	}
	switch status, _ := t.pending.progress(); status {
	case item.StatusCompleted:
		t.add(append(t.pending.input[:len(t.pending.input):len(t.pending.input)], t.pending.items()...))
	case item.StatusInProgress, item.StatusQueued:
		return
	}
	t.pending = nil
}

// change calls f with a conversation, counts its size anew, and returns what f
// does.
func (s *Server) change(id string, f func(*conversation) (object, *problem)) (object, *problem) {
	m := &s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.talks.get(id)
	if !ok {
		return nil, notFound("Conversation", id)
	}
	t.settle()
	v, wrong := f(t)
	before := t.bytes
	t.count()
	m.talks.bytes += t.bytes - before
	m.talks.trim(s.MaxStored)
	return v, wrong
}

func (t *conversation) count() {
	t.bytes = 0
	for _, it := range t.items {
		t.bytes += len(it.JSON())
	}
}

// about answers a request about a conversation with what f returns, which is
// sent when others can go on.
func (s *Server) about(c *call, f func(*conversation) (object, *problem)) *problem {
	v, wrong := s.change(c.ids[0], f)
	if wrong != nil {
		return wrong
	}
	return c.send(v)
}

func (m *memory) unlock(t *conversation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.locked = false
}

// converse makes the request a part of its conversation.
func (s *Server) converse(q *asked) *problem {
	id, ok := item.ConversationID(q.req.Conversation)
	if !ok {
		return invalid("invalid_type", "conversation", "Invalid type for 'conversation': expected an id, or an object that has one.")
	}
	if !s.has(Conversations) {
		return invalid("unsupported_parameter", "conversation", "Unsupported parameter: 'conversation' is not supported here.")
	}
	_, wrong := s.change(id, func(t *conversation) (object, *problem) {
		if t.locked || t.pending != nil {
			return nil, invalid("conversation_locked", "", "Another process is currently operating on this conversation. Please retry in a few seconds.")
		}
		t.locked = true
		q.talk, q.history = t, slices.Clone(t.items)
		return nil, nil
	})
	return wrong
}

// object is the conversation without its items.
func (t *conversation) object() (object, *problem) {
	return &item.Conversation{ID: t.id, CreatedAt: t.created, Metadata: t.metadata}, nil
}

// createTalk serves POST /conversations.
func (s *Server) createTalk(c *call) *problem {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	v := new(item.CreateConversation)
	if len(body) > 0 {
		var err error
		if v, err = item.ParseCreateConversation(body); err != nil {
			return unreadable(err)
		}
	}
	items, wrong := listed(v.Items, v.Extra)
	if wrong != nil {
		return wrong
	}
	metadata, wrong := checkMetadata(v.Metadata)
	if wrong != nil {
		return wrong
	}
	talk, wrong := s.newTalk(metadata, items)
	if wrong != nil {
		return wrong
	}
	return c.send(talk)
}

func (s *Server) newTalk(metadata item.JSON, items []item.Item) (object, *problem) {
	m := &s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	t := &conversation{id: fmt.Sprintf("conv_%016x", m.made), created: s.now(), metadata: metadata}
	t.add(items)
	t.count()
	m.talks.put(t.id, t, s.MaxStored)
	return t.object()
}

// listed returns the items that are to be added. Extra holds what is not a list.
func listed(l *item.List, x item.Extra) ([]item.Item, *problem) {
	if v, _ := x.Get("items"); v != "" && v != "null" {
		return nil, invalid("invalid_type", "items", "Invalid type for 'items': expected a list.")
	}
	var items []item.Item
	for _, it := range l.All() {
		items = append(items, it)
	}
	return items, checkAdded(items)
}

func checkMetadata(v item.JSON) (item.JSON, *problem) {
	switch {
	case v == "" || v == "null":
		return "{}", nil
	case v[0] != '{':
		return "", invalid("invalid_type", "metadata", "Invalid type for 'metadata': expected an object.")
	}
	return v, nil
}

// maxAdded is how many items the API takes at a time.
const maxAdded = 20

func checkAdded(items []item.Item) *problem {
	if len(items) > maxAdded {
		return invalid("array_above_max_length", "items",
			"Invalid 'items': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", maxAdded, len(items))
	}
	for i, it := range items {
		if it.Type() == item.TypeItemReference {
			return invalid("", fmt.Sprintf("items[%d]", i), "Invalid 'items[%d]': the rehearsal adds no items by their id.", i)
		}
	}
	if p := checkItems(items); p != nil {
		p.param = strings.Replace(p.param, "input[", "items[", 1)
		p.message = strings.Replace(p.message, "'input[", "'items[", 1)
		return p
	}
	return nil
}

// retrieveTalk serves GET /conversations/{id}.
func (s *Server) retrieveTalk(c *call) *problem {
	return s.about(c, (*conversation).object)
}

// updateTalk serves POST /conversations/{id}.
func (s *Server) updateTalk(c *call) *problem {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	v, err := item.ParseUpdateConversation(body)
	if err != nil {
		return unreadable(err)
	}
	metadata, wrong := checkMetadata(v.Metadata)
	if wrong != nil {
		return wrong
	}
	return s.about(c, func(t *conversation) (object, *problem) {
		t.metadata = metadata
		return t.object()
	})
}

// deleteTalk serves DELETE /conversations/{id}.
func (s *Server) deleteTalk(c *call) *problem {
	s.memory.mu.Lock()
	there := s.memory.talks.remove(c.ids[0])
	s.memory.mu.Unlock()
	if !there {
		return notFound("Conversation", c.ids[0])
	}
	return c.send(&item.Deleted{ID: c.ids[0], Deleted: true})
}

// talkItems serves GET /conversations/{id}/items.
func (s *Server) talkItems(c *call) *problem {
	return s.about(c, func(t *conversation) (object, *problem) { return pageOf(c.r.URL.Query(), slices.Clone(t.items)) })
}

// addTalkItems serves POST /conversations/{id}/items.
func (s *Server) addTalkItems(c *call) *problem {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	v, err := item.ParseAddItems(body)
	if err != nil {
		return unreadable(err)
	}
	items, wrong := listed(v.Items, v.Extra)
	if wrong == nil && len(items) == 0 {
		wrong = invalid("missing_required_parameter", "items", "Missing required parameter: 'items' with at least one item.")
	}
	if wrong != nil {
		return wrong
	}
	return s.about(c, func(t *conversation) (object, *problem) { return onePage(t.add(items)), nil })
}

// aboutItem is about for a request about one item, at i.
func (s *Server) aboutItem(c *call, f func(t *conversation, i int) (object, *problem)) *problem {
	return s.about(c, func(t *conversation) (object, *problem) {
		i := slices.IndexFunc(t.items, func(it item.Item) bool { return it.ID() == c.ids[1] })
		if i < 0 {
			return nil, notFound("Item", c.ids[1])
		}
		return f(t, i)
	})
}

// talkItem serves GET /conversations/{id}/items/{id}.
func (s *Server) talkItem(c *call) *problem {
	return s.aboutItem(c, func(t *conversation, i int) (object, *problem) { return encoded(t.items[i].JSON()), nil })
}

// deleteTalkItem serves DELETE /conversations/{id}/items/{id}.
func (s *Server) deleteTalkItem(c *call) *problem {
	return s.aboutItem(c, func(t *conversation, i int) (object, *problem) {
		t.items = slices.Delete(t.items, i, i+1)
		return t.object()
	})
}
