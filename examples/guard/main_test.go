// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// Each guard objects to its own, and the conversation goes on.
func TestGuard(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = `> My card is 4111 1111 1111 1111. Did you charge it?
(the guard "privacy": please write without the card's number)
> Where is order 7?
order 7 is on its way, paid with [card]
> And where is order 9?
I cannot see that order.
> Write a poem about cards.
(the guard "topic": I only talk about orders)
> Will it come tomorrow?
(the guard "tone": it was flagged)
> Thank you.
You are welcome.
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &out, want)
	}
}
