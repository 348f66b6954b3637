// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
)

// Carried yields what a store holds that an import would leave out or ask about, because it
// lets something happen without a question: rules, answers about calls that have not run,
// words that wait in an inbox, sites that an endpoint is made to fetch from. It also yields
// the work and the schedules of workers. K5
//
// Whoever uses a store that somebody else made agrees to all of this. A session that cannot
// be read is yielded too, because nobody knows what it holds. It reads one session at a time.
func Carried(ctx context.Context, in store.Store) iter.Seq2[Dropped, error] {
	return func(yield func(Dropped, error) bool) {
		if nils.Is(in) {
			yield(Dropped{}, errNoStore)
			return
		}
		c := carrier{ctx: ctx, in: in, yield: yield}
		if err := c.all(); err != nil && !errors.Is(err, errEnough) {
			yield(Dropped{}, err)
		}
	}
}

// errEnough means that the caller wants no more.
var errEnough = errors.New("enough")

// carrier finds what a store carries.
type carrier struct {
	ctx   context.Context
	in    store.Store
	yield func(Dropped, error) bool
}

func (c *carrier) found(id string, entry int64, what string) error {
	if !c.yield(Dropped{id, entry, what}, nil) {
		return errEnough
	}
	return nil
}

func (c *carrier) all() error {
	nested := map[string]string{} // by id, the session that each is part of
	var ids []string
	for info, err := range nils.Each(c.in, "List", c.in.List(c.ctx, session.Query{Archived: true, Nested: true})) {
		if err != nil {
			if err := c.unread("", err); err != nil {
				return err
			}
			continue
		}
		ids = append(ids, info.ID)
		if info.Nested {
			nested[info.ID] = info.Parent
		}
	}
	for _, id := range ids {
		for _, look := range []func() error{
			func() error { return c.log(id, nested) },
			func() error { return c.inbox(id) },
		} {
			if err := c.unread(id, look()); err != nil {
				return err
			}
		}
	}
	return c.work()
}

// unread yields what cannot be read, and returns other errors.
func (c *carrier) unread(id string, err error) error {
	switch {
	case err == nil, errors.Is(err, session.ErrNotFound): // it was deleted meanwhile
		return nil
	case errors.Is(err, errEnough), c.ctx.Err() != nil:
		return err
	}
	return c.found(id, 0, "what cannot be read: "+err.Error())
}

// log looks at the entries of a session.
func (c *carrier) log(id string, nested map[string]string) error {
	d := agent.Disarm{Child: func(number int, callID, child string) bool {
		return child == session.SubsessionID(id, number, callID) && nested[child] == id
	}}
	var entries []session.Entry
	for e, err := range nils.Each(c.in, "Load", c.in.Load(c.ctx, id, 0)) {
		if err != nil {
			return err
		}
		d.Learn(e)
		entries = append(entries, e)
	}
	for _, e := range entries {
		_, dropped := d.Entry(e)
		if b, ok := e.Body.(session.RunStarted); ok && b.Conversation.Session != "" {
			dropped = append(dropped, "that it goes on in the conversation "+b.Conversation.ID+" of the endpoint")
		}
		for _, it := range itemsIn(e.Body) {
			for _, site := range reach.Sites(it, nil) {
				dropped = append(dropped, "that the endpoint fetches from "+site)
			}
		}
		for _, what := range dropped {
			if err := c.found(id, e.Seq, what); err != nil {
				return err
			}
		}
	}
	return nil
}

// inbox looks at what waits for a session.
func (c *carrier) inbox(id string) error {
	in, ok := c.in.(session.Inbox)
	if !ok {
		return nil
	}
	for d, err := range nils.Each(in, "Deliveries", in.Deliveries(c.ctx, id)) {
		if err != nil {
			return err
		}
		if err := c.found(id, 0, fmt.Sprintf("what waits in the inbox as delivery %d: %q", d.Number, d.Key)); err != nil {
			return err
		}
	}
	return nil
}

// work looks at what workers would do.
func (c *carrier) work() error {
	if q, ok := c.in.(queue.Queue); ok {
		for w, err := range nils.Each(q, "Works", q.Works(c.ctx, queue.Ready, queue.Waiting, queue.Running, queue.Parked)) {
			if err := c.unread(w.Session, err); err != nil {
				return err
			}
			if err != nil {
				continue
			}
			if err := c.found(w.Session, 0, "work that waits, with the agent "+w.Agent); err != nil {
				return err
			}
		}
	}
	if q, ok := c.in.(queue.Schedules); ok {
		list, err := q.Schedules(c.ctx, false)
		for _, s := range list {
			if err := c.found("", 0, "the schedule "+s.Name); err != nil {
				return err
			}
		}
		return c.unread("", err)
	}
	return nil
}
