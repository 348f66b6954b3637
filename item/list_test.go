// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// checkList compares a list with the plain slice that it stands for.
func checkList(t tester, l *item.List, want []item.Item) {
	t.Helper()
	if l.Len() != len(want) {
		t.Fatalf("%d items, want %d", l.Len(), len(want))
	}
	text := "["
	for i, it := range want {
		if got := l.At(i); got != it || got.Type() != it.Type() {
			t.Errorf("item %d: %s, want %s", i, got.JSON(), it.JSON())
		}
		if i > 0 {
			text += ","
		}
		text += it.JSON()
	}
	text += "]"
	if got, err := l.AppendJSON([]byte("before")); err != nil || string(got) != "before"+text || l.JSON() != text {
		t.Errorf("AppendJSON: %s, %v, JSON: %s, want %s", got, err, l.JSON(), text)
	}
	if l.Size() != len(text) {
		t.Errorf("Size %d, want %d", l.Size(), len(text))
	}
	var all []item.Item
	for i, it := range l.All() {
		if i != len(all) {
			t.Errorf("index %d, want %d", i, len(all))
		}
		all = append(all, it)
	}
	if !slices.Equal(all, want) {
		t.Errorf("All: %s", all)
	}
}

func anyItem() *rapid.Generator[item.Item] {
	return rapid.Custom(func(t *rapid.T) item.Item {
		s := rapid.String().Draw(t, "text")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return item.User(s)
		case 1:
			return item.Call("c", "f", s)
		case 2:
			return item.Item{} // left out
		}
		it, err := item.ParseString(`{ "type":"other", "v":` + string(item.Quote(s)) + `}`)
		if err != nil {
			t.Fatal(err)
		}
		return it
	})
}

// L9 I12: a list is its items whatever was appended, cloned and appended again;
// clones do not see each other, and earlier bytes never change.
func TestListProperty(t *testing.T) {
	type pair struct {
		list *item.List
		want []item.Item
	}
	rapid.Check(t, func(t *rapid.T) {
		lists := []*pair{{list: new(item.List)}}
		pick := func() *pair { return lists[rapid.IntRange(0, len(lists)-1).Draw(t, "list")] }
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				p, items := pick(), rapid.SliceOfN(anyItem(), 0, 3).Draw(t, "items")
				before := p.list.JSON()
				p.list.Append(items...)
				for _, it := range items {
					if !it.IsZero() {
						p.want = append(p.want, it)
					}
				}
				after := p.list.JSON()
				if cut := len(before) - 1; after[:cut] != before[:cut] {
					t.Fatalf("%s does not begin with %s", after, before)
				}
			},
			"clone": func(*rapid.T) {
				p := pick()
				lists = append(lists, &pair{p.list.Clone(), slices.Clone(p.want)})
			},
			"": func(t *rapid.T) {
				for _, p := range lists {
					checkList(t, p.list, p.want)
				}
			},
		})
	})
}

func TestListZero(t *testing.T) {
	for _, l := range []*item.List{nil, new(item.List), item.NewList(), (*item.List)(nil).Clone()} {
		checkList(t, l, nil)
	}
	l := item.NewList(item.User("a"), item.User("b"))
	for range l.All() {
		break // ends the range without a panic
	}
	if b, err := l.MarshalJSON(); err != nil || string(b) != l.JSON() {
		t.Errorf("MarshalJSON: %s, %v", b, err)
	}
}

// A clone is read while the original grows; run with the race detector.
func TestListCloneConcurrent(t *testing.T) {
	l := item.NewList()
	var want []item.Item
	var wg sync.WaitGroup
	for i := range 200 {
		it := item.User(strconv.Itoa(i))
		l.Append(it)
		want = append(want, it)
		if i%10 == 0 {
			c, w := l.Clone(), slices.Clone(want)
			wg.Go(func() {
				c.Append(item.Developer("own"))
				checkList(t, c, append(w, item.Developer("own")))
			})
		}
	}
	wg.Wait()
	checkList(t, l, want)
}

// fewestAllocs counts what one call of f allocates: the fewest of a hundred, since
// collections and the race detector empty pools, and the runtime allocates too.
func fewestAllocs(f func()) float64 {
	n := testing.AllocsPerRun(1, f)
	for range 99 {
		n = min(n, testing.AllocsPerRun(1, f))
	}
	return n
}

// L9: appending and cloning cost nothing of what is there already.
func TestListCost(t *testing.T) {
	l := item.NewList()
	for range 1000 {
		l.Append(item.User("x"))
	}
	if n := fewestAllocs(func() { _ = l.Clone() }); n > 1 {
		t.Errorf("Clone allocates %v times", n)
	}
	if n := fewestAllocs(func() { _ = l.At(500).Type() }); n > 0 {
		t.Errorf("At allocates %v times", n)
	}
}

// telling is a rewrite whose outcome depends on what stands before each item,
// as one does that numbers or joins: none, one or two objects an item.
func telling(dst, src *item.List, from int) error {
	for i := from; i < src.Len(); i++ {
		it, before := src.At(i), "none"
		if i > 0 {
			before = string(src.At(i - 1).Type())
		}
		if it.Type() == item.TypeFunctionCall {
			continue
		}
		for k := range 1 + i%2 {
			message := `{"role":"user","behind":` + string(item.Quote(before)) + `,"n":` + strconv.Itoa(dst.Len()+k) + `,"content":` + string(item.Quote(it.JSON())) + `}`
			if err := dst.AppendRaw([]byte(message)); err != nil {
				return err
			}
		}
	}
	return nil
}

// L9 I12: what is derived step by step is what is derived at once, for a list
// and all its clones, whichever of them grew and was asked first; only what is
// new is rewritten, and a derived list never changes.
func TestListDeriveProperty(t *testing.T) {
	type outcome struct {
		list *item.List
		text string
	}
	rapid.Check(t, func(t *rapid.T) {
		lists := []*item.List{new(item.List)}
		var outcomes []outcome
		pick := func() *item.List { return lists[rapid.IntRange(0, len(lists)-1).Draw(t, "list")] }
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				pick().Append(rapid.SliceOfN(anyItem(), 0, 3).Draw(t, "items")...)
			},
			"clone": func(*rapid.T) {
				lists = append(lists, pick().Clone())
			},
			"derive": func(t *rapid.T) {
				l := pick()
				key := rapid.IntRange(0, 1).Draw(t, "key")
				fails := rapid.IntRange(0, 5).Draw(t, "fails") == 0
				got, err := l.Derive(key, func(dst, src *item.List, from int) error {
					err := telling(dst, src, from)
					if fails {
						err = errors.New("no")
					}
					return err
				})
				if err != nil {
					return // and nothing of it shows later
				}
				want := new(item.List)
				if err := telling(want, l, 0); err != nil {
					t.Fatal(err)
				}
				checkList(t, got, (&api.Request{Input: want}).InputItems())
				if rapid.Bool().Draw(t, "own") {
					got.Append(item.Developer("the receiver's own"))
				}
				outcomes = append(outcomes, outcome{got, got.JSON()})
			},
			"": func(t *rapid.T) {
				for _, o := range outcomes {
					if now := o.list.JSON(); now != o.text {
						t.Fatalf("derived %s, now it is %s", o.text, now)
					}
				}
			},
		})
	})
}

// L9: a conversation that grows rewrites each item once, clones and forks
// included, and asking again costs the same at any length.
func TestListDeriveCost(t *testing.T) {
	l, rewritten := item.NewList(), 0
	count := func(dst, src *item.List, from int) error {
		rewritten += src.Len() - from
		return telling(dst, src, from)
	}
	derive := func(l *item.List) {
		t.Helper()
		if _, err := l.Derive("profile", count); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		l.Append(item.User("x"))
		derive(l.Clone())
	}
	fork := l.Clone()
	for range 10 {
		fork.Append(item.User("other"))
		l.Append(item.User("x"))
		derive(fork.Clone())
		derive(l.Clone())
	}
	if want := 1020; rewritten != want {
		t.Errorf("%d items were rewritten, want %d", rewritten, want)
	}
	if n := fewestAllocs(func() { derive(l) }); n > 1 {
		t.Errorf("Derive allocates %v times", n)
	}
	older := l.Clone()
	l.Append(item.User("x"))
	derive(l)
	rewritten = 0
	derive(older)
	derive(l)
	if rewritten != older.Len() {
		t.Errorf("%d items were rewritten for an older clone of %d", rewritten, older.Len())
	}
}

// A rewrite that panics leaves the list usable.
func TestListDerivePanic(t *testing.T) {
	l := item.NewList(item.User("a"))
	func() {
		defer func() { _ = recover() }()
		_, _ = l.Derive(1, func(dst, _ *item.List, _ int) error {
			dst.Append(item.User("half"))
			panic("no")
		})
	}()
	got, err := l.Derive(1, telling)
	if err != nil || got.Len() != 1 {
		t.Errorf("%d items, %v", got.Len(), err)
	}
}

// Clones derive while the original grows and forks; run with the race detector.
func TestListDeriveConcurrent(t *testing.T) {
	l := item.NewList()
	var wg sync.WaitGroup
	for i := range 100 {
		l.Append(item.User(strconv.Itoa(i)), item.Call("c", "f", ""))
		for range 2 {
			c := l.Clone()
			wg.Go(func() {
				if i%10 == 0 {
					c.Append(item.Developer("own"))
				}
				got, err := c.Derive("key", telling)
				want := new(item.List)
				if err := errors.Join(err, telling(want, c, 0)); err != nil {
					t.Error(err)
					return
				}
				if got, want := got.JSON(), want.JSON(); got != want {
					t.Errorf("derived %s, want %s", got, want)
				}
			})
		}
	}
	wg.Wait()
}

func TestListAppendRaw(t *testing.T) {
	l := item.NewList(item.User("a"))
	raw := []byte(` {"type":"chat","content":"b"} `)
	if err := l.AppendRaw(raw); err != nil {
		t.Fatal(err)
	}
	clear(raw)
	checkList(t, l, []item.Item{item.User("a"), parse(t, `{"type":"chat","content":"b"}`)})
	for _, bad := range []string{"", "[]", `"a"`, `{"a":1}{}`, `{"a":1`, "{\"a\":\"\xff\"}"} {
		if err := l.AppendRaw([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if l.Len() != 2 {
		t.Errorf("%d items", l.Len())
	}
}

// L9: the history is not copied into a request's body.
func TestRequestBody(t *testing.T) {
	l := item.NewList(item.User("a"))
	for _, r := range []*api.Request{
		{},
		{Model: "m", Extra: item.Extra{{Name: "x", Value: "[]"}}},
		{Model: "m", Input: new(item.List)},
		{Model: "m", Input: l, Tools: []item.Tool{&item.FunctionTool{Name: "f"}}, Store: new(true)},
	} {
		want, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := r.Body()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := body.Text(); err != nil || got != string(want) || body.Len() != int64(len(want)) || body.Held() {
			t.Errorf("%s, want %s; %v", got, want, err)
		}
		if got, err := io.ReadAll(body.NewReader()); err != nil || string(got) != string(want) {
			t.Errorf("read %s, want %s; %v", got, want, err)
		}
	}
	if _, err := (&api.Request{Model: "\xff", Input: l}).Body(); err == nil {
		t.Error("a model that is not UTF-8 was taken")
	}
	for _, n := range []int{10, 10_000} {
		r := &api.Request{Model: "m", Input: new(item.List)}
		for range n {
			r.Input.Append(item.User("x"))
		}
		if n := fewestAllocs(func() { _, _ = r.Body() }); n > 2 {
			t.Errorf("Body allocates %v times", n)
		}
	}
}
