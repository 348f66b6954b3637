// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import "testing"

func TestBeginningOfAnID(t *testing.T) {
	for _, c := range []struct {
		id, text string
		want     bool
	}{
		{"plan-1f0c2d9a3b", "plan-1f0c", true},
		{"plan-1f0c2d9a3b", "plan-1f0c2d9a3b", true},
		{"plan-1f0c2d9a3b", "plan-1f0", false},
		{"plan-1f0c2d9a3b", "plan-", false},
		{"plan-1f0c2d9a3b", "plan", false},
		{"plan-1f0c2d9a3b", "p", false},
		{"plan-final-1f0c2d9a3b", "plan-1f0c", false},
		{"plan-cafe-1f0c2d9a3b", "plan-cafe", false}, // a name
		{"cafe-1f0c2d9a3b", "cafe", false},
		{"plan-1f0c2d9a3b/1-call", "plan-1f0c", false}, // nested
	} {
		if got := beginsID(c.id, c.text); got != c.want {
			t.Errorf("%s begins %s: %v, want %v", c.text, c.id, got, c.want)
		}
	}
}
