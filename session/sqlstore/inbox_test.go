// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

func hello(key string) session.Delivery {
	return session.Delivery{Delivered: session.Delivered{Key: key, By: "anna"}, Bodies: []session.Body{session.InputItem{Item: item.User("hello " + key)}}}
}

// A delivery that was changed in storage is damage, and not given to anybody.
func TestInboxDamaged(t *testing.T) {
	for name, change := range map[string]string{
		"text":   `UPDATE antiphon_inbox SET data = replace(CAST(data AS TEXT), 'hello', 'hullo')`,
		"sum":    `UPDATE antiphon_inbox SET sum = x'00'`,
		"nobody": `UPDATE antiphon_inbox SET data = x''`,
	} {
		t.Run(name, func(t *testing.T) {
			s, where := newSQLite(t)
			mustAppend(t, s, "a", 0, session.RunStarted{})
			if _, err := s.Deliver(t.Context(), "a", hello("1")); err != nil {
				t.Fatal(err)
			}
			if _, err := openPlain(t, where).Exec(change); err != nil {
				t.Fatal(err)
			}
			var failed error
			for d, err := range s.Deliveries(t.Context(), "a") {
				if failed = err; err == nil {
					t.Errorf("it is given to the run: %v", d)
				}
			}
			if !errors.Is(failed, session.ErrDamaged) || !strings.Contains(fmt.Sprint(failed), "delivery 1") {
				t.Errorf("reading it: %v", failed)
			}
			found := 0
			for d, err := range s.Verify(t.Context()) {
				if found++; err != nil || !strings.Contains(d.Place, "antiphon_inbox") {
					t.Errorf("verifying: %v %v", d, err)
				}
			}
			if found != 1 {
				t.Errorf("verifying finds %d", found)
			}
		})
	}
}

// Two stores of one place: what is delivered through one is told to those who listen
// at the other, and taken there once.
func TestInboxOfAnother(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		here, there := openHere(t, where).(*sqlstore.Store), openHere(t, where).(*sqlstore.Store)
		mustAppend(t, here, "a", 0, session.RunStarted{})
		arrived := make(chan bool, 1)
		stop := there.Notify("a", func() {
			select {
			case arrived <- true:
			default:
			}
		})
		defer stop()
		for n := range 3 {
			if _, err := here.Deliver(t.Context(), "a", hello(fmt.Sprint(n))); err != nil {
				t.Fatal(err)
			}
			<-arrived
			var list []session.Delivery
			for d, err := range there.Deliveries(t.Context(), "a") {
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, d)
			}
			if len(list) != 1 || list[0].Key != fmt.Sprint(n) {
				t.Fatalf("delivery %d: there are %v", n, list)
			}
			list[0].Entries = 1
			mustAppend(t, there, "a", int64(1+2*n), list[0].Delivered, list[0].Bodies[0])
		}
	})
}

// What is delivered to an encrypted store cannot be read, or guessed, from the file.
func TestInboxSealed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	s := sealed(t, file, sqlstore.NewSecret())
	mustAppend(t, s, "a", 0, session.RunStarted{})
	if _, err := s.Deliver(t.Context(), "a", hello("1")); err != nil {
		t.Fatal(err)
	}
	var key, sum, data []byte
	if err := openPlain(t, file).QueryRow(`SELECT key, sum, data FROM antiphon_inbox`).Scan(&key, &sum, &data); err != nil {
		t.Fatal(err)
	}
	if hash := session.KeyHash("1"); string(key) == string(hash[:]) || strings.Contains(string(data), "hello") {
		t.Errorf("the row says what it is about: %x %s", key, data)
	}
}

// Who wants one delivery of a full inbox reads one, and who wants all gets them in their order, also those that arrive meanwhile and
// not those that are taken.
func TestInboxInPages(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		mustAppend(t, s, "a", 0, step(0)...)
		const many = 40
		large := strings.Repeat("x", 1<<20)
		say := func(n int) {
			t.Helper()
			d := session.Delivery{Delivered: session.Delivered{Key: fmt.Sprint(n), From: "test"}, Bodies: []session.Body{session.InputItem{Item: item.User(large)}}}
			if _, err := s.Deliver(t.Context(), "a", d); err != nil {
				t.Fatal(err)
			}
		}
		for n := range many {
			say(n)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for d, err := range s.Deliveries(t.Context(), "a") {
			if err != nil || d.Key != "0" {
				t.Error(d.Key, err)
			}
			break
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > many/2<<20 {
			t.Errorf("%d MB for one delivery", n>>20)
		}
		var keys []string
		for d, err := range s.Deliveries(t.Context(), "a") {
			if err != nil {
				t.Fatal(err)
			}
			if keys = append(keys, d.Key); len(keys) == 1 {
				say(many)
			}
		}
		if len(keys) != many+1 || keys[many] != fmt.Sprint(many) || !slices.IsSortedFunc(keys, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) {
			t.Errorf("%q", keys)
		}
	})
}
