// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/lease"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
)

// Options say how a store reaches its database. The zero value is a perfect network.
type Options struct {
	// Holder names the process to others.
	Holder string
	// Lease is how long a lease lasts unless it is renewed. 0 means 10 seconds.
	Lease time.Duration
	// Net performs an operation at the database, and returns its error. It may do it never,
	// late or twice, and lose its answer. What says what the operation is, and is the same
	// for equal operations. Nil performs it at once.
	Net func(ctx context.Context, what string, do func() error) error
	// Tell passes on news of other stores: that a delivery has arrived, or, if it need not
	// be passed on, that work may have become ready. It may do it late. Nil passes all on at
	// once.
	Tell func(must bool, news func())
}

// whole is what a store has of a session.Memory as it is.
type whole interface {
	session.SubsessionStore
	session.Forker
	session.Watcher
	session.Catalog
	session.Blobs
	session.Searcher
}

// Store is a process's store on a [DB]. It is safe for concurrent use.
type Store struct {
	whole
	db     *DB
	o      Options
	keeper lease.Keeper

	mu       sync.Mutex
	arrivals map[string]*listeners // by session
	workers  listeners
}

// Create implements [session.Catalog].
func (s *Store) Create(ctx context.Context, info session.Info, first ...session.Entry) error {
	return s.db.Create(ctx, info, first)
}

// listeners want to hear something.
type listeners struct {
	mu   sync.Mutex
	list []*func()
}

func (l *listeners) add(f func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, &f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(l.list, func(other *func()) bool { return other == &f })
	}
}

func (l *listeners) tell() {
	l.mu.Lock()
	list := slices.Clone(l.list)
	l.mu.Unlock()
	for _, f := range list {
		(*f)()
	}
}

// Open opens a store.
func (db *DB) Open(o Options) *Store {
	if o.Lease == 0 {
		o.Lease = 10 * time.Second
	}
	s := &Store{whole: &db.memory, db: db, o: o, arrivals: map[string]*listeners{}}
	s.keeper.Length, s.keeper.Wait = o.Lease, o.Lease
	s.keeper.Renew = func(ctx context.Context, list []lease.Lease) (renewed map[string]bool, err error) {
		err = s.net(ctx, "renew", func() error {
			renewed = db.Renew(list, o.Lease)
			return nil
		})
		return renewed, err
	}
	s.keeper.Taken = func(_ context.Context, l lease.Lease) error {
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.taken(l)
	}
	s.keeper.Ended = func(l lease.Lease, err error) error {
		return fmt.Errorf("%w: %q: its lease has ended because it could not be renewed: %w", session.ErrLost, l.ID, err)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.stores = append(db.stores, s)
	return s
}

// Place implements [store.Store].
func (*Store) Place() string { return "memory" }

// Close implements [store.Store]. Leases end by themselves.
func (s *Store) Close() error {
	for _, l := range s.keeper.All() {
		s.keeper.Remove(l.ID)
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	s.db.stores = slices.DeleteFunc(s.db.stores, func(other *Store) bool { return other == s })
	return nil
}

// net performs an operation at the database.
func (s *Store) net(ctx context.Context, what string, do func() error) error {
	if s.o.Net == nil {
		return do()
	}
	return s.o.Net(ctx, what, do)
}

// hear passes news on to listeners.
func (s *Store) hear(must bool, l *listeners) {
	if s.o.Tell == nil {
		l.tell()
		return
	}
	s.o.Tell(must, l.tell)
}

// ask reads a list at the database.
func ask[T any](ctx context.Context, s *Store, what string, read func() ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var list []T
		err := s.net(ctx, what, func() (err error) {
			list, err = read()
			return err
		})
		for _, x := range list {
			if err == nil && !yield(x, nil) {
				return
			}
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}

// Load implements [session.Store].
func (s *Store) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return ask(ctx, s, fmt.Sprint("load ", id, " ", after), func() ([]session.Entry, error) { return s.db.Log(id, after) })
}

// Append implements [session.Store].
func (s *Store) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	l, err := s.Covering(id)
	if err != nil {
		return err
	}
	err = s.net(ctx, appendText(id, after, entries), func() error { return s.db.Append(ctx, l, id, after, entries) })
	if errors.Is(err, session.ErrLost) {
		s.keeper.Lose(l, err)
	}
	return err
}

// Covering returns the lease that covers writes to a session, or why it was lost.
func (s *Store) Covering(id string) (lease.Lease, error) { return s.keeper.Covering(id) }

// appendText says what an append is.
func appendText(id string, after int64, entries []session.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "append %s %d", id, after)
	for _, e := range entries {
		b.WriteByte(' ')
		b.WriteString(session.Kind(e.Body))
	}
	return b.String()
}

// Lock implements [session.Locker].
func (s *Store) Lock(ctx context.Context, id string) (unlock func() error, err error) {
	_, unlock, err = s.Hold(context.WithoutCancel(ctx), id)
	return unlock, err
}

// Hold implements [session.Holder].
func (s *Store) Hold(ctx context.Context, id string) (held context.Context, unlock func() error, err error) {
	if s.keeper.Has(id) {
		return nil, nil, fmt.Errorf("%w: another run of this process", session.ErrBusy)
	}
	var l lease.Lease
	asked := time.Now()
	err = s.net(ctx, "lease "+id, func() (err error) {
		l, err = s.db.Take(id, s.o.Holder, s.o.Lease)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	s.keeper.Add(l, asked, cancel)
	return held, sync.OnceValue(func() error {
		lost := context.Cause(held)
		s.keeper.Remove(id)
		cancel(nil)
		// If it is not known to have ended, it ends by itself.
		_ = s.net(context.WithoutCancel(ctx), "release "+id, func() error { s.db.End(l); return nil })
		if errors.Is(lost, session.ErrLost) {
			return lost
		}
		return nil
	}), nil
}

// Lose takes the lease of a session from this store, as if it had ended and another store
// had taken it and given it back.
func (s *Store) Lose(id string) {
	if l, err := s.Covering(id); err == nil {
		s.db.End(l)
		s.keeper.Lose(l, s.keeper.Taken(context.Background(), l))
	}
}

// Deliver implements [session.Inbox].
func (s *Store) Deliver(ctx context.Context, id string, d session.Delivery) (r session.Receipt, err error) {
	err = s.net(ctx, fmt.Sprint("deliver ", id, " ", d.Key), func() (err error) {
		r, err = s.db.Deliver(ctx, id, d)
		return err
	})
	return r, err
}

// Deliveries implements [session.Inbox].
func (s *Store) Deliveries(ctx context.Context, id string) iter.Seq2[session.Delivery, error] {
	return ask(ctx, s, "inbox "+id, func() ([]session.Delivery, error) { return s.db.Waiting(id) })
}

// Notify implements [session.Inbox].
func (s *Store) Notify(id string, arrived func()) (stop func()) {
	return s.arriving(id).add(arrived)
}

// arriving returns those who listen for deliveries to a session.
func (s *Store) arriving(id string) *listeners {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arrivals[id] == nil {
		s.arrivals[id] = new(listeners)
	}
	return s.arrivals[id]
}

// List implements [session.Catalog].
func (s *Store) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return ask(ctx, s, "list", func() ([]session.Info, error) { return s.db.List(q) })
}

// DeleteIfTaken implements [session.TakenDeleter].
func (s *Store) DeleteIfTaken(ctx context.Context, id string) error {
	return s.net(ctx, "delete "+id, func() error { return s.db.DeleteIfTaken(ctx, id) })
}

// Delete implements [session.Catalog].
func (s *Store) Delete(ctx context.Context, id string) error {
	return s.net(ctx, "delete "+id, func() error { return s.db.Delete(ctx, id) })
}

// Enqueue implements [queue.Queue].
func (s *Store) Enqueue(ctx context.Context, w queue.Work) error {
	return s.net(ctx, "enqueue "+w.Session, func() error { return s.db.Enqueue(ctx, w) })
}

// Candidates implements [queue.Queue].
func (s *Store) Candidates(ctx context.Context, want queue.Want) (list []queue.Work, err error) {
	err = s.net(ctx, "candidates", func() error {
		list = s.db.Candidates(want)
		return nil
	})
	return list, err
}

// Lost implements [queue.Queue].
func (s *Store) Lost(ctx context.Context) (list []queue.Work, err error) {
	err = s.net(ctx, "lost", func() error {
		list = s.db.Lost()
		return nil
	})
	return list, err
}

// Begin implements [queue.Queue].
func (s *Store) Begin(ctx context.Context, w queue.Work, worker string) (begun queue.Work, err error) {
	err = s.net(ctx, fmt.Sprint("begin ", w.Session, " ", w.Claim), func() (err error) {
		begun, err = s.db.Begin(w, worker)
		return err
	})
	return begun, err
}

// Finish implements [queue.Queue].
func (s *Store) Finish(ctx context.Context, w queue.Work, o queue.Outcome) error {
	switch o.State {
	case queue.Ready, queue.Waiting, queue.Parked, queue.Done:
	default:
		return fmt.Errorf("work cannot be left as %q", o.State)
	}
	return s.net(ctx, fmt.Sprint("finish ", w.Session, " ", w.Claim, " ", o.State), func() error { return s.db.Finish(w, o) })
}

// Work implements [queue.Queue].
func (s *Store) Work(ctx context.Context, id string) (w queue.Work, err error) {
	err = s.net(ctx, "work "+id, func() (err error) {
		w, err = s.db.Work(id)
		return err
	})
	return w, err
}

// Works implements [queue.Queue].
func (s *Store) Works(ctx context.Context, states ...queue.State) iter.Seq2[queue.Work, error] {
	return ask(ctx, s, fmt.Sprint("works ", states), func() ([]queue.Work, error) { return s.db.Works(states...), nil })
}

// Move implements [queue.Queue].
func (s *Store) Move(ctx context.Context, w queue.Work, to queue.State, reason string) error {
	return s.net(ctx, fmt.Sprint("move ", w.Session, " ", w.Claim, " ", to), func() error { return s.db.Move(w, to, reason) })
}

// Awaited implements [queue.Queue].
func (s *Store) Awaited(changed func()) (stop func()) { return s.workers.add(changed) }

var (
	_ store.Store    = (*Store)(nil)
	_ session.Inbox  = (*Store)(nil)
	_ session.Holder = (*Store)(nil)
	_ queue.Queue    = (*Store)(nil)
)
