// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// A conversation is two sessions: one for the object and for what was added before an
// agent answered, which is archived so that lists leave it out, and the session of the
// agent, which the first response makes.

// headPrefix begins the id of the session with the object of a conversation.
const headPrefix = prefix + "conv-"

// conversationSession returns the session of a conversation.
func conversationSession(id string) (in string, ok bool) {
	name, ok := strings.CutPrefix(id, "conv_")
	return prefix + strings.ToLower(name), ok && random(strings.ToLower(name))
}

// headSession returns the session with the object of the conversation of a session.
func headSession(talk string) string { return headPrefix + strings.TrimPrefix(talk, prefix) }

func (b *Backend) isConversation(ctx context.Context, talk string) bool {
	_, err := b.info(ctx, b.store(), headSession(talk))
	return err == nil
}

// putConversation stores the object of a conversation, and the items that it begins with.
func (b *Backend) putConversation(ctx context.Context, rec server.StoredObject) error {
	talk, ok := conversationSession(rec.Conversation.ID)
	if !ok {
		return fmt.Errorf("agents: %q cannot be the id of a conversation", rec.Conversation.ID)
	}
	head, err := rec.Conversation.AppendJSON(nil)
	if err != nil {
		return err
	}
	n := note{Kind: kindConversation, Conversation: head}
	id := headSession(talk)
	err = b.store().Create(ctx, session.Info{ID: id, Owner: b.owner(), Tags: []string{tag}})
	if err == nil {
		if err = b.store().Archive(ctx, id, true); err == nil && len(rec.Input) > 0 {
			if err = additions(rec.Input); err == nil {
				n.Items, err = listJSON(rec.Input)
			}
		}
		if err != nil {
			return errors.Join(err, b.store().Delete(ctx, id))
		}
	} else if !errors.Is(err, session.ErrExists) {
		return err
	}
	s, unlock, err := b.locked(ctx, id)
	if err != nil {
		return err
	}
	_, err = s.Append(ctx, n.body())
	return errors.Join(err, unlock())
}

// owner returns the owner of the sessions, which all agents have.
func (b *Backend) owner() string {
	if b.Owner != "" || len(b.Agents) == 0 {
		return b.Owner
	}
	return b.Agents[0].Config.Owner
}

func listJSON(items []item.Item) (jsontext.Value, error) { return item.NewList(items...).MarshalJSON() }

// additions returns an error for items that cannot be added to a conversation: calls and
// their outputs belong to responses.
func additions(items []item.Item) error {
	for i, it := range items {
		if it.Type() != item.TypeMessage {
			return server.Invalid("unsupported_value", fmt.Sprintf("items[%d].type", i), "Unsupported value: only messages can be added to the conversation of an agent, and not items of the type '%s'.", it.Type())
		}
	}
	return nil
}

// getConversation returns the object of a conversation.
func (b *Backend) getConversation(ctx context.Context, id string) (rec server.StoredObject, err error) {
	talk, ok := conversationSession(id)
	if !ok {
		return rec, server.ErrNotFound
	}
	s, err := b.read(ctx, b.store(), headSession(talk))
	if err != nil {
		return rec, err
	}
	for _, e := range s.Log() {
		if n, ok := noteOf(e); ok && n.Kind == kindConversation {
			if rec.Conversation, err = api.ParseConversation(n.Conversation); err != nil {
				return rec, err
			}
		}
	}
	if rec.Conversation == nil || rec.Conversation.ID != id {
		return server.StoredObject{}, server.ErrNotFound
	}
	return rec, nil
}

// early returns the items that were added before an agent answered.
func (b *Backend) early(ctx context.Context, talk string) (items []item.Item, err error) {
	s, err := b.read(ctx, b.store(), headSession(talk))
	if err != nil {
		return nil, err
	}
	for _, e := range s.Log() {
		n, ok := noteOf(e)
		if !ok {
			continue
		}
		more, err := n.items()
		if err != nil {
			return nil, err
		}
		items = append(items, more...)
	}
	return items, nil
}

// conversationItems returns what clients see of a conversation.
func (b *Backend) conversationItems(ctx context.Context, id, talk string) ([]item.Item, error) {
	if _, err := b.getConversation(ctx, id); err != nil {
		return nil, err
	}
	items, err := b.early(ctx, talk)
	if err != nil {
		return nil, err
	}
	s, err := b.read(ctx, b.store(), talk)
	if errors.Is(err, server.ErrNotFound) {
		return items, nil
	}
	if err != nil {
		return nil, err
	}
	said, err := visibleAll(b.inner(ctx, b.store()), s.Log(), len(items))
	return append(items, said...), err
}

// visibleAll is like visible, with messages that were added between responses. The first
// responses of the log has the early items of the conversation as input too, which are
// left out.
func visibleAll(in inner, log []session.Entry, early int) (items []item.Item, err error) {
	all := reading{in: in, log: log}
	at := int64(0)
	added := func(to int64) { // between two responses
		for ; at < to; at++ {
			if n, ok := noteOf(log[at]); !ok || n.Kind != kindItems {
				continue
			}
			for ; at+1 < to; at++ {
				given, ok := log[at+1].Body.(session.InputItem)
				if !ok {
					break
				}
				items = append(items, given.Item)
			}
		}
	}
	for _, p := range partsOf(log) {
		added(p.from - 1)
		r, err := all.response(&p)
		if err != nil {
			return nil, err
		}
		input := inputOf(log[p.from:p.to])
		items = append(append(items, input[min(early, len(input)):]...), r.Output...)
		early, at = 0, p.to
	}
	added(int64(len(log)))
	return items, nil
}

// Add implements [server.Store].
func (b *Backend) Add(ctx context.Context, id string, items ...item.Item) error {
	if err := additions(items); err != nil {
		return err
	}
	talk, ok := conversationSession(id)
	if !ok {
		return server.ErrNotFound
	}
	if _, err := b.getConversation(ctx, id); err != nil {
		return err
	}
	if begun, err := b.begun(ctx, talk); err != nil {
		return err
	} else if !begun {
		added, err := b.addEarly(ctx, talk, items)
		if added || err != nil {
			return err
		}
	}
	s, unlock, err := b.locked(ctx, talk)
	if err != nil {
		return err
	}
	if unfinished(s.Log()) != "" { // between its server and a worker, or two servers
		return errors.Join(errLocked, unlock())
	}
	bodies := []session.Body{note{Kind: kindItems}.body()}
	for _, it := range items {
		bodies = append(bodies, session.InputItem{Item: it})
	}
	_, err = s.Append(ctx, bodies...)
	return errors.Join(err, unlock())
}

// addEarly adds items to a conversation in which no agent has answered. It adds nothing if one has
// begun to meanwhile: whoever makes the first response locks the object until it has begun.
func (b *Backend) addEarly(ctx context.Context, talk string, items []item.Item) (added bool, err error) {
	list, err := listJSON(items)
	if err != nil {
		return false, err
	}
	s, unlock, err := b.locked(ctx, headSession(talk))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if begun, err := b.begun(ctx, talk); begun || err != nil {
		return false, err
	}
	_, err = s.Append(ctx, note{Kind: kindItems, Items: list}.body())
	return err == nil, err
}

// begun reports whether a conversation has a response, also one that was deleted. Before the first
// one, the agent's session may be there, and nothing in it was said by anybody but its file.
func (b *Backend) begun(ctx context.Context, talk string) (bool, error) {
	if _, err := b.info(ctx, b.store(), talk); errors.Is(err, server.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for e, err := range nils.Each(b.store(), "Load", b.store().Load(ctx, talk, 0)) { // only its beginning, as a rule
		if err != nil {
			return false, err
		}
		if n, ok := noteOf(e); ok && n.Kind == kindBegin {
			return true, nil
		}
	}
	return false, nil
}

// Remove implements [server.Store]. An item cannot be taken out of a log.
func (b *Backend) Remove(context.Context, string, string) error {
	return server.Invalid("unsupported_operation", "", "An item of an agent's conversation cannot be deleted alone: delete the conversation.")
}

// deleteConversation deletes both sessions. The one with the object goes last: as long as it is
// there, a deletion that failed can be repeated.
func (b *Backend) deleteConversation(ctx context.Context, id, talk string) (err error) {
	if _, err := b.getConversation(ctx, id); err != nil {
		return err
	}
	head, unlockHead, err := b.lockNow(ctx, headSession(talk)) // the first response may be about to begin
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlockHead()) }()
	s, unlock, err := b.lockNow(ctx, talk) // others wait for this request
	switch {
	case errors.Is(err, server.ErrNotFound): // no agent has answered in it
	case err != nil:
		return err
	case unfinished(s.Log()) != "":
		return errors.Join(errLocked, unlock())
	default:
		if err = errors.Join(b.store().Delete(ctx, talk), unlock()); err != nil {
			return err
		}
	}
	return b.store().Delete(ctx, head.ID())
}

// remove deletes a session, if there is one.
func (b *Backend) remove(ctx context.Context, id string) error {
	info, err := b.info(ctx, b.store(), id)
	if errors.Is(err, server.ErrNotFound) {
		return nil
	}
	if err == nil {
		if err = host.Remove(ctx, b.store(), info); errors.Is(err, session.ErrBusy) {
			err = errLocked
		}
	}
	return err
}

// inConversation sets the session of a response in a conversation.
func (b *Backend) inConversation(ctx context.Context, p *place, id, path string) error {
	talk, ok := conversationSession(id)
	if !ok {
		return server.ErrNotFound
	}
	p.session, p.talk, p.store = talk, id, b.store()
	if begun, err := b.begun(ctx, talk); err != nil {
		return err
	} else if !begun {
		if err := b.beginTalk(ctx, p, talk); err != nil {
			return err
		}
	}
	info, err := b.info(ctx, p.store, talk)
	switch {
	case p.fresh && errors.Is(err, server.ErrNotFound):
		return p.store.Create(ctx, session.Info{ID: talk, Path: path, Owner: b.owner(), Tags: []string{tag}})
	case err == nil && info.Path != path:
		return server.Invalid("invalid_value", "model", "Another agent than '%s' answers in this conversation: begin a new one with it.", p.agent.Name)
	}
	return err
}

// beginTalk prepares the first response of a conversation: until it has begun, nothing is added to
// the conversation, and nobody else begins. If somebody else has begun meanwhile, there is nothing to
// prepare.
func (b *Backend) beginTalk(ctx context.Context, p *place, talk string) error {
	_, unlock, err := b.locked(ctx, headSession(talk))
	if err != nil {
		return err
	}
	begun, err := b.begun(ctx, talk)
	if err == nil && !begun {
		p.early, err = b.early(ctx, talk)
	}
	if begun || err != nil {
		return errors.Join(err, unlock())
	}
	p.fresh, p.unlock = true, unlock
	return nil
}
