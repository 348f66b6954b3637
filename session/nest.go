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

// SubsessionStore is implemented by a [Store] that keeps any number of sessions by
// id, so that it can keep the sessions of subagents beside the session that started
// them.
type SubsessionStore interface {
	Store
	// Nest returns the id for the session of a run that a call of session parent
	// starts. It is the same for the same call, and differs from all others.
	Nest(parent string, number int, callID string) string
}

// maxNestedID limits the part of a call's id that is repeated in a session's id.
const maxNestedID = 40

// SubsessionID is the default for [SubsessionStore]: the parent's id followed by the
// call's number and the characters of the call's id that are safe in a name.
func SubsessionID(parent string, number int, callID string) string {
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

// ParentOf returns the id of the parent session if [SubsessionID] may have made id.
func ParentOf(id string) (parent string, ok bool) {
	slash := strings.LastIndexByte(id, '/')
	number, _, ok := strings.Cut(id[slash+1:], "-")
	if n, err := strconv.Atoi(number); slash <= 0 || !ok || err != nil || n <= 0 {
		return "", false
	}
	return id[:slash], true
}

// CheckID returns an error if the session is not nested and has the id of one that is, for stores that
// are to make the session.
func (i Info) CheckID() error {
	if parent, nested := ParentOf(i.ID); nested && !i.Nested {
		return fmt.Errorf("session: %q is the id of a session nested in %q, with which it would be locked and deleted: choose one without /N-", i.ID, parent)
	}
	return nil
}

// outermost returns the session that contains all others around this one.
func outermost(id string) string {
	for {
		parent, ok := ParentOf(id)
		if !ok {
			return id
		}
		id = parent
	}
}

// NestedID returns the id of the session of the subagent that the call starts.
func (s *Session) NestedID(c OpenCall) string {
	if n, ok := s.store.(SubsessionStore); ok {
		return n.Nest(s.id, c.Number, c.CallID)
	}
	return SubsessionID(s.id, c.Number, c.CallID)
}

// Nested opens the session of a subagent by its id, which [Session.NestedID]
// returned or an entry [SubagentUsage] or [Paused] names. If the store is not a
// [SubsessionStore], the nested session is kept in memory as long as this Session.
// Nested may be called while another goroutine appends to s.
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
		case errors.Is(err, ErrNotFound): // it is created by its first entry
		case err != nil:
			return nil, fmt.Errorf("session %q: %w", id, err)
		case info.Parent != "" && (!info.Nested || info.Parent != s.id): // without a parent it began before s had an entry
			return nil, fmt.Errorf("session %q: it is not nested in session %q", id, s.id)
		}
	}
	nested.within = s
	return nested, nil
}

// KeepsNested reports whether the sessions of subagents are kept as long as s.
func (s *Session) KeepsNested() bool {
	_, ok := s.store.(SubsessionStore)
	return ok
}

// Log returns the entries so far. The caller must not change them, because the
// session uses them too. The store has its own copy.
func (s *Session) Log() []Entry {
	if s == nil {
		return nil
	}
	return slices.Clip(s.load)
}

// Fork creates the session id in the same store with the entries up to number at,
// and returns it. Both sessions continue independently. An approval of a call that
// is still to run is not copied, because it holds for one call: the fork's log
// continues with the [Revocations], which are written together with it, and the fork
// asks again. Fork fails if the session id exists or s does not have entry at. A store
// that is a [Forker] copies nothing.
func (s *Session) Fork(ctx context.Context, at int64, id string) (*Session, error) {
	if at < 0 || at > int64(len(s.load)) {
		return nil, fmt.Errorf("session %q: cannot fork at entry %d: it has %d entries", s.id, at, len(s.load))
	}
	if _, ok := s.store.(SubsessionStore); !ok {
		return nil, fmt.Errorf("session %q: its store holds a single session and cannot hold a fork; use a store for many sessions", s.id)
	}
	if err := s.Sync(); err != nil {
		return nil, err
	}
	entries := slices.Clip(s.load[:at])
	var further []Entry
	for i, b := range Revocations(entries) {
		further = append(further, Entry{Seq: at + int64(i) + 1, Body: b})
	}
	all := slices.Concat(entries, further)
	var err error
	if forker, ok := s.store.(Forker); ok {
		err = forker.Fork(ctx, s.id, at, id, further...)
	} else {
		err = s.store.Append(ctx, id, 0, all)
	}
	if err != nil {
		return nil, fmt.Errorf("session %q: fork of %q: %w", id, s.id, err)
	}
	f := &Session{store: s.store, id: id, load: all, seq: int64(len(all))}
	f.behind.forgive(f.seq)
	return f, nil
}
