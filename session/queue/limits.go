// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"time"
)

// ErrFull means that an endpoint or a tenant has as many runs as it may have at once.
var ErrFull = errors.New("the endpoint or the tenant has as many runs as it may have at once")

// Endpoint is what the workers of a store share about an endpoint.
type Endpoint struct {
	// URL is the base URL without secrets, as [endpoint.About] has it.
	//
	// [endpoint.About]: https://pkg.go.dev/github.com/antiphon-go/antiphon/endpoint#About
	URL string
	Caps

	// Stopped is why no request may be sent until an operator allows it again, or "".
	Stopped string
	// Wait is how long no request may be sent, because the endpoint asked for it. Below
	// zero is how long ago that ended.
	Wait time.Duration
	// Pause is how long the endpoint asked to wait. Those who waited should not all begin at
	// once when it has ended.
	Pause time.Duration
	// Runs is the number of runs now.
	Running int
}

// Caps limit what all workers of a store do at an endpoint. Zero means no limit.
type Caps struct {
	// Requests are sent at most so often in a minute, at equal distances.
	Requests int64
	// Tokens are used at most in a minute, as the endpoint counts them. They are known only
	// after the reply, so the next requests wait for what was used too much.
	Tokens int64
	// Runs are the most sessions that run at once.
	Runs int64
}

// Limits is implemented by stores that keep the limits of endpoints for all workers. All
// times are the store's own.
type Limits interface {
	// Endpoints returns all that have caps, were stopped, or asked to wait, by their URLs.
	Endpoints(ctx context.Context) ([]Endpoint, error)
	// Limit sets the caps of an endpoint.
	Limit(ctx context.Context, url string, c Caps) error
	// Stop says why nothing may be sent to an endpoint. An empty reason allows requests
	// again, also if the endpoint had asked to wait.
	Stop(ctx context.Context, url, reason string) error
	// Send asks for the time at which a request may be sent, and reserves it. The result
	// says how long the caller must wait before it sends. If that is longer than most, or the
	// endpoint is stopped, nothing is reserved.
	Send(ctx context.Context, url string, most time.Duration) (Endpoint, error)
	// Slow records that an endpoint asked to wait. A shorter wait than the one that holds
	// changes nothing.
	Slow(ctx context.Context, url string, wait time.Duration) error
	// Used records the tokens of a reply whose request was sent some time ago.
	Used(ctx context.Context, url string, tokens int64, ago time.Duration) error
}
