// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// aged makes a store with a session for each name, written to that many days ago.
func aged(t *testing.T, days map[string]int) (place string) {
	t.Helper()
	place = filepath.Join(t.TempDir(), "s.db")
	for name, n := range days {
		o := sqlstore.Options{Now: func() time.Time { return time.Now().AddDate(0, 0, -n) }}
		store, err := sqlstore.OpenSQLite(t.Context(), place, opener("sqlite"), o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(t.Context(), store, name)
		if err == nil {
			_, err = s.Append(t.Context(), session.InputItem{Item: item.User("the secret of " + name)})
		}
		if err == nil && strings.Contains(name, "archived") {
			err = store.Archive(t.Context(), name, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return place
}

// idsOf are the sessions of a store.
func idsOf(t *testing.T, place string) (ids []string) {
	t.Helper()
	store, err := sqlstore.OpenSQLite(t.Context(), place, opener("sqlite"), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for info, err := range store.List(t.Context(), session.Query{Archived: true}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	slices.Sort(ids)
	return ids
}

// J14 D1: a session for which something waits that somebody said is not deleted for its age.
func TestWordsAreNotExpired(t *testing.T) {
	place := aged(t, map[string]int{"old": 100, "asked": 100, "stopped": 100})
	if o := program(t, "sessions", "--store", place, "say", "asked", "do not deploy"); o.code != 0 {
		t.Fatal(o.err)
	}
	store, err := sqlstore.OpenSQLite(t.Context(), place, opener("sqlite"), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Deliver(t.Context(), "stopped", session.Delivery{Delivered: session.Delivered{Key: "k"}, Bodies: []session.Body{session.StopAsked{}}})
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	o := program(t, "sessions", "--store", place, "gc", "--older-than", "30d", "--force")
	if o.code != 0 || !strings.HasPrefix(o.out, "2 sessions and ") && !strings.HasPrefix(o.out, "2 sessions, ") || !strings.Contains(o.err, "antiphon: asked has something in its inbox that somebody said, and stays\n") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", place, "gc", "--older-than", "30d", "--force", "--json"); !strings.Contains(o.out, `"waiting": [`) {
		t.Error(o.out)
	}
	if got := idsOf(t, place); !slices.Equal(got, []string{"asked"}) {
		t.Errorf("left: %v", got)
	}
}

// J14: neither is a session whose inbox cannot be read, and the command says so.
func TestUnreadableInboxIsNotExpired(t *testing.T) {
	place := aged(t, map[string]int{"old": 100, "broken": 100})
	if o := program(t, "sessions", "--store", place, "say", "broken", "do not deploy"); o.code != 0 {
		t.Fatal(o.err)
	}
	db, err := sql.Open("sqlite", place)
	if err == nil {
		_, err = db.Exec(`UPDATE antiphon_inbox SET sum = x'00'`)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	o := program(t, "sessions", "--store", place, "gc", "--older-than", "30d", "--force")
	if o.code != 0 || !strings.Contains(o.err, "antiphon: broken has an inbox that cannot be read: ") || strings.Contains(o.err, "somebody said") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", place, "gc", "--older-than", "30d", "--force", "--json"); !strings.Contains(o.out, `"unread": [`) {
		t.Error(o.out)
	}
	if got := idsOf(t, place); !slices.Equal(got, []string{"broken"}) {
		t.Errorf("left: %v", got)
	}
}

// J14 J9: sessions are deleted for their age only when somebody says so, and then
// no byte of them is left; one that is in use stays.
func TestSessionsExpire(t *testing.T) {
	place := aged(t, map[string]int{"old": 100, "archived-old": 100, "busy": 100, "month": 29, "archived-new": 2})
	gc := func(want int, args ...string) outcome {
		t.Helper()
		o := program(t, append([]string{"sessions", "gc", "--store", place}, args...)...)
		if o.code != want {
			t.Errorf("%v: exit code %d, want %d\n%s%s", args, o.code, want, o.out, o.err)
		}
		return o
	}
	wantIDs := func(want ...string) {
		t.Helper()
		if got := idsOf(t, place); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if o := gc(0); !strings.Contains(o.out, "removed; the database holds no bytes of deleted data") {
		t.Error(o.out)
	}
	if o := gc(2, "--older-than", "30d"); !strings.Contains(o.err, "  old  ") || strings.Contains(o.err, "month") || !strings.Contains(o.err, "needs --force; --dry-run") {
		t.Errorf("it asks for --force:\n%s", o.err)
	}
	if o := gc(0, "--older-than", "30d", "--dry-run"); !strings.HasPrefix(o.out, "3 sessions, ") || !strings.Contains(o.out, "would be removed") {
		t.Error(o.out)
	}
	for _, args := range [][]string{{"--older-than", "30"}, {"--older-than", "0d"}, {"--older-than=-3d"}, {"--older-than", "99999999y"}, {"--expired"}, {"--archived"}, {"--expired", "--older-than", "3d"}} {
		gc(2, append(args, "--force")...)
	}
	wantIDs("archived-new", "archived-old", "busy", "month", "old")

	store, err := sqlstore.OpenSQLite(t.Context(), place, opener("sqlite"), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := store.Lock(t.Context(), "busy")
	if err != nil {
		t.Fatal(err)
	}
	gc(0, "--older-than", "4w", "--archived", "--force")
	wantIDs("archived-new", "busy", "month", "old")
	if o := gc(0, "--older-than", "30d", "--force", "--json"); !strings.Contains(o.out, `"in_use"`) {
		t.Error(o.out)
	}
	wantIDs("archived-new", "busy", "month")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if o := programEnv(t, []string{"ANTIPHON_KEEP=1d", "ANTIPHON_STORE=" + place}, "sessions", "gc", "--expired", "--force"); o.code != 0 {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	wantIDs()
	files, err := filepath.Glob(place + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "the secret of") {
			t.Errorf("%s still holds what was deleted", file)
		}
	}
}
