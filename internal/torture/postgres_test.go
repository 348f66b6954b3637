// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
)

// isPostgres tells a connection string, of either kind, from a file.
func isPostgres(place string) bool {
	return strings.HasPrefix(place, "postgres") || strings.Contains(place, "dbname=")
}

// newSchema makes a schema of its own in the database and returns how to
// connect to it, and what removes it.
func newSchema(t *testing.T, server string) (place string, done func()) {
	t.Helper()
	name := fmt.Sprintf("torture_%d_%d", os.Getpid(), time.Now().UnixNano())
	db := administer(server)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE SCHEMA `+name); err != nil {
		t.Error(err)
	}
	return with(server, "search_path", name), func() {
		db := administer(server)
		defer db.Close()
		if _, err := db.Exec(`DROP SCHEMA ` + name + ` CASCADE`); err != nil {
			t.Error(err)
		}
	}
}

// with adds a parameter to a connection string of either kind.
func with(server, name, value string) string {
	switch {
	case !strings.Contains(server, "://"):
		return server + " " + name + "=" + value
	case strings.Contains(server, "?"):
		return server + "&" + name + "=" + value
	}
	return server + "?" + name + "=" + value
}

// workerName is what the connections of a world's workers are called.
func (w *world) workerName() string { return fmt.Sprintf("torture_%d_%d", os.Getpid(), w.seed) }

func administer(server string) *sql.DB {
	c, err := stdlib.GetDefaultDriver().(*stdlib.Driver).OpenConnector(server)
	if err != nil {
		panic(err)
	}
	return sql.OpenDB(c)
}

// cut breaks connections of workers, as a network does, until ctx ends.
func (w *world) cut(ctx context.Context, r *rand.Rand) (int, error) {
	db := administer(w.place)
	defer db.Close()
	total := 0
	for {
		select {
		case <-ctx.Done():
			return total, nil
		case <-time.After(time.Duration(5+r.IntN(60)) * time.Millisecond):
		}
		var n int
		most := 1
		if r.IntN(4) == 0 { // all at once, as a failover does
			most = 1000
		}
		err := db.QueryRowContext(ctx, `SELECT count(pg_terminate_backend(pid)) FROM
			(SELECT pid FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT $2) AS chosen`, w.workerName(), most).Scan(&n)
		if err != nil && ctx.Err() == nil {
			return total, err
		}
		total += n
	}
}

// settle waits until the server has ended what workers sent before they were killed:
// a statement that has arrived is carried out, though nobody waits for its answer.
func (w *world) settle(ctx context.Context) error {
	db := administer(w.place)
	defer db.Close()
	for {
		var n int
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, w.workerName()).Scan(&n)
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d connections of workers that have ended: %w", n, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}
