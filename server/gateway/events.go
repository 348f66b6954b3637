// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"iter"
	"sort"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// addEvents writes the events of a response in pages. Each is written alone: a store reads
// together what was written together. Without the end that follows they count for nothing.
func addEvents(ctx context.Context, log *session.Session, rec server.StoredObject) (pages []page, err error) {
	n, size := stored{Kind: kindEvents, ID: rec.ID()}, 0
	for i, ev := range rec.Events {
		n.Events = append(n.Events, ev.JSON())
		if size += len(ev.JSON()); size < pageBytes && i+1 < len(rec.Events) {
			continue
		}
		bodies, err := n.bodies(nil)
		if err != nil {
			return nil, err
		}
		entries, err := log.Append(ctx, bodies...)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page{entries[0].Seq, n.First})
		n.Events, n.First, size = nil, i+1, 0
	}
	return pages, nil
}

// The events of a response that is being made are notes in a session that is nested in its
// own, and goes with it. They are written together as they come, and removed when the
// response has ended: its log then has them in pages.

// liveID returns the session with the events of a response that is being made. No call has
// such an id: see [session.SubsessionID].
func liveID(id string) string { return sessionOf(id) + "/1-.events" }

// AddEvents implements [server.ProgressStore].
func (s *Store) AddEvents(ctx context.Context, id string, from int64, events []api.Event, _ bool) error {
	h := s.making(id)
	if h == nil {
		return server.ErrLeft // it has ended, or was deleted
	}
	n := stored{Kind: kindEvents, ID: id, First: int(from)}
	for _, ev := range events {
		n.Events = append(n.Events, ev.JSON())
	}
	bodies, err := n.bodies(nil)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return server.ErrLeft
	}
	name := liveID(id)
	if h.events == 0 {
		err := s.In.Create(ctx, session.Info{ID: name, Parent: sessionOf(id), At: 1, Nested: true, Owner: s.Owner, Tags: []string{tagEvents}})
		if err != nil && !errors.Is(err, session.ErrExists) {
			return err
		}
	}
	if err := s.In.Append(ctx, name, h.events, []session.Entry{{Seq: h.events + 1, Body: bodies[0]}}); err != nil {
		return err
	}
	h.events++
	return nil
}

// EventsSince implements [server.ProgressStore].
func (s *Store) EventsSince(ctx context.Context, id string, since int64) (list []api.Event, next int64, err error) {
	if nils.Is(s.In) {
		return nil, 0, errNoSessions
	}
	name := liveID(id)
	info, err := s.In.Info(ctx, name)
	if errors.Is(err, session.ErrNotFound) || err == nil && s.Owner != "" && info.Owner != s.Owner {
		return nil, since, server.ErrNotFound
	}
	if err != nil || info.Entries <= since {
		return nil, since, err
	}
	for e, err := range nils.Each(s.In, "Load", s.In.Load(ctx, name, since)) {
		if err != nil {
			return nil, since, err
		}
		n, ok, err := noteOf(e)
		if err != nil || !ok {
			return nil, since, err
		}
		next = e.Seq
		for _, text := range n.Events {
			ev, err := api.ParseEventString(text)
			if err != nil {
				return nil, since, err
			}
			list = append(list, ev)
		}
	}
	return list, max(next, since), nil
}

// dropEvents removes the events of a response that has ended, which are in its log.
func (s *Store) dropEvents(ctx context.Context, id string) error {
	err := s.In.Delete(ctx, liveID(id))
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// Events implements [server.EventStore]. It reads the pages from the asked event on.
func (s *Store) Events(ctx context.Context, id string, from int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if err := s.eachEvent(ctx, id, from, func(ev api.Event) bool { return yield(ev, nil) }); err != nil {
			yield(api.Event{}, err)
		}
	}
}

func (s *Store) eachEvent(ctx context.Context, id string, from int64, yield func(api.Event) bool) error {
	if nils.Is(s.In) {
		return errNoSessions
	}
	in := sessionOf(id)
	info, err := s.In.Info(ctx, in)
	if errors.Is(err, session.ErrNotFound) || err == nil && (s.Owner != "" && info.Owner != s.Owner || info.Entries == 0) {
		return server.ErrNotFound
	} else if err != nil {
		return err
	}
	last, err := s.noteAt(ctx, in, info.Entries)
	if err != nil {
		return err
	}
	if last.Kind != kindPages || last.ID != id {
		return server.ErrNotFound
	}
	first := sort.Search(len(last.Pages), func(i int) bool { return int64(last.Pages[i].From) > from }) - 1
	for _, p := range last.Pages[max(first, 0):] {
		n, err := s.noteAt(ctx, in, p.Entry)
		if err != nil {
			return err
		}
		for i, text := range n.Events {
			if int64(p.From+i) < from {
				continue
			}
			ev, err := api.ParseEventString(text)
			if err != nil {
				return err
			}
			if !yield(ev) {
				return nil
			}
		}
	}
	return nil
}

// noteAt reads one entry about an object.
func (s *Store) noteAt(ctx context.Context, in string, seq int64) (n stored, err error) {
	for e, err := range nils.Each(s.In, "Load", s.In.Load(ctx, in, seq-1)) {
		if err != nil {
			return n, err
		}
		n, _, err = noteOf(e)
		return n, err
	}
	return n, nil
}

// noteOf returns the note about an object that an entry is.
func noteOf(e session.Entry) (n stored, ok bool, err error) {
	note, is := e.Body.(session.Note)
	if !is || !strings.HasPrefix(string(note.Item.Type()), notes) {
		return n, false, nil
	}
	whole, err := note.Item.Whole()
	if err != nil {
		return n, false, err
	}
	return n, true, json.Unmarshal([]byte(whole.JSON()), &n)
}
