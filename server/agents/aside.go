// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"net/http"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// This file has the requests that make no response: they work on a copy in memory of the
// session that they are about.

// aside is an agent with such a copy, to which the request's input was added.
type aside struct {
	host  *host.Host
	agent *agent.Agent
	own   int64 // the entries that are the agent's own
}

// aside opens the copy, and calls f with it.
func (b *Backend) aside(ctx context.Context, r *server.Request, f func(*aside) error) (err error) {
	if r == nil || r.Request == nil {
		return errors.New("agents: a request is needed")
	}
	a, err := b.named(r.Model)
	if err == nil {
		err = unsupported(r)
	}
	if err != nil {
		return err
	}
	at, log, err := b.copied(ctx, a, r)
	if err != nil {
		return err
	}
	defer at.undo()
	tokens := &lent{tools: r.Tools}
	h, err := b.openHost(ctx, a, at.store, at.session, tokens)
	if err != nil {
		return b.unopened(a, err)
	}
	defer func() { b.report(h.Close()) }()
	it := &aside{host: h, own: int64(len(h.Session.Log()))}
	for _, e := range log {
		if n, ok := noteOf(e); ok && n.Kind == kindBegin {
			it.own = min(it.own, e.Seq-1)
		}
	}
	if it.agent, err = tokens.start(ctx, a, h); err != nil {
		return b.unusable(a, err)
	}
	if _, err = adapt(ctx, it.agent, r); err != nil {
		return err
	}
	run := &active{host: h}
	answers, err := b.takeApart(ctx, at, run, r)
	switch {
	case len(answers) > 0:
		return server.Invalid("unsupported_value", "input", "Unsupported value: an answer to an approval must come with a request for a response.")
	case err != nil && !errors.Is(err, errNothing):
		return err
	}
	if len(run.input) > 0 {
		if _, err = h.Session.Append(ctx, run.input...); err != nil {
			return err
		}
	}
	return f(it)
}

// copied returns a new place in memory, with a copy of what the request continues.
func (b *Backend) copied(ctx context.Context, a *Agent, r *server.Request) (*place, []session.Entry, error) {
	p := &place{store: &b.memory, agent: a, session: newSession(), fresh: true, continues: r.PreviousResponseID}
	path, err := host.ResolvePath(a.Config.File)
	if err != nil {
		return nil, nil, b.unopened(a, &host.ConfigError{Err: err})
	}
	in, old := b.store(), ""
	until := func(log []session.Entry) int64 { return int64(len(log)) }
	if id, ok := api.ConversationID(r.Conversation); ok {
		talk, ok := conversationSession(id)
		if !ok {
			return nil, nil, server.ErrNotFound
		}
		begun := false
		if begun, err = b.begun(ctx, talk); begun {
			p.talk, old = id, talk
		} else if err == nil {
			p.early, err = b.early(ctx, talk)
		}
	} else if r.PreviousResponseID != "" {
		var seq int64
		in, old, seq, err = b.find(r.PreviousResponseID)
		until = func(log []session.Entry) int64 { return partOf(log, seq).to }
	}
	if err != nil {
		return nil, nil, err
	}
	if old == "" {
		return p, nil, p.store.Create(ctx, session.Info{ID: p.session, Path: path, Owner: b.owner(), Tags: []string{tag}})
	}
	info, err := b.info(ctx, in, old)
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Open(ctx, in, old)
	if err != nil {
		return nil, nil, err
	}
	if info.Path != path {
		return nil, nil, server.Invalid("invalid_value", "model", "Another agent than '%s' answers in what the request continues.", a.Name)
	}
	log := s.Log()
	log = log[:until(log)]
	return p, log, b.copy(ctx, p, info, log)
}

// CountTokens implements [server.TokenCounter]: the tokens of the first request that a
// response would send to the agent's model. The model's endpoint counts them; if it cannot,
// they are estimated.
func (b *Backend) CountTokens(ctx context.Context, r *server.Request) (n int64, err error) {
	err = b.aside(ctx, r, func(it *aside) error {
		req, _, err := it.agent.Preview(ctx, it.host.Session)
		if err != nil {
			return err
		}
		if c, ok := it.agent.Model.(counter); ok {
			n, err = c.CountTokens(ctx, req)
			if ctx.Err() != nil || err == nil {
				return err
			}
			b.report(err)
		}
		n = estimated(req)
		return nil
	})
	return n, err
}

// counter is a model whose endpoint counts tokens.
type counter interface {
	CountTokens(ctx context.Context, req *api.Request) (int64, error)
}

// estimated returns the estimated tokens of a request.
func estimated(req *api.Request) int64 {
	n := plan.EstimateText(req.Instructions)
	for _, it := range req.InputItems() {
		n += plan.Estimate(req.Model, it)
	}
	if b, err := (&api.Request{Tools: req.Tools}).AppendJSON(nil); err == nil && len(req.Tools) > 0 {
		n += plan.EstimateText(string(b))
	}
	return int64(n)
}

// Compact implements [server.Compactor]. The result is one item with what the agent's
// compaction leaves of the history, or with the whole history if that is short.
func (b *Backend) Compact(ctx context.Context, r *server.Request) (made *api.Compacted, err error) {
	err = b.aside(ctx, r, func(it *aside) error {
		usage := &api.Usage{InputDetails: &api.InputTokensDetails{CachedTokens: 0, CacheWriteTokens: new(int64(0))}, OutputDetails: &api.OutputTokensDetails{}}
		if !rehearsed(it.agent.Model) {
			before := len(it.host.Session.Log())
			done, err := it.agent.Compact(ctx, it.host.Session)
			log := it.host.Session.Log()[before:] // it has what a compaction that failed has used, too
			cost, _ := pricesOf(log)
			if spent := usageOf(log); cost != 0 || spent.TotalTokens != 0 {
				server.Spend(ctx, server.Outcome{Usage: &spent, Cost: cost})
			}
			if done != nil && done.Usage != nil {
				usage = done.Usage
			}
			// Without a summary, which would save too little, the history stays whole.
			if known := new(endpoint.Error); errors.As(err, &known) || ctx.Err() != nil {
				b.report(err)
				return &server.Error{Status: http.StatusBadGateway, Code: "server_error", Message: "The endpoint of the agent's model could not compact the history."}
			}
		}
		items, err := it.left()
		if err != nil {
			return err
		}
		packed, err := server.Pack(items)
		if err != nil {
			return err
		}
		made = &api.Compacted{Output: []item.Item{packed}, Usage: usage}
		return nil
	})
	return made, err
}

// rehearsed reports whether the mock model answers, whose summaries are none.
func rehearsed(m agent.Model) bool {
	d, ok := m.(agent.Describer)
	return ok && d.About().Rehearsal
}

// left returns the items of the history, without the agent's own and the instructions of
// requests, which a later request brings again.
func (a *aside) left() (items []item.Item, err error) {
	var v session.View
	skip := map[int64]bool{}
	for e := range a.host.Session.Entries() {
		v.Apply(e)
		if n, ok := noteOf(e); ok && n.Kind == kindInstructions {
			skip[e.Seq+1] = true
		}
	}
	if len(v.Open()) > 0 {
		return nil, server.Invalid("", "input", "Calls of the agent wait for an answer: answer them before the history is compacted.")
	}
	for i, it := range v.Items().All() {
		if seq, _ := v.Seq(i); seq <= a.own || skip[seq] {
			continue
		}
		whole, err := it.Whole()
		if err != nil {
			return nil, err
		}
		items = append(items, whole)
	}
	if len(items) == 0 {
		return nil, errNothing
	}
	return items, nil
}
