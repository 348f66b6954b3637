// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/session"
)

// Fork implements [session.Forker]. It writes two rows, whatever the length of the
// history, and one for further entries.
func (s *Store) Fork(ctx context.Context, from string, at int64, to string, further ...session.Entry) error {
	if err := (session.Info{ID: to}).CheckID(); err != nil {
		return err
	}
	behind, err := s.encode(to, at, further)
	if err != nil {
		return err
	}
	return s.fail("forking", s.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.shareTree(ctx); err != nil {
			return err
		}
		i, err := t.find(ctx, from)
		if err != nil {
			return err
		}
		if at < 0 || at > i.Entries {
			return session.NoEntry(at, i.Entries)
		}
		b, err := t.holderOf(ctx, i.log, i.Entries, at)
		if err != nil {
			return err
		}
		sum := session.Sum(i.head)
		if at < i.Entries {
			if sum, err = t.sumAt(ctx, b); err != nil {
				return err
			}
		}
		fork := session.Info{ID: to, Path: i.Path, Parent: from, At: at, Owner: i.Owner}
		// A title is sealed for the id of its session, so seal it again for the
		// fork.
		if at > 0 {
			fork.Title = s.seal.title(to, s.seal.openTitle(from, i.Title))
		}
		if err := t.insert(ctx, fork, i.titled && at > 0, b, sum, s.now()); err != nil || len(further) == 0 {
			return err
		}
		return behind.write(ctx, t)
	}))
}

// holderOf returns the position of entry number at in the log that holds it: the
// given log, which ends with entry end, or one that it begins with.
func (t *tx) holderOf(ctx context.Context, log, end, at int64) (base, error) {
	for part, err := range t.spansOf(ctx, log, end) {
		if err != nil || at > part.from {
			return base{part.log, at}, err
		}
	}
	return base{}, nil
}

// sumAt returns the sum of a log after an entry that the log itself holds.
func (t *tx) sumAt(ctx context.Context, b base) (session.Sum, error) {
	if b.log == 0 {
		return session.Sum{}, nil
	}
	p := packed{log: b.log}
	err := t.row(ctx, `SELECT last, n, sums FROM antiphon_entries WHERE log = ? AND last >= ? ORDER BY last LIMIT 1`, b.log, b.at).Scan(&p.last, &p.n, &p.sums)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return session.Sum{}, err
	}
	if err != nil || p.n <= 0 || p.before() >= b.at || int64(len(p.sums)) != (p.n+1)*int64(len(session.Sum{})) {
		return session.Sum{}, &session.Damage{Entry: b.at, Place: fmt.Sprintf("table antiphon_entries, log %d", b.log), Problem: "the entry or its checksum is missing"}
	}
	return p.sum(b.at - p.before()), nil
}

// Delete implements [session.Catalog].
func (s *Store) Delete(ctx context.Context, id string) error { return s.delete(ctx, id, false) }

// DeleteIfTaken implements [session.TakenDeleter].
func (s *Store) DeleteIfTaken(ctx context.Context, id string) error {
	if err := s.seal.usable(); err != nil {
		return err
	}
	return s.delete(ctx, id, true)
}

// delete deletes a session and those nested in it; with ifTaken, only if no words wait for them.
func (s *Store) delete(ctx context.Context, id string, ifTaken bool) error {
	var gone []string
	err := s.writeHeld(ctx, id, func(ctx context.Context, t *tx) error {
		if err := t.lockTree(ctx); err != nil {
			return err
		}
		gone = []string{id}
		if err := t.markDeleted(ctx); err != nil {
			return err
		}
		// The list grows in the loop: deleting a session adds its nested sessions.
		for n := 0; n < len(gone); n++ {
			if ifTaken {
				if err := s.allTaken(ctx, t, gone[n]); err != nil {
					return err
				}
			}
			inside, err := t.remove(ctx, gone[n])
			if err != nil {
				return err
			}
			gone = append(gone, inside...)
		}
		return nil
	})
	if err != nil {
		return s.fail("deleting", err)
	}
	for _, id := range gone {
		s.heads.forget(id)
		s.tell(id)
	}
	return nil
}

// allTaken returns an error if words wait for a session. No delivery arrives until the transaction ends.
func (s *Store) allTaken(ctx context.Context, t *tx, id string) error {
	row, err := t.take(ctx, id)
	if err != nil {
		return err
	}
	for d, err := range s.eachLetter(ctx, t, id, `? ORDER BY n`, row.log) {
		var damage *session.Damage
		if errors.As(err, &damage) { // it may be what somebody said
			return fmt.Errorf("%w; %w", session.ErrDeliveryWaits, err)
		}
		if err = cmp.Or(err, session.AllTaken(id, d)); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a session, its log, and the logs that this one begins with, unless
// other sessions or logs still need them. It returns the nested sessions that belong
// to the deleted logs, which the caller must delete next.
func (t *tx) remove(ctx context.Context, id string) (inside []string, err error) {
	var log int64
	err = t.row(ctx, `DELETE FROM antiphon_sessions WHERE id = ? RETURNING log`, id).Scan(&log)
	if errors.Is(err, sql.ErrNoRows) {
		if err = t.missing(ctx, id); errors.Is(err, errAppeared) {
			err = notFound(id) // it did not exist when the DELETE ran
		}
	}
	if err == nil {
		err = t.leave(ctx, log)
	}
	if err == nil {
		_, err = t.exec(ctx, `DELETE FROM antiphon_inbox WHERE log = ?`, log)
	}
	if err == nil {
		_, err = t.exec(ctx, `DELETE FROM antiphon_work WHERE id = ?`, id)
	}
	for err == nil && log != 0 {
		var users int
		err = t.row(ctx, `SELECT (SELECT count(*) FROM antiphon_logs WHERE base = ? AND log <> base) + (SELECT count(*) FROM antiphon_sessions WHERE log = ?)`, log, log).Scan(&users)
		if err != nil || users > 0 {
			return inside, err
		}
		owned, err := t.ownedBy(ctx, log)
		if err != nil {
			return nil, err
		}
		inside = append(inside, owned...)
		if err := t.forgetWords(ctx, log, -1); err != nil {
			return nil, err
		}
		for _, table := range []string{"antiphon_entries", "antiphon_refs"} {
			if _, err := t.exec(ctx, `DELETE FROM `+table+` WHERE log = ?`, log); err != nil {
				return nil, err
			}
		}
		err = t.row(ctx, `DELETE FROM antiphon_logs WHERE log = ? RETURNING base`, log).Scan(&log)
		if errors.Is(err, sql.ErrNoRows) {
			return inside, nil // the row is missing, so its base is not known
		}
		if err != nil {
			return nil, err
		}
	}
	return inside, err
}

// ownedBy returns the nested sessions that belong to a log.
func (t *tx) ownedBy(ctx context.Context, log int64) (ids []string, err error) {
	return t.texts(ctx, `SELECT id FROM antiphon_sessions WHERE owner = ? AND owner <> 0`, log)
}

// errDry makes the transaction of a dry run roll back.
var errDry = errors.New("only counted")

// Sweep implements [session.Catalog]. It removes blobs that no log needs and, from
// the logs of deleted sessions, the entries after the last fork. Then it rewrites
// the database, so that no bytes of deleted data remain in it.
//
// Sweep removes nothing if it finds damage, because it then cannot tell what is
// still needed. It runs SQLite's check of the file, and compares a log with its
// forks before it shortens the log. The blobs that a log needs are listed in
// antiphon_refs, which has no checksums. Sweep removes nothing if a blob is not
// listed there although nothing was deleted. [Store.Verify] finds more damage, so
// run it first if you do not trust the disk.
func (s *Store) Sweep(ctx context.Context, dry bool) (session.GCStats, error) {
	var swept session.GCStats
	if err := s.intact(ctx); err != nil {
		return swept, s.fail("sweeping", err)
	}
	var deleted int64
	err := s.write(ctx, func(ctx context.Context, t *tx) (err error) {
		// The function runs again if a write is retried.
		swept = session.GCStats{}
		if err := t.lockTree(ctx); err != nil {
			return err
		}
		if err := t.allKept(ctx); err != nil {
			return err
		}
		if err := t.sweepLogs(ctx, &swept); err != nil {
			return err
		}
		if err := t.sweepBlobs(ctx, &swept); err != nil {
			return err
		}
		if dry {
			return errDry
		}
		if swept.Blobs > 0 || swept.Entries > 0 {
			if err := t.markDeleted(ctx); err != nil {
				return err
			}
		}
		deleted, err = t.deleted(ctx)
		return err
	})
	if err == nil {
		// The deletion is committed, so what completes it is not canceled any more.
		swept.Left, err = s.erase(context.WithoutCancel(ctx), deleted)
	}
	if err != nil && !errors.Is(err, errDry) {
		return session.GCStats{}, s.fail("sweeping", err)
	}
	return swept, nil
}

// sweepLogs truncates logs without a session after the last entry that a fork needs.
func (t *tx) sweepLogs(ctx context.Context, swept *session.GCStats) error {
	rows, err := t.rows(ctx, `SELECT base, max(base_at) FROM antiphon_logs WHERE base <> 0
		AND NOT EXISTS (SELECT 1 FROM antiphon_sessions s WHERE s.log = base) GROUP BY base`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var orphans []base
	for rows.Next() {
		var b base
		if err := rows.Scan(&b.log, &b.at); err != nil {
			return err
		}
		orphans = append(orphans, b)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, b := range orphans {
		if err := t.truncateLog(ctx, b, swept); err != nil {
			return err
		}
	}
	return nil
}

// truncateLog removes the entries of a log after a position. It returns an error,
// and removes nothing, if it would have to split a damaged row, in which the ends of
// entries are not known, or if the log does not match its forks, which may need more
// of it.
func (t *tx) truncateLog(ctx context.Context, b base, swept *session.GCStats) error {
	rows, err := t.rows(ctx, `SELECT last, n, sums, data FROM antiphon_entries WHERE log = ? AND last > ? ORDER BY last`, b.log, b.at)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := false
	var left *packed // the part to keep of a row that is split
	for rows.Next() {
		p := packed{log: b.log}
		if err := rows.Scan(&p.last, &p.n, (*sql.RawBytes)(&p.sums), (*sql.RawBytes)(&p.data)); err != nil {
			return err
		}
		found = true
		swept.Entries += int(p.n)
		swept.Bytes += int64(len(p.data))
		if p.before() < b.at {
			if !p.whole() {
				return p.damaged(p.before()+1, 0, len(p.data), "an entry of this row is damaged")
			}
			left = p.until(b.at)
			swept.Entries -= int(left.n)
			swept.Bytes -= int64(len(left.data))
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if !found {
		return nil
	}
	if err := t.forksFit(ctx, b.log); err != nil {
		return err
	}
	if _, err := t.exec(ctx, `DELETE FROM antiphon_entries WHERE log = ? AND last > ?`, b.log, b.at); err != nil {
		return err
	}
	if left != nil {
		if err := t.put(ctx, left); err != nil {
			return err
		}
	}
	if _, err := t.exec(ctx, `DELETE FROM antiphon_refs WHERE log = ? AND first > ?`, b.log, b.at); err != nil {
		return err
	}
	return t.forgetWords(ctx, b.log, b.at)
}

// forksFit reports damage if a fork of a log does not continue from the entry that
// antiphon_logs names.
func (t *tx) forksFit(ctx context.Context, of int64) error {
	forks, err := t.numbers(ctx, `SELECT log FROM antiphon_logs WHERE base = ?`, of)
	if err != nil {
		return err
	}
	for _, log := range forks {
		b, err := t.baseOf(ctx, log)
		if err != nil {
			return err
		}
		sum, err := t.sumAt(ctx, b)
		if err != nil {
			return err
		}
		// A log without entries of its own ends where it begins.
		first := packed{log: log, last: b.at, sums: sum[:]}
		err = t.row(ctx, `SELECT last, n, sums FROM antiphon_entries WHERE log = ? ORDER BY last LIMIT 1`, log).Scan(&first.last, &first.n, &first.sums)
		if errors.Is(err, sql.ErrNoRows) {
			err = t.row(ctx, `SELECT entries, head FROM antiphon_sessions WHERE log = ?`, log).Scan(&first.last, &first.sums)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if first.before() != b.at || !bytes.HasPrefix(first.sums, sum[:]) {
			return badBase(log)
		}
	}
	return nil
}

// allKept reports damage if no log needs a blob although nothing was deleted since
// the last sweep: rows of antiphon_refs were lost.
func (t *tx) allKept(ctx context.Context) error {
	blobs, err := t.numbers(ctx, `SELECT blob FROM antiphon_blobs WHERE (SELECT max(value) FROM antiphon_state WHERE name = 'deleted') = 0
		AND NOT EXISTS (SELECT 1 FROM antiphon_refs r WHERE r.blob = antiphon_blobs.blob) ORDER BY blob`)
	if err == nil && len(blobs) > 0 {
		err = &session.Damage{Place: "table antiphon_refs", Problem: fmt.Sprintf("no row says what needs the payloads %d, though nothing was deleted", blobs)}
	}
	return err
}

// sweepBlobs removes the blobs that no log needs.
func (t *tx) sweepBlobs(ctx context.Context, swept *session.GCStats) error {
	const unused = `FROM antiphon_blobs WHERE NOT EXISTS (SELECT 1 FROM antiphon_refs r WHERE r.blob = antiphon_blobs.blob)`
	var size int64
	if err := t.row(ctx, `SELECT count(*), coalesce(sum(size), 0) `+unused).Scan(&swept.Blobs, &size); err != nil || swept.Blobs == 0 {
		return err
	}
	swept.Bytes += size
	if _, err := t.exec(ctx, `DELETE FROM antiphon_chunks WHERE blob IN (SELECT blob `+unused+`)`); err != nil {
		return err
	}
	_, err := t.exec(ctx, `DELETE `+unused)
	return err
}

// The keys of advisory locks on Postgres.
const (
	sweepLock   = 0x616e7469_00000001 // shared by writers of blobs, exclusive for a sweep
	migrateLock = 0x616e7469_00000002
	tenantLock  = 0x616e7469 // with a second key, from the name of a tenant whose work is begun
)

// lockTree locks out writers of blobs and forks until the transaction ends, after
// waiting for running ones. On SQLite it does nothing because there is only one
// writer.
func (t *tx) lockTree(ctx context.Context) error {
	if !t.postgres {
		return nil
	}
	_, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, sweepLock)
	return err
}

// shareTree locks out deletions and sweeps until the transaction ends.
func (t *tx) shareTree(ctx context.Context) error {
	if !t.postgres {
		return nil
	}
	_, err := t.exec(ctx, `SELECT pg_advisory_xact_lock_shared(?)`, sweepLock)
	return err
}
