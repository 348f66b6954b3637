// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter limits the wait that is read from a server's answer. [Retry.MaxAfter] decides how
// long the client really waits.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long the server asks the client to wait: milliseconds, seconds, or a date. A
// date is compared with the server's own Date header if there is one. A value that makes no sense
// gives 0.
func retryAfter(h http.Header) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := number(value, time.Second); ok {
		return d
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

func number(s string, unit time.Duration) (time.Duration, bool) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if (err != nil && !math.IsInf(f, 0)) || math.IsNaN(f) {
		return 0, false
	}
	f = min(max(f, 0), maxRetryAfter.Seconds()*1000)
	return min(time.Duration(f*float64(unit)), maxRetryAfter), true
}
