// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/internal/lease"
	"github.com/antiphon-go/antiphon/session"
)

// On Postgres a lock is a lease: a row of antiphon_leases that ends by itself unless
// its holder renews it. No connection belongs to it. Its epoch is a number that no
// other lease ever has, and the appends of the holder have an effect only while the
// row still has that epoch. A holder that was frozen or cut off, and whose lease
// another has taken meanwhile, can therefore write nothing. Only the database's clock
// decides whether a lease has ended.

// defaultLease is how long a lease lasts unless it is renewed.
const defaultLease = 10 * time.Second

// fenced is a condition of an append: either nobody holds the session here, which is
// epoch 0, or the lease still has its epoch. It locks the lease's row, so that no
// other process can take the lease before the append is committed.
const fenced = ` AND (CAST(? AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM antiphon_leases WHERE id = ? AND epoch = ? FOR SHARE))`

// fenceArgs are the arguments of [fenced], for the lease under which an append writes. It has
// no epoch if the session is not held by this store.
func fenceArgs(l lease.Lease) []any { return []any{l.Epoch, l.ID, l.Epoch} }

// writeHeld is write for a change of a session beside its log: if this store has lost the
// lease on the session, nothing is written, and the error wraps [session.ErrLost].
func (s *Store) writeHeld(ctx context.Context, id string, do func(ctx context.Context, t *tx) error) error {
	if err := s.opened(); err != nil {
		return err
	}
	f, err := s.holds.leases.Covering(id)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.checkFence(ctx, f); err != nil {
			return err
		}
		return do(ctx, t)
	})
	return s.checkLease(ctx, f, err)
}

// checkFence returns errFenced if the lease is another's. Otherwise nobody takes it before
// the transaction ends.
func (t *tx) checkFence(ctx context.Context, f lease.Lease) error {
	if f.Epoch == 0 {
		return nil
	}
	var there int
	err := t.row(ctx, `SELECT 1 FROM antiphon_leases WHERE id = ? AND epoch = ? FOR SHARE`, f.ID, f.Epoch).Scan(&there)
	if errors.Is(err, sql.ErrNoRows) {
		return errFenced
	}
	return err
}

// dropLeases removes leases of holders that died, if nobody has opened their sessions for
// a day. It waits for nobody.
const dropLeases = `DELETE FROM antiphon_leases WHERE id IN (SELECT id FROM antiphon_leases WHERE until < clock_timestamp() - INTERVAL '1 day' FOR UPDATE SKIP LOCKED)`

// takeLease takes a free lease, one that has ended, the one with the epoch of a dead
// holder, or its own: a request whose answer was lost may be sent again.
const takeLease = `INSERT INTO antiphon_leases AS l (id, epoch, holder, owner, since, until)
	VALUES (?, nextval('antiphon_epochs'), ?, ?, clock_timestamp(), clock_timestamp() + CAST(? AS BIGINT) * INTERVAL '1 millisecond')
	ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder, owner = excluded.owner, since = excluded.since, until = excluded.until
	WHERE l.until <= clock_timestamp() OR l.epoch = ? OR l.owner = excluded.owner
	RETURNING epoch, ` + waitForDisk

// renewLeases renews leases that still have their epochs.
const renewLeases = `UPDATE antiphon_leases l SET until = clock_timestamp() + CAST(? AS BIGINT) * INTERVAL '1 millisecond'
	FROM json_to_recordset(CAST(? AS JSON)) AS h (id TEXT, epoch BIGINT) WHERE l.id = h.id AND l.epoch = h.epoch RETURNING l.id`

// endLeases ends leases that still have their epochs.
const endLeases = `DELETE FROM antiphon_leases l USING json_to_recordset(CAST(? AS JSON)) AS h (id TEXT, epoch BIGINT) WHERE l.id = h.id AND l.epoch = h.epoch`

// lockPostgres takes the lease of a session.
func (s *Store) lockPostgres(ctx context.Context, id string) (one *hold, release func() error, err error) {
	if s.holds.has(id) {
		return nil, nil, fmt.Errorf("%w: another run of this process", session.ErrBusy)
	}
	one = &hold{Lease: lease.Lease{ID: id}}
	owner := thisProcess() + " " + rand.Text()
	for began := time.Now(); ; {
		err = s.again(ctx, s.isTransient, func() error { return s.takeLease(ctx, one, owner) })
		if !errors.Is(err, session.ErrBusy) || time.Since(began) > s.patience || !wait(ctx, 10*time.Millisecond) {
			break
		}
	}
	if err == nil {
		s.holds.dropped.Do(func() { _, _ = s.reads.exec(ctx, dropLeases) }) // optional: the next process does it
	}
	return one, func() error { s.unlease(one.Lease); return nil }, err
}

// takeLease tries once to take a lease. If its holder was a process of this machine
// that has ended, it does not wait for the lease's end.
func (s *Store) takeLease(ctx context.Context, one *hold, owner string) error {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	dead := int64(0)
	for {
		asked := time.Now()
		var setting string
		err := s.reads.row(ctx, takeLease, one.ID, filelock.Self(), owner, s.lease.Milliseconds(), dead).Scan(&one.Epoch, &setting)
		one.asked = asked
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		other, err := s.leaseOf(ctx, one.ID)
		switch {
		case errors.Is(err, sql.ErrNoRows): // it has ended meanwhile
		case err != nil:
			return err
		case other.epoch == dead || !isDead(other.owner):
			return busy(other.String())
		default:
			dead = other.epoch
		}
	}
}

// leaseRow is a row of antiphon_leases.
type leaseRow struct {
	epoch         int64
	holder, owner string
	since, until  time.Time
}

// String names the holder for people.
func (l leaseRow) String() string {
	const form = "2006-01-02 15:04:05 MST"
	return fmt.Sprintf("%s, since %s; its lease lasts until %s unless it is renewed", strings.TrimSpace(l.holder), l.since.UTC().Format(form), l.until.UTC().Format(form))
}

// leaseOf reads the lease of a session.
func (s *Store) leaseOf(ctx context.Context, id string) (l leaseRow, err error) {
	err = s.reads.row(ctx, `SELECT epoch, holder, owner, since, until FROM antiphon_leases WHERE id = ?`, id).Scan(&l.epoch, &l.holder, &l.owner, &l.since, &l.until)
	return l, err
}

// leasesOf returns leases as the argument of a statement.
func leasesOf(list []lease.Lease) (string, error) {
	type row struct {
		ID    string `json:"id"`
		Epoch int64  `json:"epoch"`
	}
	rows := make([]row, len(list))
	for i, l := range list {
		rows[i] = row(l)
	}
	text, err := json.Marshal(rows)
	return string(text), err
}

// unlease ends leases. If the server cannot be reached, they end by themselves.
func (s *Store) unlease(list ...lease.Lease) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	if text, err := leasesOf(list); err == nil {
		_, _ = s.reads.exec(ctx, endLeases, text) // they end by themselves
	}
}

// keep has the leases renewed, all in one statement.
func (s *Store) keep(leases *lease.Keeper) {
	leases.Length, leases.Wait, leases.Renew = s.lease, s.wait, s.renew
	leases.Taken = func(ctx context.Context, l lease.Lease) error { return s.taken(ctx, l.ID) }
	leases.Ended = func(l lease.Lease, err error) error {
		return lost(l.ID, "its lease has ended because it could not be renewed: "+s.fail("renewing the lease", err).Error())
	}
}

// renew sends the statement, and returns the sessions whose leases were renewed.
func (s *Store) renew(ctx context.Context, list []lease.Lease) (renewed map[string]bool, err error) {
	text, err := leasesOf(list)
	if err != nil {
		return nil, err
	}
	rows, err := s.reads.rows(ctx, renewLeases, s.lease.Milliseconds(), text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	renewed = map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		renewed[id] = true
	}
	return renewed, cmp.Or(rows.Err(), rows.Close())
}

// taken returns the error for a lease that another process has taken.
func (s *Store) taken(ctx context.Context, id string) error {
	if other, err := s.leaseOf(ctx, id); err == nil {
		return lost(id, "it is held by "+other.String())
	}
	return lost(id, "another process has taken its lease meanwhile")
}

// checkLease explains why a write under a lease failed: an error that wraps
// [session.ErrLost] if the lease is another's, otherwise err.
func (s *Store) checkLease(ctx context.Context, f lease.Lease, err error) error {
	// A process that was frozen in a transaction finds its connection cut by the server.
	if f.Epoch == 0 || err == nil || !errors.Is(err, session.ErrConflict) && !s.isTransient(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(session.WithoutCancel(ctx), s.wait)
	defer cancel()
	other, failed := s.leaseOf(ctx, f.ID)
	if failed == nil && other.epoch == f.Epoch || failed != nil && !errors.Is(failed, sql.ErrNoRows) {
		return err
	}
	err = s.taken(ctx, f.ID)
	s.holds.leases.Lose(f, err)
	return err
}
