// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
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

// holder keeps the sessions that this store has locked, and looks from time to
// time whether it still has them. On Postgres one connection holds the advisory
// locks of all of them.
type holder struct {
	s *Store

	mu    sync.Mutex
	held  map[string]*hold
	conn  *sql.Conn     // Postgres; nil if nothing is held
	left  []string      // what is to be locked again, since the connection
	broke time.Time     // was cut, then
	stop  chan struct{} // ends the watching
	done  chan struct{} // closed when it has ended
}

// hold is one session that is locked.
type hold struct {
	id    string
	lost  context.CancelCauseFunc // of those who work under the lock
	wrote map[string]bool         // the sessions that were written to under it
}

// holding returns the lock under which a session is written to here: its own, or
// that of one that it is nested in.
func (h *holder) holding(id string) *hold {
	for {
		if one := h.held[id]; one != nil {
			return one
		}
		outer, nested := session.NestedIn(id)
		if !nested {
			return nil
		}
		id = outer
	}
}

// wrote reports whether a session was written to under the lock that is held.
func (h *holder) wrote(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.holding(id)
	return one != nil && one.wrote[id]
}

// write notes that it was.
func (h *holder) write(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.holding(id); one != nil {
		one.wrote[id] = true
	}
}

// watchLocks is how often a store looks whether it still has its locks, and on
// SQLite its file.
const watchLocks = time.Second

// Hold implements [session.Holder]: the context that it returns ends when the
// lock is lost, or the database's file is no longer there, and its cause says
// which.
func (s *Store) Hold(ctx context.Context, id string) (held context.Context, unlock func() error, err error) {
	if err = checkID(id); err != nil {
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
		_ = s.tidy(ctx, id)  // nothing is lost without it
		_ = s.indexSome(ctx) // nor without this: a search does the rest
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

// Lock implements [session.Locker]. On SQLite it is a lock of the operating
// system on a file in a folder beside the database, on Postgres an advisory lock
// of a connection: both end with their process, and no file or row that is left
// behind locks anything.
func (s *Store) Lock(ctx context.Context, id string) (unlock func() error, err error) {
	_, unlock, err = s.Hold(context.WithoutCancel(ctx), id)
	return unlock, err
}

// add notes a session that is locked now.
func (h *holder) add(one *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[one.id] = one
	if h.stop == nil {
		h.stop, h.done = make(chan struct{}), make(chan struct{})
		go h.watch(h.stop, h.done)
	}
}

// remove forgets a session, and ends the watching with the last one.
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

// close forgets all that is held. The locks end with the database's connections.
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

// watch looks whether what is held still is, until stop is closed.
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

// lookFile ends the work of all who write to a file that is gone.
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

// lose closes the connection, and notes that what it held is to be locked again.
func (h *holder) lose() {
	if h.drop(); len(h.left) == 0 {
		h.broke = time.Now()
	}
	h.left = slices.Collect(maps.Keys(h.held))
}

// lookServer takes the locks again if their connection was cut. It tries once:
// what it does not get, it looks for the next time, until the store's patience
// ends.
func (h *holder) lookServer(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.s.wait) // those who want h.mu wait no longer for a server that is silent
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
		if one == nil { // it was given back
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

func lost(id, why string) error {
	return fmt.Errorf("%w: %q: %s\n  hint: run it again: the session goes on where it was", session.ErrLost, id, why)
}

func (h *holder) alive(ctx context.Context) bool {
	if h.conn == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, h.s.wait)
	defer cancel()
	_, err := h.conn.ExecContext(ctx, `SELECT 1`)
	return err == nil
}

// connect opens the connection that holds the locks.
func (h *holder) connect(ctx context.Context) (err error) {
	if h.conn == nil {
		h.conn, err = h.s.db.Conn(ctx)
	}
	return err
}

// drop closes the connection, with which its locks end.
func (h *holder) drop() {
	if h.conn != nil {
		_ = h.conn.Raw(func(any) error { return errBadConn }) // so that it is closed, not used again
		_ = h.conn.Close()
		h.conn = nil
	}
}

// retake takes a lock that was lost with its connection. It is lost for good if
// somebody else has it, or wrote to the session meanwhile. Another error may
// pass: the server may not have noticed yet that the connection is gone.
func (h *holder) retake(ctx context.Context, id string) error {
	t := &tx{q: h.conn, postgres: true}
	var ok bool
	if err := t.row(ctx, `SELECT pg_try_advisory_lock(?)`, h.s.holderKey(id)).Scan(&ok); err != nil {
		return err
	}
	if !ok {
		who := t.writer(ctx, id)
		if who != self() {
			return lost(id, who+" has taken it since the connection broke")
		}
		return busy(who)
	}
	if h.s.heads.writing(id) {
		return nil // that append is refused if somebody else wrote
	}
	end, known := h.s.heads.get(id)
	row, err := t.find(ctx, id)
	if known && err == nil && (row.Entries != end.entries || session.Sum(row.head) != end.sum) {
		_, _ = t.exec(ctx, `SELECT pg_advisory_unlock(?)`, h.s.holderKey(id))
		return lost(id, "somebody wrote to it since the connection broke")
	}
	return nil
}

// writer says who has a lock.
func (t *tx) writer(ctx context.Context, id string) string {
	var who string
	if t.row(ctx, `SELECT holder FROM antiphon_writers WHERE id = ?`, id).Scan(&who) != nil {
		who = "somebody"
	}
	return who
}

// holderKey is the number of the advisory lock of a session.
func (s *Store) holderKey(id string) int64 {
	return lockKey("antiphon", s.schema, id)
}

// lockPostgres takes the advisory lock on the connection of the store's locks:
// the server lets go of it when that ends.
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
			h.lose() // the watching takes those of others again
		}
		return err
	}
	h.held[id] = &hold{id: id, lost: func(error) {}}
	return nil
}

// unlockPostgres lets go of a lock. If that cannot be said to the server any
// more, the lock has ended with the connection.
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

// rest gives the connection back, without locks, when nothing is held.
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
	_ = h.conn.Close() // it is given back
	h.conn = nil
}

var _ session.Holder = (*Store)(nil)
