// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import "time"

// Busy reports whether a response is being made in a session here.
func (b *Backend) Busy(in string) bool { return b.busy(in) }

// LookAgain lets the next Unfinished look at sessions that others write to.
func (b *Backend) LookAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, e := range b.elsewhere {
		e.until = time.Time{}
		b.elsewhere[id] = e
	}
}
