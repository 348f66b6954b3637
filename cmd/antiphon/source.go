// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

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
	"github.com/antiphon-go/antiphon/worker"
)

// source is a session that another process runs, as a terminal sees it: in a store, or at a
// server. The methods may be called from several goroutines.
type source interface {
	// entries returns the log of the session with an id: this one, or one nested in it.
	entries(ctx context.Context, id string) ([]session.Entry, error)
	// watch yields the entries of such a log after a number, and those that follow; and from a
	// server, pieces of the text of a message before its entry.
	watch(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error]
	// say delivers what the person said; with later, it waits for the end of the run.
	say(ctx context.Context, later bool, said ...item.Item) error
	// stop asks the run to stop.
	stop(ctx context.Context) error
	// pending returns the calls that wait for an approval.
	pending(ctx context.Context) ([]agent.PendingApproval, error)
	// answer gives the person's answer about a call. The error wraps [agent.ErrDecided] if
	// somebody else was first, and names them.
	answer(ctx context.Context, p agent.PendingApproval, d agent.Decision) error
	// look returns the calls of subagents that wait, if inside says that there may be some, and
	// reports whether nobody runs the session and all of it was shown.
	look(ctx context.Context, shown int64, inside bool) (asks []agent.PendingApproval, gone bool, err error)
}

// stored is a session in a store.
type stored struct {
	in    keeper
	id    string
	audit *audit.Log // nil if there is none
	from  string     // how deliveries are given, for those who read the log
}

func (s *stored) entries(ctx context.Context, id string) ([]session.Entry, error) {
	log, err := session.Open(ctx, s.in, id)
	if err != nil {
		return nil, err
	}
	return log.Log(), nil
}

func (s *stored) watch(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		w, err := as[session.Watcher](s.in, "be watched")
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

func (s *stored) deliver(ctx context.Context, later bool, bodies ...session.Body) error {
	box, err := as[session.Inbox](s.in, "keep deliveries")
	if err != nil {
		return err
	}
	_, err = box.Deliver(ctx, s.id, session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: person.AccountName(), From: s.from, Queued: later}, Bodies: bodies})
	return err
}

func (s *stored) say(ctx context.Context, later bool, said ...item.Item) error {
	var bodies []session.Body
	for _, it := range said {
		bodies = append(bodies, session.InputItem{Item: it})
	}
	return s.deliver(ctx, later, bodies...)
}

func (s *stored) stop(ctx context.Context) error {
	return s.deliver(ctx, false, session.StopAsked{Detail: askedAt()})
}

// askedAt says who asked a run to stop.
func askedAt() string { return "asked at the terminal of " + person.AccountName() }

func (s *stored) pending(ctx context.Context) ([]agent.PendingApproval, error) {
	log, err := session.Open(ctx, s.in, s.id)
	if err != nil {
		return nil, err
	}
	return agent.PendingApprovals(ctx, log)
}

func (s *stored) answer(ctx context.Context, p agent.PendingApproval, d agent.Decision) error {
	d.Session, d.Number, d.CallID, d.By, d.From = p.Session, p.Number, p.CallID, person.AccountName(), s.from
	if s.audit != nil {
		if err := s.audit.Write(ctx, host.Answered(p, d)...); err != nil {
			return err
		}
	}
	return worker.Answer(ctx, s.in, s.id, d)
}

func (s *stored) look(ctx context.Context, shown int64, inside bool) (asks []agent.PendingApproval, gone bool, err error) {
	if inside {
		if asks, err = s.pending(ctx); err != nil {
			return nil, false, err
		}
	}
	unlock, err := s.in.Lock(ctx, s.id)
	if errors.Is(err, session.ErrBusy) || ctx.Err() != nil {
		return asks, false, nil
	}
	if err != nil {
		return asks, false, err
	}
	info, err := s.in.Info(ctx, s.id)
	return asks, info.Entries <= shown, errors.Join(err, unlock())
}
