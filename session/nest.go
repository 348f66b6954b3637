// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SubsessionStore is implemented by a [Store] that keeps any number of sessions, each
// under its id, so that those of nested runs can be kept in it beside the one
// that started them.
type SubsessionStore interface {
	Store
	// Nest returns the id for the session of a run that a call of session
	// parent starts: the same for the same call, and unlike all others.
	Nest(parent string, number int, callID string) string
}

// maxNestedID bounds what of a call's id is repeated in a session's.
const maxNestedID = 40

// NestedID is what stores without a reason of their own return for
// [SubsessionStore]: the parent's id, and the call's number with as much of its own id as
// can stand in a name.
func NestedID(parent string, number int, callID string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return -1
	}, callID)
	safe = safe[:min(len(safe), maxNestedID)]
	return fmt.Sprintf("%s/%d-%s", parent, number, safe)
}

// NestedIn returns the session that an id says its own is nested in, if
// [NestedID] made it, and whether it may have.
func NestedIn(id string) (parent string, ok bool) {
	slash := strings.LastIndexByte(id, '/')
	number, _, ok := strings.Cut(id[slash+1:], "-")
	if n, err := strconv.Atoi(number); slash <= 0 || !ok || err != nil || n <= 0 {
		return "", false
	}
	return id[:slash], true
}

// outermost returns the session that all others around this one are nested in.
func outermost(id string) string {
	for {
		parent, ok := NestedIn(id)
		if !ok {
			return id
		}
		id = parent
	}
}

// NestedID returns the id of the session of a run that the call starts.
func (s *Session) NestedID(c OpenCall) string {
	if n, ok := s.store.(SubsessionStore); ok {
		return n.Nest(s.id, c.Number, c.CallID)
	}
	return NestedID(s.id, c.Number, c.CallID)
}

// Nested opens the session of a nested run, by the id that [Session.NestedID]
// told or an entry [Nested] or [Paused] names. A store that is no [SubsessionStore] has
// no place for it: then it lives as long as this Session does. Nested may be
// called while another goroutine appends to s.
func (s *Session) Nested(ctx context.Context, id string) (*Session, error) {
	var store Store = &s.beside
	if n, ok := s.store.(SubsessionStore); ok {
		store = n
	}
	nested, err := Open(ctx, store, id)
	if err != nil {
		return nil, err
	}
	if c, ok := store.(Catalog); ok {
		info, err := c.Info(ctx, id)
		switch {
		case errors.Is(err, ErrNotFound): // it begins with its first entry
		case err != nil:
			return nil, fmt.Errorf("session %q: %w", id, err)
		case info.Parent != "" && (!info.Nested || info.Parent != s.id): // without one it began before s had an entry
			return nil, fmt.Errorf("session %q: it is not nested in %q, but a session of its own or of another", id, s.id)
		}
	}
	nested.within = s
	return nested, nil
}

// KeepsNested reports whether the sessions of nested runs outlive this process
// if s does.
func (s *Session) KeepsNested() bool {
	_, ok := s.store.(SubsessionStore)
	return ok
}

// Log returns the entries so far. They must not be changed: the session reads them
// itself. The store has its own.
func (s *Session) Log() []Entry {
	if s == nil {
		return nil
	}
	return slices.Clip(s.load)
}

// Fork begins the session id of the same store with the entries up to number
// at, and returns it. Both go on independently. An approval of a call that is
// still to run stays where it was given, for it is for one call: the fork's log
// goes on with the [Revocations], and the fork asks again. A session that is there
// already, or a number that s does not have, is an error. A store that is a
// [Forker] copies nothing.
func (s *Session) Fork(ctx context.Context, at int64, id string) (*Session, error) {
	if at < 0 || at > int64(len(s.load)) {
		return nil, fmt.Errorf("session %q: entry %d to fork at: it has %d", s.id, at, len(s.load))
	}
	if _, ok := s.store.(SubsessionStore); !ok {
		return nil, fmt.Errorf("session %q: its store holds one session, and no forks of it", s.id)
	}
	f := &Session{store: s.store, id: id}
	entries := slices.Clip(s.load[:at])
	var err error
	if forker, ok := s.store.(Forker); ok {
		err = forker.Fork(ctx, s.id, at, id)
	} else {
		err = s.store.Append(ctx, id, 0, entries)
	}
	if err != nil {
		return nil, fmt.Errorf("session %q: fork of %q: %w", id, s.id, err)
	}
	f.load, f.seq = entries, at
	if bodies := Revocations(entries); len(bodies) > 0 {
		if _, err := f.Append(ctx, bodies...); err != nil {
			return nil, fmt.Errorf("session %q: fork of %q: %w; do not go on with it: it may hold approvals of the other's calls", id, s.id, err)
		}
	}
	return f, nil
}
