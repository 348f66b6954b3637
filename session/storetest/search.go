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

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

func label(t *testing.T, c session.Catalog, id string, change session.Labels) {
	t.Helper()
	if err := c.Label(t.Context(), id, change); err != nil {
		t.Fatal(err)
	}
}

// J3: owner, tags and title are stored, changed and searched.
func testLabels(t *testing.T, s session.Store) {
	c := has[session.Catalog](t, s)
	for _, i := range []session.Info{
		{ID: "a", Owner: "ann", Tags: []string{"z", "bug", "z"}, Title: "A title"},
		{ID: "b", Tags: []string{"bug"}},
	} {
		if err := c.Create(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, "a", 0, said("first"))
	put(t, s, "b", 0, said("second"))
	want := session.Info{ID: "a", Owner: "ann", Tags: []string{"bug", "z"}, Title: "A title", Entries: 1}
	if got := infoOf(t, c, "a"); !reflect.DeepEqual(got, want) {
		t.Errorf("created %+v, want %+v", got, want)
	}
	wantList(t, c, session.Query{Tags: []string{"bug"}}, "b", "a")
	put(t, s, "a", 1, said("more"))
	wantList(t, c, session.Query{Tags: []string{"bug"}}, "a", "b")
	wantList(t, c, session.Query{Tags: []string{"bug", "z"}}, "a")
	wantList(t, c, session.Query{Tags: []string{"bug"}, Owner: "ann"}, "a")
	wantList(t, c, session.Query{Tags: []string{"none"}})

	label(t, c, "a", session.Labels{Title: new(""), Tags: []string{"new", "bug"}, Untag: []string{"z", "bug", "none"}})
	want.Tags, want.Title, want.Entries = []string{"bug", "new"}, "first", 2
	put(t, s, "a", 2, said("third"))
	want.Entries++
	if got := infoOf(t, c, "a"); got.Title != "first" && got.Title != "third" {
		t.Errorf("the title is %q, want that of a message", got.Title)
	} else if want.Title = got.Title; !reflect.DeepEqual(got, want) {
		t.Errorf("labelled %+v, want %+v", got, want)
	}
	wantList(t, c, session.Query{Tags: []string{"z"}})
	label(t, c, "b", session.Labels{Title: new("Called"), Untag: []string{"bug"}})
	if got := infoOf(t, c, "b"); got.Title != "Called" || got.Tags != nil {
		t.Errorf("got %+v", got)
	}
	put(t, s, "of-a-message", 0, said("%s and more", strings.Repeat("x", 79)))
	label(t, c, "of-a-message", session.Labels{Tags: []string{"long"}}) // a title from a message is not limited
	if err := c.Delete(t.Context(), "of-a-message"); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]session.Labels{
		"two words":  {Tags: []string{"a b"}},
		"no tag":     {Tags: []string{""}},
		"a line end": {Title: new("a\nb")},
		"not UTF-8":  {Owner: new("a\xff")},
		"too long":   {Tags: []string{strings.Repeat("x", 65)}},
		"too many":   {Tags: strings.Fields(strings.Repeat("x ", 10) + manyWords(33))},
	} {
		if err := c.Label(t.Context(), "a", change); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if got := infoOf(t, c, "a"); !reflect.DeepEqual(got, want) {
		t.Errorf("after changes that were refused %+v, want %+v", got, want)
	}
	if err := c.Create(t.Context(), session.Info{ID: "c", Tags: []string{"\x00"}}); err == nil {
		t.Error("created with a control character: no error")
	}
	if err := c.Label(t.Context(), "nobody's", session.Labels{}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := c.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "a", 0, said("another"))
	wantList(t, c, session.Query{Tags: []string{"new"}})
}

func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%d ", i)
	}
	return b.String()
}

// A list with an owner never shows sessions of others, including forks and nested
// sessions; names are unique per owner.
func testOwners(t *testing.T, s session.Store) {
	c := has[session.Catalog](t, s)
	for _, owner := range []string{"ann", "bob", ""} {
		id := "of-" + owner
		if err := c.Create(t.Context(), session.Info{ID: id, Owner: owner, Name: "main", Path: "/p"}); err != nil {
			t.Fatal(err)
		}
		put(t, s, id, 0, said("1"))
		put(t, s, id+"/1-call", 0, said("nested"))
		if f, ok := s.(session.Forker); ok {
			if err := f.Fork(t.Context(), id, 1, "fork-"+id); err != nil {
				t.Fatal(err)
			}
		} else {
			put(t, s, "fork-"+id, 0, said("1"))
			label(t, c, "fork-"+id, session.Labels{Owner: &owner})
		}
	}
	all := session.Query{Nested: true, Archived: true}
	for _, owner := range []string{"ann", "bob"} {
		q := all
		q.Owner = owner
		wantList(t, c, q, "fork-of-"+owner, "of-"+owner+"/1-call", "of-"+owner)
		wantList(t, c, session.Query{Owner: owner, Name: "main", Path: "/p"}, "of-"+owner)
		wantList(t, c, session.Query{Owner: owner, Path: "/p", Name: "other"})
	}
	wantList(t, c, session.Query{Owner: "an"})
	wantList(t, c, session.Query{Owner: "ANN"})
	if err := c.Create(t.Context(), session.Info{ID: "x", Owner: "ann", Name: "main", Path: "/p"}); !errors.Is(err, session.ErrExists) {
		t.Errorf("a name twice: got %v, want ErrExists", err)
	}
	if err := c.Label(t.Context(), "of-bob", session.Labels{Owner: new("ann")}); !errors.Is(err, session.ErrExists) {
		t.Errorf("given to an owner who has the name: got %v, want ErrExists", err)
	}
	if err := c.Rename(t.Context(), "of-bob", "bobs"); err != nil {
		t.Fatal(err)
	}
	label(t, c, "of-bob", session.Labels{Owner: new("ann")})
	q := all
	q.Owner = "ann"
	wantList(t, c, q, "of-bob/1-call", "of-bob", "fork-of-ann", "of-ann/1-call", "of-ann")
	q.Owner = "bob"
	wantList(t, c, q, "fork-of-bob")
}

// All pages together are the list, each session once, even during writes.
func testPages(t *testing.T, s session.Store) {
	c := has[session.Catalog](t, s)
	for n := range 25 {
		i := session.Info{ID: fmt.Sprintf("s%02d", n), Path: "/p", Owner: "o", Tags: []string{"t"}, Name: fmt.Sprintf("n%d", n%2)}
		if i.Name == "n1" {
			i.Path = fmt.Sprint("/", n)
		} else {
			i.Name = ""
		}
		if err := c.Create(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		put(t, s, i.ID, 0, said("x"))
	}
	for _, q := range []session.Query{{}, {Owner: "o"}, {Path: "/p"}, {Tags: []string{"t"}}, {Tags: []string{"t"}, Owner: "o", Path: "/p"}, {Name: "n1"}, {Prefix: "s"}, {Prefix: "s1", Owner: "o"}, {Archived: true, Nested: true}} {
		want := listed(t, c, q)
		if len(want) < 9 {
			t.Fatalf("%+v lists %d", q, len(want))
		}
		var got []string
		for q.Limit = 4; ; {
			page := infosOf(t, c, q)
			for _, i := range page {
				got = append(got, i.ID)
				q.After = i.Cursor
			}
			if len(page) < q.Limit {
				break
			}
			// One session that was listed, and one that was not: neither is listed again.
			if i := infoOf(t, c, "s20"); i.Entries < 3 {
				put(t, s, "s20", i.Entries, said("while pages are turned"))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		got, want = without(got, "s20"), without(want, "s20")
		if !slices.Equal(got, want) {
			t.Errorf("%+v: pages %q, want %q", q, got, want)
		}
	}
	for _, q := range []session.Query{{After: "x"}, {After: "=s"}, {Prefix: "s", After: "1-2"}} {
		var failed error
		for _, err := range c.List(t.Context(), q) {
			failed = err
		}
		if failed == nil {
			t.Errorf("%+v: no error", q)
		}
	}
}

func without(list []string, id string) []string {
	return slices.DeleteFunc(slices.Compact(list), func(one string) bool { return one == id })
}

func infosOf(t *testing.T, c session.Catalog, q session.Query) (list []session.Info) {
	t.Helper()
	for i, err := range c.List(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, i)
	}
	return list
}

// found returns where words stand, as "session entry by".
func found(t *testing.T, c session.Searcher, what session.Search) (list []string) {
	t.Helper()
	for f, err := range c.Search(t.Context(), what) {
		if errors.Is(err, session.ErrNoIndex) && what.In == "" {
			t.Skip("the store keeps no index of words")
		}
		if err != nil {
			t.Fatalf("%+v: %v", what, err)
		}
		list = append(list, fmt.Sprint(f.Session.ID, " ", f.Entry, " ", f.By))
	}
	return list
}

func wantFound(t *testing.T, c session.Searcher, what session.Search, want ...string) {
	t.Helper()
	if got := found(t, c, what); !slices.Equal(got, want) {
		t.Errorf("%q in %q of %+v: %q, want %q", what.Words, what.In, what.Query, got, want)
	}
}

func outputSaid(callID, text string) session.Body {
	return session.CallOutput{CallID: callID, Item: item.Must(&item.FunctionCallOutput{CallID: callID, Output: item.Content{Text: text}})}
}

func assistant(turn int, text string) session.Body {
	return session.OutputItem{Turn: turn, Item: item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Content{Text: text}})}
}

// Text is found immediately, whatever the words are.
func testSearch(t *testing.T, s session.Store) {
	c := has[session.Searcher](t, s)
	put(t, s, "a", 0, session.InputItem{Item: item.Must(&item.Message{Role: item.RoleSystem, Content: item.Content{Text: "instructions of zebra"}})},
		said("Where is the Straße, Émile?"), session.TurnStarted{Turn: 1})
	put(t, s, "a", 3, assistant(1, "Behind the old mill; 我喜欢你."), outputSaid("c", "mill.txt: 42 lines of the_OLD-mill\n\ttail"))
	put(t, s, "b", 0, said("an old NEAR mill"))
	wantFound(t, c, session.Search{Words: "emile"}, "a 2 user")
	wantFound(t, c, session.Search{Words: "ÉMILE where"}, "a 2 user")
	wantFound(t, c, session.Search{Words: "mill"}, "b 1 user", "a 5 output")
	wantFound(t, c, session.Search{Words: `"old mill"`}, "a 5 output")
	wantFound(t, c, session.Search{Words: `"mill old"`})
	wantFound(t, c, session.Search{Words: "喜欢"}, "a 4 assistant")
	wantFound(t, c, session.Search{Words: "zebra"})
	wantFound(t, c, session.Search{Words: "near"}, "b 1 user")
	wantFound(t, c, session.Search{Words: "mill", In: "a"}, "a 5 output", "a 4 assistant")
	for _, odd := range []string{`"`, `old "mill`, `NEAR(a b)`, `a*`, `-x`, `words : x`, `'; DROP`, `a & | ! <-> b`, `^x {y} + z`, `\`, "\xff a", "%_?", "a\x00b", `a"b"c`, strings.Repeat("x", 5000)} {
		for _, in := range []string{"", "a"} {
			for _, err := range c.Search(t.Context(), session.Search{Words: odd, In: in}) {
				if err != nil && !strings.Contains(err.Error(), "no words") {
					t.Errorf("%q: %v", odd, err)
				}
			}
		}
	}
	label(t, c, "b", session.Labels{Title: new("The green door")})
	wantFound(t, c, session.Search{Words: "green"}, "b 0 title")
	wantFound(t, c, session.Search{Words: "green", In: "b"}, "b 0 title")
	label(t, c, "b", session.Labels{Title: new("The blue door")})
	wantFound(t, c, session.Search{Words: "green"})
	wantFound(t, c, session.Search{Words: "blue"}, "b 0 title")
	for f, err := range c.Search(t.Context(), session.Search{Words: "42"}) {
		if err != nil || !strings.Contains(f.Snippet, "mill.txt: 42 lines") || strings.ContainsAny(f.Snippet, "\n\t") {
			t.Errorf("snippet %q, %v", f.Snippet, err)
		}
	}
	put(t, s, "b", 1, said("written after a search: gloaming"))
	wantFound(t, c, session.Search{Words: "gloaming"}, "b 2 user")
	if err := c.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	wantFound(t, c, session.Search{Words: "gloaming"})
	wantFound(t, c, session.Search{Words: "blue"})
	var failed error
	for _, err := range c.Search(t.Context(), session.Search{Words: "mill", In: "b"}) {
		failed = err
	}
	if !errors.Is(failed, session.ErrNotFound) {
		t.Errorf("in a session that is not there: got %v, want ErrNotFound", failed)
	}
	testSearchPages(t, s, c)
}

// All pages together contain every place, each session once.
func testSearchPages(t *testing.T, s session.Store, c session.Searcher) {
	for n := range 23 {
		id := fmt.Sprint("p", n)
		put(t, s, id, 0, said("pearl one"), said("pearl two"))
		if n%3 == 0 {
			put(t, s, "many", int64(n/3), said("pearl %d of many", n))
		}
	}
	want := found(t, c, session.Search{Words: "pearl"})
	if len(want) != 24 {
		t.Fatalf("%d found: %q", len(want), want)
	}
	for _, in := range []string{"", "many"} {
		want := found(t, c, session.Search{Words: "pearl", In: in})
		var got []string
		what := session.Search{Words: "pearl", In: in, Query: session.Query{Limit: 5}}
		for more := true; more; {
			more = false
			for f, err := range c.Search(t.Context(), what) {
				if err != nil {
					t.Fatal(err)
				}
				got, more, what.After = append(got, fmt.Sprint(f.Session.ID, " ", f.Entry, " ", f.By)), true, f.Cursor
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages %q, want %q", got, want)
		}
	}
}

// Withdrawn text is not found and does not become the title.
func testSearchWithdrawn(t *testing.T, s session.Store) {
	c := has[session.Searcher](t, s)
	put(t, s, "a", 0, said("the secret quux"), session.ItemsWithdrawn{Seqs: []int64{1}}, said("another"))
	wantFound(t, c, session.Search{Words: "quux"})
	put(t, s, "b", 0, said("later quux"), said("then this"))
	wantFound(t, c, session.Search{Words: "quux"}, "b 1 user")
	if f, ok := s.(session.Forker); ok {
		if err := f.Fork(t.Context(), "b", 2, "fork"); err != nil {
			t.Fatal(err)
		}
		put(t, s, "fork", 2, session.ItemsWithdrawn{Seqs: []int64{1}})
		wantFound(t, c, session.Search{Words: "quux"}, "b 1 user")
		wantFound(t, c, session.Search{Words: "quux", In: "fork"})
	}
	put(t, s, "b", 2, session.ItemsWithdrawn{Seqs: []int64{1}})
	wantFound(t, c, session.Search{Words: "quux"})
	wantFound(t, c, session.Search{Words: "quux", In: "b"})
	if got := infoOf(t, c, "b").Title; got != "then this" {
		t.Errorf("the title is %q, want that of the message that is left", got)
	}
	put(t, s, "c", 0, assistant(1, "half a quuz"), assistant(1, "half a quuz, and the rest"), session.Superseded{Seqs: []int64{1}, By: 2})
	wantFound(t, c, session.Search{Words: "quuz", In: "c"}, "c 2 assistant")
}

// A search with an owner never shows sessions of others.
func testSearchOwners(t *testing.T, s session.Store) {
	c := has[session.Searcher](t, s)
	for _, owner := range []string{"ann", "bob"} {
		if err := c.Create(t.Context(), session.Info{ID: owner + "s", Owner: owner, Tags: []string{"t-" + owner}, Path: "/" + owner}); err != nil {
			t.Fatal(err)
		}
		put(t, s, owner+"s", 0, said("common word"))
		put(t, s, owner+"s/1-c", 0, said("common inside"))
	}
	of := func(owner string) session.Search {
		return session.Search{Words: "common", Query: session.Query{Owner: owner}}
	}
	wantFound(t, c, of("ann"), "anns 1 user")
	wantFound(t, c, of("bob"), "bobs 1 user")
	wantFound(t, c, of("nobody"))
	wantFound(t, c, session.Search{Words: "common", Query: session.Query{Tags: []string{"t-ann"}}}, "anns 1 user")
	wantFound(t, c, session.Search{Words: "common", Query: session.Query{Path: "/bob"}}, "bobs 1 user")
	wantFound(t, c, session.Search{Words: "common", Query: session.Query{Owner: "ann", Nested: true}}, "anns/1-c 1 user", "anns 1 user")
	label(t, c, "anns", session.Labels{Owner: new("bob")})
	wantFound(t, c, of("ann"))
	if got := found(t, c, of("bob")); len(got) != 2 {
		t.Errorf("bob's are %q, want two", got)
	}
	var failed error
	for _, err := range c.Search(t.Context(), session.Search{Words: "common", In: "anns", Query: session.Query{Owner: "ann"}}) {
		failed = err
	}
	if !errors.Is(failed, session.ErrNotFound) {
		t.Errorf("in a session of another: got %v, want ErrNotFound", failed)
	}
}

// Entries that forks share are found in an existing, selected session.
func testSearchForks(t *testing.T, s session.Store) {
	c, f := has[session.Searcher](t, s), has[session.Forker](t, s)
	put(t, s, "a", 0, said("shared pebble"), said("left behind boulder"))
	for id, from := range map[string]string{"f": "a"} {
		if err := f.Fork(t.Context(), from, 1, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Fork(t.Context(), "f", 1, "g"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "g", 1, said("own gravel"))
	wantFound(t, c, session.Search{Words: "pebble"}, "a 1 user")
	wantFound(t, c, session.Search{Words: "pebble", In: "g"}, "g 1 user")
	label(t, c, "g", session.Labels{Owner: new("gil")})
	wantFound(t, c, session.Search{Words: "pebble", Query: session.Query{Owner: "gil"}}, "g 1 user")
	put(t, s, "a", 2, said("not indexed yet: shale"))
	for _, gone := range []string{"a", "f"} {
		if err := c.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Sweep(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	wantFound(t, c, session.Search{Words: "pebble"}, "g 1 user")
	wantFound(t, c, session.Search{Words: "pebble", Query: session.Query{Owner: "gil"}}, "g 1 user")
	wantFound(t, c, session.Search{Words: "gravel"}, "g 2 user")
	for _, words := range []string{"boulder", "shale"} {
		wantFound(t, c, session.Search{Words: words})
	}
}
