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

// Databases keep bytes of what was deleted: in free pages, in the free parts of
// pages, in logs. secure_delete has SQLite overwrite most of it; what was moved
// within the file before it was deleted it does not find. So a sweep has the
// database written anew, if something was deleted since it was last.

// markDeleted notes that the database holds bytes of what was deleted.
func (t *tx) markDeleted(ctx context.Context) error {
	_, err := t.exec(ctx, `UPDATE antiphon_state SET value = value + 1 WHERE name = 'deleted'`)
	return err
}

// deleted returns how often something was deleted since the database was written
// anew.
func (t *tx) deleted(ctx context.Context) (n int64, err error) {
	err = t.row(ctx, `SELECT value FROM antiphon_state WHERE name = 'deleted'`).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return n, err
}

// erase writes the database anew if something was deleted, and says what is left
// all the same.
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
	if err = s.erased(ctx, deleted); err == nil && deleted > 0 {
		_, err = s.checkpoint(ctx)
	}
	return "", err
}

// erased notes that nothing is left, unless something was deleted meanwhile.
func (s *Store) erased(ctx context.Context, deleted int64) error {
	if deleted == 0 {
		return nil
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE antiphon_state SET value = 0 WHERE name = 'deleted' AND value = ?`, deleted)
		return err
	})
}

// rewrite has the database write its tables anew.
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
	tables, err := s.reads.texts(ctx, `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND c.relname LIKE 'antiphon\_%' AND c.relkind = 'r' ORDER BY 1`)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `VACUUM (FULL) `+strings.Join(tables, ", "))
	return err
}

// checkpoint moves what is in SQLite's log to the file, and empties the log. It
// cannot while somebody reads what was before.
func (s *Store) checkpoint(ctx context.Context) (busy bool, err error) {
	for began := time.Now(); ; {
		err = s.commit.alone(ctx, func(ctx context.Context, t *tx) error {
			var frames, moved int
			return t.q.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
		})
		if err != nil && !isBusy(err) || err == nil && !busy {
			return false, err
		}
		if time.Since(began) > min(s.wait, time.Second) || !wait(ctx, 20*time.Millisecond) {
			return true, nil
		}
	}
}

// intact is the error for a file of SQLite that is damaged where SQLite itself
// can tell.
func (s *Store) intact(ctx context.Context) error {
	if s.postgres {
		return nil
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
	defer func() { _, _ = t.exec(context.WithoutCancel(ctx), `ROLLBACK`) }() // it was only read
	// The check of FTS5 takes what the connection remembers of its index for what is
	// there, and reports damage if another one has changed it. A query looks anew.
	if _, err := t.numbers(ctx, `SELECT rowid FROM antiphon_words WHERE antiphon_words MATCH '"a"' LIMIT 1`); err != nil && codeOf(err) != sqliteCorrupt {
		return err
	}
	found, err := t.texts(ctx, `PRAGMA integrity_check(1)`)
	if err == nil && (len(found) != 1 || found[0] != "ok") {
		err = &session.Damage{Place: s.place, Problem: listed(found)}
	}
	return err
}

func listed(found []string) string {
	if len(found) == 0 {
		return "SQLite's integrity_check says nothing"
	}
	return found[0]
}
