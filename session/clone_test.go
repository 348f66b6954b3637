// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// scribble changes all that can be changed of a value by somebody who has a copy
// of it: what is behind its pointers and in its slices.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		scribble(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
			if v.Elem().CanSet() {
				v.Elem().SetZero()
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
			if v.Index(i).CanSet() {
				v.Index(i).SetZero()
			}
		}
	}
}

// J1: a log is what was appended, whatever becomes of the values that were given
// to it, or that it returned.
func TestLogSharesNoMemory(t *testing.T) {
	ctx := t.Context()
	logOf := func(s session.Store) string {
		t.Helper()
		var b []byte
		for e, err := range s.Load(ctx, "s", 0) {
			if err == nil {
				b, err = session.AppendEntry(b, e)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return string(b)
	}
	linesOf := func(s *session.Session) string {
		t.Helper()
		var b []byte
		for e := range s.Entries() {
			var err error
			if b, err = session.AppendEntry(b, e); err != nil {
				t.Fatal(err)
			}
		}
		return string(b)
	}
	store := new(session.Memory)
	s, err := session.Open(ctx, store, "s")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, e := range everyKind(t) {
		kinds[session.Kind(e.Body)] = true
		body := reflect.New(reflect.TypeOf(e.Body)).Elem()
		body.Set(reflect.ValueOf(e.Body))
		entries, err := s.Append(ctx, e.Body)
		if err != nil {
			t.Fatal(err)
		}
		before, stored := linesOf(s), logOf(store)
		if before != stored {
			t.Fatalf("the store has\n%s, not\n%s", stored, before)
		}
		same := func(who string) {
			t.Helper()
			if linesOf(s) != before {
				t.Errorf("%T: %s changed the session's log", e.Body, who)
			}
			if logOf(store) != stored {
				t.Errorf("%T: %s changed the store's log", e.Body, who)
			}
		}
		scribble(reflect.ValueOf(&entries[0]).Elem())
		same("who got what Append returned")
		scribble(body)
		same("who gave it")
		for e := range store.Load(ctx, "s", 0) {
			scribble(reflect.ValueOf(e.Body))
		}
		same("who loaded it")
		watching, stop := context.WithTimeout(ctx, time.Hour)
		left := len(s.Log())
		for e := range store.Watch(watching, "s", 0) {
			scribble(reflect.ValueOf(e.Body))
			if left--; left == 0 {
				break
			}
		}
		stop()
		same("who watched it")
		scribble(reflect.ValueOf(slices.Clone(s.Log())[left:]))
		if logOf(store) != stored {
			t.Errorf("%T: who changed Log() changed the store's log", e.Body)
		}
		if s, err = session.Open(ctx, store, "s"); err != nil {
			t.Fatal(err)
		}
	}
	if len(kinds) < 20 {
		t.Errorf("only %d kinds", len(kinds))
	}
}

// L9: an append costs the same at the end of a long log.
func BenchmarkSessionAppend(b *testing.B) {
	list := everyKind(b)
	s := session.New()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Append(b.Context(), list[i%len(list)].Body); err != nil {
			b.Fatal(err)
		}
	}
}
