// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/session"
)

// Fork implements [session.Forker]: it writes two rows, however long the
// history is.
func (s *Store) Fork(ctx context.Context, from string, at int64, to string) error {
	if err := checkID(to); err != nil {
		return err
	}
	return s.fail("forking", s.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.shareTree(ctx); err != nil {
			return err
		}
		i, err := scanInfo(t.row(ctx, `SELECT `+columns+` FROM antiphon_sessions WHERE id = ?`, from))
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(from)
		}
		if err != nil {
			return err
		}
		if at < 0 || at > i.Entries {
			return session.NoEntry(at, i.Entries)
		}
		b, err := t.holderOf(ctx, from, at)
		if err != nil {
			return err
		}
		fork := session.Info{ID: to, Path: i.Path, Parent: from, At: at}
		if at > 0 {
			fork.Title = i.Title
		}
		return t.insert(ctx, fork, b, s.now())
	}))
}

// holderOf returns the log that holds the session's entry number at itself.
func (t *tx) holderOf(ctx context.Context, id string, at int64) (base, error) {
	if at == 0 {
		return base{}, nil
	}
	var b base
	if err := t.row(ctx, `SELECT log FROM antiphon_sessions WHERE id = ?`, id).Scan(&b.log); err != nil {
		return base{}, err
	}
	for {
		below, err := t.baseOf(ctx, b.log)
		if err != nil || at > below.at {
			return base{b.log, at}, err
		}
		b = below
	}
}

// Delete implements [session.Catalog].
func (s *Store) Delete(ctx context.Context, id string) error {
	var gone []string
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.lockTree(ctx); err != nil {
			return err
		}
		gone = []string{id}
		for n := 0; n < len(gone); n++ {
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
		s.tell(id)
	}
	return nil
}

// remove deletes a session, and its log and those below it as far as nobody
// else needs them. It returns the sessions that are nested in it, or in one that
// was deleted before, and that belong to those logs.
func (t *tx) remove(ctx context.Context, id string) (inside []string, err error) {
	var log int64
	err = t.row(ctx, `DELETE FROM antiphon_sessions WHERE id = ? RETURNING log`, id).Scan(&log)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound(id)
	}
	for err == nil && log != 0 {
		var users int
		err := t.row(ctx, `SELECT (SELECT count(*) FROM antiphon_logs WHERE base = ?) + (SELECT count(*) FROM antiphon_sessions WHERE log = ?)`, log, log).Scan(&users)
		if err != nil || users > 0 {
			return inside, err
		}
		owned, err := t.ownedBy(ctx, log)
		if err != nil {
			return nil, err
		}
		inside = append(inside, owned...)
		for _, table := range []string{"antiphon_entries", "antiphon_refs"} {
			if _, err := t.exec(ctx, `DELETE FROM `+table+` WHERE log = ?`, log); err != nil {
				return nil, err
			}
		}
		if err := t.row(ctx, `DELETE FROM antiphon_logs WHERE log = ? RETURNING base`, log).Scan(&log); err != nil {
			return nil, err
		}
	}
	return inside, err
}

// ownedBy returns the nested sessions that live as long as a log.
func (t *tx) ownedBy(ctx context.Context, log int64) (ids []string, err error) {
	rows, err := t.rows(ctx, `SELECT id FROM antiphon_sessions WHERE owner = ? AND owner <> 0`, log)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, errors.Join(rows.Err(), rows.Close())
}

// errDry undoes what would have been swept.
var errDry = errors.New("only counted")

// Sweep implements [session.Catalog]: it removes blobs that no log needs, and
// of the logs of deleted sessions what is behind the last fork.
func (s *Store) Sweep(ctx context.Context, dry bool) (session.Swept, error) {
	var swept session.Swept
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		swept = session.Swept{}
		if err := t.lockTree(ctx); err != nil {
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
		return nil
	})
	if err == nil && !s.postgres {
		err = s.shrink(context.WithoutCancel(ctx))
	}
	if err != nil && !errors.Is(err, errDry) {
		return session.Swept{}, s.fail("sweeping", err)
	}
	return swept, nil
}

// sweepLogs cuts the logs without a session off behind the last entry that a
// fork begins with.
func (t *tx) sweepLogs(ctx context.Context, swept *session.Swept) error {
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
		if err := t.cutLog(ctx, b, swept); err != nil {
			return err
		}
	}
	return nil
}

// cutLog removes what a log has behind an entry.
func (t *tx) cutLog(ctx context.Context, b base, swept *session.Swept) error {
	rows, err := t.rows(ctx, `SELECT last - n, n, data FROM antiphon_entries WHERE log = ? AND last > ? ORDER BY last`, b.log, b.at)
	if err != nil {
		return err
	}
	defer rows.Close()
	var left string // of the row in which the cut is
	var from int64
	for rows.Next() {
		var before, n int64
		var data sql.RawBytes
		if err := rows.Scan(&before, &n, &data); err != nil {
			return err
		}
		if before < b.at {
			lines := strings.SplitAfterN(string(data), "\n", int(b.at-before)+1)
			left, from = strings.Join(lines[:b.at-before], ""), before
			n -= b.at - before
		}
		swept.Entries += int(n)
		swept.Bytes += int64(len(data))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	swept.Bytes -= int64(len(left))
	if _, err := t.exec(ctx, `DELETE FROM antiphon_entries WHERE log = ? AND last > ?`, b.log, b.at); err != nil {
		return err
	}
	if left != "" {
		if _, err := t.exec(ctx, `INSERT INTO antiphon_entries (log, last, n, data) VALUES (?, ?, ?, ?)`, b.log, b.at, b.at-from, []byte(left)); err != nil {
			return err
		}
	}
	_, err = t.exec(ctx, `DELETE FROM antiphon_refs WHERE log = ? AND first > ?`, b.log, b.at)
	return err
}

// sweepBlobs removes the blobs that no log needs.
func (t *tx) sweepBlobs(ctx context.Context, swept *session.Swept) error {
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
	sweepLock   = 0x616e7469_00000001 // who keeps blobs shares it, who sweeps has it alone
	migrateLock = 0x616e7469_00000002
)

// lockTree waits for those who keep blobs or fork, and holds up others, until
// the transaction ends. On SQLite there is one writer anyway.
func (t *tx) lockTree(ctx context.Context) error {
	if !t.postgres {
		return nil
	}
	_, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, sweepLock)
	return err
}

// shareTree holds up those who delete and sweep.
func (t *tx) shareTree(ctx context.Context) error {
	if !t.postgres {
		return nil
	}
	_, err := t.exec(ctx, `SELECT pg_advisory_xact_lock_shared(?)`, sweepLock)
	return err
}
