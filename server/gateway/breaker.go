// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
)

// breaker leaves out an upstream that failed several times without an answer in between.
// After a while one request tries it again, and each further failure doubles the time.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time // when the next request may try
}

const (
	tolerated   = 5
	firstRest   = 5 * time.Second
	longestRest = 2 * time.Minute
)

// rests returns how long the upstream is still left out. If it returns 0 while the breaker
// is open, the caller is the one that tries: others wait for it.
func (b *breaker) rests(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < tolerated {
		return 0
	}
	if wait := b.until.Sub(now); wait > 0 {
		return wait
	}
	b.until = now.Add(firstRest)
	return 0
}

// outages are the failures that are about the upstream as a whole.
var outages = []endpoint.Class{endpoint.Overloaded, endpoint.Server, endpoint.Network, endpoint.Truncated, endpoint.Idle, endpoint.Protocol}

// note counts the result of a request. Results that say nothing about the upstream, such
// as a client that went away, change nothing.
func (b *breaker) note(now time.Time, failure error) {
	var e *endpoint.Error
	about := failure == nil || errors.As(failure, &e) && !errors.As(failure, new(*broken)) && e.Class != endpoint.Canceled
	if !about {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if failure == nil || !slices.Contains(outages, e.Class) {
		b.failures, b.until = 0, time.Time{}
		return
	}
	if b.failures++; b.failures >= tolerated {
		rest := firstRest << min(b.failures-tolerated, 10)
		b.until = now.Add(max(min(rest, longestRest), min(e.RetryAfter, longestRest)))
	}
}
