// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/lease"
	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/storetest"
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

	// Faults of the network. An append that takes long is taken for done.
	hasty defect = "a slow commit counts as done"
	// Of two deliveries, the one that was sent first and arrives last is dropped.
	onlyNewer defect = "what overtakes another delivery replaces it"
	// Whoever does not know whether a delivery arrived makes another one.
	newKeys defect = "what is said again has another key"

	// A cap is looked at, and does not hold when two workers look at once.
	noCaps defect = "caps of tenants are not held"
	// What is most urgent comes first, whoever else waits.
	noTurns defect = "tenants take no turns"

	// What a worker tells of its endpoint is not kept, or is not read again.
	noPauses defect = "pauses of an endpoint are forgotten"
	oldLooks defect = "who has waited does not look again"
	noSlots  defect = "times of requests are not reserved"
	noTokens defect = "tokens are not counted"
	noPlaces defect = "runs at an endpoint are not counted"

	// Schedules: what each of the rules is there for.
	twoOwners defect = "a schedule is changed by whoever is late"
	noStable  defect = "a firing has another key each time"
	stuck     defect = "who began to fire a schedule owns it for ever"
	overlaps  defect = "nobody looks whether the last firing is done"
	allMissed defect = "the rule for missed firings is turned round"

	// Approvals: silence is taken for consent, or is noted too early.
	assents   defect = "silence is consent"
	impatient defect = "approvals wait for half of their time"
)

// simStore is a process's store. It reports appends to the auditor, and has the defect of
// its world.
type simStore struct {
	*memstore.Store
	w      *world
	p      *proc
	report storetest.StepFunc
}

// Append implements [session.Store].
func (s *simStore) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	step := storetest.Step{Name: "append/entries", Session: id, After: after, Entries: entries}
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
	case s.w.bad == hasty:
		soon, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		err := s.Store.Append(soon, id, after, entries)
		if soon.Err() != nil && ctx.Err() == nil {
			return nil
		}
		return err
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
	case onlyNewer:
		err = s.p.call(ctx, "deliver "+id+" "+d.Key, func() (err error) {
			if strings.HasPrefix(d.Key, "key ") && d.Key < s.w.newest[id] {
				return nil
			}
			s.w.newest[id] = d.Key
			r, err = s.w.db.Deliver(ctx, id, d)
			return err
		})
		return r, err
	case noStable:
		if strings.HasPrefix(d.Key, session.OwnKey("schedule ")) {
			d.Key += " by " + s.p.name
		}
	case assents:
		for i, b := range d.Bodies {
			if a, ok := b.(session.Approval); ok && a.Decided == session.DeciderUnanswered {
				a.Allowed, a.Decided = true, session.DeciderPerson
				d.Bodies[i] = a
			}
		}
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
	most := want.Most
	if s.w.bad == noTurns {
		want.Most = 100
	}
	list, err := s.Store.Candidates(ctx, want)
	if s.w.bad == noTurns {
		slices.SortStableFunc(list, func(a, b queue.Work) int { return cmp.Compare(b.Priority, a.Priority) })
	}
	if s.w.bad == noHeirs {
		list = slices.DeleteFunc(list, func(w queue.Work) bool { return w.State == queue.Running })
	}
	return list[:min(len(list), max(most, 1))], err
}

// Create and PutBlob take their time at the database, too.

// Create implements [session.Catalog].
func (s *simStore) Create(ctx context.Context, info session.Info, first ...session.Entry) error {
	return s.p.call(ctx, "create "+info.ID, func() error { return s.Store.Create(ctx, info, first...) })
}

// PutBlob implements [session.Blobs].
func (s *simStore) PutBlob(ctx context.Context, id string, data []byte) (hash session.Hash, err error) {
	err = s.p.call(ctx, "blob "+id, func() (err error) {
		hash, err = s.Store.PutBlob(ctx, id, data)
		return err
	})
	return hash, err
}

// Begin implements [queue.Queue].
func (s *simStore) Begin(ctx context.Context, w queue.Work, worker string) (begun queue.Work, err error) {
	switch s.w.bad {
	case noCaps:
		w.Cap = 0
	case noPlaces:
		w.Endpoint = ""
	}
	err = s.p.call(ctx, fmt.Sprint("begin ", w.Session, " ", w.Claim), func() (err error) {
		if begun, err = s.w.db.Begin(w, worker); err == nil {
			s.w.crowd(w.Session)
		}
		return err
	})
	return begun, err
}

// Work implements [queue.Queue].
func (s *simStore) Work(ctx context.Context, id string) (w queue.Work, err error) {
	err = s.p.call(ctx, "work "+id, func() (err error) {
		w, err = s.w.db.Work(id)
		s.w.sees(w)
		return err
	})
	if s.w.bad == overlaps && err == nil && strings.HasPrefix(id, "c") && w.State != queue.Running {
		w.State = queue.Done
	}
	return w, err
}

// Endpoints implements [queue.Limits].
func (s *simStore) Endpoints(ctx context.Context) (list []queue.Endpoint, err error) {
	a := askingOf(ctx)
	what := "endpoints"
	if a != nil {
		what += " for " + a.session
	}
	err = s.p.call(ctx, what, func() error {
		if list = s.w.db.Endpoints(); a != nil {
			a.at = time.Now()
		}
		return nil
	})
	for i := range list {
		if s.w.bad == oldLooks {
			list[i].Wait = 0
		}
	}
	return list, err
}

// Send implements [queue.Limits].
func (s *simStore) Send(ctx context.Context, url string, most time.Duration) (e queue.Endpoint, err error) {
	a := askingOf(ctx)
	err = s.p.call(ctx, "send "+url+" for "+a.session, func() error {
		if s.w.bad == noSlots {
			most = -1
		}
		e = s.w.db.Send(url, most)
		s.w.reserved(a, e, longestWait)
		return nil
	})
	return e, err
}

// Slow implements [queue.Limits].
func (s *simStore) Slow(ctx context.Context, url string, wait time.Duration) error {
	return s.p.call(ctx, fmt.Sprint("slow ", url, " ", wait), func() error {
		s.w.pauses = append(s.w.pauses, pause{time.Now(), time.Now().Add(wait)})
		if s.w.bad == noPauses {
			return nil
		}
		return s.w.db.Slow(url, wait)
	})
}

// Used implements [queue.Limits].
func (s *simStore) Used(ctx context.Context, url string, tokens int64, ago time.Duration) error {
	return s.p.call(ctx, fmt.Sprint("used ", url, " ", tokens, " ", ago), func() error {
		if s.w.tokens += tokens; s.w.bad != noTokens {
			s.w.db.Used(url, tokens, ago)
		}
		return nil
	})
}

// Schedules implements [queue.Schedules].
func (s *simStore) Schedules(ctx context.Context, due bool) (list []queue.Schedule, err error) {
	err = s.p.call(ctx, "schedules", func() error {
		list = s.w.db.Schedules(due)
		if s.w.bad == stuck {
			list = slices.DeleteFunc(list, func(q queue.Schedule) bool {
				key := fmt.Sprint(q.Name, " ", q.Version)
				if s.w.owners[key] == "" {
					s.w.owners[key] = s.p.name
				}
				return s.w.owners[key] != s.p.name
			})
		}
		return nil
	})
	for i, q := range list {
		if p := s.w.plans[q.Name].Schedule; s.w.bad == allMissed {
			p.SkipMissed = !p.SkipMissed
			list[i].Data = planData(p)
		}
	}
	return list, err
}

// Fired implements [queue.Schedules].
func (s *simStore) Fired(ctx context.Context, q queue.Schedule) error {
	return s.p.call(ctx, fmt.Sprint("fired ", q.Name, " ", q.Version), func() error {
		for _, before := range s.w.db.Schedules(false) {
			if before.Name != q.Name {
				continue
			}
			if s.w.bad == twoOwners {
				q.Version = before.Version
			}
			err := s.w.db.Fired(q)
			if err == nil {
				s.w.fires(before, q)
			}
			return err
		}
		return queue.ErrChanged
	})
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
