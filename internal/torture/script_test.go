// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// callable are the tools of a worker, as often as the model likes to call them,
// and one that there is not.
var callable = []string{
	"work", "work", "work", "again", "again", "fails", "picture", "picture", "long", "slow", "slow", "panics", "alone", "asks", "asks",
	"denied", "fork", "fork", "helper", "helper", "nobody", "early", "early",
}

// script makes up what the model says. Its words are the seed's.
func script(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "pace %dus\n", 100+r.IntN(1500))
	}
	for round := range 3 + r.IntN(6) {
		if round > 0 {
			b.WriteString("round\n")
		}
		for range 1 + r.IntN(3) {
			turn(&b, r, 1+r.IntN(4))
		}
		turn(&b, r, 0)
	}
	b.WriteString("again\n")
	turn(&b, r, 1+r.IntN(2))
	turn(&b, r, 0)
	return b.String()
}

// turn is one response with so many calls.
func turn(b *strings.Builder, r *rand.Rand, calls int) {
	b.WriteString("turn\n")
	if r.IntN(3) == 0 {
		fmt.Fprintf(b, "  reason Thought %d of this.\n", r.IntN(1000))
	}
	if calls == 0 || r.IntN(2) == 0 {
		for range 1 + r.IntN(4) {
			fmt.Fprintf(b, "  say %s\n", strings.Repeat(fmt.Sprintf("Word %d and more. ", r.IntN(1000)), 1+r.IntN(8)))
		}
	}
	for range calls {
		if r.IntN(8) == 0 {
			fmt.Fprintf(b, "  pause %dms\n", 1+r.IntN(5))
		}
		name := callable[r.IntN(len(callable))]
		switch {
		case r.IntN(25) == 0:
			fmt.Fprintf(b, "  call_raw %s {\"n\": \n", name)
		case name == "fork":
			fmt.Fprintf(b, "  call fork {\"command\": \"Part %d\", \"arguments\": [\"a\", \"b\"]}\n", r.IntN(1000))
		case name == "helper":
			fmt.Fprintf(b, "  call helper {\"task\": \"Task %d\"}\n", r.IntN(1000))
		default:
			fmt.Fprintf(b, "  call %s {\"n\": %d}\n", name, r.IntN(12))
		}
	}
}
