// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

func told(key string, bodies ...session.Body) session.Delivery {
	return session.Delivery{Delivered: session.Delivered{Key: key, By: "anna", From: "a test"}, Bodies: bodies}
}

// deliver delivers and wants the receipt's number and place in the log.
func deliver(t *testing.T, box session.Inbox, id string, d session.Delivery) session.Receipt {
	t.Helper()
	r, err := box.Deliver(t.Context(), id, d)
	if err != nil {
		t.Fatalf("deliver to %q: %v", id, err)
	}
	return r
}

// waiting returns the deliveries that wait.
func waiting(t *testing.T, box session.Inbox, id string) (list []session.Delivery) {
	t.Helper()
	for d, err := range box.Deliveries(t.Context(), id) {
		if err != nil {
			t.Fatalf("deliveries to %q: %v", id, err)
		}
		list = append(list, d)
	}
	return list
}

// taking are the bodies of an append that takes deliveries.
func taking(list ...session.Delivery) (bodies []session.Body) {
	for _, d := range list {
		d.Delivered.Entries = len(d.Bodies)
		bodies = append(append(bodies, d.Delivered), d.Bodies...)
	}
	return bodies
}

// A delivery waits until the session's writer takes it, is found by its key for
// ever, and belongs to its session only.
func testInbox(t *testing.T, s session.Store) {
	box := has[session.Inbox](t, s)
	first := told("1", said("hello \x00\xff \U0001F600"), session.StopAsked{Why: "cancelled", AfterTurn: true})
	if _, err := box.Deliver(t.Context(), "a", first); !errors.Is(err, session.ErrNotFound) {
		t.Fatalf("a delivery to nobody: %v", err)
	}
	put(t, s, "a", 0, said("1"))
	put(t, s, "b", 0, said("1"))
	second := told("2", session.Approval{CallID: "c", Number: 1, Allowed: true, By: "anna", From: "a test",
		Remember: &session.Rule{Verdict: session.Allow, Tool: "t", Prefix: []string{"git", "log"}}})
	second.Queued, second.Shown = true, "cafe"
	big := told("3", session.InputItem{Item: item.User(strings.Repeat("long ", 1<<20))})
	var receipts []session.Receipt
	for _, d := range []session.Delivery{first, second, big} {
		receipts = append(receipts, deliver(t, box, "a", d))
	}
	got := waiting(t, box, "a")
	for i, want := range []session.Delivery{first, second, big} {
		if want.Number = receipts[i].Number; i >= len(got) || !reflect.DeepEqual(got[i], want) {
			t.Fatalf("waiting: %v, want %v first", got[min(i, len(got)):], want)
		}
		if i > 0 && receipts[i].Number <= receipts[i-1].Number || receipts[i].Taken != 0 {
			t.Errorf("receipts %v", receipts)
		}
	}
	if len(waiting(t, box, "b")) > 0 {
		t.Error("another session has them")
	}
	if again := deliver(t, box, "a", second); again != receipts[1] {
		t.Errorf("the same again: %v, not %v", again, receipts[1])
	}
	other := told("2", said("something else"))
	if _, err := box.Deliver(t.Context(), "a", other); !errors.Is(err, session.ErrKeyUsed) {
		t.Errorf("something else with its key: %v", err)
	}
	deliver(t, box, "b", other) // keys belong to their session

	// An append that fails takes nothing.
	if err := s.Append(t.Context(), "a", 7, entries(7, taking(got[0])...)); !errors.Is(err, session.ErrConflict) {
		t.Errorf("a wrong append: %v", err)
	}
	put(t, s, "a", 1, taking(got[0], got[1])...)
	wantEntries(t, load(t, s, "a", 1), entries(1, taking(got[0], got[1])...))
	if left := waiting(t, box, "a"); len(left) != 1 || left[0].Key != "3" {
		t.Errorf("left: %v", left)
	}
	for i, at := range []int64{2, 5} {
		d := []session.Delivery{first, second}[i]
		if r := deliver(t, box, "a", d); r.Number != receipts[i].Number || r.Taken != at {
			t.Errorf("a taken one again: %v, want it to be entry %d", r, at)
		}
		if _, err := box.Deliver(t.Context(), "a", told(d.Key, said("other"))); !errors.Is(err, session.ErrKeyUsed) {
			t.Errorf("something else with the key of a taken one: %v", err)
		}
	}
	for _, wrong := range []session.Delivery{
		{}, told(""), told("k"), told("k\n", said("1")), told(strings.Repeat("k", 257), said("1")), told("k", nil),
		told("k", session.CallOutput{}), told("k", session.Approval{CallID: "c"}), told("k", session.InputItem{}),
	} {
		if _, err := box.Deliver(t.Context(), "a", wrong); err == nil {
			t.Errorf("delivered: %v", wrong)
		}
	}
}

// A session is not deleted by [session.DeleteIfTaken] while words wait for it or for a session
// nested in it. Requests to stop alone do not keep it.
func testInboxDeleted(t *testing.T, s session.Store) {
	box, in := has[session.Inbox](t, s), has[session.Catalog](t, s)
	for _, id := range []string{"a", "a/1-call", "b"} {
		put(t, s, id, 0, said("1"))
	}
	there := func(id string) bool {
		t.Helper()
		_, err := in.Info(t.Context(), id)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			t.Error(err)
		}
		return err == nil
	}
	deliver(t, box, "a", told("stop", session.StopAsked{}))
	for _, id := range []string{"a", "a/1-call"} {
		words := told("words", session.StopAsked{}, said("do not deploy"))
		deliver(t, box, id, words)
		if err := session.DeleteIfTaken(t.Context(), in, "a"); !errors.Is(err, session.ErrDeliveryWaits) {
			t.Errorf("words wait for %s: %v", id, err)
		}
		if !there("a") || !there("a/1-call") || !slices.ContainsFunc(waiting(t, box, id), func(d session.Delivery) bool { return d.Key == "words" }) {
			t.Fatalf("words for %s are gone", id)
		}
		put(t, s, id, 1, taking(words)...)
	}
	if err := session.DeleteIfTaken(t.Context(), in, "a"); err != nil || there("a") || there("a/1-call") {
		t.Errorf("a session whose words were taken: %v", err)
	}
	if err := session.DeleteIfTaken(t.Context(), in, "a"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a session that is gone: %v", err)
	}
	if !there("b") {
		t.Error("another session is gone")
	}
}

// What waits is bounded, in number and in bytes. Nothing that was accepted is lost, it is still found by its key, and requests to
// stop have room of their own.
func testInboxFull(t *testing.T, s session.Store) {
	box := has[session.Inbox](t, s)
	const most = 1000
	put(t, s, "a", 0, said("1"))
	for n := range most {
		deliver(t, box, "a", told(fmt.Sprint(n), said("hello")))
	}
	more := told("more", said("hello"))
	if _, err := box.Deliver(t.Context(), "a", more); !errors.Is(err, session.ErrInboxFull) {
		t.Errorf("more than the most: %v", err)
	}
	deliver(t, box, "a", told("0", said("hello")))
	deliver(t, box, "a", told("stop", session.StopAsked{}))
	list := waiting(t, box, "a")
	if len(list) != most+1 {
		t.Errorf("%d wait, not %d", len(list), most+1)
	}
	put(t, s, "a", 1, taking(list[:2]...)...)
	deliver(t, box, "a", more)
	if testing.Short() {
		return
	}
	put(t, s, "b", 0, said("1"))
	large := session.InputItem{Item: item.User(strings.Repeat("x", 50<<20))}
	deliver(t, box, "b", told("1", large))
	if _, err := box.Deliver(t.Context(), "b", told("2", large)); !errors.Is(err, session.ErrInboxFull) {
		t.Errorf("too many bytes: %v", err)
	}
	deliver(t, box, "b", told("2", said("hello")))
}

// A fork does not get the deliveries of its parent, and a session that is deleted
// takes its own along.
func testInboxOfFork(t *testing.T, s session.Store) {
	box := has[session.Inbox](t, s)
	f, c := has[session.Forker](t, s), has[session.Catalog](t, s)
	put(t, s, "a", 0, said("1"))
	deliver(t, box, "a", told("1", said("hello")))
	if err := f.Fork(t.Context(), "a", 1, "b"); err != nil {
		t.Fatal(err)
	}
	if list := waiting(t, box, "b"); len(list) > 0 {
		t.Errorf("the fork has %v", list)
	}
	deliver(t, box, "b", told("1", said("hello, fork")))
	if err := c.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if list := waiting(t, box, "a"); len(list) > 0 {
		t.Errorf("a deleted session has %v", list)
	}
	put(t, s, "a", 0, said("another"))
	if list := waiting(t, box, "a"); len(list) > 0 {
		t.Errorf("its successor has %v", list)
	}
	deliver(t, box, "a", told("1", said("hello, successor")))
	if list := waiting(t, box, "b"); len(list) != 1 {
		t.Errorf("the fork has %v", list)
	}
}

// Whoever delivers, how often and when: the writer gets each delivery once, in
// the order of the numbers, and is woken for it.
func testInboxRace(t *testing.T, s session.Store) {
	box := has[session.Inbox](t, s)
	put(t, s, "a", 0, said("1"))
	const senders, each = 4, 25
	seen, last, end := map[string]bool{}, int64(0), int64(1)
	arrived := make(chan bool, 1)
	defer box.Notify("a", func() {
		select {
		case arrived <- true:
		default:
		}
	})()
	var all sync.WaitGroup
	for n := range senders * 2 { // two of them send the same
		all.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%d/%d", n/2, i)
				if _, err := box.Deliver(t.Context(), "a", told(key, said("%s", key))); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
	for len(seen) < senders*each && !t.Failed() {
		<-arrived
		list := waiting(t, box, "a")
		for _, d := range list {
			if seen[d.Key] || d.Number <= last {
				t.Errorf("delivery %d, %q, after %d", d.Number, d.Key, last)
			}
			seen[d.Key], last = true, d.Number
		}
		put(t, s, "a", end, taking(list...)...)
		end += int64(len(taking(list...)))
	}
	all.Wait()
	if list := waiting(t, box, "a"); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
	var keys []string
	for key := range session.Takes(load(t, s, "a", 1)) {
		keys = append(keys, key)
	}
	if slices.Sort(keys); len(keys) != senders*each || len(slices.Compact(keys)) != len(keys) {
		t.Errorf("the log has %d deliveries, want %d, each once", len(keys), senders*each)
	}
}

// A listener is told of each later delivery to its session, and not of those to others.
func testNotify(t *testing.T, s session.Store) {
	box := has[session.Inbox](t, s)
	put(t, s, "a", 0, said("1"))
	put(t, s, "b", 0, said("1"))
	arrived := make(chan bool, 100)
	tell := func() {
		select {
		case arrived <- true:
		default:
		}
	}
	stop, another := box.Notify("a", tell), box.Notify("a", func() {})
	another()
	another() // a second time does nothing
	for n := range 3 {
		deliver(t, box, "b", told(fmt.Sprint(n), said("another's")))
		deliver(t, box, "a", told(fmt.Sprint(n), said("hello")))
		<-arrived
	}
	stop()
}
