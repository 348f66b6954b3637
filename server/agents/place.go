// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// place is where a response is made.
type place struct {
	store     store.Store
	session   string
	agent     *Agent
	fresh     bool         // it was made for this request
	continues string       // the response that is continued, or ""
	after     int64        // the entry at which it begins
	talk      string       // the conversation, or ""
	early     []item.Item  // were added to the conversation before
	unlock    func() error // of a conversation whose first response this is, until it has begun; or nil
}

// release lets others add to the conversation, and answer in it.
func (p *place) release() error {
	if p == nil || p.unlock == nil {
		return nil
	}
	unlock := p.unlock
	p.unlock = nil
	return unlock()
}

// undo removes a session that was made for a request that was refused, unless somebody has said
// something to it meanwhile.
func (p *place) undo() {
	if p.fresh {
		_ = session.DeleteIfTaken(context.Background(), p.store, p.session) // it may be gone with the host
	}
}

// newSession returns the id of a new session, which is hard to guess.
func newSession() string { return "api-" + strings.ToLower(rand.Text()) }

// place returns the session of a response. It makes it if there is none, or if the
// request continues a response that others continue too.
func (b *Backend) place(ctx context.Context, a *Agent, r *server.Request) (*place, error) {
	p := &place{store: b.store(), agent: a, session: newSession()}
	if !r.Stored {
		p.store = &b.memory
	}
	path, err := host.ResolvePath(a.Config.File)
	if err != nil {
		return nil, b.unopened(a, &host.ConfigError{Err: err}) // the file was deleted
	}
	if id, ok := api.ConversationID(r.Conversation); ok {
		return p, b.inConversation(ctx, p, id, path)
	}
	if r.PreviousResponseID == "" {
		p.fresh = true
		return p, p.store.Create(ctx, session.Info{ID: p.session, Path: path, Owner: b.owner(), Tags: []string{tag}})
	}
	p.continues = r.PreviousResponseID
	in, old, seq, err := b.find(r.PreviousResponseID)
	if err != nil {
		return nil, err
	}
	info, err := b.info(ctx, in, old)
	if err != nil {
		return nil, err
	}
	if info.Path != path {
		return nil, server.Invalid("invalid_value", "model", "The previous response was made by another agent than '%s': begin a new conversation with it.", a.Name)
	}
	log, err := session.Open(ctx, in, old)
	if err != nil {
		return nil, err
	}
	part := partOf(log.Log(), seq)
	switch {
	case approves(r.Items) && (b.busy(old) || atWorker(&part)): // with the call that is approved, perhaps
		return nil, errLocked
	case approves(r.Items) && (in != p.store || !part.last):
		return nil, b.answerElsewhere(ctx, in, log, &part, r.Items)
	case in != p.store:
		p.fresh = true
		if err = b.copy(ctx, p, info, log.Log()[:part.to]); err == nil {
			err = p.store.Label(ctx, p.session, session.Labels{Tags: []string{tag}})
		}
		return p, err
	case part.last && !b.busy(old) && !atWorker(&part):
		p.session, p.after = old, seq
		return p, nil
	}
	return p, b.forks(ctx, p, log, part)
}

// answerElsewhere returns the error for an answer to a request for approval that cannot go to the call where it waits: the
// conversation has gone on, or the answer would be kept in another store. A fork or a copy does not take it: a
// request that is sent twice would run the call twice.
func (b *Backend) answerElsewhere(ctx context.Context, in store.Store, log *session.Session, asked *part, items []item.Item) error {
	r, err := responseOf(b.inner(ctx, in), log.Log(), asked)
	if err != nil {
		return err
	}
	pending, err := agent.PendingApprovals(ctx, log)
	if err != nil {
		return err
	}
	for i, it := range items {
		id := it.CallID()
		if it.Type() != item.TypeMCPApprovalResponse {
			continue
		}
		waits := slices.ContainsFunc(pending, func(p agent.PendingApproval) bool { return approvalID(r.ID, log.ID(), &p) == id })
		refused := &server.Error{Status: http.StatusConflict, Param: fmt.Sprintf("input[%d].approval_request_id", i)}
		switch {
		case !slices.ContainsFunc(r.Output, func(out item.Item) bool { return out.ID() == id }):
			return noCallWaits(i, id)
		case !waits:
			refused.Code = "already_answered"
			refused.Message = fmt.Sprintf("The request for approval '%s' was answered already, and its call is not made a second time. The conversation went on with %s: read that response.", id, nextID(log.Log(), asked))
		case !asked.last:
			refused.Code = "asked_again"
			refused.Message = fmt.Sprintf("The conversation went on from %s without an answer to '%s': continue its last response, %s, and answer what that asks.", r.ID, id, lastID(log.Log()))
		default:
			return server.Invalid("unsupported_value", "store", "Unsupported value: the call of '%s' waits where its response is kept, so 'store' must be what it was for that response.", id)
		}
		return refused
	}
	return nil
}

// nextID returns the id of the response that follows another one in a log, or of that one if none does.
func nextID(log []session.Entry, p *part) string {
	for _, next := range partsOf(log) {
		if next.from > p.from {
			return next.begin.ResponseID
		}
	}
	return p.begin.ResponseID
}

// fork makes a place in a session that others use one in a fork of it.
func (b *Backend) fork(ctx context.Context, p *place) error {
	log, err := session.Open(ctx, p.store, p.session)
	if err != nil {
		return err
	}
	p.session = newSession()
	return b.forks(ctx, p, log, partOf(log.Log(), p.after))
}

// forks makes the session of a place: a fork behind a response.
func (b *Backend) forks(ctx context.Context, p *place, log *session.Session, behind part) error {
	p.fresh = true
	_, err := log.Fork(ctx, behind.to, p.session)
	if err == nil {
		err = p.store.Label(ctx, p.session, session.Labels{Tags: []string{tag}})
	}
	return err
}

// busy reports whether a response is being made in a session here.
func (b *Backend) busy(in string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.active {
		if s, _, ok := parseID(id); ok && s == in {
			return true
		}
	}
	return false
}

// copy makes a session from the log of one in another store.
func (b *Backend) copy(ctx context.Context, p *place, from session.Info, log []session.Entry) error {
	if err := p.store.Create(ctx, session.Info{ID: p.session, Path: from.Path, Owner: from.Owner, Tags: []string{tag}}); err != nil {
		return err
	}
	entries := slices.Clone(log)
	for i := range entries {
		entries[i].Seq = int64(i) + 1
	}
	for _, body := range session.Revocations(log) {
		entries = append(entries, session.Entry{Seq: int64(len(entries)) + 1, Body: body})
	}
	return p.store.Append(ctx, p.session, 0, entries)
}

// find returns the store and the session of a response, and the entry at which it begins.
func (b *Backend) find(id string) (in store.Store, sess string, seq int64, err error) {
	sess, seq, ok := parseID(id)
	if !ok {
		return nil, "", 0, server.ErrNotFound
	}
	b.mu.Lock()
	_, unstored := b.unstored[id]
	b.mu.Unlock()
	if unstored {
		return &b.memory, sess, seq, nil
	}
	return b.store(), sess, seq, nil
}
