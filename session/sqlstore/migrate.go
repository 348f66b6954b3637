// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/session"
)

//go:embed migrations
var migrations embed.FS

// migration brings a database from the previous version to this one: first by the
// statements of a file, and then by the function in steps, if there is one.
//
// To change the format, add migrations/sqlite/000N.sql and the same for postgres,
// and a function in steps for work that SQL cannot do. Never change an existing
// migration. Write databases in the new format, with which later programs are
// tested: .ci/postgres go test ./session/sqlstore -run TestFormats -update
//
// A new table or column with conversation content needs a checksum (see sum.go), a
// check in Verify, and deletion (see [Store.Sweep]).
type migration struct {
	version int
	sql     string
	do      func(ctx context.Context, t *tx) error
}

// steps holds the functions of migrations, by version.
var steps = map[int]func(ctx context.Context, t *tx) error{
	2: addSums,
	3: addNameKeys,
}

// migrationsOf returns the migrations of a SQL dialect in order. Each file is named
// after the version it produces.
func migrationsOf(files fs.FS, dialect string) ([]migration, error) {
	dir := path.Join("migrations", dialect)
	list, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, f := range list {
		version, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".sql"))
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", f.Name(), err)
		}
		text, err := fs.ReadFile(files, path.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, migration{version: version, sql: string(text)})
	}
	slices.SortFunc(all, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	for i, m := range all {
		if m.version != i+1 {
			return nil, fmt.Errorf("migration %d of %s is missing", i+1, dialect)
		}
	}
	return all, nil
}

// ours returns this program's migrations.
func ours(dialect string) ([]migration, error) {
	all, err := migrationsOf(migrations, dialect)
	for i := range all {
		all[i].do = steps[all[i].version]
	}
	return all, err
}

// upToDate brings the database to the newest version. A new database is encrypted if
// the store has a key.
func (s *Store) upToDate(ctx context.Context, t *tx, all []migration) error {
	before, err := versionOf(ctx, t)
	if err == nil {
		err = migrate(ctx, t, all)
	}
	if err != nil || before != 0 || s.key == nil {
		return err
	}
	return s.beginSeal(ctx, t)
}

// migrate brings the database to the newest version in one transaction, so that of
// two programs that start at once the second one finds nothing to do. It returns
// [session.ErrNewer] for a database of a newer program, and leaves it unchanged.
func migrate(ctx context.Context, t *tx, all []migration) error {
	version, err := versionOf(ctx, t)
	newest := all[len(all)-1].version
	if err != nil || version == newest {
		return err
	}
	if version < 0 {
		return &session.Damage{Place: "table antiphon_format", Problem: fmt.Sprintf("there is no format %d", version)}
	}
	if version > newest {
		return fmt.Errorf("%w: the database has format %d, this program reads up to %d", session.ErrNewer, version, newest)
	}
	for _, m := range all[version:] {
		for _, statement := range strings.Split(m.sql, ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := t.q.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("to format %d: %w", m.version, err)
			}
		}
		if m.do != nil {
			if err := m.do(ctx, t); err != nil {
				return fmt.Errorf("to format %d: %w", m.version, err)
			}
		}
	}
	if _, err := t.exec(ctx, `DELETE FROM antiphon_format`); err != nil {
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO antiphon_format (version) VALUES (?)`, newest)
	return err
}

// versionOf returns the version of the database, 0 if it is empty.
func versionOf(ctx context.Context, t *tx) (int, error) {
	if _, err := t.q.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS antiphon_format (version INTEGER NOT NULL)`); err != nil {
		return 0, err
	}
	var version sql.NullInt64
	err := t.row(ctx, `SELECT max(version) FROM antiphon_format`).Scan(&version)
	return int(version.Int64), err
}
