// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import "context"

type passingKey struct{}

// Passing returns a context for streams whose events are passed on. It calls wait before each
// read of an answer, which may wait for the endpoint: the events that are already here can be
// passed on together, and then none of them is held back. Its texts of deltas share memory, so
// that one which is kept keeps others.
func Passing(ctx context.Context, wait func()) context.Context {
	return context.WithValue(ctx, passingKey{}, wait)
}

// passing returns the function of Passing, or nil.
func passing(ctx context.Context) func() {
	wait, _ := ctx.Value(passingKey{}).(func())
	return wait
}

// Passes reports whether the events of the stream are passed on: see [Passing].
func (x *Exchange) Passes() bool { return x.wait != nil }
