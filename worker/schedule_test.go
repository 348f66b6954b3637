// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/worker"
)

// asked counts what a worker asks its store.
type asked struct {
	*sqlstore.Store
	looks, schedules, endpoints, begun atomic.Int64
	ahead                              time.Duration // how much the clocks of workers are
}

func (a *asked) Begin(ctx context.Context, w queue.Work, worker string) (queue.Work, error) {
	a.begun.Add(1)
	return a.Store.Begin(ctx, w, worker)
}

func (a *asked) Candidates(ctx context.Context, want queue.Want) ([]queue.Work, error) {
	a.looks.Add(1)
	return a.Store.Candidates(ctx, want)
}

func (a *asked) Schedules(ctx context.Context, due bool) ([]queue.Schedule, error) {
	a.schedules.Add(1)
	list, err := a.Store.Schedules(ctx, due)
	for i := range list {
		list[i].Now = list[i].Now.Add(-a.ahead)
	}
	return list, err
}

func (a *asked) Endpoints(ctx context.Context) ([]queue.Endpoint, error) {
	a.endpoints.Add(1)
	return a.Store.Endpoints(ctx)
}

// crowded is a store in which all inboxes are full.
type crowded struct{ *sqlstore.Store }

func (crowded) Deliver(context.Context, string, session.Delivery) (session.Receipt, error) {
	return session.Receipt{}, session.ErrInboxFull
}

// A worker without anything to do asks for work alone when the queue changes: schedules
// have times, and limits matter to work only.
func TestIdleWorkerAsksLittle(t *testing.T) {
	s := newShared(t)
	count := &asked{Store: s.kept.(*sqlstore.Store)}
	s.a.Config.Store, s.a.Poll = count, time.Hour
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	id := s.leave("other", "hello")
	foreign := queue.Work{Session: id, Agent: "other"} // the worker may not do it
	if err := s.queue.Enqueue(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	ended.Go(func() {
		if err := s.a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for n := range int64(10) {
		if err := s.queue.Enqueue(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		for count.looks.Load() <= n {
			runtime.Gosched()
		}
	}
	stop()
	ended.Wait()
	if a, b := count.schedules.Load(), count.endpoints.Load(); a != 1 || b != 0 {
		t.Errorf("%d looks for work, %d at schedules, %d at limits", count.looks.Load(), a, b)
	}
}

// plan adds a schedule for the file of a shared store.
func (s *shared) plan(p worker.Schedule) worker.Scheduled {
	s.Helper()
	added, err := worker.AddSchedule(s.Context(), s.planned(), p)
	if err != nil {
		s.Fatal(err)
	}
	return added
}

func (s *shared) planned() host.Config {
	cfg := s.job("", "").Config
	cfg.Store = s.kept
	return cfg
}

// overdue makes a schedule due since a time.
func (s *shared) overdue(name string, since time.Time) {
	s.Helper()
	q := s.kept.(queue.Schedules)
	list, err := q.Schedules(s.Context(), false)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range list {
		if e.Name == name {
			e.Due = since
			if err := q.Fired(s.Context(), e); err != nil {
				s.Fatal(err)
			}
		}
	}
}

// named returns a schedule.
func (s *shared) named(name string) worker.Scheduled {
	s.Helper()
	list, err := worker.Schedules(s.Context(), s.kept)
	if err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(list, func(one worker.Scheduled) bool { return one.Name == name })
	if i < 0 {
		s.Fatalf("there is no schedule %q", name)
	}
	return list[i]
}

// works returns all work.
func (s *shared) works() (list []queue.Work) {
	s.Helper()
	for w, err := range s.queue.Works(s.Context()) {
		if err != nil {
			s.Fatal(err)
		}
		list = append(list, w)
	}
	return list
}

// newYear is the last time of @yearly.
func newYear() time.Time { return time.Date(time.Now().UTC().Year(), 1, 1, 0, 0, 0, 0, time.UTC) }

// A schedule fires once for a time, with no client, also if the worker that noticed it died
// before it could say so, and once for all the times that nobody noticed. D1
func TestScheduleFiresOnce(t *testing.T) {
	s := newShared(t, agenttest.Completed(item.Assistant("Happy new year.")), agenttest.Completed(item.Assistant("Again?")))
	if added := s.plan(worker.Schedule{Name: "year", Cron: "@yearly", Input: "Greet", Tenant: "anna", Owner: "ann"}); !added.Due.After(time.Now()) {
		t.Errorf("due at %v", added.Due)
	}
	s.once(s.a)
	if list := s.works(); len(list) != 0 {
		t.Fatalf("before its time: %+v", list)
	}
	s.overdue("year", newYear().AddDate(-2, 0, 0))
	s.once(s.a)
	s.once(s.b)
	for range 2 {
		list := s.works()
		if len(list) != 1 || list[0].State != queue.Done || list[0].Tenant != "anna" {
			t.Fatalf("work %+v", list)
		}
		info, err := s.kept.Info(t.Context(), list[0].Session)
		if err != nil || info.Owner != "ann" || !strings.HasPrefix(info.Name, "year "+newYear().Format("2006-01-02")) {
			t.Errorf("session %+v, %v", info, err)
		}
		got := s.named("year")
		if !got.Fired.Equal(newYear()) || !got.Due.After(time.Now()) || !strings.Contains(got.Note, "fired for") {
			t.Errorf("%+v", got)
		}
		s.overdue("year", newYear()) // as if the worker had died before it wrote this
		s.once(s.b)
	}
	if n := len(s.server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// What a firing leaves is named after the time in UTC, whatever the zone, also if it makes up
// for others.
func TestScheduleNames(t *testing.T) {
	s := newShared(t)
	s.plan(worker.Schedule{Name: "hourly", Cron: "@hourly", Zone: "America/New_York", Input: "hello", Needs: []string{"gpu"}})
	s.overdue("hourly", time.Now().UTC().Truncate(time.Hour).Add(-2*time.Hour))
	s.once(s.a)
	list := s.works()
	if len(list) != 1 {
		t.Fatalf("work %+v", list)
	}
	info, err := s.kept.Info(t.Context(), list[0].Session)
	if want := "hourly " + s.named("hourly").Fired.UTC().Format("2006-01-02T15:04Z"); err != nil || info.Name != want {
		t.Errorf("session %q, %v, want %q", info.Name, err, want)
	}
}

// Whether a time was missed is a matter of the store's clock, which says what is due.
func TestScheduleOfAnotherClock(t *testing.T) {
	s := newShared(t)
	s.a.Config.Store = &asked{Store: s.kept.(*sqlstore.Store), ahead: 90 * time.Second}
	s.plan(worker.Schedule{Name: "year", Cron: "@yearly", Input: "hello", Needs: []string{"gpu"}, SkipMissed: true})
	s.overdue("year", time.Now().Add(-100*time.Second))
	s.once(s.a)
	if got := s.named("year"); !strings.Contains(got.Note, "fired for") {
		t.Errorf("%+v", got)
	}
}

// A schedule that is damaged keeps neither the others nor other work from being done.
func TestDamagedSchedule(t *testing.T) {
	s := newShared(t, agenttest.Completed(item.Assistant("Hello.")), agenttest.Completed(item.Assistant("Hello again.")))
	for _, name := range []string{"broken", "year"} {
		s.plan(worker.Schedule{Name: name, Cron: "@yearly", Input: "hello"})
		s.overdue(name, newYear())
	}
	db, err := sql.Open("sqlite", s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `UPDATE antiphon_schedules SET data = 'x' WHERE name = 'broken'`); err != nil {
		t.Fatal(err)
	}
	id := s.leave("ann", "hello")
	s.once(s.a)
	if w := s.state(id); w.State != queue.Done {
		t.Errorf("%+v", w)
	}
	list, err := worker.Schedules(t.Context(), s.kept)
	if !errors.Is(err, session.ErrDamaged) || !strings.Contains(err.Error(), `"broken"`) {
		t.Error(err)
	}
	if len(list) != 1 || list[0].Name != "year" || !strings.Contains(list[0].Note, "fired for") {
		t.Errorf("%+v", list)
	}
}

// A schedule of an older version that goes on with a session and says nothing does not count as
// fired.
func TestScheduleThatSaysNothing(t *testing.T) {
	s := newShared(t)
	s.plan(worker.Schedule{Name: "year", Cron: "@yearly", Input: "hello", Session: "same"})
	q := s.kept.(queue.Schedules)
	list, err := q.Schedules(t.Context(), false)
	if err == nil {
		err = q.Unschedule(t.Context(), "year")
	}
	if err != nil {
		t.Fatal(err)
	}
	old := list[0]
	old.Data = bytes.Replace(old.Data, []byte(`"input":"hello"`), []byte(`"input":""`), 1)
	if err := q.Schedule(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	s.overdue("year", newYear())
	s.once(s.a)
	if got := s.named("year"); len(s.works()) != 0 || !strings.Contains(got.Note, "needs an input") {
		t.Errorf("%+v", got)
	}
}

// A time whose input finds no room in the inbox of its session has failed, and the schedule goes on
// with the next one.
func TestScheduleOfFullInbox(t *testing.T) {
	s := newShared(t)
	s.a.Config.Store = crowded{s.kept.(*sqlstore.Store)}
	s.plan(worker.Schedule{Name: "year", Cron: "@yearly", Input: "hello", Session: "same"})
	s.overdue("year", newYear())
	s.once(s.a)
	if got := s.named("year"); !got.Due.After(time.Now()) || !strings.Contains(got.Note, "failed at") || !strings.Contains(got.Note, session.ErrInboxFull.Error()) {
		t.Errorf("%+v", got)
	}
}

// Nobody can choose the key of what a schedule says, which would then not be said. D1
func TestScheduleWhoseKeyIsChosen(t *testing.T) {
	s := newShared(t, agenttest.Completed(item.Assistant("Both.")))
	s.plan(worker.Schedule{Name: "year", Cron: "@yearly", Input: "hello", Session: "same"})
	s.overdue("year", newYear())
	key := "schedule year " + newYear().Format(time.RFC3339)
	for _, own := range []bool{true, false} {
		j := s.job("same", "mine")
		if j.Config.Store, j.Config.Session, j.Key = s.kept, "same", key; own {
			j.Key = session.OwnKey("%s", key)
		}
		if _, err := worker.Submit(t.Context(), j); own != (err != nil) {
			t.Errorf("%s: %v", j.Key, err)
		}
	}
	s.once(s.a)
	if got := s.named("year"); !got.Due.After(time.Now()) || strings.Contains(got.Note, "failed") {
		t.Errorf("%+v", got)
	}
	if sent := s.server.Requests(); len(sent) != 1 || !strings.Contains(string(sent[0].Body), `"mine"`) || !strings.Contains(string(sent[0].Body), `"hello"`) {
		t.Errorf("%d requests: %s", len(sent), sent[0].Body)
	}
}

// The rules for times that come while the last work is not done, and for those that nobody
// noticed. Work that is parked blocks nothing.
func TestScheduleRules(t *testing.T) {
	s := newShared(t)
	for _, p := range []worker.Schedule{
		{Name: "left out", Cron: "@yearly", Needs: []string{"gpu"}},
		{Name: "beside", Cron: "@yearly", Needs: []string{"gpu"}, Overlap: true, Session: "same"},
		{Name: "missed", Cron: "@yearly", Needs: []string{"gpu"}, SkipMissed: true},
	} {
		p.Input = "hello"
		s.plan(p)
	}
	s.a.Patience = time.Hour
	fire := func(since time.Time) {
		t.Helper()
		for _, name := range []string{"left out", "beside", "missed"} {
			s.overdue(name, since)
		}
		s.a.Labels = nil
		s.once(s.a)
	}
	fire(newYear())
	if got := s.named("missed"); !got.Fired.IsZero() || !strings.Contains(got.Note, "no worker ran") {
		t.Errorf("%+v", got)
	}
	for _, w := range s.works() { // nobody has the label, so Once has parked them
		if w.State != queue.Parked {
			t.Fatalf("%+v", w)
		}
		if err := s.queue.Move(t.Context(), w, queue.Ready, ""); err != nil {
			t.Fatal(err)
		}
	}
	fire(newYear())
	if got := s.named("left out"); !strings.Contains(got.Note, "was not done") {
		t.Errorf("%+v", got)
	}
	if got := s.named("beside"); !strings.Contains(got.Note, "fired for") {
		t.Errorf("%+v", got)
	}
	fire(newYear()) // they are parked again
	if got := s.named("left out"); !strings.Contains(got.Note, "fired for") {
		t.Errorf("parked work blocks: %+v", got)
	}
}

// A schedule that refuses what needs an approval does not wait for anybody.
func TestScheduleRefuses(t *testing.T) {
	s := newShared(t, agenttest.Completed(item.Call("call_1", "append_to_file", `{"path":"notes.txt","content":"x"}`)), agenttest.Completed(item.Assistant("Then not.")))
	s.write(s.file, "<config model=\"m\"/>\n<tool name=\"append_to_file\"/>\n")
	s.agree(s.a)
	s.plan(worker.Schedule{Name: "year", Cron: "@yearly", Input: "Note it", Refuse: true})
	s.overdue("year", newYear())
	s.once(s.a)
	if list := s.works(); len(list) != 1 || list[0].State != queue.Done {
		t.Errorf("%+v", list)
	}
}

// What is wrong is said before anything is stored.
func TestScheduleWrong(t *testing.T) {
	s := newShared(t)
	for _, p := range []worker.Schedule{
		{Name: "", Cron: "@daily"},
		{Name: "a", Cron: ""},
		{Name: "a", Cron: "61 * * * *"},
		{Name: "a", Cron: "TZ=UTC"},
		{Name: "a", Cron: "CRON_TZ=UTC * * * * *"},
		{Name: "a", Cron: "@every 1s"},
		{Name: "a", Cron: "0 0 31 2 *"},
		{Name: "a", Cron: "@daily", Zone: "Nowhere/Land"},
		{Name: "a", Cron: "@daily", Zone: "Local"},
		{Name: "a", Cron: "@daily", Session: "\x00", Input: "hello"},
		{Name: "a", Cron: "@daily", Session: "b"},
	} {
		var wrong *host.ConfigError
		if _, err := worker.AddSchedule(t.Context(), s.planned(), p); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, test := range []struct{ times, zone, want string }{
		{"daily", "", "did you mean @daily?"}, {"@every 5m", "", "every ten minutes"}, {"TZ=UTC * * * * *", "", "name a zone"}, {"@daily", "Local", "and not Local"},
		{"30 9", "", "one of @yearly, "},
	} {
		if _, err := worker.AddSchedule(t.Context(), s.planned(), worker.Schedule{Name: "a", Cron: test.times, Zone: test.zone}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.times, err, test.want)
		}
	}
	s.plan(worker.Schedule{Name: "a", Cron: "@daily"})
	if _, err := worker.AddSchedule(t.Context(), s.planned(), worker.Schedule{Name: "a", Cron: "@daily"}); !errors.Is(err, session.ErrExists) {
		t.Errorf("twice: %v", err)
	}
}

// A schedule that fired while a clock was ahead fires at its times again as soon as the clock is right. What it left is not
// left again.
func TestScheduleOfClockAhead(t *testing.T) {
	s := newShared(t)
	s.a.Patience = time.Hour
	s.plan(worker.Schedule{Name: "day", Cron: "@daily", Input: "hello", Needs: []string{"gpu"}})
	ahead := time.Now().UTC().Truncate(24*time.Hour).AddDate(1, 0, 0)
	s.overdue("day", ahead)
	s.once(s.a)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	if got := s.named("day"); got.Due.After(today.AddDate(0, 0, 2)) || got.Due.Before(today) || !strings.Contains(got.Note, "clock") {
		t.Errorf("%+v", got)
	}
	if list := s.works(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	// A time that is due later by less than a minute is not touched: clocks are set back by seconds.
	s.plan(worker.Schedule{Name: "minute", Cron: "* * * * *", Input: "hello", Needs: []string{"gpu"}})
	soon := time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
	s.overdue("minute", soon)
	s.once(s.a)
	if got := s.named("minute"); !got.Due.Equal(soon) {
		t.Errorf("%+v", got)
	}
}
