// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// Fork creates a session with the entries of another up to number at, and withdraws
// approvals that would count in the fork too; the result lists these as dropped. It
// does not read entries after at, which may be damaged. name is the name of the
// fork; "" means the session's name and a number. If another session of the file has
// the name, the error wraps [session.ErrExists].
func Fork(ctx context.Context, in store.Store, from session.Info, at int64, name string) (*Imported, error) {
	if nils.Is(in) {
		return nil, errNoStore
	}
	if name == "" {
		var err error
		if name, err = freeName(ctx, in, from); err != nil {
			return nil, err
		}
	}
	id := NewSessionID(name)
	dropped, err := forkOf(ctx, in, from.ID, at, id)
	if err != nil {
		return nil, err
	}
	if err := in.Rename(ctx, id, name); err != nil {
		return nil, errors.Join(err, in.Delete(context.WithoutCancel(ctx), id))
	}
	info, err := in.Info(ctx, id)
	return &Imported{Info: info, Dropped: dropped}, err
}

// forkOf forks a session, with the entries that withdraw approvals: both are made, or nothing, because a fork without
// them would use approvals twice.
func forkOf(ctx context.Context, in store.Store, from string, at int64, id string) ([]Dropped, error) {
	var log []session.Entry
	for e, err := range nils.Each(in, "Load", in.Load(ctx, from, 0)) {
		if err != nil {
			return nil, err
		}
		if log = append(log, e); e.Seq == at {
			break
		}
	}
	took := []Dropped{}
	var more []session.Entry
	for i, b := range session.Revocations(log) {
		seq := at + int64(i) + 1
		more = append(more, session.Entry{Seq: seq, Body: b})
		switch b := b.(type) {
		case session.ApprovalAsked:
			took = append(took, Dropped{id, seq, fmt.Sprintf("the approval of call %s, %s %s: an approval holds for one call; the fork asks again", b.CallID, b.Tool, b.Arguments)})
		case session.ItemsWithdrawn:
			took = append(took, Dropped{id, seq, b.Reason})
		}
	}
	return took, in.Fork(ctx, from, at, id, more...)
}

// freeName returns a name that no session of the same file has.
func freeName(ctx context.Context, in store.Store, info session.Info) (string, error) {
	used := map[string]bool{}
	for other, err := range nils.Each(in, "List", in.List(ctx, session.Query{Path: info.Path})) {
		if errors.Is(err, session.ErrDamaged) { // if it has the name, Rename says so
			break
		}
		if err != nil {
			return "", err
		}
		used[other.Name] = true
	}
	for n := 2; ; n++ {
		if name := fmt.Sprintf("%s-%d", cmp.Or(info.Name, "fork"), n); !used[name] {
			return name, nil
		}
	}
}

// Remove deletes a session. If it is being written to, the error wraps
// [session.ErrBusy]. The writer of a nested session is the writer of the enclosing
// session.
func Remove(ctx context.Context, in store.Store, info session.Info) error {
	if nils.Is(in) {
		return errNoStore
	}
	id := info.ID
	for info.Nested {
		parent, ok := session.ParentOf(id)
		if !ok {
			break
		}
		id = parent
	}
	unlock, err := nils.Lock(ctx, in, id)
	if err != nil {
		return err
	}
	return errors.Join(in.Delete(ctx, info.ID), unlock())
}

// RemoveIf deletes a session if a condition, such as its age, still holds when the
// session is locked. It reports whether it deleted the session. If words wait in its inbox, it does not,
// and the error wraps [session.ErrDeliveryWaits].
func RemoveIf(ctx context.Context, in store.Store, id string, holds func(session.Info) bool) (gone bool, err error) {
	switch {
	case nils.Is(in):
		return false, errNoStore
	case holds == nil:
		return false, errors.New("host: RemoveIf needs a condition; Remove deletes without one")
	}
	unlock, err := nils.Lock(ctx, in, id)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	info, err := in.Info(ctx, id)
	if errors.Is(err, session.ErrNotFound) { // another process deleted it
		return false, nil
	}
	if err != nil || !holds(info) {
		return false, err
	}
	if err := session.DeleteIfTaken(ctx, in, id); err != nil {
		return false, err
	}
	return true, nil
}

// Salvage copies the readable part of a damaged session into a new one with the
// given name. The damaged session is not changed. acceptGaps allows runs to continue
// the copy although lost entries may have withdrawn items, and records that in its
// log; how is the front end's name for this option.
func Salvage(ctx context.Context, in store.Store, id, name string, acceptGaps bool, how string) (done store.Salvaged, err error) {
	salvager, err := store.As[store.Salvager](in, "salvage sessions")
	if err != nil {
		return done, &ConfigError{err}
	}
	copied := NewSessionID(name)
	if done, err = salvager.Salvage(ctx, id, copied); err == nil {
		err = in.Rename(ctx, copied, name)
	}
	if err == nil && acceptGaps {
		err = accept(ctx, in, done.Gaps, how)
		done.Gaps = nil
	}
	if err != nil {
		return done, errors.Join(err, takeBack(ctx, in, copied))
	}
	return done, nil
}

// accept records in sessions with lost entries that they may be continued.
func accept(ctx context.Context, in store.Store, ids []string, how string) error {
	for _, id := range ids {
		s, err := session.Open(ctx, in, id)
		if err == nil {
			_, err = s.Append(ctx, session.Noticed{Kind: session.NoticeGapsAccepted, Text: "accepted with " + how + ": entries were lost, and their effects are not known"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Compact shortens the part of a session that is sent, with the agent's file, Endpoint and
// Compaction.By of a configuration; its other settings are not used. keep is the
// number of the newest tokens that stay unchanged; 0 means the default of
// [agent.Compaction]. The caller must hold the session's lock. Dropping needs no
// model. The rehearsal model does not write a summary unless a rehearsal is
// requested, because its text is not a real summary.
func Compact(ctx context.Context, s *session.Session, cfg Config, keep int64) (*agent.CompactionCall, error) {
	options := cfg.options()
	options.Check, options.Consent = true, (&Host{cfg: cfg}).agree
	file, err := agentfile.Load(ctx, cfg.File, options)
	if err != nil {
		return nil, &ConfigError{err}
	}
	defer file.Close()
	if err := file.Trusted(); err != nil {
		return nil, &ConfigError{err}
	}
	from := newProviders(&cfg.Endpoint, &cfg.FrontEnd)
	defer from.close()
	unasked := new(responses.Client) // dropping asks no model, and an agent needs one
	a, by := file.Agent(unasked), cfg.Compaction.By
	if by != session.ByDropping {
		if _, fallsBack, err := cfg.Endpoint.Rehearses(file, cfg.FrontEnd); err == nil && fallsBack {
			t := cfg.Terms
			return nil, invalid("no endpoint is configured that could compact by %s; give %s or set OPENAI_API_KEY, or give %s or %s",
				cmp.Or(by, session.BySummary), t.name("Endpoint.BaseURL"), t.full("Compaction.By"), t.name("Endpoint.Rehearsal"))
		}
		model, name, err := from.of(file)
		if err != nil {
			return nil, err
		}
		a = file.Agent(model)
		a.Request.Model = name
	}
	a.ToolSource = nil
	a.Compaction.By, a.Compaction.Keep = by, keep
	if known, ok := cfg.Endpoint.Table.Model(a.Request.Model); ok {
		a.Compaction.Window = int64(known.ContextWindow)
	}
	from.tell(s)
	done, err := a.Compact(ctx, s)
	if errors.Is(err, agent.ErrNothingToCompact) {
		return nil, &ConfigError{err}
	}
	return done, err
}
