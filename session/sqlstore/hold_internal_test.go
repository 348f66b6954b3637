// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"
)

// silent is a server that never answers.
type silent struct{ driver.Connector }

func (silent) Connect(ctx context.Context) (driver.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// J11: a server that does not answer keeps nobody from giving a lock back: the
// look at it ends by itself, and so does a lock that is wanted.
func TestSilentServer(t *testing.T) {
	s := newStore(sql.OpenDB(silent{}), "nowhere", Options{Wait: time.Millisecond})
	s.postgres = true
	s.holds.held["a"] = &hold{id: "a", lost: func(error) {}, wrote: map[string]bool{}}
	s.holds.lookServer(context.Background())
	s.holds.remove("a")
	if err := s.holds.lock(context.Background(), "b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the store's patience", err)
	}
	if err := s.db.Close(); err != nil {
		t.Error(err)
	}
}
