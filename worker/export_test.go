// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"time"
)

// Sweep removes the checkouts that no run used since a time.
func (w *Worker) Sweep(ctx context.Context, before time.Time) (int, error) {
	return w.sweep(ctx, before)
}

// KeepAlways has workers keep the changes of checkouts before each request.
func KeepAlways() (restore func()) {
	before := keepEvery
	keepEvery = 0
	return func() { keepEvery = before }
}

// Allows reports whether a worker may make checkouts of a repository.
func (w *Worker) Allows(p Place) bool { return w.has(p.Needs()[0]) }
