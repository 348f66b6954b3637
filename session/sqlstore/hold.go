// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

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
)

// holder keeps the locks of this store on sessions, and checks regularly that it
// still has them. On Postgres its leases do.
type holder struct {
	s      *Store
	leases lease.Keeper // Postgres only

	mu   sync.Mutex
	held map[string]*hold
	stop chan struct{} // closed to stop watch; SQLite only
	done chan struct{} // closed when watch has returned

	dropped sync.Once // leases of dead holders were removed; Postgres only
}

// hold is one locked session.
type hold struct {
	lease.Lease                         // without an epoch on SQLite
	asked       time.Time               // when the lease was asked for; Postgres only
	lost        context.CancelCauseFunc // cancels the work done under the lock
	wrote       map[string]bool         // the sessions written to under the lock
}

// holding returns the lock that covers writes to a session: its own, or that of a
// session in which it is nested. The caller holds h.mu.
func (h *holder) holding(id string) *hold {
	for {
		if one := h.held[id]; one != nil {
			return one
		}
		outer, nested := session.ParentOf(id)
		if !nested {
			return nil
		}
		id = outer
	}
}

// wrote reports whether a session was written to under the current lock.
func (h *holder) wrote(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.holding(id)
	return one != nil && one.wrote[id]
}

// write records that a session was written to under the current lock.
func (h *holder) write(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.holding(id); one != nil {
		one.wrote[id] = true
	}
}

// watchLocks is the interval at which a store checks that its SQLite file is still
// there.
const watchLocks = time.Second

// Hold implements [session.Holder]. The returned context is canceled when the lock
// is lost or the database's file is gone; its cause says which.
func (s *Store) Hold(ctx context.Context, id string) (held context.Context, unlock func() error, err error) {
	if err = cmp.Or(s.opened(), checkID(id)); err != nil {
		return nil, nil, err
	}
	lock := s.lockHere
	if s.postgres {
		lock = s.lockPostgres
	}
	one, release, err := lock(ctx, id)
	if err != nil {
		return nil, nil, s.fail("locking the session", err)
	}
	held, cancel := context.WithCancelCause(ctx)
	one.lost, one.wrote = cancel, map[string]bool{}
	s.holds.add(one)
	return held, sync.OnceValue(func() error {
		ctx, end := context.WithTimeout(context.Background(), s.wait)
		defer end()
		// Read the cause before cancel sets it.
		lost := context.Cause(held)
		if !errors.Is(lost, session.ErrLost) {
			_ = s.tidy(ctx, id)  // optional: if it fails, nothing is lost
			_ = s.indexSome(ctx) // optional too: the next search does the rest
		}
		s.holds.remove(id)
		cancel(nil)
		err := release()
		if errors.Is(lost, session.ErrLost) {
			return lost
		}
		return err
	}), nil
}

// lockHere locks a session of a SQLite file.
func (s *Store) lockHere(ctx context.Context, id string) (*hold, func() error, error) {
	release, err := s.lockFile(ctx, id)
	return &hold{Lease: lease.Lease{ID: id}}, release, err
}

// Lock implements [session.Locker]. On SQLite the lock is an operating system lock
// on a file in a folder beside the database, which ends with its process. On Postgres it
// is a lease, which ends by itself unless its holder renews it. The lease of a process
// of this machine that has ended is taken at once.
func (s *Store) Lock(ctx context.Context, id string) (unlock func() error, err error) {
	_, unlock, err = s.Hold(context.WithoutCancel(ctx), id)
	return unlock, err
}

// add records a newly locked session, and starts to watch with the first one.
func (h *holder) add(one *hold) {
	if h.s.postgres {
		h.leases.Add(one.Lease, one.asked, one.lost)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[one.ID] = one
	if h.stop == nil && !h.s.postgres {
		h.stop, h.done = make(chan struct{}), make(chan struct{})
		go h.watch(h.stop, h.done)
	}
}

// remove forgets a session, and stops to watch with the last one.
func (h *holder) remove(id string) {
	h.leases.Remove(id) // before another run of this process may take a new one
	h.mu.Lock()
	delete(h.held, id)
	var done chan struct{}
	if len(h.held) == 0 && h.stop != nil {
		close(h.stop)
		done, h.stop = h.done, nil
	}
	h.mu.Unlock()
	if done != nil {
		<-done
	}
}

// close forgets all locked sessions, and ends their leases.
func (h *holder) close() {
	leases := h.leases.All()
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.held))
	h.mu.Unlock()
	for _, id := range ids {
		h.remove(id)
	}
	h.s.unlease(leases...)
}

// has reports whether this store has locked a session.
func (h *holder) has(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[id] != nil
}

// watch checks regularly that the database's file is still there, until stop is closed.
func (h *holder) watch(stop, done chan struct{}) {
	defer close(done)
	timer := time.NewTicker(h.s.watching)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			h.lookFile()
		case <-stop:
			return
		}
	}
}

// lookFile cancels all work under the locks if the database's file is gone.
func (h *holder) lookFile() {
	err := h.s.moved()
	if err == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.held {
		one.lost(err)
	}
}

// lost returns the error for a lock that was lost.
func lost(id, why string) error {
	return fmt.Errorf("%w: %q: %s\n  hint: run it again: the session continues where it was", session.ErrLost, id, why)
}

var _ session.Holder = (*Store)(nil)
