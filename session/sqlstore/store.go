// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Options are what a store may be told. The zero value is good.
type Options struct {
	// Now is the clock for the times that are shown to people; nothing else
	// depends on it. Default: time.Now.
	Now func() time.Time
	// Poll is how often a watcher looks for what other processes wrote. Default:
	// 250 ms.
	Poll time.Duration
	// Wait is how long to wait for other processes that write to a SQLite file,
	// and for Postgres to say what became of a commit when the connection was
	// lost. Default: 10 s.
	Wait time.Duration
	// Retry is for how long an opening, a read or a write is tried again when it fails for a
	// reason that may pass: a server that restarts or hands over to another one,
	// a file that others keep busy, a full disk. Less than zero is never. Default:
	// 30 s with Postgres, 5 s with SQLite; but a server that cannot be reached when
	// the store is opened is told at once then, since its address may be wrong.
	Retry time.Duration
	// Key returns the key of an encrypted store: see [NewSecret]. A database that
	// is new is encrypted with it: all entries and blobs, from then on and for
	// good. One that was made without a key is refused, and so is another key than
	// the first, with an error that wraps [ErrKey]. Default: none.
	Key func(ctx context.Context) (endpoint.Key, error)
	// Keyless opens an encrypted store without its key, for what needs none: to
	// list, verify, back up, delete and sweep. What needs the key is an error
	// that wraps [ErrKey]. It counts only where Key is nil.
	Keyless bool
}

// Store keeps sessions in a database. It implements [session.Store] and all
// that a store can be besides: [session.SubsessionStore], [session.Locker], [session.Holder],
// [session.Forker], [session.Watcher], [session.Catalog] and [session.Blobs]. It
// is safe for concurrent use, and any number of processes may use one database.
type Store struct {
	db       *sql.DB
	place    string // for people
	postgres bool
	now      func() time.Time
	poll     time.Duration
	wait     time.Duration
	patience time.Duration // lockPatience, but in tests
	watching time.Duration // watchLocks, but in tests
	retry    time.Duration

	reads  tx
	commit *committer // SQLite
	path   string     // the file, with links resolved; SQLite
	open   Opener     // SQLite
	locks  string     // the folder of lock files; SQLite
	file   identity   // SQLite
	holds  holder
	locker func(ctx context.Context, id string) (unlock func() error, err error)
	schema string // Postgres
	holder *item.Holder
	split  session.Split
	heads  heads

	key     func(ctx context.Context) (endpoint.Key, error)
	keyless bool
	seal    *seal // nil if the store is not encrypted

	closing sync.Once
	mu      sync.Mutex
	changed map[string]chan struct{} // for those who watch, closed at a change
}

// Opener opens a database, such as
//
//	func(dsn string) (*sql.DB, error) { return sql.Open("sqlite", dsn) }
//
// with the driver modernc.org/sqlite, or the driver pgx of
// github.com/jackc/pgx/v5/stdlib for Postgres.
type Opener func(dsn string) (*sql.DB, error)

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
	s.patience, s.watching = lockPatience, watchLocks
	s.holds = holder{s: s, held: map[string]*hold{}}
	if s.now == nil {
		s.now = time.Now
	}
	db.SetMaxIdleConns(8) // a new one is dear
	s.reads = tx{q: db, prepared: new(sync.Map)}
	s.holder = item.NewHolder(source{s})
	s.split = session.Split{Min: minBlob, Join: s.holder.Join}
	return s
}

func waitOf(o Options) time.Duration { return cmp.Or(o.Wait, 10*time.Second) }

// Place says where the store is: its file, or its server and database, without a
// password.
func (s *Store) Place() string { return s.place }

// Close closes the database. What was appended is there. Payloads that items of
// this store hold cannot be read any more.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		s.holds.close()
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

// write runs do in a transaction, and again if that fails for a reason that may
// pass; see [committer.write]. The end of ctx only ends the waiting: what has
// begun is finished.
func (s *Store) write(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = session.WithoutCancel(ctx)
	once := s.transact
	if s.commit != nil {
		once = s.commitHere
	}
	return s.again(ctx, s.isTransient, func() error { return once(ctx, do) })
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
	return nil
}

// tell wakes those who watch the session.
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
	return session.NestedID(parent, number, callID)
}
