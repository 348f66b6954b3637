// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

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
	if got := string(l.AppendJSON([]byte("before"))); got != "before"+text {
		t.Errorf("AppendJSON: %s, want %s", got, text)
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
				before := p.list.AppendJSON(nil)
				p.list.Append(items...)
				for _, it := range items {
					if !it.IsZero() {
						p.want = append(p.want, it)
					}
				}
				after := p.list.AppendJSON(nil)
				if cut := len(before) - 1; string(after[:cut]) != string(before[:cut]) {
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
	if b, err := l.MarshalJSON(); err != nil || string(b) != string(l.AppendJSON(nil)) {
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

// L9: appending and cloning cost nothing of what is there already.
func TestListCost(t *testing.T) {
	l := item.NewList()
	for range 1000 {
		l.Append(item.User("x"))
	}
	if n := testing.AllocsPerRun(100, func() { _ = l.Clone() }); n > 1 {
		t.Errorf("Clone allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = l.At(500).Type() }); n > 0 {
		t.Errorf("At allocates %v times", n)
	}
}
