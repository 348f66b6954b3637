// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package traceparent carries the trace that an HTTP request belongs to through a context,
// from package server to package tracing, so that the server does not need OpenTelemetry.
package traceparent

import (
	"context"
	"net/http"
)

// The headers of W3C Trace Context, as keys of what [Of] returns.
const (
	Parent = "traceparent"
	State  = "tracestate"
)

// maxState is how long a tracestate may be. Longer ones are left out.
const maxState = 4 << 10

type key struct{}

// With returns a context with what the header of a request says of its trace. It returns
// ctx itself if it says nothing.
func With(ctx context.Context, h http.Header) context.Context {
	parent, state := h.Get(Parent), h.Get(State)
	if len(parent) < 55 || len(parent) > 128 { // a later version may be longer
		return ctx
	}
	carried := map[string]string{Parent: parent}
	if state != "" && len(state) <= maxState {
		carried[State] = state
	}
	return context.WithValue(ctx, key{}, carried)
}

// Of returns the headers that [With] found, or nil. The caller must not change them.
func Of(ctx context.Context) map[string]string {
	carried, _ := ctx.Value(key{}).(map[string]string)
	return carried
}
