// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/internal/lease"
	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// defect is a fault that is planted on purpose, to show that the simulation finds it.
type defect string

const (
	sound defect = ""
	// An append does not look at the epoch of the writer's lease.
	noEpochs defect = "epochs are not checked"
	// Whether a delivery waits is looked at before the work is left, not while.
	earlyLook defect = "finish looks before it writes"
	// A delivery does not make work ready that waits for one.
	noWake defect = "a delivery wakes nobody"
	// A delivery that was taken is forgotten, so that it can be made again.
	noKeys defect = "taken keys are forgotten"
	// An append returns, and is lost.
	lostAppend defect = "an append is lost"
	// Nobody goes on with the work of a worker that died.
	noHeirs defect = "work of the dead is left"
	// Nobody notices work of a worker that died if nobody else can do it.
	noLost defect = "work of the lost is left"
	// Workers do not know of each other.
	noCards defect = "nobody reads the roster"
	// A worker that died counts as one that runs.
	oldCards defect = "the roster forgets nobody"
)

// simStore is a process's store. It reports appends to the auditor, and has the defect of
// its world.
type simStore struct {
	*memstore.Store
	w      *world
	p      *proc
	report agenttest.StepFunc
}

// Append implements [session.Store].
func (s *simStore) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	step := agenttest.Step{Name: "append/entries", Session: id, After: after, Entries: entries}
	if err := s.report(step); err != nil {
		return err
	}
	step.Done, step.Err = true, s.append(ctx, id, after, entries)
	if errors.Is(step.Err, errKilled) {
		return step.Err // it reports nothing any more
	}
	return errors.Join(s.report(step), step.Err)
}

func (s *simStore) append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	switch l, err := s.Covering(id); {
	case err != nil:
		return err
	case s.w.bad == noEpochs:
		return s.p.call(ctx, fmt.Sprint("append ", id, " ", after), func() error {
			err := s.w.db.Append(ctx, lease.Lease{}, id, after, entries)
			if now := s.w.db.Lease(l.ID); err == nil && l.Epoch != 0 && now != l {
				s.w.problem("session %s: %s appends under lease %d, and the lease is %d", id, s.p.name, l.Epoch, now.Epoch)
			}
			return err
		})
	case s.w.bad == lostAppend && entries[0].Seq > 3:
		return s.p.call(ctx, fmt.Sprint("append ", id, " ", after), func() error {
			if s.w.one(20) {
				return nil
			}
			return s.w.db.Append(ctx, l, id, after, entries)
		})
	}
	return s.Store.Append(ctx, id, after, entries)
}

// Finish implements [queue.Queue].
func (s *simStore) Finish(ctx context.Context, w queue.Work, o queue.Outcome) error {
	if s.w.bad == earlyLook && (o.State == queue.Waiting || o.State == queue.Done) {
		for d, err := range s.Deliveries(ctx, w.Session) {
			if err != nil {
				return err
			}
			if d.Number > o.Seen {
				o.State = queue.Ready
			}
		}
		o.Seen = math.MaxInt64
	}
	return s.Store.Finish(ctx, w, o)
}

// Deliver implements [session.Inbox].
func (s *simStore) Deliver(ctx context.Context, id string, d session.Delivery) (r session.Receipt, err error) {
	switch s.w.bad {
	case noWake:
		err = s.p.call(ctx, "deliver "+id+" "+d.Key, func() (err error) {
			before, _ := s.w.db.Work(id)
			if r, err = s.w.db.Deliver(ctx, id, d); err == nil && (before.State == queue.Waiting || before.State == queue.Done) {
				if now, _ := s.w.db.Work(id); now.State == queue.Ready {
					err = s.w.db.Move(now, queue.Done, "")
				}
			}
			return err
		})
		return r, err
	case noKeys:
		err = s.p.call(ctx, "deliver "+id+" "+d.Key, func() (err error) {
			if r, err = s.w.db.Deliver(ctx, id, d); err == nil && r.Taken > 0 {
				d.Key += " again"
				r, err = s.w.db.Deliver(ctx, id, d)
			}
			return err
		})
		return r, err
	}
	return s.Store.Deliver(ctx, id, d)
}

// Lost implements [queue.Queue].
func (s *simStore) Lost(ctx context.Context) ([]queue.Work, error) {
	if s.w.bad == noLost {
		return nil, nil
	}
	return s.Store.Lost(ctx)
}

// Candidates implements [queue.Queue].
func (s *simStore) Candidates(ctx context.Context, want queue.Want) ([]queue.Work, error) {
	list, err := s.Store.Candidates(ctx, want)
	if s.w.bad == noHeirs {
		list = slices.DeleteFunc(list, func(w queue.Work) bool { return w.State == queue.Running })
	}
	return list, err
}

// rosterStore is a process's store in a world that keeps a roster.
type rosterStore struct {
	*simStore
	// others are the workers that ran when the process looked last.
	others []string
}

// card is what the database knows of a worker.
type card struct {
	queue.Present
	name  string // of its process
	until time.Time
}

// Enter implements [queue.Roster].
func (s *rosterStore) Enter(ctx context.Context, w queue.Present, lasts time.Duration) error {
	return s.p.call(ctx, "enter", func() error {
		s.w.cards[w.ID] = card{w, s.p.name, time.Now().Add(lasts)}
		return nil
	})
}

// Roster implements [queue.Roster].
func (s *rosterStore) Roster(ctx context.Context) (list []queue.Present, err error) {
	err = s.p.call(ctx, "roster", func() error {
		list, s.others = nil, nil
		for _, id := range slices.Sorted(maps.Keys(s.w.cards)) {
			if c := s.w.cards[id]; s.w.bad == oldCards || c.until.After(time.Now()) {
				list = append(list, c.Present)
				s.others = append(s.others, c.name)
			}
		}
		if s.w.bad == noCards {
			list = nil
		}
		return nil
	})
	return list, err
}

// Move implements [queue.Queue]. Work that another worker can do, as the process could
// know, is not parked for want of one.
func (s *rosterStore) Move(ctx context.Context, w queue.Work, to queue.State, reason string) error {
	able := s.w.only[w.Session]
	if to == queue.Parked && strings.HasPrefix(reason, needed) {
		for _, name := range s.others {
			if able == "" || strings.HasPrefix(name, able+".") {
				s.w.problem("the work of %s is parked, although %s can do it: %s", w.Session, name, reason)
			}
		}
	}
	return s.simStore.Move(ctx, w, to, reason)
}

var _ queue.Roster = (*rosterStore)(nil)
