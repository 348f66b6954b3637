// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// D2: connections that are cut cost no lease.
func TestCutConnectionLosesNoLease(t *testing.T) {
	dsn := postgresDSN(t)
	one, two := newPostgres(t, dsn+" application_name=one_here"), newPostgres(t, dsn)
	one.RenewWhenTold()
	held, unlock, err := one.Hold(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, one, "a", 0, step(0)...)
	if _, err := openPlain(t, dsn).Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'one_here'"); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Lock(t.Context(), "a"); !errors.Is(err, session.ErrBusy) || !strings.Contains(err.Error(), "lasts until") {
		t.Errorf("got %v, want ErrBusy, and until when", err)
	}
	for range 2 { // the first one may find the connection that was cut
		if n := one.RenewNow(t.Context()); n != 1 {
			t.Fatalf("%d leases are held", n)
		}
	}
	end := int64(len(step(0)))
	mustAppend(t, one, "a", end, session.RunStarted{})
	mustAppend(t, two, "a", end+1, session.RunStarted{}) // one that holds nothing appends by comparison, as ever
	if err := cmp.Or(context.Cause(held), unlock()); err != nil {
		t.Error(err)
	}
}

// D2: a lease that nobody has taken goes on after its end; one that another has taken
// is lost: nothing can be written under it, and the work under it ends.
func TestLeaseTaken(t *testing.T) {
	dsn := postgresDSN(t)
	one, two := newPostgres(t, dsn), newPostgres(t, dsn)
	one.RenewWhenTold()
	for _, id := range []string{"told by an append", "told by the renewal", "first append", "append of a nested session"} {
		held, unlock, err := one.Hold(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		end := int64(0)
		if id != "first append" {
			mustAppend(t, one, id, 0, step(0)...)
			end = int64(len(step(0)))
		}
		if err := one.EndLease(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if id != "first append" {
			mustAppend(t, one, id, end, session.RunStarted{})
			end++
		}
		other, err := two.Lock(t.Context(), id)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		to, after := id, end
		if strings.HasSuffix(id, "nested session") {
			to, after = one.Nest(id, 1, "call"), 0
		}
		if id == "told by the renewal" {
			if n := one.RenewNow(t.Context()); n != 0 {
				t.Errorf("%s: %d are held", id, n)
			}
		}
		err = one.Append(t.Context(), to, after, numbered(after, session.RunStarted{}))
		if !errors.Is(err, session.ErrLost) || !strings.Contains(err.Error(), "process ") {
			t.Errorf("%s: got %v, want ErrLost with the holder", id, err)
		}
		if err := context.Cause(held); !errors.Is(err, session.ErrLost) {
			t.Errorf("%s: the work goes on: %v", id, err)
		}
		if _, err := one.Info(t.Context(), to); after == 0 && !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: it was created: %v", id, err)
		}
		if err := unlock(); !errors.Is(err, session.ErrLost) {
			t.Errorf("%s: giving it back: got %v, want ErrLost", id, err)
		}
		mustAppend(t, two, id, end, session.RunStarted{})
		if err := other(); err != nil {
			t.Error(err)
		}
	}
}

// D2: who has lost a lease changes nothing of the session, neither its log nor what stands
// beside it.
func TestStaleHolderChangesNothing(t *testing.T) {
	dsn := postgresDSN(t)
	one, two := newPostgres(t, dsn), newPostgres(t, dsn)
	one.RenewWhenTold()
	ctx, title := t.Context(), "mine"
	for name, change := range map[string]func(s *sqlstore.Store, id string) error{
		"rename":  func(s *sqlstore.Store, id string) error { return s.Rename(ctx, id, "mine") },
		"bind":    func(s *sqlstore.Store, id string) error { return s.Bind(ctx, id, "/mine", "mine") },
		"label":   func(s *sqlstore.Store, id string) error { return s.Label(ctx, id, session.Labels{Title: &title}) },
		"archive": func(s *sqlstore.Store, id string) error { return s.Archive(ctx, id, true) },
		"blob":    func(s *sqlstore.Store, id string) error { _, err := s.PutBlob(ctx, id, []byte("mine")); return err },
		"nested": func(s *sqlstore.Store, id string) error {
			return s.Create(ctx, session.Info{ID: s.Nest(id, 1, "call"), Nested: true})
		},
		"delete": func(s *sqlstore.Store, id string) error { return s.Delete(ctx, id) },
	} {
		mustAppend(t, two, name, 0, step(0)...)
		held, unlock, err := one.Hold(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := one.EndLease(ctx, name); err != nil {
			t.Fatal(err)
		}
		other, err := two.Lock(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		before, err := two.Info(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(one, name); !errors.Is(err, session.ErrLost) || !errors.Is(context.Cause(held), session.ErrLost) {
			t.Errorf("%s: got %v, want ErrLost", name, err)
		}
		if after, err := two.Info(ctx, name); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%s: got %+v, %v, before it was %+v", name, after, err, before)
		}
		if err := unlock(); !errors.Is(err, session.ErrLost) {
			t.Errorf("%s: giving it back: got %v, want ErrLost", name, err)
		}
		if err := cmp.Or(change(two, name), other()); err != nil {
			t.Errorf("%s: the holder: %v", name, err)
		}
	}
}

// Leases of holders that died do not stay for good.
func TestLeasesOfTheDead(t *testing.T) {
	dsn := postgresDSN(t)
	one, two := newPostgres(t, dsn), newPostgres(t, dsn)
	one.RenewWhenTold()
	for _, id := range []string{"old", "new"} {
		if _, err := one.Lock(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	db := openPlain(t, dsn)
	if _, err := db.Exec(`UPDATE antiphon_leases SET until = until - INTERVAL '2 days' WHERE id = 'old'`); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Lock(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := db.QueryRow(`SELECT string_agg(id, ' ' ORDER BY id) FROM antiphon_leases`).Scan(&left); err != nil || left != "another new" {
		t.Errorf("left: %q, %v", left, err)
	}
}

// A request for a lease that reaches the server twice, because its answer was lost,
// is in its own way as little as one that came once.
func TestLeaseTakenTwice(t *testing.T) {
	if err := newPostgres(t, postgresDSN(t)).TakeLeaseTwice(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// A lease that could not be renewed in its time is lost.
func TestLeaseNotRenewed(t *testing.T) {
	p, dsn := newProxy(t)
	s := newPostgres(t, dsn)
	s.RenewWhenTold()
	held, unlock, err := s.Hold(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	p.setCut(func(bool, []byte) bool { return true })
	p.loseAll()
	if s.RenewNow(t.Context()) != 1 || held.Err() != nil {
		t.Errorf("it was lost before its time: %v", context.Cause(held))
	}
	s.EndLeasesHere()
	if s.RenewNow(t.Context()) != 0 || !errors.Is(context.Cause(held), session.ErrLost) {
		t.Errorf("got %v, want ErrLost", context.Cause(held))
	}
	p.setCut(nil)
	if err := unlock(); !errors.Is(err, session.ErrLost) {
		t.Errorf("got %v, want ErrLost", err)
	}
}

// 10 000 locked sessions need no more connections than one.
func TestManyLeases(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	s := newPostgres(t, postgresDSN(t)+" antiphon_connections=4")
	s.RenewWhenTold()
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < n; i += 8 {
				if _, err := s.Lock(t.Context(), fmt.Sprint("s", i)); err != nil {
					t.Errorf("lock %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	if held := s.RenewNow(t.Context()); held != n {
		t.Errorf("%d of %d are held", held, n)
	}
}

// D2: stores race for the lease of one session, and leases end at any moment.
// Whoever has lost it appends nothing more: in the log, the entries of a lease come
// before all those of the next one.
func TestLeaseRace(t *testing.T) {
	schedules := 40
	if testing.Short() {
		schedules = 5
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dsn := postgresDSN(t)
	admin := newPostgres(t, dsn)
	for n := range schedules {
		id := fmt.Sprint("s", n)
		var racers sync.WaitGroup
		for k := range 2 {
			s, err := sqlstore.OpenPostgres(t.Context(), dsn+unsafe+" antiphon_connections=3", openPostgres, fast)
			if err != nil {
				t.Fatal(err)
			}
			s.RenewWhenTold()
			r := rand.New(rand.NewPCG(seed, uint64(n*2+k)))
			racers.Go(func() {
				defer s.Close() // or the server has too many connections
				for round := range 4 {
					if err := raceOnce(t.Context(), s, admin, id, fmt.Sprintf("%d/%d", k, round), r); err != nil {
						t.Error(err)
					}
				}
			})
		}
		racers.Wait()
		over := map[string]bool{}
		last := ""
		for _, e := range loadAll(t, admin, id) {
			who := e.Body.(session.Noticed).Text
			if over[who] {
				t.Fatalf("schedule %d: %s wrote after another had taken its lease", n, who)
			}
			if who != last && last != "" {
				over[last] = true
			}
			last = who
		}
	}
}

// racer is a store that races.
type racer interface {
	session.Store
	session.Holder
	EndLease(ctx context.Context, id string) error
}

// raceOnce holds a session, appends to it, and perhaps lets the lease end meanwhile.
func raceOnce(ctx context.Context, s, admin racer, id, who string, r *rand.Rand) error {
	_, unlock, err := s.Hold(ctx, id)
	if errors.Is(err, session.ErrBusy) {
		return admin.EndLease(ctx, id)
	}
	if err != nil {
		return err
	}
	log, err := session.Open(ctx, s, id)
	for range 1 + r.IntN(5) {
		if err != nil {
			break
		}
		if r.IntN(3) == 0 {
			err = admin.EndLease(ctx, id)
		}
		if err == nil {
			_, err = log.Append(ctx, session.Noticed{Kind: "test", Text: who})
		}
	}
	if r.IntN(2) == 0 {
		err = cmp.Or(err, admin.EndLease(ctx, id))
	}
	if err != nil && !errors.Is(err, session.ErrLost) {
		return err
	}
	if err := unlock(); err != nil && !errors.Is(err, session.ErrLost) {
		return err
	}
	return nil
}

// D2: a process that is frozen in the middle of a transaction does not hold up the others:
// the server ends the transaction.
func TestFrozenTransaction(t *testing.T) {
	dsn := postgresDSN(t)
	frozen, s := newPostgres(t, dsn), newPostgres(t, dsn)
	mustAppend(t, s, "a", 0, session.RunStarted{})
	locked, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- frozen.Stick(t.Context(), "a", locked, release) }()
	<-locked
	mustAppend(t, s, "a", 1, session.Stopped{Why: "answered"})
	close(release)
	if err := <-ended; err == nil {
		t.Error("the transaction was committed after the server had ended it")
	}
}
