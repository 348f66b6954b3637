// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"time"
)

// Present is a worker that runs, as it told the store.
type Present struct {
	ID   string // no other worker ever has it
	Data []byte // what it can do: see package worker
}

// Roster is implemented by stores that know which workers run. With it, work that none of
// them can do needs not wait for one that may not exist. All times are the store's own.
type Roster interface {
	// Enter says that a worker runs, for some time from now on. A worker that goes on says so
	// again before that is over, with what it can do then.
	Enter(ctx context.Context, w Present, lasts time.Duration) error
	// Roster returns the workers that run, in the order of their ids.
	Roster(ctx context.Context) ([]Present, error)
}
