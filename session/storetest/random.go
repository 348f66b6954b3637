// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// whole is a store with all optional interfaces for the test.
type whole interface {
	session.Forker
	session.Catalog
	session.Blobs
}

// testRandom compares the store with the one in memory: the same random steps must
// have the same outcome.
func testRandom(t *testing.T, s session.Store) {
	tested, plain := has[whole](t, s), whole(new(session.Memory))
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		for step := range 60 {
			what, do := randomStep(r, fmt.Sprint(seed))
			got, want := do(t, tested), do(t, plain)
			if kindOf(got) != kindOf(want) {
				t.Fatalf("seed %d, step %d, %s: %v, want %v", seed, step, what, got, want)
			}
		}
		wantSame(t, tested, plain)
	}
}

// kindOf distinguishes errors as callers do.
func kindOf(err error) string {
	for _, kind := range []error{session.ErrConflict, session.ErrExists, session.ErrNotFound} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	if err != nil {
		return "another error"
	}
	return ""
}

// randomStep draws what to do with one of a few sessions.
func randomStep(r *rand.Rand, prefix string) (what string, do func(*testing.T, whole) error) {
	draw := func() string {
		id := fmt.Sprint(prefix, "-", r.IntN(6))
		for r.IntN(5) == 0 {
			id += fmt.Sprintf("/%d-x", 1+r.IntN(2))
		}
		return id
	}
	id, other, n, kind := draw(), draw(), r.IntN(40), r.IntN(14)
	switch kind {
	case 0:
		return "delete " + id, func(t *testing.T, s whole) error { return s.Delete(t.Context(), id) }
	case 1, 2, 3:
		return fmt.Sprintf("fork %s at %d to %s", id, n, other), func(t *testing.T, s whole) error {
			return s.Fork(t.Context(), id, int64(n), other)
		}
	case 4:
		return "rename " + id, func(t *testing.T, s whole) error {
			return s.Rename(t.Context(), id, prefix+[]string{"x", "y", ""}[n%3])
		}
	case 5:
		return "archive " + id, func(t *testing.T, s whole) error { return s.Archive(t.Context(), id, n%2 == 0) }
	case 6:
		return "sweep", func(t *testing.T, s whole) error { return second(s.Sweep(t.Context(), n%2 == 0)) }
	case 7:
		return "blob", func(t *testing.T, s whole) error { return second(s.PutBlob(t.Context(), id, some(n*1000, uint64(n)))) }
	}
	return fmt.Sprintf("append %d to %s", n, id), func(t *testing.T, s whole) error {
		after := int64(len(load(t, s, id, 0)))
		var bodies []session.Body
		for i := range n {
			if bodies = append(bodies, said("%s %d %d", id, kind, i)); i == 7 {
				bodies[i] = session.InputItem{Item: picture(5000+n%3, byte(n%3))}
			}
		}
		return s.Append(t.Context(), id, after, entries(after, bodies...))
	}
}

// wantSame compares everything visible of two stores.
func wantSame(t *testing.T, tested, plain whole) {
	t.Helper()
	all := session.Query{Archived: true, Nested: true}
	want := listed(t, plain, all)
	if got := listed(t, tested, all); !slices.Equal(got, want) {
		t.Fatalf("sessions %q, want %q", got, want)
	}
	for _, id := range want {
		if got, want := infoOf(t, tested, id), infoOf(t, plain, id); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		wantEntries(t, load(t, tested, id, 0), load(t, plain, id, 0))
	}
	for n := range 40 {
		data := some(n*1000, uint64(n))
		hash, err := plain.PutBlob(t.Context(), "hashes", data)
		if err != nil {
			t.Fatal(err)
		}
		if b, _, err := tested.OpenBlob(t.Context(), hash); err == nil {
			_ = b.Close() // it was only read
			wantBlob(t, tested, hash, data)
		}
	}
	if err := plain.Delete(t.Context(), "hashes"); err != nil {
		t.Fatal(err)
	}
}
