// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// holder keeps the locks of this store on sessions, and checks regularly that it
// still has them. On Postgres one connection holds the advisory locks of all
// sessions.
type holder struct {
	s *Store

	mu    sync.Mutex
	held  map[string]*hold
	conn  *sql.Conn     // Postgres only; nil if nothing is held
	left  []string      // sessions to lock again after the connection
	broke time.Time     // was cut, at this time
	stop  chan struct{} // closed to stop watch
	done  chan struct{} // closed when watch has returned
}

// hold is one locked session.
type hold struct {
	id    string
	lost  context.CancelCauseFunc // cancels the work done under the lock
	wrote map[string]bool         // the sessions written to under the lock
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

// watchLocks is the interval at which a store checks that it still has its locks
// and, on SQLite, its file.
const watchLocks = time.Second

// Hold implements [session.Holder]. The returned context is canceled when the lock
// is lost or the database's file is gone; its cause says which.
func (s *Store) Hold(ctx context.Context, id string) (held context.Context, unlock func() error, err error) {
	if err = cmp.Or(s.opened(), checkID(id)); err != nil {
		return nil, nil, err
	}
	release, err := s.locker(ctx, id)
	if err != nil {
		return nil, nil, s.fail("locking the session", err)
	}
	held, cancel := context.WithCancelCause(ctx)
	s.holds.add(&hold{id, cancel, map[string]bool{}})
	return held, sync.OnceValue(func() error {
		ctx, end := context.WithTimeout(context.Background(), s.wait)
		defer end()
		_ = s.tidy(ctx, id)  // optional: if it fails, nothing is lost
		_ = s.indexSome(ctx) // optional too: the next search does the rest
		// Read the cause before cancel sets it.
		lost := context.Cause(held)
		s.holds.remove(id)
		cancel(nil)
		err := release()
		if errors.Is(lost, session.ErrLost) {
			return lost
		}
		return err
	}), nil
}

// Lock implements [session.Locker]. On SQLite the lock is an operating system lock
// on a file in a folder beside the database; on Postgres it is an advisory lock of a
// connection. Both end with their process, so that a file or row left behind by a
// crash locks nothing.
func (s *Store) Lock(ctx context.Context, id string) (unlock func() error, err error) {
	_, unlock, err = s.Hold(context.WithoutCancel(ctx), id)
	return unlock, err
}

// add records a newly locked session, and starts watch with the first one.
func (h *holder) add(one *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[one.id] = one
	if h.stop == nil {
		h.stop, h.done = make(chan struct{}), make(chan struct{})
		go h.watch(h.stop, h.done)
	}
}

// remove forgets a session, and stops watch with the last one.
func (h *holder) remove(id string) {
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

// close forgets all locked sessions. Their locks end with the database's
// connections.
func (h *holder) close() {
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.held))
	h.mu.Unlock()
	for _, id := range ids {
		h.remove(id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop()
}

// watch checks regularly that all locks are still held, until stop is closed.
func (h *holder) watch(stop, done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	look := h.lookFile
	if h.s.postgres {
		look = h.lookServer
	}
	timer := time.NewTicker(h.s.watching)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// lookFile cancels all work under the locks if the database's file is gone.
func (h *holder) lookFile(context.Context) {
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

// lose closes the connection and records that its locks must be taken again.
func (h *holder) lose() {
	if h.drop(); len(h.left) == 0 {
		h.broke = time.Now()
	}
	h.left = slices.Collect(maps.Keys(h.held))
}

// lookServer takes the locks again if their connection was cut. It tries each lock
// once; the next check tries the rest, until the store's retry time is over.
func (h *holder) lookServer(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.s.wait) // limits how long a silent server keeps h.mu locked
	defer cancel()
	if len(h.held) == 0 || h.conn != nil && h.alive(ctx) && len(h.left) == 0 || ctx.Err() != nil {
		return
	}
	if len(h.left) == 0 || !h.alive(ctx) {
		h.lose()
	}
	err := h.connect(ctx)
	h.left = slices.DeleteFunc(h.left, func(id string) bool {
		one := h.held[id]
		if one == nil { // it was released meanwhile
			return true
		}
		failed := err
		if failed == nil {
			failed = h.retake(ctx, id)
		}
		if failed == nil {
			return true
		}
		if !errors.Is(failed, session.ErrLost) && time.Since(h.broke) > h.s.retry {
			failed = lost(id, h.s.fail("locking the session", failed).Error())
		}
		if errors.Is(failed, session.ErrLost) {
			one.lost(failed)
			return true
		}
		return false
	})
}

// lost returns the error for a lock that was lost.
func lost(id, why string) error {
	return fmt.Errorf("%w: %q: %s\n  hint: run it again: the session continues where it was", session.ErrLost, id, why)
}

// alive reports whether the connection that holds the locks works. The caller holds
// h.mu.
func (h *holder) alive(ctx context.Context) bool {
	if h.conn == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, h.s.wait)
	defer cancel()
	_, err := h.conn.ExecContext(ctx, `SELECT 1`)
	return err == nil
}

// connect opens the connection that holds the locks, unless it is open.
func (h *holder) connect(ctx context.Context) (err error) {
	if h.conn == nil {
		h.conn, err = h.s.db.Conn(ctx)
	}
	return err
}

// drop closes the connection, which releases its locks.
func (h *holder) drop() {
	if h.conn != nil {
		_ = h.conn.Raw(func(any) error { return errBadConn }) // makes the pool close it instead of reusing it
		_ = h.conn.Close()
		h.conn = nil
	}
}

// retake takes a lock again that was lost with its connection. The lock is lost for
// good if another process has it or wrote to the session meanwhile. Any other error
// may pass: the server may not have noticed yet that the old connection is gone.
func (h *holder) retake(ctx context.Context, id string) error {
	t := &tx{q: h.conn, postgres: true}
	var ok bool
	if err := t.row(ctx, `SELECT pg_try_advisory_lock(?)`, h.s.holderKey(id)).Scan(&ok); err != nil {
		return err
	}
	if !ok {
		who := t.writer(ctx, id)
		// If the holder is this process, the server has not noticed yet that the old
		// connection is gone.
		if who != self() {
			return lost(id, who+" has taken it since the connection broke")
		}
		return busy(who)
	}
	// While an append is running, the end may differ because of the append itself.
	if h.s.heads.writing(id) {
		return nil // the append itself is refused if another process wrote
	}
	end, known := h.s.heads.get(id)
	row, err := t.find(ctx, id)
	if known && err == nil && (row.Entries != end.entries || session.Sum(row.head) != end.sum) {
		_, _ = t.exec(ctx, `SELECT pg_advisory_unlock(?)`, h.s.holderKey(id))
		return lost(id, "somebody wrote to it since the connection broke")
	}
	return nil
}

// writer returns a description of the process that holds a lock.
func (t *tx) writer(ctx context.Context, id string) string {
	var who string
	if t.row(ctx, `SELECT holder FROM antiphon_writers WHERE id = ?`, id).Scan(&who) != nil {
		who = "somebody"
	}
	return who
}

// holderKey returns the number of a session's advisory lock. It includes the schema
// because advisory locks are shared by all schemas of a database.
func (s *Store) holderKey(id string) int64 {
	return lockKey("antiphon", s.schema, id)
}

// lockPostgres takes the advisory lock on the connection that holds the store's
// locks. The server releases the lock when that connection ends.
func (s *Store) lockPostgres(ctx context.Context, id string) (unlock func() error, err error) {
	for began := time.Now(); ; {
		err = s.again(ctx, s.isTransient, func() error { return s.holds.lock(ctx, id) })
		if !errors.Is(err, session.ErrBusy) || time.Since(began) > s.patience || !wait(ctx, 10*time.Millisecond) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return func() error { return s.unlockPostgres(id) }, nil
}

// lock takes a session's advisory lock once, without waiting, and records this
// process as the writer, for the errors of others.
func (h *holder) lock(ctx context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[id] != nil {
		return fmt.Errorf("%w: another run of this process", session.ErrBusy)
	}
	ctx, cancel := context.WithTimeout(ctx, h.s.wait)
	defer cancel()
	if err := h.connect(ctx); err != nil {
		return err
	}
	t := &tx{q: h.conn, postgres: true}
	var ok bool
	err := t.row(ctx, `SELECT pg_try_advisory_lock(?)`, h.s.holderKey(id)).Scan(&ok)
	if err == nil && !ok {
		err = busy(t.writer(ctx, id))
		h.rest()
		return err
	}
	if err == nil {
		_, err = t.exec(ctx, `INSERT INTO antiphon_writers (id, holder) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET holder = excluded.holder`, id, self())
	}
	if err != nil {
		if len(h.held) == 0 || !h.alive(ctx) {
			h.lose() // watch takes the other locks again
		}
		return err
	}
	h.held[id] = &hold{id: id, lost: func(error) {}}
	return nil
}

// unlockPostgres releases a lock. If the server cannot be reached any more, the lock
// has already ended with its connection.
func (s *Store) unlockPostgres(id string) error {
	h := &s.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	if h.conn != nil && len(h.held) > 0 {
		_, _ = (&tx{q: h.conn, postgres: true}).exec(ctx, `SELECT pg_advisory_unlock(?)`, s.holderKey(id))
	}
	h.rest()
	return nil
}

// rest returns the connection to the pool, without locks, when nothing is held.
func (h *holder) rest() {
	if h.conn == nil || len(h.held) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.s.wait)
	defer cancel()
	if _, err := h.conn.ExecContext(ctx, `SELECT pg_advisory_unlock_all()`); err != nil {
		h.drop()
		return
	}
	_ = h.conn.Close() // returns it to the pool
	h.conn = nil
}

var _ session.Holder = (*Store)(nil)
