// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"charm.land/glamour/v2"
)

// TestPrefixCache proves that the library that the terminal is compared with shows the same as
// glamour does for the whole text, and does not render again what cannot change.
func TestPrefixCache(t *testing.T) {
	r, err := glamour.NewTermRenderer(glamour.WithStandardStyle("dark"), glamour.WithWordWrap(screenWidth))
	if err != nil {
		t.Fatal(err)
	}
	for _, deltas := range append(longReply(1), recordedReplies(1)...) {
		text := strings.Join(deltas, "")
		want, err := r.Render(text)
		if err != nil {
			t.Fatal(err)
		}
		p := prefixCache{glamour: r}
		got, most := "", 0
		for _, delta := range deltas {
			if got, err = p.write(delta); err != nil {
				t.Fatal(err)
			}
			most = max(most, len(p.rest))
		}
		if got, want := wordsOf(got), wordsOf(want); !slices.Equal(got, want) {
			t.Errorf("by parts %q, as a whole %q", got, want)
		}
		if strings.Count(text, "\n\n") > 4 && most > len(text)*2/3 {
			t.Errorf("%d bytes of %d were rendered anew", most, len(text))
		}
	}
}
