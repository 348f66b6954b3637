// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import "context"

// Gate decides when requests are sent, for example because several programs share the limits of
// an endpoint. A Gate must be safe for concurrent use.
type Gate interface {
	// Enter waits until a request may be sent to the base URL, which has no secrets. It is called
	// before each attempt of each request. An error means that the request is not sent, and is not
	// tried again: the request returns it. If the error has a method Until() time.Time, the call of a
	// subagent whose request it was waits until then, instead of failing.
	Enter(ctx context.Context, url string) error
	// Failed is told of each attempt that failed.
	Failed(ctx context.Context, url string, err *Error)
}

type gateKey struct{}

// WithGate returns a context whose requests pass a gate, in all clients of this module.
func WithGate(ctx context.Context, g Gate) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// GateFrom returns the gate of the context, or nil.
func GateFrom(ctx context.Context) Gate {
	g, _ := ctx.Value(gateKey{}).(Gate)
	return g
}
