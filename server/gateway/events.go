// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"iter"
	"sort"

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
	for e, err := range s.In.Load(ctx, in, seq-1) {
		if err != nil {
			return n, err
		}
		note, is := e.Body.(session.Note)
		if !is {
			return n, nil
		}
		whole, err := note.Item.Whole()
		if err != nil {
			return n, err
		}
		return n, json.Unmarshal([]byte(whole.JSON()), &n)
	}
	return n, nil
}
