// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"testing"
)

// TestHandedAndOver proves that a question is left to workers that have the work, also if its run has ended meanwhile.
func TestHandedAndOver(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	d := &dialogue{leaves: make(chan struct{})}
	if d.handed(over) {
		t.Error("it is handed over before it was")
	}
	d.detached.Store(true)
	close(d.leaves)
	for range 50 { // chance would say no in one of them
		if !d.handed(over) {
			t.Fatal("it is not handed over")
		}
	}
}
