// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// listed returns the ids of a list.
func listed(t *testing.T, c session.Catalog, q session.Query) []string {
	t.Helper()
	var ids []string
	for i, err := range c.List(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, i.ID)
	}
	return ids
}

func wantList(t *testing.T, c session.Catalog, q session.Query, want ...string) {
	t.Helper()
	if got := listed(t, c, q); !slices.Equal(got, want) {
		t.Errorf("%+v lists %q, want %q", q, got, want)
	}
}

// infoOf returns the known information about a session, without its times.
func infoOf(t *testing.T, c session.Catalog, id string) session.Info {
	t.Helper()
	i, err := c.Info(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if i.Updated.Before(i.Created) {
		t.Errorf("%q was written to at %v, before it was there, at %v", id, i.Updated, i.Created)
	}
	i.Created, i.Updated = session.Info{}.Created, session.Info{}.Updated
	return i
}

// J3: the catalog.
func testCatalog(t *testing.T, s session.Store) {
	c := has[session.Catalog](t, s)
	wantList(t, c, session.Query{})
	full := session.Info{ID: "a", Name: "main", Path: "/p/a.md", Parent: "p", At: 3}
	if err := c.Create(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	if got := infoOf(t, c, "a"); !reflect.DeepEqual(got, full) {
		t.Errorf("created %+v, want %+v", got, full)
	}
	if err := c.Create(t.Context(), session.Info{ID: "a"}); !errors.Is(err, session.ErrExists) {
		t.Errorf("created twice: got %v, want ErrExists", err)
	}
	begun := entries(0, said("question"), said("more"))
	if err := c.Create(t.Context(), session.Info{ID: "begun", Tags: []string{"x"}}, begun...); err != nil {
		t.Fatal(err)
	}
	if got, want := infoOf(t, c, "begun"), (session.Info{ID: "begun", Tags: []string{"x"}, Title: "question", Entries: 2}); !reflect.DeepEqual(got, want) {
		t.Errorf("created with entries: %+v, want %+v", got, want)
	}
	put(t, s, "begun", 2, said("again"))
	wantEntries(t, load(t, s, "begun", 0), append(begun, entries(2, said("again"))...))
	if err := c.Create(t.Context(), session.Info{ID: "begun"}, begun...); !errors.Is(err, session.ErrExists) {
		t.Errorf("created twice with entries: got %v, want ErrExists", err)
	}
	if err := c.Create(t.Context(), session.Info{ID: "begun/42-x"}); err == nil {
		t.Error("Create makes a session that is not nested, with the id of one that is")
	}
	if err := c.Create(t.Context(), session.Info{ID: "gap"}, entries(1, said("x"))...); err == nil {
		t.Error("a session whose first entry has number 2 was created")
	} else if _, err := c.Info(t.Context(), "gap"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a session that was refused: %v", err)
	}
	if err := c.Delete(t.Context(), "begun"); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), session.Info{Name: "nameless"}); err == nil {
		t.Error("a session without an id was created")
	}
	put(t, s, "b", 0, said("question"))
	put(t, s, "b/1-call", 0, said("inner"))
	put(t, s, "nobody/1-call", 0, said("no parent"))
	put(t, s, "a", 0, said("first"), said("second"))

	full.Title, full.Entries = "first", 2
	if got := infoOf(t, c, "a"); !reflect.DeepEqual(got, full) {
		t.Errorf("then %+v, want %+v", got, full)
	}
	want := session.Info{ID: "b/1-call", Parent: "b", Nested: true, Title: "inner", Entries: 1}
	if got := infoOf(t, c, "b/1-call"); !reflect.DeepEqual(got, want) {
		t.Errorf("nested: %+v, want %+v", got, want)
	}
	wantList(t, c, session.Query{}, "a", "nobody/1-call", "b")
	wantList(t, c, session.Query{Nested: true}, "a", "nobody/1-call", "b/1-call", "b")
	put(t, s, "b", 1, said("more"))
	wantList(t, c, session.Query{}, "b", "a", "nobody/1-call")
	wantList(t, c, session.Query{Path: "/p/a.md"}, "a")
	wantList(t, c, session.Query{Name: "main"}, "a")
	wantList(t, c, session.Query{Name: "main", Path: "/other"})

	if err := c.Archive(t.Context(), "b", true); err != nil {
		t.Fatal(err)
	}
	wantList(t, c, session.Query{}, "a", "nobody/1-call")
	wantList(t, c, session.Query{Archived: true}, "b", "a", "nobody/1-call")
	if !infoOf(t, c, "b").Archived {
		t.Error("it is not said to be archived")
	}
	put(t, s, "b", 2, said("it can be written to still"))
	if f, ok := s.(session.Forker); ok {
		if err := f.Fork(t.Context(), "a", 1, "f"); err != nil {
			t.Fatal(err)
		}
		want := session.Info{ID: "f", Path: "/p/a.md", Parent: "a", At: 1, Title: "first", Entries: 1}
		if got := infoOf(t, c, "f"); !reflect.DeepEqual(got, want) {
			t.Errorf("the fork is %+v, want %+v", got, want)
		}
	}
	for what, err := range map[string]error{
		"info":    second(c.Info(t.Context(), "x")),
		"rename":  c.Rename(t.Context(), "x", "y"),
		"archive": c.Archive(t.Context(), "x", true),
		"delete":  c.Delete(t.Context(), "x"),
	} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s of a session that is not there: got %v, want ErrNotFound", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// J3: names are unique.
func testNames(t *testing.T, s session.Store) {
	c := has[session.Catalog](t, s)
	for _, i := range []session.Info{{ID: "a", Name: "n", Path: "/p"}, {ID: "b", Name: "n", Path: "/q"}, {ID: "c", Path: "/p"}, {ID: "d", Path: "/p"}} {
		if err := c.Create(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Create(t.Context(), session.Info{ID: "e", Name: "n", Path: "/p"}); !errors.Is(err, session.ErrExists) {
		t.Errorf("created: got %v, want ErrExists", err)
	}
	if err := c.Rename(t.Context(), "c", "n"); !errors.Is(err, session.ErrExists) {
		t.Errorf("renamed: got %v, want ErrExists", err)
	}
	if _, err := c.Info(t.Context(), "e"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the one that was refused is there: %v", err)
	}
	if err := c.Rename(t.Context(), "a", "n"); err != nil {
		t.Errorf("to its own name: %v", err)
	}
	if err := c.Archive(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	if err := c.Rename(t.Context(), "c", "n"); err != nil {
		t.Errorf("to the name of an archived one: %v", err)
	}
	if err := c.Archive(t.Context(), "a", false); !errors.Is(err, session.ErrExists) {
		t.Errorf("back to a name that was taken: got %v, want ErrExists", err)
	}
	if i := infoOf(t, c, "a"); !i.Archived {
		t.Error("it is not archived any more")
	}
	if err := c.Rename(t.Context(), "c", ""); err != nil {
		t.Fatal(err)
	}
	if err := c.Archive(t.Context(), "a", false); err != nil {
		t.Errorf("the name is free: %v", err)
	}
}

// The title is the beginning of the first message of a person.
func testTitle(t *testing.T, s session.Store) {
	c := has[session.Catalog](t, s)
	system := item.Must(&item.Message{Role: item.RoleSystem, Content: item.Content{Text: "instructions"}})
	long := strings.Repeat("wörter ", 100)
	for n, test := range []struct {
		bodies []session.Body
		want   string
	}{
		{[]session.Body{session.RunStarted{}, session.InputItem{Item: system}, said(" \n\x00 what\n\tis  this? ")}, "what is this?"},
		{[]session.Body{session.InputItem{Item: picture(5000, 1)}, said("second")}, "second"},
		{[]session.Body{session.Note{Item: item.User("a note")}}, ""},
	} {
		id := fmt.Sprint("t", n)
		for i, b := range test.bodies {
			put(t, s, id, int64(i), b)
		}
		put(t, s, id, int64(len(test.bodies)), session.RunStarted{})
		if got := infoOf(t, c, id).Title; got != test.want {
			t.Errorf("title %q, want %q", got, test.want)
		}
	}
	put(t, s, "long", 0, session.InputItem{Item: item.User(long)})
	if got := infoOf(t, c, "long").Title; len(got) > 200 || !utf8.ValidString(got) || !strings.HasPrefix(got, "wörter wörter ") {
		t.Errorf("title %q", got)
	}
}

// J3: a session is deleted with its nested sessions, and no others.
func testDelete(t *testing.T, s session.Store) {
	c := has[session.Catalog](t, s)
	for _, id := range []string{"a", "a/1-call", "a/1-call/2-call", "ab", "a/2"} {
		put(t, s, id, 0, said("%s", id))
	}
	if err := c.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantList(t, c, session.Query{Nested: true, Archived: true}, "a/2", "ab")
	for _, id := range []string{"a", "a/1-call", "a/1-call/2-call"} {
		if n := len(load(t, s, id, 0)); n != 0 {
			t.Errorf("%q has %d entries still", id, n)
		}
	}
	if err := s.Append(t.Context(), "a", 1, entries(1, said("2"))); !errors.Is(err, session.ErrConflict) {
		t.Errorf("an append to the deleted one: got %v, want ErrConflict", err)
	}
	put(t, s, "a", 0, said("another"))
	wantEntries(t, load(t, s, "a", 0), entries(0, said("another")))
}

// F3: entries that a fork shares with a session outlive the session, and no others.
func testDeleteBelowFork(t *testing.T, s session.Store) {
	f, c := has[session.Forker](t, s), has[session.Catalog](t, s)
	var bodies []session.Body
	for n := range 400 {
		bodies = append(bodies, said("%d", n+1))
	}
	bodies[100] = session.InputItem{Item: picture(20_000, 1)}
	bodies[300] = session.InputItem{Item: picture(30_000, 2)}
	for n, b := range bodies {
		put(t, s, "a", int64(n), b)
	}
	for id, at := range map[string]int64{"f": 200, "g": 150} {
		if err := f.Fork(t.Context(), "a", at, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Fork(t.Context(), "f", 120, "h"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "f", 200, said("f"))
	for _, gone := range []string{"a", "f"} {
		if err := c.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := c.Sweep(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
		if gone == "a" {
			wantEntries(t, load(t, s, "f", 0), entries(0, append(slices.Clone(bodies[:200]), said("f"))...))
		}
		wantEntries(t, load(t, s, "g", 0), entries(0, bodies[:150]...))
		wantEntries(t, load(t, s, "h", 0), entries(0, bodies[:120]...))
	}
	put(t, s, "h", 120, said("h"))
	wantEntries(t, load(t, s, "h", 100), entries(100, append(slices.Clone(bodies[100:120]), said("h"))...))
	for _, gone := range []string{"g", "h"} {
		if err := c.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Sweep(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if swept, err := c.Sweep(t.Context(), true); err != nil || swept != (session.GCStats{}) {
		t.Errorf("something is left: %+v, %v", swept, err)
	}
}

// F3, J4: nested sessions outlive their parent as long as a fork exists that shows
// their calls.
func testDeleteNested(t *testing.T, s session.Store) {
	f, c := has[session.Forker](t, s), has[session.Catalog](t, s)
	all := session.Query{Nested: true}
	put(t, s, "a", 0, said("1"), session.CallStarted{CallID: "x", Session: "a/1-x"})
	put(t, s, "a/1-x", 0, said("inside"), session.CallStarted{CallID: "y", Session: "a/1-x/1-y"})
	put(t, s, "a/1-x/1-y", 0, session.InputItem{Item: picture(9000, 1)})
	for id, from := range map[string]string{"f": "a", "unrelated": "a/1-x"} {
		if err := f.Fork(t.Context(), from, 1, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Fork(t.Context(), "f", 1, "g"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "f", 1, session.CallStarted{CallID: "z", Session: "f/1-z"})
	put(t, s, "f/1-z", 0, said("of the fork"))
	for _, id := range []string{"a", "unrelated", "f"} {
		if err := c.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Sweep(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		wantEntries(t, load(t, s, "a/1-x", 0), entries(0, said("inside"), session.CallStarted{CallID: "y", Session: "a/1-x/1-y"}))
		wantEntries(t, load(t, s, "a/1-x/1-y", 0), entries(0, session.InputItem{Item: picture(9000, 1)}))
	}
	wantList(t, c, all, "g", "a/1-x/1-y", "a/1-x")
	for what, err := range map[string]error{
		"append": s.Append(t.Context(), "a", 0, entries(0, said("another"))),
		"create": c.Create(t.Context(), session.Info{ID: "a"}),
		"fork":   f.Fork(t.Context(), "g", 1, "a"),
	} {
		if !errors.Is(err, session.ErrExists) {
			t.Errorf("%s: another session takes the nested ones over: got %v, want ErrExists", what, err)
		}
	}
	if err := c.Delete(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	wantList(t, c, all)
	put(t, s, "a", 0, said("another"))

	// A session made before its parent belongs to it too.
	if err := c.Create(t.Context(), session.Info{ID: "inner", Parent: "outer", Nested: true}); err != nil {
		t.Fatal(err)
	}
	put(t, s, "outer", 0, said("1"))
	if err := c.Delete(t.Context(), "outer"); err != nil {
		t.Fatal(err)
	}
	wantList(t, c, all, "a")
}
