// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// keeper is a store with a queue, an inbox and locks.
type keeper interface {
	session.Inbox
	session.Locker
	queue.Queue
}

// enqueue makes sessions with work.
func enqueue(t *testing.T, q keeper, works ...queue.Work) {
	t.Helper()
	for _, w := range works {
		if len(load(t, q, w.Session, 0)) == 0 {
			put(t, q, w.Session, 0, said("hello"))
		}
		if err := q.Enqueue(t.Context(), w); err != nil {
			t.Fatalf("enqueue %+v: %v", w, err)
		}
	}
}

// candidates returns the sessions of the work that a worker may begin.
func candidates(t *testing.T, q queue.Queue, want queue.Want) (ids []string) {
	t.Helper()
	list, err := q.Candidates(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range list {
		ids = append(ids, w.Session)
	}
	return ids
}

// lost checks whose work is running without being held.
func lost(t *testing.T, q queue.Queue, want ...string) {
	t.Helper()
	list, err := q.Lost(t.Context())
	var ids []string
	for _, w := range list {
		ids = append(ids, w.Session)
	}
	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("lost: %v, %v, want %v", ids, err, want)
	}
}

// workOf returns the work of a session.
func workOf(t *testing.T, q queue.Queue, id string) queue.Work {
	t.Helper()
	w, err := q.Work(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// begin begins work as a worker does.
func begin(t *testing.T, q queue.Queue, id string) queue.Work {
	t.Helper()
	w, err := q.Begin(t.Context(), workOf(t, q, id), "worker")
	if err != nil {
		t.Fatalf("begin %q: %v", id, err)
	}
	return w
}

func finish(t *testing.T, q queue.Queue, w queue.Work, o queue.Outcome) {
	t.Helper()
	if err := q.Finish(t.Context(), w, o); err != nil {
		t.Fatalf("finish %q: %v", w.Session, err)
	}
}

// The states of work: a row is begun once, left by the worker that began it, and ready
// again when there is something to do.
func testQueue(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	if err := q.Enqueue(t.Context(), queue.Work{Session: "none", Agent: "a"}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("work of nobody: %v", err)
	}
	told := 0
	stop := q.Awaited(func() { told++ })
	enqueue(t, q, queue.Work{Session: "a", Agent: "hash", Tenant: "anna", Priority: 3, Needs: []string{"gpu"}})
	if stop(); told == 0 {
		t.Error("nobody was told of new work")
	}
	if got := candidates(t, q, queue.Want{Most: 9}); got != nil {
		t.Errorf("work whose needs nobody has: %v", got)
	}
	if got := candidates(t, q, queue.Want{Most: 9, Has: func(need string) bool { return need == "gpu" }}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("work whose needs are met without a label: %v", got)
	}
	if got := candidates(t, q, queue.Want{Most: 9, Labels: []string{"gpu"}, Agents: []string{"hash"}, Tenants: []string{"bob", "anna"}}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("candidates %v", got)
	}
	for _, want := range []queue.Want{{Agents: []string{}}, {Agents: []string{"other"}}, {Tenants: []string{"bob"}}, {Caps: map[string]int{"anna": 0}}} {
		want.Labels, want.Most = []string{"gpu"}, 9
		if got := candidates(t, q, want); got != nil {
			t.Errorf("%+v: %v", want, got)
		}
	}
	seen := workOf(t, q, "a")
	unlock, err := q.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	begun := begin(t, q, "a")
	if begun.State != queue.Running || begun.Attempts != 1 || begun.Claim <= seen.Claim || begun.Worker != "worker" {
		t.Errorf("begun: %+v", begun)
	}
	if _, err := q.Begin(t.Context(), seen, "late"); !errors.Is(err, queue.ErrChanged) {
		t.Errorf("begun twice: %v", err)
	}
	if got := candidates(t, q, gpu); got != nil {
		t.Errorf("work that runs: %v", got)
	}
	lost(t, q)
	enqueue(t, q, queue.Work{Session: "a", Agent: "newer"}) // a run is not disturbed
	if now := workOf(t, q, "a"); now.State != queue.Running || now.Agent != "hash" {
		t.Errorf("enqueued while it runs: %+v", now)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if got := candidates(t, q, gpu); !slices.Equal(got, []string{"a"}) {
		t.Errorf("work whose worker has died: %v", got)
	}
	if got := candidates(t, q, queue.Want{Most: 9}); got != nil {
		t.Errorf("work whose worker has died and whose needs nobody has: %v", got)
	}
	lost(t, q, "a")
	again := begin(t, q, "a")
	if err := q.Finish(t.Context(), begun, queue.Outcome{State: queue.Done}); !errors.Is(err, queue.ErrChanged) {
		t.Errorf("left by a worker that lost it: %v", err)
	}
	finish(t, q, again, queue.Outcome{State: queue.Waiting, Reason: "waits for \x00 an approval", Well: true})
	if now := workOf(t, q, "a"); now.State != queue.Waiting || now.Attempts != 0 || now.Reason != "waits for \x00 an approval" {
		t.Errorf("waiting: %+v", now)
	}
	if got := candidates(t, q, gpu); got != nil {
		t.Errorf("work that waits: %v", got)
	}
	deliver(t, q, "a", told1("k1"))
	if got := candidates(t, q, gpu); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after a delivery: %v", got)
	}
	finish(t, q, begin(t, q, "a"), queue.Outcome{State: queue.Done})
	if now := workOf(t, q, "a"); now.State != queue.Ready {
		t.Errorf("done, and a delivery waits: %+v", now)
	}
	var bodies []session.Body
	bodies = append(bodies, taking(waiting(t, q, "a")...)...)
	put(t, q, "a", int64(len(load(t, q, "a", 0))), bodies...)
	finish(t, q, begin(t, q, "a"), queue.Outcome{State: queue.Done})
	if now := workOf(t, q, "a"); now.State != queue.Done {
		t.Errorf("done: %+v", now)
	}
	testQueueLeft(t, q)
	testQueueDue(t, q)
	testQueueMoved(t, q, seen, again)
}

// gpu takes the work of testQueue.
var gpu = queue.Want{Most: 9, Labels: []string{"gpu"}}

// Input that the run has left for later does not count as waiting.
func testQueueLeft(t *testing.T, q keeper) {
	left := deliver(t, q, "a", told1("later")).Number
	finish(t, q, begin(t, q, "a"), queue.Outcome{State: queue.Waiting, Seen: left})
	if now := workOf(t, q, "a"); now.State != queue.Waiting {
		t.Errorf("only what was left for later waits: %+v", now)
	}
	deliver(t, q, "a", told1("soon"))
	finish(t, q, begin(t, q, "a"), queue.Outcome{State: queue.Waiting, Seen: left})
	if now := workOf(t, q, "a"); now.State != queue.Ready {
		t.Errorf("a delivery waits that the run has not seen: %+v", now)
	}
	put(t, q, "a", int64(len(load(t, q, "a", 0))), taking(waiting(t, q, "a")...)...)
}

// Work that waits until a time begins then, or when a delivery arrives.
func testQueueDue(t *testing.T, q keeper) {
	finish(t, q, begin(t, q, "a"), queue.Outcome{State: queue.Waiting, Due: time.Now().Add(time.Hour), Reason: "a build"})
	if now := workOf(t, q, "a"); now.State != queue.Waiting || now.Due.IsZero() {
		t.Errorf("waiting until a time: %+v", now)
	}
	if got := candidates(t, q, gpu); got != nil {
		t.Errorf("work that waits until later: %v", got)
	}
	deliver(t, q, "a", told1("build"))
	if now := workOf(t, q, "a"); now.State != queue.Ready || !now.Due.IsZero() {
		t.Errorf("waiting until a time, after a delivery: %+v", now)
	}
	finish(t, q, begin(t, q, "a"), queue.Outcome{State: queue.Waiting, Due: time.Now().Add(time.Hour)})
	if now := workOf(t, q, "a"); now.State != queue.Ready || !now.Due.IsZero() {
		t.Errorf("left until a time, and a delivery waits: %+v", now)
	}
	put(t, q, "a", int64(len(load(t, q, "a", 0))), taking(waiting(t, q, "a")...)...)
	finish(t, q, begin(t, q, "a"), queue.Outcome{State: queue.Waiting, Due: time.Now().Add(-time.Hour)})
	if got := candidates(t, q, queue.Want{Most: 9, Agents: []string{"hash"}}); got != nil {
		t.Errorf("work whose needs nobody has, after its time: %v", got)
	}
	if got := candidates(t, q, gpu); !slices.Equal(got, []string{"a"}) {
		t.Errorf("work whose time has come: %v", got)
	}
	if w := begin(t, q, "a"); w.State != queue.Running || w.Attempts == 0 {
		t.Errorf("begun after its time has come: %+v", w)
	} else {
		finish(t, q, w, queue.Outcome{State: queue.Done, Well: true})
	}
}

// Work is moved by hand as it was last read, and parked work stays.
func testQueueMoved(t *testing.T, q keeper, before ...queue.Work) {
	for _, old := range before { // they were read before it was begun, and before it was done
		if err := q.Move(t.Context(), old, queue.Parked, "too late"); !errors.Is(err, queue.ErrChanged) {
			t.Errorf("moved as %+v: %v", old, err)
		}
	}
	if err := q.Move(t.Context(), workOf(t, q, "a"), queue.Parked, "by hand"); err != nil {
		t.Fatal(err)
	}
	if now := workOf(t, q, "a"); now.State != queue.Parked || now.Reason != "by hand" {
		t.Errorf("parked: %+v", now)
	}
	deliver(t, q, "a", told1("k2"))
	if got := candidates(t, q, gpu); got != nil {
		t.Errorf("parked work after a delivery: %v", got)
	}
	for w, err := range q.Works(t.Context(), queue.Ready, queue.Running, queue.Waiting, queue.Done) {
		t.Errorf("the only work is parked: %+v, %v", w, err)
	}
	if w, err := q.Work(t.Context(), "none"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("work of nobody: %+v, %v", w, err)
	}
	if err := q.Move(t.Context(), queue.Work{Session: "none", State: queue.Ready}, queue.Ready, ""); !errors.Is(err, queue.ErrChanged) {
		t.Errorf("moving nothing: %v", err)
	}
	if err := q.Move(t.Context(), workOf(t, q, "a"), queue.Running, ""); err == nil {
		t.Error("moved to running")
	}
}

func told1(key string) session.Delivery { return told(key, said("%s", key)) }

// D4: work that is not due waits; tenants take turns, and within one the higher priority
// comes first, then what is due longer; caps hold.
func testQueueOrder(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	at := time.Now().Add(-time.Hour)
	var many []queue.Work
	for n := range 20 {
		many = append(many, queue.Work{Session: fmt.Sprintf("many%02d", n), Tenant: "many", Due: at.Add(time.Duration(-n) * time.Minute)})
	}
	enqueue(t, q, many...)
	enqueue(t, q,
		queue.Work{Session: "few", Tenant: "few"}, queue.Work{Session: "urgent", Tenant: "many", Priority: 1},
		queue.Work{Session: "later", Tenant: "few", Due: time.Now().Add(time.Hour)})
	if got, want := candidates(t, q, queue.Want{Most: 4}), []string{"urgent", "few", "many19", "many18"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := candidates(t, q, queue.Want{Most: 9, Caps: map[string]int{"many": 1}}), []string{"urgent", "few"}; !slices.Equal(got, want) {
		t.Errorf("with a cap: got %v, want %v", got, want)
	}
	unlock, err := q.Lock(t.Context(), "urgent")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	begin(t, q, "urgent")
	if got, want := candidates(t, q, queue.Want{Most: 2}), []string{"few", "many19"}; !slices.Equal(got, want) {
		t.Errorf("while one runs: got %v, want %v", got, want)
	}
	if got := candidates(t, q, queue.Want{Most: 9, Caps: map[string]int{"many": 1}}); !slices.Equal(got, []string{"few"}) {
		t.Errorf("at the cap: %v", got)
	}
}

// D4: each tenant gets its turn at a worker with one place, however urgent the work of the
// others is.
func testQueueTurns(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	tenants := []string{"anna", "ben", "carl"}
	for n, tenant := range tenants {
		for m := range 6 {
			enqueue(t, q, queue.Work{Session: fmt.Sprint(tenant, m), Tenant: tenant, Priority: 9 - n})
		}
	}
	for _, want := range []queue.Want{{Most: 1}, {Most: 2}, {Most: 1, Tenants: tenants}} {
		turns := map[string]int{}
		for range 2 * len(tenants) {
			list, err := q.Candidates(t.Context(), want)
			if err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			turns[list[0].Tenant]++
			finish(t, q, begin(t, q, list[0].Session), queue.Outcome{State: queue.Done, Well: true})
		}
		for _, tenant := range tenants {
			if turns[tenant] != 2 {
				t.Errorf("%+v: turns %v, want 2 for each", want, turns)
				break
			}
		}
	}
}

// Of the workers that begin work of a tenant at once, no more succeed than its cap allows. A run
// whose worker died keeps its place for itself.
func testQueueCap(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	const most = 2
	var works []queue.Work
	for n := range 5 {
		works = append(works, queue.Work{Session: fmt.Sprint("anna", n), Tenant: "anna"})
	}
	enqueue(t, q, append(works, queue.Work{Session: "ben", Tenant: "ben"})...)
	try := func(id string) (queue.Work, error) {
		w, err := q.Work(t.Context(), id)
		if err == nil {
			w.Cap = most
			w, err = q.Begin(t.Context(), w, "worker")
		}
		return w, err
	}
	for range 4 {
		begun := make([]queue.Work, len(works))
		var all sync.WaitGroup
		for n := range works {
			all.Go(func() {
				var err error
				if begun[n], err = try(works[n].Session); err != nil && !errors.Is(err, queue.ErrFull) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		begun = slices.DeleteFunc(begun, func(w queue.Work) bool { return w.State != queue.Running })
		if len(begun) != most {
			t.Fatalf("%d runs, and %d are allowed: %+v", len(begun), most, begun)
		}
		again, err := try(begun[0].Session)
		if err != nil {
			t.Fatalf("the run goes on: %v", err)
		}
		finish(t, q, again, queue.Outcome{State: queue.Ready})
		finish(t, q, begun[1], queue.Outcome{State: queue.Ready})
	}
	if _, err := try("anna0"); err != nil {
		t.Error(err)
	}
	if _, err := try("ben"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// The work of several sessions is read at once as one by one, without those that have none.
func testQueueRead(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	r, ok := s.(queue.Reader)
	if !ok {
		t.Skipf("%T reads no work of several sessions at once", s)
	}
	const strange = "c \"',\\%\U0001F600"
	enqueue(t, q, queue.Work{Session: "a", Needs: []string{"gpu"}}, queue.Work{Session: "b"}, queue.Work{Session: strange, Tenant: "t"})
	begin(t, q, "a")
	put(t, q, "idle", 0, said("hello"))
	list, err := r.WorkOf(t.Context(), []string{"a", strange, "idle", "nobody", "a"})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b queue.Work) int { return strings.Compare(a.Session, b.Session) })
	if want := []queue.Work{workOf(t, q, "a"), workOf(t, q, strange)}; !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, want %+v", list, want)
	}
	if list, err = r.WorkOf(t.Context(), nil); err != nil || len(list) > 0 {
		t.Errorf("of no session: %+v, %v", list, err)
	}
}

// Deleting a session deletes its work, and a fork has none.
func testQueueDelete(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	f := has[session.Forker](t, s)
	c := has[session.Catalog](t, s)
	enqueue(t, q, queue.Work{Session: "a"})
	if err := f.Fork(t.Context(), "a", 1, "b"); err != nil {
		t.Fatal(err)
	}
	if got := candidates(t, q, queue.Want{Most: 9}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("candidates %v", got)
	}
	if err := c.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for w, err := range q.Works(t.Context()) {
		t.Errorf("work of a deleted session: %+v, %v", w, err)
	}
}

// A delivery to a nested session makes the work of the outer one ready, also one that
// arrives while it runs.
func testQueueNested(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	n := has[session.SubsessionStore](t, s)
	enqueue(t, q, queue.Work{Session: "a"})
	inner := n.Nest("a", 1, "call")
	put(t, q, inner, 0, said("inner"))
	w := begin(t, q, "a")
	deliver(t, q, inner, told1("k1"))
	finish(t, q, w, queue.Outcome{State: queue.Waiting})
	if now := workOf(t, q, "a"); now.State != queue.Ready {
		t.Fatalf("a delivery came while it ran: %+v", now)
	}
	finish(t, q, begin(t, q, "a"), queue.Outcome{State: queue.Waiting})
	if now := workOf(t, q, "a"); now.State != queue.Waiting {
		t.Fatalf("it has looked again: %+v", now)
	}
	deliver(t, q, inner, told1("k2"))
	if now := workOf(t, q, "a"); now.State != queue.Ready {
		t.Errorf("a delivery came while it waits: %+v", now)
	}
}

// D4: a delivery to a nested session is seen by the run of the outer one or makes its work
// ready, whatever the order in which the two reach the store.
func testQueueNestedRace(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	inner := has[session.SubsessionStore](t, s).Nest("a", 1, "call")
	enqueue(t, q, queue.Work{Session: "a"})
	put(t, q, inner, 0, said("inner"))
	seen := func() (n int) {
		for _, err := range q.Deliveries(t.Context(), inner) {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		return n
	}
	for n := range 200 {
		var sender sync.WaitGroup
		sender.Go(func() {
			if _, err := q.Deliver(t.Context(), inner, told1(fmt.Sprint(n))); err != nil {
				t.Error(err)
			}
		})
		w := begin(t, q, "a")
		saw := seen() > n
		finish(t, q, w, queue.Outcome{State: queue.Waiting})
		sender.Wait()
		now := workOf(t, q, "a")
		if now.State != queue.Ready && !saw {
			t.Fatalf("round %d: a delivery waits and nobody looks: %+v", n, now)
		}
		if now.State == queue.Ready {
			continue
		}
		if err := q.Move(t.Context(), now, queue.Ready, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// D1 D2: with many workers and senders, each delivery is taken once, no two workers begin
// the same claim, and no wake-up is lost: when all is quiet, nothing waits.
func testQueueRace(t *testing.T, s session.Store) {
	q := has[keeper](t, s)
	const sessions, senders, each = 3, 3, 8
	for n := range sessions {
		enqueue(t, q, queue.Work{Session: fmt.Sprint("s", n)})
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var begun sync.Map
	var taken atomic.Int64
	work := func(name string) {
		for ctx.Err() == nil {
			list, err := q.Candidates(ctx, queue.Want{Most: 2})
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			for _, w := range list {
				unlock, err := q.Lock(ctx, w.Session)
				if err != nil {
					continue // another worker has it
				}
				if w, err = q.Begin(ctx, w, name); err == nil {
					if other, twice := begun.LoadOrStore([2]any{w.Session, w.Claim}, name); twice {
						t.Errorf("%s and %s have begun %+v", name, other, w)
					}
					n, err := takeAll(ctx, q, w.Session)
					taken.Add(n)
					if err == nil {
						err = q.Finish(ctx, w, queue.Outcome{State: queue.Waiting, Well: true})
					}
					if err != nil && ctx.Err() == nil {
						t.Errorf("%s: %v", name, err)
					}
				} else if !errors.Is(err, queue.ErrChanged) && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
				}
				if err := unlock(); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		}
	}
	var workers, mail sync.WaitGroup
	for n := range 3 {
		workers.Go(func() { work(fmt.Sprint("worker ", n)) })
	}
	for n := range senders {
		mail.Go(func() {
			for m := range each {
				if _, err := q.Deliver(ctx, fmt.Sprint("s", (n+m)%sessions), told1(fmt.Sprint(n, " ", m))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	mail.Wait()
	for quiet := false; !quiet && !t.Failed(); { // a lost wake-up would go on for ever: the test's time is its limit
		quiet = taken.Load() == senders*each
		for w, err := range q.Works(ctx) {
			quiet = quiet && err == nil && w.State == queue.Waiting
		}
	}
	end()
	workers.Wait()
	if n := taken.Load(); n != senders*each {
		t.Errorf("%d deliveries were taken, of %d", n, senders*each)
	}
}

// takeAll takes the deliveries that wait into the log.
func takeAll(ctx context.Context, q keeper, id string) (n int64, err error) {
	var list []session.Delivery
	for d, err := range q.Deliveries(ctx, id) {
		if err != nil {
			return 0, err
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		return 0, nil
	}
	end := int64(0)
	for e, err := range q.Load(ctx, id, 0) {
		if err != nil {
			return 0, err
		}
		end = e.Seq
	}
	return int64(len(list)), q.Append(ctx, id, end, entries(end, taking(list...)...))
}
