// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/antiphon-go/antiphon/item"
)

// Backend makes the responses that a [Server] serves. It may also be a
// [TokenCounter], a [Compactor] and a [ModelLister]; the server is without what
// its backend cannot do. A backend is used by many requests at once.
type Backend interface {
	// Respond answers a request by what it writes. A nil error completes the
	// response, unless the backend ended it itself. An error before the first
	// write refuses the request; a later one fails the response. An [*Error] is
	// told to the client, other errors are logged.
	//
	// Respond should return soon after ctx is done: the client is gone, or the
	// response was cancelled. What is written then is lost. It must not use w
	// after it returned.
	Respond(ctx context.Context, r *Request, w *Writer) error
}

// BackendFunc is a [Backend] that is a function.
type BackendFunc func(ctx context.Context, r *Request, w *Writer) error

// Respond calls f.
func (f BackendFunc) Respond(ctx context.Context, r *Request, w *Writer) error { return f(ctx, r, w) }

// Request is a request that was checked, with what it goes on from. A backend
// must not change it.
type Request struct {
	*item.Request
	// Object is the request as it came, for members that item.Request does not
	// have and for the exact text of others.
	Object item.Item
	// Items is all that the model is to see: the history that the request goes on
	// from, and its own input. Items that the request only names are in their
	// place.
	Items []item.Item
	// Own is how many of Items, at the end, are the request's own input.
	Own int
	// WarmUp says that the client wants no output: it only prepares the request
	// that follows.
	WarmUp bool

	conversation string // held by this request until it is released
	streamID     string // of a WebSocket
}

// TokenCounter is a [Backend] that knows what a request would take.
type TokenCounter interface {
	// CountTokens returns the number of input tokens.
	CountTokens(ctx context.Context, r *Request) (int64, error)
}

// Compactor is a [Backend] that can replace a history with something shorter.
type Compactor interface {
	// Compact returns what stands for the items of the request. The server sets an
	// ID and a time if there are none.
	Compact(ctx context.Context, r *Request) (*item.Compacted, error)
}

// ModelLister is a [Backend] that knows its models. Requests may name others: what
// becomes of them is the backend's decision.
type ModelLister interface {
	// Models returns all models if id is "", and otherwise the one with that id.
	// No model with that id is an empty list.
	Models(ctx context.Context, id string) ([]Model, error)
}

// Model is a model as a server lists it.
type Model struct {
	ID      string
	Created int64 // seconds since 1970
	OwnedBy string
}
