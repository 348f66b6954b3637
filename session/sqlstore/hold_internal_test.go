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

	"github.com/antiphon-go/antiphon/internal/lease"
	"github.com/antiphon-go/antiphon/session"
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
	told := make(chan error, 1)
	one := lease.Lease{ID: "a", Epoch: 1}
	s.holds.add(&hold{Lease: one, asked: time.Now().Add(time.Hour), lost: func(err error) { told <- err }, wrote: map[string]bool{}})
	s.holds.leases.RenewAll(context.Background())
	if len(told) > 0 {
		t.Errorf("the lease still lasts, and its holder was told %v", <-told)
	}
	s.holds.leases.Extend(one, time.Now())
	s.holds.leases.RenewAll(context.Background())
	if err := <-told; !errors.Is(err, session.ErrLost) {
		t.Errorf("the lease has ended: got %v, want ErrLost", err)
	}
	s.holds.remove("a")
	if err := s.takeLease(context.Background(), &hold{Lease: lease.Lease{ID: "b"}}, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the store's patience", err)
	}
	if err := s.db.Close(); err != nil {
		t.Error(err)
	}
}
