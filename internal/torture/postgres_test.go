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
// connect to it.
func newSchema(t *testing.T, server string) string {
	t.Helper()
	name := fmt.Sprintf("torture_%d_%d", os.Getpid(), time.Now().UnixNano())
	db := administer(server)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE SCHEMA `+name); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() {
		db := administer(server)
		defer db.Close()
		if _, err := db.Exec(`DROP SCHEMA ` + name + ` CASCADE`); err != nil {
			t.Error(err)
		}
	})
	if strings.Contains(server, "://") {
		join := "?"
		if strings.Contains(server, "?") {
			join = "&"
		}
		return server + join + "search_path=" + name + "&application_name=" + name
	}
	return server + " search_path=" + name + " application_name=" + name
}

func administer(server string) *sql.DB {
	c, err := stdlib.GetDefaultDriver().(*stdlib.Driver).OpenConnector(server)
	if err != nil {
		panic(err)
	}
	return sql.OpenDB(c)
}

// cut breaks connections to the database, as a network does, until ctx ends.
func cut(ctx context.Context, r *rand.Rand, place string) (int, error) {
	db := administer(place)
	defer db.Close()
	total := 0
	for {
		select {
		case <-ctx.Done():
			return total, nil
		case <-time.After(time.Duration(5+r.IntN(60)) * time.Millisecond):
		}
		var n int
		err := db.QueryRowContext(ctx, `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
			WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid() AND query NOT LIKE '%pg_terminate_backend%' ORDER BY random() LIMIT 1) AS one`).Scan(&n)
		if err != nil && ctx.Err() == nil {
			return total, err
		}
		total += n
	}
}
