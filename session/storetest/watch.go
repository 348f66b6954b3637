// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// Each watcher gets each entry once and in order: existing and new ones.
func testWatch(t *testing.T, s session.Store) {
	w := has[session.Watcher](t, s)
	const there, come = 5, 50
	for n := range int64(there) {
		put(t, s, "a", n, said("%d", n+1))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got [3][]session.Entry
	done := make(chan error, len(got))
	for i := range got {
		go func() {
			for e, err := range w.Watch(ctx, "a", int64(i)) {
				if err != nil {
					done <- err
					return
				}
				if got[i] = append(got[i], e); e.Seq == there+come {
					break
				}
			}
			done <- nil
		}()
	}
	var want []session.Body
	for n := range int64(there + come) {
		want = append(want, said("%d", n+1))
		if n >= there {
			put(t, s, "a", n, want[n])
			put(t, s, "b", n-there, said("another's"))
		}
	}
	for range got {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for i := range got {
		wantEntries(t, got[i], entries(int64(i), want[i:]...))
	}

	// Watch waits for a session that does not exist yet, and ends with its context.
	first := make(chan session.Entry)
	ended := make(chan error, 1)
	go func() {
		for e, err := range w.Watch(ctx, "later", 0) {
			if err != nil {
				ended <- err
				return
			}
			first <- e
		}
		ended <- nil
	}()
	put(t, s, "later", 0, said("1"))
	wantEntries(t, []session.Entry{<-first}, entries(0, said("1")))
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended by its context: %v", err)
	}
}

// Watch ends when the session is deleted, even if a new one has its id.
func testWatchDeleted(t *testing.T, s session.Store) {
	w, c := has[session.Watcher](t, s), has[session.Catalog](t, s)
	for _, again := range []bool{false, true} {
		put(t, s, "a", 0, said("1"))
		seen, ended := make(chan bool), make(chan error, 1)
		go func() {
			for _, err := range w.Watch(t.Context(), "a", 0) {
				if err != nil {
					ended <- err
					return
				}
				seen <- true
			}
			ended <- nil
		}()
		<-seen
		if err := c.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if again {
			put(t, s, "a", 0, said("another"))
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
