// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/worker"
)

// Source is a session that another process runs, as a terminal sees it: in a store, or at a
// server. The methods may be called from several goroutines.
type Source interface {
	// Entries returns the log of the session with an id: this one, or one nested in it.
	Entries(ctx context.Context, id string) ([]session.Entry, error)
	// Watch yields the entries of such a log after a number, and those that follow; and from a
	// server, pieces of the text of a message before its entry.
	Watch(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error]
	// Say delivers what the person said; with later, it waits for the end of the run.
	Say(ctx context.Context, later bool, said ...item.Item) error
	// Stop asks the run to stop.
	Stop(ctx context.Context) error
	// Pending returns the calls that wait for an approval.
	Pending(ctx context.Context) ([]agent.PendingApproval, error)
	// Answer gives the person's answer about a call. The error wraps [agent.ErrDecided] if
	// somebody else was first, and names them.
	Answer(ctx context.Context, p agent.PendingApproval, d agent.Decision) error
	// Look returns the calls of subagents that wait, if inside says that there may be some, and
	// reports whether nobody runs the session and all of it was shown.
	Look(ctx context.Context, shown int64, inside bool) (asks []agent.PendingApproval, gone bool, err error)
}

// Stored is a session in a store.
type Stored struct {
	In    store.Store
	ID    string
	Audit *audit.Log // nil if there is none
	From  string     // how deliveries are given, for those who read the log
}

// Entries implements [Source].
func (s *Stored) Entries(ctx context.Context, id string) ([]session.Entry, error) {
	log, err := session.Open(ctx, s.In, id)
	if err != nil {
		return nil, err
	}
	return log.Log(), nil
}

// Watch implements [Source].
func (s *Stored) Watch(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		w, err := as[session.Watcher](s.In, "be watched")
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range w.Watch(ctx, id, after) {
			if !yield(agent.Recorded{Entry: e}, err) {
				return
			}
		}
	}
}

func (s *Stored) deliver(ctx context.Context, later bool, bodies ...session.Body) error {
	box, err := as[session.Inbox](s.In, "keep deliveries")
	if err != nil {
		return err
	}
	_, err = box.Deliver(ctx, s.ID, session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: person.AccountName(), From: s.From, Queued: later}, Bodies: bodies})
	return err
}

// Say implements [Source].
func (s *Stored) Say(ctx context.Context, later bool, said ...item.Item) error {
	var bodies []session.Body
	for _, it := range said {
		bodies = append(bodies, session.InputItem{Item: it})
	}
	return s.deliver(ctx, later, bodies...)
}

// Stop implements [Source].
func (s *Stored) Stop(ctx context.Context) error {
	return s.deliver(ctx, false, session.StopAsked{Detail: askedAt()})
}

// askedAt says who asked a run to stop.
func askedAt() string { return "asked at the terminal of " + person.AccountName() }

// Pending implements [Source].
func (s *Stored) Pending(ctx context.Context) ([]agent.PendingApproval, error) {
	log, err := session.Open(ctx, s.In, s.ID)
	if err != nil {
		return nil, err
	}
	return agent.PendingApprovals(ctx, log)
}

// Answer implements [Source].
func (s *Stored) Answer(ctx context.Context, p agent.PendingApproval, d agent.Decision) error {
	d.Session, d.Number, d.CallID, d.By, d.From = p.Session, p.Number, p.CallID, person.AccountName(), s.From
	if s.Audit != nil {
		if err := s.Audit.Write(ctx, host.Answered(p, d)...); err != nil {
			return err
		}
	}
	return worker.Answer(ctx, s.In, s.ID, d)
}

// Look implements [Source].
func (s *Stored) Look(ctx context.Context, shown int64, inside bool) (asks []agent.PendingApproval, gone bool, err error) {
	if inside {
		if asks, err = s.Pending(ctx); err != nil {
			return nil, false, err
		}
	}
	unlock, err := s.In.Lock(ctx, s.ID)
	if errors.Is(err, session.ErrBusy) || ctx.Err() != nil {
		return asks, false, nil
	}
	if err != nil {
		return asks, false, err
	}
	info, err := s.In.Info(ctx, s.ID)
	return asks, info.Entries <= shown, errors.Join(err, unlock())
}

// as returns the store as T, an optional interface; see [store.As].
func as[T any](in store.Store, does string) (T, error) {
	t, err := store.As[T](in, does)
	if err != nil {
		return t, usage(err)
	}
	return t, nil
}

// usage marks an error as one of the person's input.
func usage(err error) error { return &host.ConfigError{Err: err} }
