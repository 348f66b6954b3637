// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package lease keeps the leases of a process on sessions. A lease ends by itself unless
// its holder renews it, and each has an epoch, which is a number that no other lease ever
// has. A store accepts what is written under a lease only while the lease has its epoch.
// So a holder that was frozen or cut off, and whose lease another has taken meanwhile, can
// write nothing.
package lease

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// Lease is a lease on a session. The zero value stands for none.
type Lease struct {
	ID    string // of the session
	Epoch int64
}

// Keeper renews leases. Set its functions before Add. It is safe for concurrent use.
type Keeper struct {
	// Length is how long a lease lasts unless it is renewed. They are renewed three times
	// in that time.
	Length time.Duration
	// Wait bounds a renewal.
	Wait time.Duration
	// Renew renews the leases that still have their epochs, and returns their sessions.
	Renew func(ctx context.Context, list []Lease) (renewed map[string]bool, err error)
	// Taken returns the error for a lease that another process has taken.
	Taken func(ctx context.Context, l Lease) error
	// Ended returns the error for a lease that has ended because Renew failed.
	Ended func(l Lease, err error) error

	mu   sync.Mutex
	held map[string]*held
	stop context.CancelFunc // ends watch; nil if there is none
	done chan struct{}      // closed when watch has returned
}

// held is a lease that is renewed.
type held struct {
	Lease
	until time.Time               // when it ends unless it is renewed, by this machine's clock
	lost  context.CancelCauseFunc // cancels the work done under the lease
	gone  error                   // why it was lost
}

// Add renews a lease, which was asked for at a time, until Remove. It calls lost when
// the lease is lost.
func (k *Keeper) Add(l Lease, asked time.Time, lost context.CancelCauseFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = map[string]*held{}
	}
	k.held[l.ID] = &held{Lease: l, until: asked.Add(k.Length), lost: lost}
	if k.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		k.stop, k.done = cancel, make(chan struct{})
		go k.watch(ctx, k.done)
	}
}

// Remove forgets a lease, and waits for a renewal that is in progress if it was the last.
func (k *Keeper) Remove(id string) {
	k.mu.Lock()
	delete(k.held, id)
	var done chan struct{}
	if len(k.held) == 0 && k.stop != nil {
		k.stop()
		done, k.stop = k.done, nil
	}
	k.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Has reports whether there is a lease on a session.
func (k *Keeper) Has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held[id] != nil
}

// All returns the leases that were not lost, in the order of their sessions.
func (k *Keeper) All() (list []Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.held {
		if one.gone == nil {
			list = append(list, one.Lease)
		}
	}
	slices.SortFunc(list, func(a, b Lease) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Covering returns the lease that covers writes to a session, which is its own or that of
// a session in which it is nested, or why that was lost.
func (k *Keeper) Covering(id string) (Lease, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for nested := true; nested; id, nested = session.ParentOf(id) {
		if one := k.held[id]; one != nil {
			return one.Lease, one.gone
		}
	}
	return Lease{}, nil
}

// Lose cancels the work under a lease that was lost, unless it was given back.
func (k *Keeper) Lose(l Lease, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.held[l.ID]; one != nil && one.Epoch == l.Epoch && one.gone == nil {
		one.gone = err
		one.lost(err)
	}
}

// Extend records that a lease lasts until a time, by this machine's clock.
func (k *Keeper) Extend(l Lease, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.held[l.ID]; one != nil && one.Epoch == l.Epoch {
		one.until = until
	}
}

// ended reports whether a lease has ended by this machine's clock.
func (k *Keeper) ended(l Lease) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.held[l.ID]
	return one != nil && one.Epoch == l.Epoch && !time.Now().Before(one.until)
}

// watch renews all leases until ctx is done.
func (k *Keeper) watch(ctx context.Context, done chan struct{}) {
	defer close(done)
	timer := time.NewTicker(k.Length / 3)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			k.RenewAll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// RenewAll renews all leases at once. It cancels the work under those that another process
// has taken, and under those that have ended because they could not be renewed.
func (k *Keeper) RenewAll(ctx context.Context) {
	list := k.All()
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(k.Wait, k.Length/3))
	defer cancel()
	asked := time.Now()
	renewed, err := k.Renew(ctx, list)
	for _, l := range list {
		switch {
		case err == nil && renewed[l.ID]:
			k.Extend(l, asked.Add(k.Length))
		case err == nil:
			k.Lose(l, k.Taken(ctx, l))
		case k.ended(l):
			k.Lose(l, k.Ended(l, err))
		}
	}
}
