// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// What is kept is bounded by number and by size; the newest always stays.
func TestShelf(t *testing.T) {
	sizes := []int{0, maxStoredBytes / 3, maxStoredBytes * 3 / 4}
	var items []item.Item
	for _, n := range sizes {
		items = append(items, item.User(strings.Repeat("x", n)))
	}
	rapid.Check(t, func(rt *rapid.T) {
		var s shelf
		limit := rapid.IntRange(1, 8).Draw(rt, "limit")
		var order []string
		for n := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			what := rapid.IntRange(0, 4).Draw(rt, "what")
			if len(order) > 0 && what == 0 {
				i := rapid.IntRange(0, len(order)-1).Draw(rt, "which")
				_, had := s.byID[order[i]]
				if s.remove(order[i]) != had {
					rt.Fatalf("removing %s, which was there: %v", order[i], had)
				}
				continue
			}
			id := fmt.Sprint(n)
			if len(order) > 0 && what == 1 {
				id = order[len(order)-1] // again, and larger or smaller
			}
			order = append(order, id)
			it := rapid.SampledFrom(items).Draw(rt, "item")
			s.put(&record{StoredObject{Response: &api.Response{ID: id}}, (*chain)(nil).with([]item.Item{it})}, limit)
			if _, there := s.byID[id]; !there {
				rt.Fatal("the newest went")
			}
		}
		sum := 0
		for id, rec := range s.byID {
			sum += rec.bytes()
			if !slices.Contains(order, id) {
				rt.Fatalf("holds %s", id)
			}
		}
		if len(s.order) != len(s.byID) || sum != s.bytes || len(s.order) > limit || len(s.order) > 1 && sum > maxStoredBytes {
			rt.Fatalf("%d of %d things, %d of %d bytes, limit %d", len(s.order), len(s.byID), s.bytes, sum, limit)
		}
	})
}

// A memory finds records and their items, and says when there is none.
func TestMemory(t *testing.T) {
	var m Memory
	ctx := context.Background()
	said, asked := item.Must(&item.Message{ID: "msg_1", Role: item.RoleAssistant}), item.Must(&item.Message{ID: "msg_2", Role: item.RoleUser})
	r := StoredObject{Response: &api.Response{ID: "resp_1", Output: []item.Item{said}}, Input: []item.Item{asked}}
	talk := StoredObject{Conversation: &api.Conversation{ID: "conv_1"}, Input: []item.Item{item.Must(&item.Message{ID: "msg_3", Role: item.RoleUser})}}
	for _, rec := range []StoredObject{r, talk} {
		if err := m.Put(ctx, rec); err != nil {
			t.Fatal(err)
		}
		got, err := m.Get(ctx, rec.ID())
		items, notThere := m.Items(ctx, rec.ID())
		if err != nil || notThere != nil || got.ID() != rec.ID() || len(items) != 1 {
			t.Errorf("%s: %+v, %v, %v, %v", rec.ID(), got, items, err, notThere)
		}
	}
	for _, id := range []string{"msg_1", "msg_2", "msg_3"} {
		if it, err := m.Item(ctx, id); err != nil || it.ID() != id {
			t.Errorf("%s: %s, %v", id, it.JSON(), err)
		}
	}
	for _, id := range []string{"resp_1", "conv_1"} {
		if err := m.Delete(ctx, id); err != nil {
			t.Error(err)
		}
		if err := m.Delete(ctx, id); err != ErrNotFound {
			t.Errorf("deleted twice: %v", err)
		}
		if _, err := m.Get(ctx, id); err != ErrNotFound {
			t.Errorf("%s after it was deleted: %v", id, err)
		}
	}
	if _, err := m.Item(ctx, "msg_1"); err != ErrNotFound {
		t.Errorf("an item of what was deleted: %v", err)
	}
}

// A response in a memory shares the history that it continues, and keeps it when that is
// changed or deleted. What is not there any more cannot be continued.
func TestMemoryHistory(t *testing.T) {
	var m Memory
	ctx := t.Context()
	message := func(id string) item.Item { return item.Must(&item.Message{ID: id, Role: item.RoleUser}) }
	put := func(rec StoredObject) error { return m.Put(ctx, rec) }
	ids := func(of string) string {
		items, err := m.Items(ctx, of)
		if err != nil {
			t.Error(err)
		}
		var list []string
		for _, it := range items {
			list = append(list, it.ID())
		}
		return strings.Join(list, " ")
	}
	first := StoredObject{Response: &api.Response{ID: "resp_1", Output: []item.Item{message("b")}}, Input: []item.Item{message("a")}}
	second := StoredObject{Response: &api.Response{ID: "resp_2"}, Previous: "resp_1", Before: 2, Input: []item.Item{message("c")}}
	talk := StoredObject{Conversation: &api.Conversation{ID: "conv_1"}, Input: []item.Item{message("x"), message("y")}}
	inTalk := StoredObject{Response: &api.Response{ID: "resp_3"}, Previous: "conv_1", Before: 2, Input: []item.Item{message("z")}}
	for _, rec := range []StoredObject{first, second, talk, inTalk, inTalk} {
		if err := put(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(m.Delete(ctx, "resp_1"), m.Remove(ctx, "conv_1", "x"), m.Add(ctx, "conv_1", message("w"))); err != nil {
		t.Fatal(err)
	}
	for of, want := range map[string]string{"resp_2": "a b c", "resp_3": "x y z", "conv_1": "y w"} {
		if got := ids(of); got != want {
			t.Errorf("%s has %s, want %s", of, got, want)
		}
	}
	inTalk.Response = &api.Response{ID: "resp_4"}
	inTalk.Before = 3
	for _, rec := range []StoredObject{{Response: &api.Response{ID: "resp_5"}, Previous: "resp_1"}, inTalk} {
		if err := put(rec); err != ErrNotFound {
			t.Errorf("%s: %v", rec.ID(), err)
		}
	}
	if err := errors.Join(m.Remove(ctx, "conv_1", "x"), m.Add(ctx, "conv_2")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
