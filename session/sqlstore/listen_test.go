// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// newDeaf opens a store that finds nothing of other processes in the time of a test,
// unless they tell.
func newDeaf(t testing.TB, dsn string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.OpenPostgres(t.Context(), dsn+unsafe, openPostgres, sqlstore.Options{Poll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// signal returns a function that never blocks, and a channel that has an element after it
// was called.
func signal() (func(), chan struct{}) {
	c := make(chan struct{}, 1)
	return func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}, c
}

// watched returns the entries of a session as a store sees them.
func watched(t *testing.T, in *sqlstore.Store, id string) <-chan session.Entry {
	entries := make(chan session.Entry)
	go func() {
		defer close(entries)
		for e, err := range in.Watch(t.Context(), id, 0) {
			if err != nil {
				t.Error(err)
				return
			}
			entries <- e
		}
	}()
	return entries
}

// D1: processes wake each other at deliveries, at work and at appends, also after the
// connection that listens was cut.
func TestStoresWakeEachOther(t *testing.T) {
	if os.Getenv("ANTIPHON_PGBOUNCER") != "" {
		t.Skip("a pooler stands before the server: see TestNoMessagesBehindPooler")
	}
	dsn := postgresDSN(t)
	one, two := newDeaf(t, dsn+" application_name=one_hears"), newDeaf(t, dsn)
	mustAppend(t, two, "a", 0, session.RunStarted{})
	worked, work := signal()
	defer one.Awaited(worked)()
	arrived, arrival := signal()
	defer one.Notify("a", arrived)()
	defer two.Awaited(func() {})()
	for !two.Hears() { // or else it does not hear who watches
		runtime.Gosched()
	}
	entries := watched(t, one, "a")
	<-entries
	for round := range int64(2) {
		for !one.Hears() || !two.Hears() {
			runtime.Gosched()
		}
		for !two.IsWatched("a") {
			runtime.Gosched()
		}
		for len(work) > 0 { // it looks once when it begins to hear
			<-work
		}
		if err := two.Enqueue(t.Context(), queue.Work{Session: "a", Agent: "x"}); err != nil {
			t.Fatal(err)
		}
		<-work
		for len(arrival) > 0 {
			<-arrival
		}
		if _, err := two.Deliver(t.Context(), "a", hello(time.Now().String())); err != nil {
			t.Fatal(err)
		}
		<-arrival
		mustAppend(t, two, "a", round+1, session.RunStarted{})
		if e := <-entries; e.Seq != round+2 {
			t.Errorf("entry %d, want %d", e.Seq, round+2)
		}
		if round > 0 {
			return
		}
		for len(work) > 0 {
			<-work
		}
		if _, err := openPlain(t, dsn).Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'one_hears'"); err != nil {
			t.Fatal(err)
		}
		<-work // it hears no longer, and looks
	}
}

// D1: a process that waits for nothing itself tells of its appends those who had watched before
// it began.
func TestAppendsReachWatchers(t *testing.T) {
	if os.Getenv("ANTIPHON_PGBOUNCER") != "" {
		t.Skip("a pooler stands before the server: see TestNoMessagesBehindPooler")
	}
	dsn := postgresDSN(t)
	one := newDeaf(t, dsn)
	mustAppend(t, one, "a", 0, session.RunStarted{})
	entries := watched(t, one, "a")
	<-entries
	two := newDeaf(t, dsn)
	mustAppend(t, two, "a", 1, session.RunStarted{})
	for until := time.Now().Add(time.Minute); !two.IsWatched("a"); runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatal("it is not told who watches")
		}
	}
	mustAppend(t, two, "a", 2, session.RunStarted{})
	for want := range int64(2) {
		if e := <-entries; e.Seq != want+2 {
			t.Errorf("entry %d, want %d", e.Seq, want+2)
		}
	}
}

// Behind a pooler no messages arrive. The store notices, and looks for itself.
func TestNoMessagesBehindPooler(t *testing.T) {
	if os.Getenv("ANTIPHON_PGBOUNCER") == "" {
		t.Skip("no ANTIPHON_PGBOUNCER: `.ci/postgres -pooled go test ./session/sqlstore` starts a pooler and sets it")
	}
	s, err := sqlstore.OpenPostgres(t.Context(), postgresDSN(t)+unsafe, openPostgres, sqlstore.Options{Wait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.ListenOnce(t.Context()); !errors.Is(err, sqlstore.ErrPooled) || s.Hears() {
		t.Errorf("got %v, want that no message arrives", err)
	}
}

// BenchmarkWatchOther measures the time from before an append until a watcher in another
// store has the entry.
func BenchmarkWatchOther(b *testing.B) {
	dsn := postgresDSN(b)
	one, two := newDeaf(b, dsn), newDeaf(b, dsn)
	defer one.Awaited(func() {})()
	defer two.Awaited(func() {})()
	for !one.Hears() || !two.Hears() {
		runtime.Gosched()
	}
	entries := make(chan session.Entry)
	go func() {
		defer close(entries)
		for e := range one.Watch(b.Context(), "a", 0) {
			entries <- e
		}
	}()
	for !two.IsWatched("a") {
		runtime.Gosched()
	}
	seq := int64(0)
	for b.Loop() {
		if err := two.Append(b.Context(), "a", seq, numbered(seq, session.RunStarted{})); err != nil {
			b.Fatal(err)
		}
		seq++
		<-entries
	}
}
