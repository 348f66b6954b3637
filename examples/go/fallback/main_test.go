// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// G7: the second model answers while the first is down, and no longer.
func TestFallback(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = "This is large. You said: Hello?\nThis is small. You said: Are you still there?\nThis is large. You said: And now?\n" +
		"notice: large did not answer (503 overloaded), so small is asked\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &out, want)
	}
}
