// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// The events of a streamed background response are notes in a session of their own, which
// is nested in that of the response and goes with it. A server that goes on with the
// response adds a note without events first: the one before it, if it still runs, then
// expects another end of that session and can add nothing.

const (
	// tagEvents marks these sessions.
	tagEvents = "responses-events"
	// keepEvents is how long they are kept without a change.
	keepEvents = time.Hour
	// sweepTime is how often old ones are looked for.
	sweepTime = time.Minute
	// pageBytes is how much is read at once.
	pageBytes = 64 << 10
)

// eventsID returns the session with the events of a response. No call has such an id: see
// [session.SubsessionID].
func eventsID(in string, seq int64) string { return fmt.Sprintf("%s/%d-.events", in, seq) }

// AddEvents implements [server.Resumer].
func (b *Backend) AddEvents(ctx context.Context, id string, from int64, events []api.Event, last bool) error {
	in, seq, ok := parseID(id)
	if !ok {
		return server.ErrNotFound
	}
	name := eventsID(in, seq)
	b.mu.Lock()
	at, known := b.written[id]
	b.mu.Unlock()
	list := []byte("[")
	for i, ev := range events {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, ev.JSON()...)
	}
	n := note{Kind: kindEvents, ResponseID: id, From: from, Count: len(events), Events: append(list, ']'), Last: last}
	add := func() error {
		if !known {
			err := b.store().Create(ctx, session.Info{ID: name, Parent: in, At: seq, Nested: true, Owner: b.owner(), Tags: []string{tagEvents}})
			if err != nil && !errors.Is(err, session.ErrExists) {
				return err
			}
		}
		return b.store().Append(ctx, name, at, []session.Entry{{Seq: at + 1, Body: n.body()}})
	}
	err := add()
	if errors.Is(err, session.ErrLost) {
		// Perhaps this server has only given the session to a worker meanwhile. Who has taken the stream has added
		// to it, so this append fails then.
		err = add()
	}
	if errors.Is(err, session.ErrConflict) || errors.Is(err, session.ErrLost) {
		err = fmt.Errorf("%w: %w", server.ErrLeft, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written == nil {
		b.written = map[string]int64{}
	}
	if b.written[id] = at + 1; err != nil || last {
		delete(b.written, id)
	}
	return err
}

// takeStream returns the events of a response so far, and makes this server the one that
// adds to them. It reports whether the stream has ended.
func (b *Backend) takeStream(ctx context.Context, id string) (events []api.Event, over bool, err error) {
	in, seq, _ := parseID(id)
	name := eventsID(in, seq)
	at := int64(0)
	for e, err := range nils.Each(b.store(), "Load", b.store().Load(ctx, name, 0)) {
		if err != nil {
			return nil, false, err
		}
		at = e.Seq
		n, ok := noteOf(e)
		if !ok {
			continue
		}
		more, err := n.events(0)
		if err != nil {
			return nil, false, err
		}
		events, over = append(events, more...), over || n.Last
	}
	if over {
		return events, true, nil
	}
	b.mu.Lock()
	if b.written == nil {
		b.written = map[string]int64{}
	}
	if at > 0 {
		b.written[id] = at
	}
	b.mu.Unlock()
	return events, false, b.AddEvents(ctx, id, int64(len(events)), nil, false)
}

// events returns the events of a note from a number on.
func (n *note) events(from int64) (list []api.Event, err error) {
	if n.Count == 0 || n.From+int64(n.Count) <= from {
		return nil, nil
	}
	var values []jsontext.Value
	if err := json.Unmarshal(n.Events, &values); err != nil {
		return nil, err
	}
	for i, v := range values {
		if n.From+int64(i) < from {
			continue
		}
		ev, err := api.ParseEvent(bytes.Clone(v))
		if err != nil {
			return nil, err
		}
		list = append(list, ev)
	}
	return list, nil
}

// Events implements [server.Resumer].
func (b *Backend) Events(ctx context.Context, id string, from int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if err := b.eachEvent(ctx, id, from, func(ev api.Event) bool { return yield(ev, nil) }); err != nil {
			yield(api.Event{}, err)
		}
	}
}

// errEnough means that the caller stopped.
var errEnough = errors.New("enough")

func (b *Backend) eachEvent(ctx context.Context, id string, from int64, yield func(api.Event) bool) error {
	in, seq, ok := parseID(id)
	if !ok {
		return server.ErrNotFound
	}
	name := eventsID(in, seq)
	info, err := b.info(ctx, b.store(), name)
	if err != nil {
		return err
	}
	at, err := b.before(ctx, name, info.Entries, from)
	if err != nil {
		return err
	}
	over := false
	give := func(e session.Entry) error {
		n, ok := noteOf(e)
		if !ok {
			return nil
		}
		list, err := n.events(from)
		for _, ev := range list {
			if !yield(ev) {
				return errEnough
			}
		}
		over = over || n.Last
		return err
	}
	for !over && at < info.Entries { // in pages, so that a slow client holds nothing of the store
		page, err := page(ctx, b.store(), name, at)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if err := give(e); err != nil {
				return unlessEnough(err)
			}
			at = e.Seq
		}
	}
	if over {
		return nil
	}
	w, ok := b.store().(session.Watcher)
	if !ok {
		return fmt.Errorf("agents: the store cannot be watched: %w", errors.ErrUnsupported)
	}
	for e, err := range nils.Each(w, "Watch", w.Watch(ctx, name, at)) {
		if err == nil {
			err = give(e)
		}
		if err != nil || over {
			return unlessEnough(err)
		}
	}
	return cmp.Or(ctx.Err(), errors.New("agents: the events were deleted"))
}

func unlessEnough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// page reads some entries.
func page(ctx context.Context, in store.Store, name string, after int64) (list []session.Entry, err error) {
	size := 0
	for e, err := range nils.Each(in, "Load", in.Load(ctx, name, after)) {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if b, ok := e.Body.(session.Note); ok {
			size += len(b.Item.JSON())
		}
		if size >= pageBytes {
			break
		}
	}
	return list, nil
}

// before returns the last entry whose events all come before a number.
func (b *Backend) before(ctx context.Context, name string, entries, from int64) (int64, error) {
	var failed error
	n := sort.Search(int(entries), func(i int) bool {
		for e, err := range nils.Each(b.store(), "Load", b.store().Load(ctx, name, int64(i))) {
			if err != nil {
				failed = cmp.Or(failed, err)
				return true
			}
			n, _ := noteOf(e)
			return n.From+int64(n.Count) > from || n.Last
		}
		return true
	})
	return int64(n), failed
}

// streamed reports whether events of a response are kept, and whether its stream has ended.
func (b *Backend) streamed(ctx context.Context, id string) (kept, over bool, err error) {
	in, seq, _ := parseID(id)
	name := eventsID(in, seq)
	info, err := b.store().Info(ctx, name)
	if errors.Is(err, session.ErrNotFound) {
		return false, false, nil
	}
	if err != nil || info.Entries == 0 {
		return err == nil, false, err
	}
	for e, err := range nils.Each(b.store(), "Load", b.store().Load(ctx, name, info.Entries-1)) {
		if err != nil {
			return true, false, err
		}
		n, _ := noteOf(e)
		over = n.Last
	}
	return true, over, nil
}

// sweep removes the events of responses that have ended long ago, old keys and files that have expired.
func (b *Backend) sweep(ctx context.Context) error {
	now := time.Now()
	b.mu.Lock()
	due := now.Sub(b.swept) >= sweepTime
	if due {
		b.swept = now
	}
	b.mu.Unlock()
	if !due {
		return nil
	}
	problem := errors.Join(b.book().Sweep(ctx, now), b.uploads().Sweep(ctx, now))
	var old []string
	for info, err := range nils.Each(b.store(), "List", b.store().List(ctx, session.Query{Tags: []string{tagEvents}, Owner: b.owner(), Nested: true})) {
		if err != nil { // of a row that cannot be read, behind all others
			problem = errors.Join(problem, err)
			break
		}
		if now.Sub(info.Updated) > cmp.Or(b.KeepStreams, keepEvents) {
			old = append(old, info.ID)
		}
	}
	for _, name := range old {
		if outer, ok := session.ParentOf(name); ok && b.busy(outer) {
			continue
		}
		if err := b.store().Delete(ctx, name); err != nil && !errors.Is(err, session.ErrNotFound) {
			problem = errors.Join(problem, err)
		}
	}
	return problem
}

// broken records the item that the model had not ended when the server of a response did,
// and that clients have seen the beginning of.
func (b *Backend) broken(ctx context.Context, run *active, s *shown, w *server.Writer) error {
	it, ok := w.Broken()
	if !ok {
		return nil
	}
	list, err := listJSON([]item.Item{it})
	if err != nil {
		return err
	}
	entries, err := run.host.Session.Append(ctx, note{Kind: kindBroken, ResponseID: run.id, Items: list}.body())
	for _, e := range entries {
		s.entry(e)
	}
	return err
}

// itemsOf returns the items of a note.
func (n *note) items() (items []item.Item, err error) {
	if len(n.Items) == 0 {
		return nil, nil
	}
	var list []jsontext.Value
	if err := json.Unmarshal(n.Items, &list); err != nil {
		return nil, err
	}
	for _, v := range list {
		it, err := item.Parse(v)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}
