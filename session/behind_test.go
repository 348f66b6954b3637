// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// disk is a store that can be slow and fail: it is told how each append goes on.
type disk struct {
	under   session.Memory
	mu      sync.Mutex
	appends int
	// before is called before the append of a number, from 1. With an error the entries
	// are not written.
	before func(n int) error
}

func (d *disk) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	d.mu.Lock()
	d.appends++
	n := d.appends
	d.mu.Unlock()
	if d.before != nil {
		if err := d.before(n); err != nil {
			return err
		}
	}
	return d.under.Append(ctx, id, after, entries)
}

func (d *disk) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return d.under.Load(ctx, id, after)
}

func notice(n int) session.Body {
	return session.Noticed{Kind: "test", Text: fmt.Sprint(n)}
}

// J15: what is written goes on while the store is blocked, it is in the log at once,
// and is durable when Sync returns; all that waited is one append.
func TestWriteWaitsForNothing(t *testing.T) {
	open, begun := make(chan struct{}), make(chan struct{}, 10)
	d := &disk{before: func(int) error {
		begun <- struct{}{}
		<-open
		return nil
	}}
	s, err := session.Open(t.Context(), d, "a")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		entries, err := s.Write(t.Context(), notice(n))
		if err != nil || len(entries) != 1 || entries[0].Seq != int64(n)+1 {
			t.Fatalf("entry %d: %v, %v", n+1, entries, err)
		}
		if n == 49 {
			<-begun // without a Sync
		}
	}
	if n := len(s.Log()); n != 100 {
		t.Errorf("the log has %d entries", n)
	}
	if n := s.Durable(); n != 0 {
		t.Errorf("%d entries are called durable, and the store has none", n)
	}
	close(open)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := s.Durable(); n != 100 {
		t.Errorf("%d entries are durable", n)
	}
	if d.appends > 3 {
		t.Errorf("%d appends", d.appends)
	}
	again, err := session.Open(t.Context(), d, "a")
	if err != nil || len(again.Log()) != 100 {
		t.Errorf("%d entries are stored, %v", len(again.Log()), err)
	}
}

// After an append that failed, the log ends with what is durable, and takes nothing
// until it is read again.
func TestWriteFails(t *testing.T) {
	full := errors.New("the disk is full")
	d := &disk{before: func(n int) error {
		if n == 2 {
			return full
		}
		return nil
	}}
	s, err := session.Open(t.Context(), d, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), notice(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), notice(2), notice(3)); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); !errors.Is(err, full) {
		t.Errorf("Sync: %v", err)
	}
	if len(s.Log()) != 1 || s.Durable() != 1 {
		t.Errorf("%d entries, %d durable, want 1", len(s.Log()), s.Durable())
	}
	for range 2 {
		if _, err := s.Write(t.Context(), notice(4)); !errors.Is(err, session.ErrNotWritten) || !errors.Is(err, full) {
			t.Errorf("Write: %v", err)
		}
		if _, err := s.Append(t.Context(), notice(4)); !errors.Is(err, session.ErrNotWritten) {
			t.Errorf("Append: %v", err)
		}
	}
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Append(t.Context(), notice(2)); err != nil || e[0].Seq != 2 {
		t.Errorf("after it was read again: %v, %v", e, err)
	}
}

// An Append that fails where nothing was written before may be tried again.
func TestAppendFailsAlone(t *testing.T) {
	d := &disk{before: func(n int) error {
		if n < 3 {
			return errors.New("away")
		}
		return nil
	}}
	s, err := session.Open(t.Context(), d, "a")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if _, err := s.Append(t.Context(), notice(1)); (err == nil) != (n == 2) {
			t.Errorf("try %d: %v", n+1, err)
		}
	}
	if len(s.Log()) != 1 {
		t.Errorf("%d entries", len(s.Log()))
	}
}

// J15, J1: whatever is written, and wherever the store ends, the log that is opened
// again is a beginning of what was handed over, holds every Write whole or not at all,
// and everything that was called durable.
func TestCrashAtAnyAppend(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 15))
		crash, crashed := 1+rng.IntN(12), errors.New("the process ends here")
		d := &disk{before: func(n int) error {
			if n >= crash {
				return crashed
			}
			return nil
		}}
		s, err := session.Open(t.Context(), d, "a")
		if err != nil {
			t.Fatal(err)
		}
		var ends []int // of the writes
		given, durable := 0, int64(0)
		for range 40 {
			bodies := make([]session.Body, 1+rng.IntN(3))
			for i := range bodies {
				bodies[i] = notice(given + i)
			}
			if _, err = s.Write(t.Context(), bodies...); err != nil {
				break
			}
			given += len(bodies)
			ends = append(ends, given)
			if rng.IntN(3) == 0 {
				if err = s.Sync(); err != nil {
					break
				}
				if s.Durable() != int64(given) {
					t.Fatalf("seed %d: %d of %d entries are durable after Sync", seed, s.Durable(), given)
				}
			}
			durable = s.Durable()
		}
		_ = s.Sync() // no writer is left; its error is that of the crash
		again, err := session.Open(t.Context(), &d.under, "a")
		if err != nil {
			t.Fatal(err)
		}
		log := again.Log()
		if int64(len(log)) < durable || len(log) > given {
			t.Fatalf("seed %d: %d entries, %d were handed over and %d durable", seed, len(log), given, durable)
		}
		whole := len(log) == 0
		for _, end := range ends {
			whole = whole || end == len(log)
		}
		if !whole {
			t.Errorf("seed %d: a part of a Write is stored: %d entries, writes end at %v", seed, len(log), ends)
		}
		for i, e := range log {
			if e.Body != notice(i) {
				t.Errorf("seed %d: entry %d is %v", seed, i+1, e.Body)
			}
		}
	}
}

// A store that panics holds nobody up: whoever waits gets an error. G8
func TestStorePanics(t *testing.T) {
	d := &disk{before: func(int) error { panic("a mistake of the store") }}
	s, err := session.Open(t.Context(), d, "a")
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = s.Append(t.Context(), notice(1))
	}()
	if err := s.Sync(); err == nil {
		t.Error("Sync reports nothing")
	}
	if len(s.Log()) > 0 {
		t.Errorf("%d entries are in the log", len(s.Log()))
	}
}
