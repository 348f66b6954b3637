// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// fillQueue adds rows that are ready, of so many tenants.
func fillQueue(t testing.TB, s *sqlstore.Store, rows, tenants int) {
	t.Helper()
	if err := s.FillQueue(t.Context(), rows, tenants); err != nil {
		t.Fatal(err)
	}
}

// A schedule that is damaged is an error, and the others are there.
func TestDamagedSchedule(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		for _, name := range []string{"a", "b", "c"} {
			if err := s.Schedule(t.Context(), queue.Schedule{Name: name, Data: []byte("what it does"), Due: time.Now().Add(-time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := openPlain(t, where).Exec(`UPDATE antiphon_schedules SET sum = data WHERE name = 'b'`); err != nil {
			t.Fatal(err)
		}
		list, err := s.Schedules(t.Context(), true)
		if !errors.Is(err, session.ErrDamaged) || !strings.Contains(err.Error(), `"b"`) || len(list) != 2 || list[1].Name != "c" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// D4: each tenant gets its turn, however much another one has, and a worker that lacks
// what the first rows need gets the next ones.
func TestCandidatesOfMany(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		fillQueue(t, s, 500, 1)
		mustAppend(t, s, "small", 0, step(0)...)
		if err := s.Enqueue(t.Context(), queue.Work{Session: "small", Agent: "x", Tenant: "other", Priority: -5}); err != nil {
			t.Fatal(err)
		}
		list, err := s.Candidates(t.Context(), queue.Want{Most: 3})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range list {
			got = append(got, w.Session)
		}
		if strings.Join(got, " ") != "work-000000 small work-000001" {
			t.Errorf("got %v", got)
		}
		if err := s.NeedGPU(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
		if list, err = s.Candidates(t.Context(), queue.Want{Most: 2, Tenants: []string{"tenant-0"}, Agents: []string{"x"}}); err != nil || len(list) != 2 || list[0].Session != "work-000300" {
			t.Errorf("without the label: got %v, %v", list, err)
		}
		if list, err = s.Candidates(t.Context(), queue.Want{Most: 9, Caps: map[string]int{"tenant-0": 2}}); err != nil || len(list) != 3 {
			t.Errorf("with a cap: got %d, %v", len(list), err)
		}
	})
}

// D4: of more tenants than can be looked at, each gets its turn, although those before it
// always have more work.
func TestCandidatesTakeTurns(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		fillQueue(t, s, 200, 50)
		turns := map[string]int{}
		for range 100 {
			list, err := s.Candidates(t.Context(), queue.Want{Most: 1})
			if err != nil || len(list) != 1 {
				t.Fatalf("%d, %v", len(list), err)
			}
			turns[list[0].Tenant]++
		}
		for tenant, n := range turns {
			if n != 2 {
				t.Errorf("%s: %d turns, want 2", tenant, n)
			}
		}
		if len(turns) != 50 {
			t.Errorf("%d tenants got a turn", len(turns))
		}
	})
}

// BenchmarkCandidates measures a look for work with 100 000 rows that are ready.
func BenchmarkCandidates(b *testing.B) {
	for _, kind := range []string{"sqlite", "postgres"} {
		for _, tenants := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/%d tenants", kind, tenants), func(b *testing.B) {
				var s *sqlstore.Store
				if kind == "sqlite" {
					s, _ = newSQLite(b)
				} else {
					s = newPostgres(b, postgresDSN(b))
				}
				fillQueue(b, s, 100_000, tenants)
				for b.Loop() {
					list, err := s.Candidates(b.Context(), queue.Want{Most: 8, Agents: []string{"x", "y"}})
					if err != nil || len(list) != 8 {
						b.Fatalf("%d, %v", len(list), err)
					}
				}
			})
		}
	}
}

// What was written while the clock was ahead by a year does not hold for a year: a worker that has died does not run, and requests
// are sent.
func TestClockAhead(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		const url = "http://localhost:1/v1"
		err := s.Enter(t.Context(), queue.Present{ID: "w"}, time.Minute)
		if err == nil {
			err = s.Slow(t.Context(), url, time.Second)
		}
		for _, column := range []string{"until", "next", "paid"} {
			if err == nil {
				err = s.Limit(t.Context(), url, queue.Caps{Requests: 60, Tokens: 60})
			}
			if err == nil {
				_, err = openPlain(t, where).Exec(`UPDATE antiphon_endpoints SET ` + column + ` = ` + aYearAhead())
			}
			e, failed := s.Send(t.Context(), url, time.Minute)
			if err = errors.Join(err, failed); e.Wait > time.Minute {
				t.Errorf("%s: %+v", column, e)
			}
		}
		if err == nil {
			_, err = openPlain(t, where).Exec(`UPDATE antiphon_endpoints SET until = ` + aYearAhead())
		}
		if err == nil {
			err = s.Slow(t.Context(), url, 30*time.Second)
		}
		if e, failed := s.Send(t.Context(), url, time.Minute); failed != nil || e.Wait < time.Second {
			t.Errorf("after a pause that the endpoint has asked for: %+v, %v", e, failed)
		}
		if err == nil {
			_, err = openPlain(t, where).Exec(`UPDATE antiphon_workers SET until = ` + aYearAhead())
		}
		list, failed := s.Roster(t.Context())
		if err = errors.Join(err, failed); err != nil || len(list) > 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// aYearAhead returns the SQL expression for the time in a year.
func aYearAhead() string {
	return fmt.Sprint(time.Now().AddDate(1, 0, 0).UnixMilli())
}
