// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// openStore opens a store whose statements are steps. With pages, a SQLite
// database can grow by so many. The clock is off by that much.
func openStore(ctx context.Context, place string, pages int, off time.Duration, at storetest.StepFunc) (*sqlstore.Store, error) {
	options := sqlstore.Options{Now: func() time.Time { return time.Now().Add(off) }, Retry: time.Second}
	if isPostgres(place) {
		return sqlstore.OpenPostgres(ctx, with(place, "antiphon_unsafe", "fsync"), func(dsn string) (*sql.DB, error) {
			c, err := stdlib.GetDefaultDriver().(driver.DriverContext).OpenConnector(dsn)
			if err != nil {
				return nil, err
			}
			return open(c, at), nil
		}, options)
	}
	return sqlstore.OpenSQLite(ctx, place, func(dsn string) (*sql.DB, error) {
		if pages > 0 {
			most, err := grown(dsn, pages)
			if err != nil {
				return nil, err
			}
			dsn += fmt.Sprintf("?_pragma=max_page_count(%d)", most)
		}
		return open(named{dsn, new(sqlite.Driver)}, at), nil
	}, options)
}

func open(c driver.Connector, at storetest.StepFunc) *sql.DB {
	if at != nil {
		c = storetest.StepConnector(c, at)
	}
	return sql.OpenDB(c)
}

// grown is how many pages a database has, and so many more.
func grown(dsn string, more int) (int, error) {
	db := sql.OpenDB(named{dsn, new(sqlite.Driver)})
	defer db.Close()
	var pages int
	err := db.QueryRow(`PRAGMA page_count`).Scan(&pages)
	return pages + more, err
}

// named is a connector of a driver that has none.
type named struct {
	dsn    string
	driver driver.Driver
}

func (n named) Connect(context.Context) (driver.Conn, error) { return n.driver.Open(n.dsn) }
func (n named) Driver() driver.Driver                        { return n.driver }
