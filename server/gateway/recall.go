// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
	"github.com/antiphon-go/antiphon/session"
)

// maker is the response that made an item.
type maker struct {
	id    string
	hides bool // clients may leave a part of its output out of a history
}

// makers are the responses that made the last items, by the ids of the items and of calls.
type makers struct {
	of    map[string]maker
	order []string        // the names in of, oldest first
	read  map[string]bool // the sessions that need not be read
	until time.Time       // when the last one was written
}

// skew is by how much the clocks of servers over one store may differ.
const skew = 10 * time.Second

// Recall implements [server.Recaller]. The response is the last one that an id in the input belongs to, of
// those with items that clients leave out because they do not understand them. If the input has all of
// them, nothing is to be put back.
func (s *Store) Recall(ctx context.Context, _ string, input []item.Item) (previous string, known int, err error) {
	id, any := s.lastMaker(input)
	if !any && slices.ContainsFunc(input, func(it item.Item) bool { return len(namesOf(it)) > 0 }) {
		if err := s.learn(ctx); err != nil {
			return "", 0, err
		}
		id, _ = s.lastMaker(input)
	}
	if id == "" {
		return "", 0, nil
	}
	_, f, err := s.open(ctx, id)
	switch {
	case errors.Is(err, server.ErrNotFound) || err == nil && f.begin.ID != id:
		return "", 0, nil // it was deleted
	case err != nil:
		return "", 0, err
	}
	n, ok := kept.Begins(f.items, input, leftOut)
	switch {
	case ok && n < len(f.items):
		return id, n, nil
	case !ok && slices.ContainsFunc(f.items, func(it item.Item) bool { return leftOut(it) && !has(input, it) }):
		s.log(fmt.Errorf("gateway: a client sent a history back that differs from that of %s: what it left out of it is missing", id))
	}
	return "", 0, nil
}

// has reports whether a list has an item by its id.
func has(list []item.Item, it item.Item) bool {
	return slices.ContainsFunc(list, func(one item.Item) bool { return one.Type() == it.Type() && one.ID() == it.ID() })
}

// leftOut reports whether clients leave items like this out of a history: those that are neither said
// nor a call for the client.
func leftOut(it item.Item) bool {
	switch t := it.Type(); t {
	case item.TypeReasoning, item.TypeMCPApprovalRequest, item.TypeMCPApprovalResponse:
		return true
	default:
		return !ordinary(t) && t != item.TypeCompaction && !it.IsCall() && !it.IsOutput()
	}
}

// namesOf returns the names that a client may know a model's item by.
func namesOf(it item.Item) (names []string) {
	if it.Role() == item.RoleUser {
		return nil
	}
	for _, name := range []string{it.ID(), it.CallID()} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// lastMaker returns the last response that made an item of the input and hides something, or "". any says
// whether a response is known that made one.
func (s *Store) lastMaker(input []item.Item) (id string, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range slices.Backward(input) {
		for _, name := range namesOf(it) {
			if m, ok := s.makers.of[name]; ok {
				if any = true; m.hides {
					return m.id, true
				}
			}
		}
	}
	return "", any
}

// made notes which response made items.
func (s *Store) made(r *api.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.makers
	if m.of == nil {
		m.of = map[string]maker{}
	}
	if m.read == nil || len(m.read) > maxFound {
		m.read = map[string]bool{}
	}
	m.read[sessionOf(r.ID)] = true
	one := maker{r.ID, slices.ContainsFunc(r.Output, leftOut)}
	for _, it := range r.Output {
		for _, name := range namesOf(it) {
			if _, known := m.of[name]; !known {
				if m.order = append(m.order, name); len(m.order) > maxFound {
					delete(m.of, m.order[0])
					m.order = m.order[1:]
				}
			}
			m.of[name] = one
		}
	}
}

// learn reads the last responses that other processes made, since it was called before.
func (s *Store) learn(ctx context.Context) error {
	if nils.Is(s.In) {
		return errNoSessions
	}
	s.learning.Lock()
	defer s.learning.Unlock()
	m := &s.makers
	from, until, names := m.until.Add(-skew), m.until, []string{}
	for info, err := range nils.Each(s.In, "List", s.In.List(ctx, session.Query{Owner: s.Owner, Archived: true})) {
		if err != nil {
			return err
		}
		if info.Updated.Before(from) || len(names) == maxSearched {
			break
		}
		if until.Before(info.Updated) {
			until = info.Updated
		}
		if isObject(info.ID) && !s.isRead(info.ID) {
			names = append(names, info.ID)
		}
	}
	for _, name := range names {
		log, err := session.Open(ctx, s.In, name)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		f, err := fold(log.Log())
		if err != nil || f.end.ID == "" {
			continue
		}
		made := &api.Response{ID: f.end.ID}
		if f.begin.ID == f.end.ID {
			made.Output = f.items[f.input:]
		}
		s.made(made)
	}
	m.until = until // otherwise they are read the next time
	return nil
}

func (s *Store) isRead(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.makers.read[name]
}
