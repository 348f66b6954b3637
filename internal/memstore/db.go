// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package memstore is a database in memory with as many stores on it as a test wants.
// Each stands for a process of its own. Sessions are held by leases, each append checks
// the epoch of the writer's lease, and there is a queue of work, as in package sqlstore on
// Postgres. Options.Net stands for the network in between.
package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/lease"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// DB is the database. Each of its methods is a transaction. The zero value is empty. It is
// safe for concurrent use.
type DB struct {
	// Clock is the time of schedules. Nil means the system's.
	Clock func() time.Time

	memory session.Memory

	mu        sync.Mutex // for the rest, and for changes of memory
	epoch     int64      // of the newest lease
	leases    map[string]row
	works     map[string]work
	served    *string          // the tenant whose work was begun last; nil at first
	limits    map[string]limit // by endpoint
	schedules map[string]queue.Schedule
	wrote     map[string]time.Time // when sessions were made, or last appended to
	stores    []*Store
}

// row is a lease.
type row struct {
	epoch  int64
	holder string
	until  time.Time
}

// work is the work of a session.
type work struct {
	queue.Work
	told bool // of a delivery to a nested session, while it ran
}

// in performs a transaction, and then tells the other stores what they listen for.
func (db *DB) in(do func() (told func(*Store), err error)) error {
	db.mu.Lock()
	told, err := do()
	stores := slices.Clone(db.stores)
	db.mu.Unlock()
	if err == nil && told != nil {
		for _, s := range stores {
			told(s)
		}
	}
	return err
}

// anything tells a store that work may have become ready.
func anything(s *Store) { s.hear(false, &s.workers) }

// Append appends entries to a session, if the lease that the writer has, or thinks that it
// has, still has its epoch. Without a lease it appends like any store.
func (db *DB) Append(ctx context.Context, l lease.Lease, id string, after int64, entries []session.Entry) error {
	return db.in(func() (func(*Store), error) {
		if l.Epoch != 0 && db.leases[l.ID].epoch != l.Epoch {
			return nil, db.taken(l)
		}
		err := db.memory.Append(ctx, id, after, stamped(entries))
		if err == nil && len(entries) > 0 {
			put(&db.wrote, id, time.Now())
		}
		return nil, err
	})
}

// Create makes a session. One without entries was written when it was made, as in a database.
func (db *DB) Create(ctx context.Context, info session.Info, first []session.Entry) error {
	return db.in(func() (func(*Store), error) {
		err := db.memory.Create(ctx, info, stamped(first)...)
		if err == nil {
			put(&db.wrote, info.ID, time.Now())
		}
		return nil, err
	})
}

// stamped returns entries with the time at which they are written.
func stamped(entries []session.Entry) []session.Entry {
	list, now := slices.Clone(entries), time.Now().UTC()
	for i := range list {
		if list[i].Time.IsZero() {
			list[i].Time = now
		}
	}
	return list
}

// put sets an element of a map, which is made if it is nil.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// taken returns the error for a lease that is no longer there.
func (db *DB) taken(l lease.Lease) error {
	why := "another process has taken its lease meanwhile"
	if other, ok := db.leases[l.ID]; ok {
		why = "it is held by " + other.holder
	}
	return fmt.Errorf("%w: %q: %s", session.ErrLost, l.ID, why)
}

// Take takes the lease of a session for a time, if it is free or has ended.
func (db *DB) Take(id, holder string, length time.Duration) (l lease.Lease, err error) {
	err = db.in(func() (func(*Store), error) {
		if now, ok := db.leases[id]; ok && time.Now().Before(now.until) {
			return nil, fmt.Errorf("%w: %s", session.ErrBusy, now.holder)
		}
		db.epoch++
		l = lease.Lease{ID: id, Epoch: db.epoch}
		put(&db.leases, id, row{db.epoch, holder, time.Now().Add(length)})
		return nil, nil
	})
	return l, err
}

// Renew renews leases that still have their epochs, and returns their sessions.
func (db *DB) Renew(list []lease.Lease, length time.Duration) map[string]bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	renewed := map[string]bool{}
	for _, l := range list {
		if now := db.leases[l.ID]; now.epoch == l.Epoch {
			now.until = time.Now().Add(length)
			db.leases[l.ID] = now
			renewed[l.ID] = true
		}
	}
	return renewed
}

// End ends leases that still have their epochs.
func (db *DB) End(list ...lease.Lease) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, l := range list {
		if db.leases[l.ID].epoch == l.Epoch {
			delete(db.leases, l.ID)
		}
	}
}

// Lease returns the lease of a session that was taken last, unless it was given back.
func (db *DB) Lease(id string) lease.Lease {
	db.mu.Lock()
	defer db.mu.Unlock()
	if now, ok := db.leases[id]; ok {
		return lease.Lease{ID: id, Epoch: now.epoch}
	}
	return lease.Lease{}
}

// held reports whether somebody holds a session.
func (db *DB) held(id string) bool { return time.Now().Before(db.leases[id].until) }

// Deliver keeps a delivery, and makes work ready that waits for one. A session that is
// nested belongs to the work of the outer one. If that runs, it may have looked for the
// delivery already: it is told to look once more.
func (db *DB) Deliver(ctx context.Context, id string, d session.Delivery) (r session.Receipt, err error) {
	err = db.in(func() (_ func(*Store), err error) {
		if r, err = db.memory.Deliver(ctx, id, d); err != nil || r.Taken != 0 {
			return nil, err
		}
		outer := id
		for nested := true; nested; outer, nested = session.ParentOf(outer) {
			w, ok := db.works[outer]
			switch {
			case !ok:
			case w.State == queue.Waiting, w.State == queue.Done:
				w.State, w.Since, w.Due, w.Reason = queue.Ready, time.Now(), time.Time{}, "a delivery arrived"
			case w.State == queue.Running && outer != id:
				w.told = true
			}
			if ok {
				db.works[outer] = w
			}
		}
		return func(s *Store) { s.hear(true, s.arriving(id)); anything(s) }, nil
	})
	return r, err
}

// waits reports whether deliveries to a session wait after a number.
func (db *DB) waits(id string, after int64) bool {
	for d, err := range db.memory.Deliveries(context.Background(), id) {
		if err == nil && d.Number > after { // memory does not fail
			return true
		}
	}
	return false
}

// Enqueue is [queue.Queue.Enqueue].
func (db *DB) Enqueue(ctx context.Context, w queue.Work) error {
	return db.in(func() (func(*Store), error) {
		if _, err := db.memory.Info(ctx, w.Session); err != nil {
			return nil, err
		}
		old, ok := db.works[w.Session]
		if ok && old.State == queue.Running {
			return nil, nil
		}
		w.State, w.Since, w.Attempts, w.Reason, w.Claim, w.Worker = queue.Ready, time.Now(), 0, "", old.Claim, old.Worker
		put(&db.works, w.Session, work{w, old.told})
		return anything, nil
	})
}

// Candidates is [queue.Queue.Candidates].
func (db *DB) Candidates(want queue.Want) (list []queue.Work) {
	db.mu.Lock()
	defer db.mu.Unlock()
	running := map[string]int{}
	byTenant := map[string][]queue.Work{}
	for _, w := range db.works {
		if w.State == queue.Running {
			running[w.Tenant]++
		}
		come := !time.Now().Before(w.Due)
		due := w.State == queue.Ready && come || w.State == queue.Waiting && come && !w.Due.IsZero() || w.State == queue.Running
		if due && (want.Agents == nil || slices.Contains(want.Agents, w.Agent)) && (want.Tenants == nil || slices.Contains(want.Tenants, w.Tenant)) {
			byTenant[w.Tenant] = append(byTenant[w.Tenant], w.Work)
		}
	}
	type ranked struct {
		queue.Work
		turn int // the place of its tenant's turn
	}
	var all []ranked
	order := func(a, b queue.Work) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Due.Compare(b.Due), cmp.Compare(a.Session, b.Session))
	}
	for tenant, works := range byTenant {
		slices.SortFunc(works, order)
		for n, w := range works {
			all = append(all, ranked{w, running[tenant] + n})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), db.takeTurns(a.Tenant, b.Tenant), order(a.Work, b.Work))
	})
	chosen := map[string]int{}
	for _, w := range all {
		others := running[w.Tenant]
		if w.State == queue.Running {
			others-- // it would take its own place
		}
		limit, limited := want.Caps[w.Tenant]
		if len(want.Lacks(w.Work)) > 0 || limited && others+chosen[w.Tenant] >= limit || w.State == queue.Running && db.held(w.Session) {
			continue
		}
		chosen[w.Tenant]++
		if list = append(list, w.Work); len(list) >= max(want.Most, 1) {
			break
		}
	}
	return list
}

// takeTurns compares tenants with as many runs: those that follow the one that was served
// last come first.
func (db *DB) takeTurns(a, b string) int {
	if db.served == nil {
		return 0
	}
	if after := a > *db.served; after != (b > *db.served) {
		if after {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

// Lost is [queue.Queue.Lost].
func (db *DB) Lost() (list []queue.Work) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(db.works)) {
		if w := db.works[id]; w.State == queue.Running && !db.held(id) {
			list = append(list, w.Work)
		}
	}
	return list
}

// change changes work that is still as it was read.
func (db *DB) change(as queue.Work, do func(now *work) error) error {
	return db.in(func() (func(*Store), error) {
		now, ok := db.works[as.Session]
		if !ok || now.Claim != as.Claim || now.State != as.State {
			return nil, queue.ErrChanged
		}
		if err := do(&now); err != nil {
			return nil, err
		}
		now.Since = time.Now()
		db.works[as.Session] = now
		return anything, nil
	})
}

// Begin is [queue.Queue.Begin].
func (db *DB) Begin(w queue.Work, worker string) (begun queue.Work, err error) {
	err = db.change(w, func(now *work) error {
		others := 0
		for id, other := range db.works {
			if other.State == queue.Running && other.Tenant == w.Tenant && id != w.Session {
				others++
			}
		}
		if w.Cap > 0 && others >= w.Cap || db.fullAt(w.Endpoint, w.Session) {
			return queue.ErrFull
		}
		now.State, now.Worker, now.Endpoint, now.Reason, now.told, now.Since = queue.Running, worker, w.Endpoint, "", false, time.Now()
		db.served = &now.Tenant
		now.Claim++
		now.Attempts++
		begun = now.Work
		return nil
	})
	return begun, err
}

// Finish is [queue.Queue.Finish].
func (db *DB) Finish(w queue.Work, o queue.Outcome) error {
	w.State = queue.Running
	return db.change(w, func(now *work) error {
		now.State, now.Due, now.Reason = o.State, o.Due, o.Reason
		if (o.State == queue.Waiting || o.State == queue.Done) && (now.told || db.waits(w.Session, o.Seen)) {
			now.State, now.Due = queue.Ready, time.Time{}
		}
		if o.Well {
			now.Attempts = 0
		}
		return nil
	})
}

// Move is [queue.Queue.Move].
func (db *DB) Move(w queue.Work, to queue.State, reason string) error {
	if to != queue.Ready && to != queue.Parked && to != queue.Done {
		return fmt.Errorf("work cannot be moved to %q", to)
	}
	return db.change(w, func(now *work) error {
		now.State, now.Reason, now.Due = to, reason, time.Time{}
		if to == queue.Ready {
			now.Attempts = 0
		}
		return nil
	})
}

// Work is [queue.Queue.Work].
func (db *DB) Work(id string) (queue.Work, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	w, ok := db.works[id]
	if !ok {
		return queue.Work{}, fmt.Errorf("%w: the session %q has no work", session.ErrNotFound, id)
	}
	return w.Work, nil
}

// Works returns the work in some states, or all, in the order of sessions.
func (db *DB) Works(states ...queue.State) (list []queue.Work) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(db.works)) {
		if w := db.works[id]; len(states) == 0 || slices.Contains(states, w.State) {
			list = append(list, w.Work)
		}
	}
	return list
}

// Delete deletes a session with its work.
func (db *DB) Delete(ctx context.Context, id string) error {
	return db.gone(id, func() error { return db.memory.Delete(ctx, id) })
}

// DeleteIfTaken is Delete, unless words wait: see [session.TakenDeleter].
func (db *DB) DeleteIfTaken(ctx context.Context, id string) error {
	return db.gone(id, func() error { return db.memory.DeleteIfTaken(ctx, id) })
}

func (db *DB) gone(id string, remove func() error) error {
	return db.in(func() (func(*Store), error) {
		err := remove()
		if err == nil {
			delete(db.works, id)
		}
		return nil, err
	})
}

// Log returns the entries of a session after a number.
func (db *DB) Log(id string, after int64) (list []session.Entry, err error) {
	for e, failed := range db.memory.Load(context.Background(), id, after) {
		list, err = append(list, e), errors.Join(err, failed)
	}
	return list, err
}

// Waiting returns the deliveries that wait for a session.
func (db *DB) Waiting(id string) (list []session.Delivery, err error) {
	for d, failed := range db.memory.Deliveries(context.Background(), id) {
		list, err = append(list, d), errors.Join(err, failed)
	}
	return list, err
}

// List returns the sessions that a query selects.
func (db *DB) List(q session.Query) (list []session.Info, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for info, failed := range db.memory.List(context.Background(), q) {
		info.Updated = db.wrote[info.ID]
		list, err = append(list, info), errors.Join(err, failed)
	}
	return list, err
}
