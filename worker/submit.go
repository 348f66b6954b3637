// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
)

// Job is work to be done by a worker, in this process or another.
type Job struct {
	// Config names the agent's File, the Session, and its Owner and Tags. Its Store is
	// where the work is kept. The worker's own configuration decides about all else, such
	// as the endpoint, rules and limits.
	Config host.Config
	// ByID means that the Session is the id of a session that exists, which may be archived. Otherwise it is a
	// name, or the id of one that is not archived, and the session is made unless it exists.
	ByID bool
	// Input is what is said to the agent. Without it, the file's own question is.
	Input []item.Item
	// Key identifies the input: a caller that does not know whether Submit succeeded
	// repeats it with the same key. By default the key is a new one.
	Key string
	// By names who says it, and From the means: see [session.Delivered].
	By, From string

	Tenant   string   // whose work it is, for shares and limits
	Priority int      // higher is sooner, within a tenant
	Needs    []string // labels that a worker must have
	// Place is where the session's files are. Nil means where the session's work has them, if
	// there is any, and else nowhere in particular.
	Place *Place
	Due   time.Time // not before; refused while the session runs, because the run would read the Input at once

	// Upgrade goes on with the file as it is now. Otherwise, work of a session that
	// exists goes on with the definition that it began with (rule D3 in docs/rules.md).
	Upgrade bool
}

// Receipt says what became of a [Job].
type Receipt struct {
	Session session.Info
	Agent   string // the hash of the definition that the session's work goes on with
	Key     string
	// Taken is the number of the input in the session's log, or 0 while it waits.
	Taken int64
	// Parked is why the session's work does not go on, although the input was delivered:
	// an operator or a failure parked it.
	Parked string
}

// Submit leaves work for a worker: it stores the definition of the agent's file, makes
// the session unless it exists, delivers the input, and enqueues the session. A caller
// that gets an error, or none because it died, repeats the call with the same key: the
// input is delivered once.
func Submit(ctx context.Context, j Job) (r Receipt, err error) {
	if _, _, err := parts(j.Config.Store); err != nil {
		return r, err
	}
	key := j.Key
	if key == "" {
		key = rand.Text()
	}
	if err := session.CheckKey(key); err != nil {
		return r, &host.ConfigError{Err: err}
	}
	if err := host.CheckName(j.Config.Session); err != nil {
		return r, &host.ConfigError{Err: err}
	}
	path, err := host.ResolvePath(j.Config.File)
	if err != nil {
		return r, &host.ConfigError{Err: err}
	}
	if j.Place != nil {
		if err := j.Place.Check(); err != nil {
			return r, &host.ConfigError{Err: err}
		}
	}
	// Everything that can be wrong is found before anything is stored.
	j.Config.Trust = nil // nothing is started here, and the worker asks
	d, _, err := host.Pack(ctx, j.Config)
	if err != nil {
		return r, err
	}
	text, err := d.Encode()
	if err != nil {
		return r, err
	}
	input := session.Delivery{Delivered: session.Delivered{Key: key, By: j.By, From: j.From}}
	for _, it := range j.Input {
		input.Bodies = append(input.Bodies, session.InputItem{Item: it})
	}
	if len(input.Bodies) > 0 {
		if err := session.CheckDelivery(input); err != nil {
			return r, &host.ConfigError{Err: err}
		}
	}
	o := order{
		path: path, byID: j.ByID, name: j.Config.Session, owner: j.Config.Owner, tags: j.Config.Tags, definition: text, input: input, replace: j.Upgrade, revive: j.Upgrade, place: j.Place,
		work: queue.Work{Tenant: j.Tenant, Priority: j.Priority, Needs: j.Needs, Due: j.Due},
	}
	return o.leave(ctx, j.Config.Store)
}

// order is work to be left in a store.
type order struct {
	path, name, owner string // of the session
	byID              bool   // the name is an id
	tags              []string
	definition        []byte
	input             session.Delivery // without bodies, nothing is said
	work              queue.Work
	// replace goes on with this definition, although the session's work may have begun with
	// another one. revive also makes work ready that is parked.
	replace, revive bool
	place           *Place // nil keeps the one that the session's work has
}

// leave makes the session unless it exists, delivers the input, and enqueues the session.
func (o *order) leave(ctx context.Context, in store.Store) (r Receipt, err error) {
	q, box, err := parts(in)
	if err != nil {
		return r, err
	}
	r.Key = o.input.Delivered.Key
	if r.Session, err = sessionOf(ctx, in, o); err != nil {
		return r, err
	}
	id := r.Session.ID
	before, known, err := workOf(ctx, q, id)
	if err != nil {
		return r, err
	}
	if r.Agent = before.Agent; !known || o.replace {
		hash, err := in.PutBlob(ctx, id, o.definition)
		if err != nil {
			return r, err
		}
		r.Agent = hex.EncodeToString(hash[:])
	}
	o.work.Session, o.work.Agent, o.work.Needs = id, r.Agent, settle(o.work.Needs, o.place, before)
	if o.revive {
		before = queue.Work{}
	}
	return r, r.enqueue(ctx, box, q, before, o.work, o.input)
}

// enqueue delivers the input, if there is any, and then makes the work ready, unless it was
// parked before.
func (r *Receipt) enqueue(ctx context.Context, box session.Inbox, q queue.Queue, before, w queue.Work, input session.Delivery) error {
	if !w.Due.IsZero() && before.State != queue.Parked {
		return r.later(ctx, box, q, before, w, input)
	}
	if err := r.deliver(ctx, box, w.Session, input); err != nil {
		return err
	}
	if before.State == queue.Parked {
		r.Parked = before.Reason
		return nil
	}
	return q.Enqueue(ctx, w)
}

// later is enqueue for work that is not to begin before its time. A delivery wakes work that has ended or waits, so the work
// gets its time first. A process that dies in between leaves work with a time and without the input: it begins then, and goes on
// with what it has.
func (r *Receipt) later(ctx context.Context, box session.Inbox, q queue.Queue, before, w queue.Work, input session.Delivery) error {
	if err := q.Enqueue(ctx, w); err != nil { // it changes nothing while the work runs
		return err
	}
	now, _, err := workOf(ctx, q, w.Session)
	if err != nil {
		return err
	}
	if now.State == queue.Running {
		return &host.ConfigError{Err: fmt.Errorf("the work of the session %s runs now, and would read the input at once: submit it when that has ended, in another session, or without a time", w.Session)}
	}
	if err = r.deliver(ctx, box, w.Session, input); err == nil {
		return nil
	}
	switch before.State { // nothing was said, so nothing is delayed
	case queue.Ready:
		err = errors.Join(err, q.Enqueue(ctx, before))
	case queue.Done:
		err = errors.Join(err, q.Move(ctx, now, queue.Done, before.Reason))
	case queue.Waiting: // a worker looks at once, and waits again for what has not happened
		err = errors.Join(err, q.Move(ctx, now, queue.Ready, before.Reason))
	}
	return err
}

// deliver delivers the input, if there is any.
func (r *Receipt) deliver(ctx context.Context, box session.Inbox, id string, input session.Delivery) error {
	if len(input.Bodies) == 0 {
		return nil
	}
	receipt, err := box.Deliver(ctx, id, input)
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	r.Taken = receipt.Taken
	return nil
}

// parts returns what a store must be to keep work.
func parts(in store.Store) (queue.Queue, session.Inbox, error) {
	if nils.Is(in) {
		return nil, nil, errors.New("worker: no Store is set")
	}
	q, err := store.As[queue.Queue](in, "keep work")
	if err != nil {
		return nil, nil, err
	}
	box, err := store.As[session.Inbox](in, "keep deliveries")
	return q, box, err
}

// Wake makes the work of a session ready if it waits for something that has happened, such
// as an approval that was written to the log by [agent.Decide], and reports whether a
// worker goes on with it. A delivery makes work ready by itself. A subagent's session
// counts as the session that it is nested in. Wake does nothing if the store keeps no
// work.
func Wake(ctx context.Context, in session.Store, id string) (goesOn bool, err error) {
	q, ok := in.(queue.Queue)
	if !ok || nils.Is(in) {
		return false, nil
	}
	id, _, _ = strings.Cut(id, "/")
	for {
		w, known, err := workOf(ctx, q, id)
		if err != nil || !known || w.State != queue.Waiting {
			return known && (w.State == queue.Ready || w.State == queue.Running), err
		}
		if err := q.Move(ctx, w, queue.Ready, answered); !errors.Is(err, queue.ErrChanged) {
			return true, err
		}
	}
}

// answered is the reason of work that became ready because of what was written to the log.
const answered = "was answered"

// workOf returns the work of a session, if there is any.
func workOf(ctx context.Context, q queue.Queue, id string) (queue.Work, bool, error) {
	w, err := q.Work(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return w, false, nil
	}
	return w, err == nil, err
}

// worksOf returns the work of sessions by their ids, if possible in one read.
func worksOf(ctx context.Context, q queue.Queue, ids []string) (works map[string]queue.Work, err error) {
	works = map[string]queue.Work{}
	if len(ids) == 0 {
		return works, nil
	}
	if r, ok := q.(queue.Reader); ok {
		list, err := r.WorkOf(ctx, ids)
		for _, w := range list {
			works[w.Session] = w
		}
		return works, err
	}
	for _, id := range ids {
		w, known, err := workOf(ctx, q, id)
		if err != nil {
			return nil, err
		}
		if known {
			works[id] = w
		}
	}
	return works, nil
}

// sessionOf returns the session that an order names, and makes it unless it
// exists. Its id follows from the names, so that callers that make it at once make one.
func sessionOf(ctx context.Context, in store.Store, o *order) (session.Info, error) {
	if o.byID {
		info, err := in.Info(ctx, o.name)
		if err == nil && (info.Path != o.path || info.Owner != o.owner || info.Nested) {
			err = fmt.Errorf("the session %s of this file and owner: %w", o.name, session.ErrNotFound)
		}
		return info, err
	}
	for info, err := range nils.Each(in, "List", in.List(ctx, session.Query{Name: o.name, Path: o.path, Owner: o.owner})) {
		if err != nil || info.Owner == o.owner {
			return info, err
		}
	}
	if info, err := in.Info(ctx, o.name); err == nil && info.Path == o.path && info.Owner == o.owner && !info.Nested && !info.Archived {
		return info, nil // its id was given
	}
	for n := range 1000 { // archived sessions keep their ids
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", o.path, o.owner, o.name, n))
		id := host.NewSessionID(o.name)
		id = id[:len(id)-10] + hex.EncodeToString(sum[:5])
		info := session.Info{ID: id, Name: o.name, Path: o.path, Owner: o.owner, Tags: o.tags}
		err := in.Create(ctx, info)
		if errors.Is(err, session.ErrBadLabel) {
			err = &host.ConfigError{Err: err}
		}
		if !errors.Is(err, session.ErrExists) {
			return info, err
		}
		if info, err = in.Info(ctx, id); err == nil && !info.Archived && info.Name == o.name && info.Path == o.path {
			return info, nil // another caller made it first
		}
	}
	return session.Info{}, fmt.Errorf("session %q: %w", o.name, session.ErrExists)
}
