// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// A list of items that a client has given one id, beside others that have the numbered ids already,
// takes time that grows with its length alone: with its square, this test would take an hour.
func TestDistinctIsLinear(t *testing.T) {
	const n = 30_000
	list := make([]item.Item, 0, 2*n)
	for i := range n {
		list = append(list, message(t, fmt.Sprintf("msg_%d", i+2)))
	}
	for range n {
		list = append(list, message(t, "msg"))
	}
	got := distinct(list)
	seen := map[string]bool{}
	for i, it := range got {
		if seen[it.ID()] || i < n && it.ID() != list[i].ID() {
			t.Fatalf("item %d is %s", i, it.ID())
		}
		seen[it.ID()] = true
	}
	if list[2*n-1].ID() != "msg" {
		t.Errorf("the list that was given has %s", list[2*n-1].ID())
	}
}

func message(t *testing.T, id string) item.Item {
	t.Helper()
	it, err := item.User("x").With("id", item.Quote(id))
	if err != nil {
		t.Fatal(err)
	}
	return it
}
