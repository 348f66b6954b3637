// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import "time"

// LookAgain lets the next Unfinished look at sessions that others write to.
func (b *Backend) LookAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, e := range b.elsewhere {
		e.until = time.Time{}
		b.elsewhere[id] = e
	}
}
