// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// Databases keep bytes of deleted data in free pages, in the free parts of pages and
// in logs. SQLite's secure_delete overwrites most of it, but not copies that were
// left behind when data moved within the file before it was deleted. Sweep therefore
// rewrites the database if anything was deleted since the last rewrite.

// markDeleted records that the database may hold bytes of deleted data.
func (t *tx) markDeleted(ctx context.Context) error {
	_, err := t.exec(ctx, `UPDATE antiphon_state SET value = value + 1 WHERE name = 'deleted'`)
	return err
}

// deleted returns the number of deletions since the database was last rewritten.
func (t *tx) deleted(ctx context.Context) (n int64, err error) {
	err = t.row(ctx, `SELECT value FROM antiphon_state WHERE name = 'deleted'`).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return n, err
}

// erase rewrites the database if anything was deleted. Left says what may still
// remain afterwards; it is empty if nothing does.
func (s *Store) erase(ctx context.Context, deleted int64) (left string, err error) {
	if deleted > 0 {
		if err := s.rewrite(ctx); err != nil {
			return "", err
		}
	}
	if s.postgres {
		if deleted > 0 {
			left = "the server's write-ahead log and its archives, standbys and backups have it until they are recycled"
		}
		return left, s.erased(ctx, deleted)
	}
	busy, err := s.checkpoint(ctx)
	if err != nil {
		return "", err
	}
	if busy {
		return "the file and its -wal file: another process is reading; run sessions gc again when it has ended", nil
	}
	// The record itself is in the log again, so empty the log once more.
	if err = s.erased(ctx, deleted); err == nil && deleted > 0 {
		_, err = s.checkpoint(ctx)
	}
	return "", err
}

// erased records that no deleted data is left, unless more was deleted meanwhile.
func (s *Store) erased(ctx context.Context, deleted int64) error {
	if deleted == 0 {
		return nil
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE antiphon_state SET value = 0 WHERE name = 'deleted' AND value = ?`, deleted)
		return err
	})
}

// rewrite makes the database rewrite its tables.
func (s *Store) rewrite(ctx context.Context) error {
	if !s.postgres {
		if err := s.write(ctx, func(ctx context.Context, t *tx) error { return t.optimizeWords(ctx) }); err != nil {
			return err
		}
		return s.commit.alone(ctx, func(ctx context.Context, t *tx) error {
			_, err := t.q.ExecContext(ctx, `VACUUM`)
			return err
		})
	}
	// Plain VACUUM would leave the bytes of deleted rows in the pages, and without
	// names VACUUM FULL would rewrite the tables of other programs, too.
	tables, err := s.reads.texts(ctx, `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND c.relname LIKE 'antiphon\_%' AND c.relkind = 'r' ORDER BY 1`)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `VACUUM (FULL) `+strings.Join(tables, ", "))
	return err
}

// checkpoint moves the contents of SQLite's write-ahead log into the file and
// truncates the log. It reports busy if a reader still uses an older state of the
// database.
func (s *Store) checkpoint(ctx context.Context) (busy bool, err error) {
	for began := time.Now(); ; {
		err = s.commit.alone(ctx, func(ctx context.Context, t *tx) error {
			var frames, moved int
			return t.q.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
		})
		if err != nil && !isBusy(err) || err == nil && !busy {
			return false, err
		}
		// Readers normally end soon, but a sweep does not wait long for one that
		// does not.
		if time.Since(began) > min(s.wait, time.Second) || !wait(ctx, 20*time.Millisecond) {
			return true, nil
		}
	}
}

// intact returns an error if SQLite's own check finds its file damaged. On Postgres
// it does nothing.
func (s *Store) intact(ctx context.Context) error {
	if err := s.opened(); err != nil || s.postgres {
		return err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	t := &tx{q: conn}
	if _, err := t.exec(ctx, `BEGIN`); err != nil {
		return err
	}
	defer func() { _, _ = t.exec(context.WithoutCancel(ctx), `ROLLBACK`) }() // nothing was written
	// The integrity check of FTS5 compares the index with what this connection has
	// cached of it, and reports damage if another connection has changed the index.
	// A query makes it refresh the cache.
	if _, err := t.numbers(ctx, `SELECT rowid FROM antiphon_words WHERE antiphon_words MATCH '"a"' LIMIT 1`); err != nil && codeOf(err) != sqliteCorrupt {
		return err
	}
	found, err := t.texts(ctx, `PRAGMA integrity_check(1)`)
	if err == nil && (len(found) != 1 || found[0] != "ok") {
		err = &session.Damage{Place: s.place, Problem: listed(found)}
	}
	return err
}

// listed returns the findings of a check as one text.
func listed(found []string) string {
	if len(found) == 0 {
		return "SQLite's integrity_check says nothing"
	}
	return found[0]
}
