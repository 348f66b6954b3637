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
}

// Store keeps sessions in a database. It implements [session.Store] and all
// that a store can be besides: [session.Nester], [session.Locker],
// [session.Forker], [session.Watcher], [session.Catalog] and [session.Blobs]. It
// is safe for concurrent use, and any number of processes may use one database.
type Store struct {
	db       *sql.DB
	place    string // for people
	postgres bool
	now      func() time.Time
	poll     time.Duration
	wait     time.Duration

	reads  tx
	commit *committer // SQLite
	locks  string     // the folder of lock files; SQLite
	schema string     // Postgres
	holder *item.Holder
	split  session.Split

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
		poll:    cmp.Or(o.Poll, 250*time.Millisecond),
		wait:    waitOf(o),
		changed: map[string]chan struct{}{},
	}
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

// Close closes the database. What was appended is there. Payloads that items of
// this store hold cannot be read any more.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		s.holder.Close()
		if s.commit != nil {
			err = s.commit.close()
		}
		err = s.fail("closing", errors.Join(err, s.db.Close()))
	})
	return err
}

// write runs do in a transaction, and once more if that is what the database
// asks for; see [committer.write]. From here on the end of ctx changes nothing:
// what has begun is finished.
func (s *Store) write(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if s.commit != nil {
		return s.commit.write(ctx, do)
	}
	return s.transact(ctx, do)
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

// Nest implements [session.Nester].
func (s *Store) Nest(parent string, number int, callID string) string {
	return session.NestedID(parent, number, callID)
}
