// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Options configure a store. The zero value works.
type Options struct {
	// Now returns the time for timestamps that people see; nothing else depends on
	// it. Default: time.Now.
	Now func() time.Time
	// Poll is the interval at which a watcher looks for entries of other processes, and
	// the store for their deliveries. On Postgres, processes also tell each other. Default:
	// 250 ms.
	Poll time.Duration
	// Wait bounds the time to wait for other processes that write to a SQLite file,
	// and for Postgres to report the outcome of a commit after the connection was
	// lost. Default: 10 s.
	Wait time.Duration
	// Retry bounds the time for which opening, reading or writing is repeated after a
	// failure that may pass: a server that restarts or fails over, a busy file, a
	// full disk. A negative value disables retries. Default: 30 s with Postgres, 5 s
	// with SQLite. With the default, a server that cannot be reached when the store
	// is opened is reported at once, because its address may be wrong.
	Retry time.Duration
	// Connections is the largest number of connections to Postgres, 2 or more;
	// operations wait for a free one. A locked session needs none. One more
	// connection listens for what other processes tell. The parameter
	// antiphon_connections of the connection string overrides it. Default: 20. A SQLite
	// file is written by one connection.
	Connections int
	// Lease is how long a lock on Postgres outlives a holder that can no longer be
	// reached: its machine is lost, it is frozen or cut off. Then another process may
	// take the lock. The holder renews it three times in this time. Default: 10 s, at
	// least 10 ms. The lock of a killed process on the same machine is taken at once, on
	// Linux.
	Lease time.Duration
	// Key returns the key of an encrypted store: see [NewSecret]. It permanently
	// encrypts all entries and blobs of a new database. Opening a database that was
	// created without a key or with another key returns an error that wraps [ErrKey].
	// Default: no encryption.
	Key func(ctx context.Context) (endpoint.Key, error)
	// Keyless opens an encrypted store without its key, to list, verify, back up,
	// delete and sweep. Operations that need the key return an error that wraps
	// [ErrKey]. It is ignored if Key is set.
	Keyless bool
}

// Store keeps sessions in a database. It implements [session.Store] and these optional
// interfaces: [session.SubsessionStore], [session.Locker], [session.Holder],
// [session.LockLister], [session.Forker], [session.Watcher], [session.Inbox],
// [session.TakenDeleter], [session.Catalog], [session.Searcher], [session.Blobs] and
// [session.Verifier]; and, for workers, [queue.Queue], [queue.Limits], [queue.Reader], [queue.Roster] and
// [queue.Schedules]. It is safe for concurrent use, and any number of processes may use
// one database.
type Store struct {
	db       *sql.DB
	place    string // for people
	postgres bool
	now      func() time.Time
	poll     time.Duration
	wait     time.Duration
	patience time.Duration // lockPatience, but in tests
	watching time.Duration // watchLocks, but in tests
	lease    time.Duration // Postgres
	retry    time.Duration

	reads   tx
	commit  *committer // SQLite
	path    string     // the file, with links resolved; SQLite
	open    Opener     // SQLite
	locks   string     // the folder of lock files; SQLite
	file    identity   // SQLite
	holds   holder
	workers awaiting
	turn    atomic.Pointer[string] // the tenant that was looked at last; nil at first
	served  atomic.Pointer[string] // the tenant whose work this store began last; nil at first
	holder  *item.PayloadStore
	split   session.Split
	heads   heads

	key     func(ctx context.Context) (endpoint.Key, error)
	keyless bool
	seal    *seal // nil if the store is not encrypted

	arrivals arrivals
	wakes    wakes // Postgres

	closing sync.Once
	mu      sync.Mutex
	changed map[string]chan struct{} // channels of watchers, closed at a change
}

// Opener opens a database, such as
//
//	func(dsn string) (*sql.DB, error) { return sql.Open("sqlite", dsn) }
//
// with the driver modernc.org/sqlite, or the driver pgx of
// github.com/jackc/pgx/v5/stdlib for Postgres.
type Opener func(dsn string) (*sql.DB, error)

// newStore returns a store with the parts that both databases need.
func newStore(db *sql.DB, place string, o Options) *Store {
	s := &Store{
		db:      db,
		place:   place,
		now:     o.Now,
		key:     o.Key,
		keyless: o.Keyless,
		poll:    cmp.Or(o.Poll, 250*time.Millisecond),
		wait:    waitOf(o),
		changed: map[string]chan struct{}{},
	}
	s.patience, s.watching, s.lease = lockPatience, watchLocks, max(cmp.Or(o.Lease, defaultLease), 10*time.Millisecond)
	s.holds.s, s.holds.held = s, map[string]*hold{}
	s.keep(&s.holds.leases)
	s.arrivals.s = s
	s.wakes = wakes{s: s, watched: map[string]time.Time{}, watches: map[string]int{}, says: map[string]string{}}
	if s.now == nil {
		s.now = time.Now
	}
	db.SetMaxIdleConns(8) // opening a connection is expensive; for Postgres, see bound
	s.reads = tx{q: db, prepared: new(sync.Map)}
	s.holder = item.NewHolder(source{s})
	s.split = session.Split{Min: minBlob, Join: s.holder.Join}
	return s
}

func waitOf(o Options) time.Duration { return cmp.Or(o.Wait, 10*time.Second) }

// opened returns an error for a Store that [OpenSQLite] or [OpenPostgres] did not return.
func (s *Store) opened() error {
	if s == nil || s.db == nil {
		return errNotOpen
	}
	return nil
}

var errNotOpen = errors.New("sqlstore: the Store is not open: use OpenSQLite or OpenPostgres")

// open calls an opener.
func (o Opener) open(dsn string) (*sql.DB, error) {
	if o == nil {
		return nil, errNoOpener
	}
	db, err := o(dsn)
	if db == nil && err == nil {
		err = errNoOpener
	}
	return db, err
}

var errNoOpener = errors.New("the Opener is nil or opened nothing: it must return a database of the right driver")

// Place returns the file of the store, or its server and database without a password.
func (s *Store) Place() string { return s.place }

// Close closes the database. Successful appends are durable. Items can no longer read
// payloads that this store holds.
func (s *Store) Close() (err error) {
	if s.opened() != nil {
		return nil
	}
	s.closing.Do(func() {
		s.holds.close()
		s.arrivals.close()
		s.wakes.close()
		s.holder.Close()
		if s.commit != nil {
			err = s.moved()
			s.file.close()
			err = errors.Join(err, s.commit.close())
		}
		err = s.fail("closing", errors.Join(err, s.db.Close()))
	})
	return err
}

// write runs do in a transaction, and repeats it after a failure that may pass; see
// [committer.write]. When ctx ends, only the waiting ends: a started write is
// finished.
func (s *Store) write(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	if err := cmp.Or(s.opened(), ctx.Err()); err != nil {
		return err
	}
	ctx = session.WithoutCancel(ctx)
	once := s.transact
	if s.commit != nil {
		once = s.commitHere
	}
	attempt := func() error { return once(ctx, do) }
	err := s.again(ctx, s.isTransient, attempt)
	if errors.Is(err, errCreated) {
		err = s.again(ctx, s.isTransient, attempt)
	}
	return err
}

// commitHere writes to the file, if it is still the one that was opened.
func (s *Store) commitHere(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	if err := s.moved(); err != nil {
		return err
	}
	if err := s.commit.write(ctx, do); err != nil {
		return err
	}
	return s.moved()
}

// Append implements [session.Store].
func (s *Store) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if err := s.append(ctx, id, after, entries); err != nil {
		return s.fail("writing", err)
	}
	s.tell(id)
	s.wakes.appended(id)
	return nil
}

// tellAll wakes all watchers.
func (s *Store) tellAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changed {
		close(c)
	}
	clear(s.changed)
}

// tell wakes the session's watchers.
func (s *Store) tell(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.changed[id]; c != nil {
		close(c)
		delete(s.changed, id)
	}
}

// Nest implements [session.SubsessionStore].
func (s *Store) Nest(parent string, number int, callID string) string {
	return session.SubsessionID(parent, number, callID)
}
