// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Meta holds what endpoints say besides the body, for all requests of one
// context and of those that come of it: see [WithMeta]. It is safe for
// concurrent use, also while requests run.
type Meta struct {
	mu     sync.RWMutex
	latest reply
	count  int
	around *Meta // of the context around this one's
}

// reply is an answer as it came. Most are never asked about, so it is read by
// who asks. The header does not change any more.
type reply struct {
	status, attempt int
	header          http.Header
}

// Answer is what one answer said besides its body, whether it succeeded or not.
type Answer struct {
	// Status is that of HTTP, RequestID the server's name for the exchange.
	Status    int
	RequestID string
	// Attempts is how often the request was sent to get this answer, from 1.
	Attempts int
	// Processing is how long the server says it worked; 0 is not known.
	Processing time.Duration
	// Limits is what the server said of its rate limits.
	Limits RateLimits
	// Header is all the rest, without what is or may be secret. It is the
	// reader's own copy.
	Header http.Header
}

// RateLimits is where an account stands. What a server did not say is zero.
type RateLimits struct {
	Requests, Tokens Limit
	// Windows are the limits of a plan that are told as a share of it.
	Windows []Window
}

// Limit is how much may be done in some time.
type Limit struct {
	Known            bool // whether the server said anything
	Limit, Remaining int64
	Reset            time.Duration // until Remaining is Limit again
}

// Window is a share of a plan that was used.
type Window struct {
	Name   string        // the server's, such as "primary"
	Used   float64       // in percent
	Length time.Duration // of the window
	Reset  time.Duration // until it begins anew
}

// IsZero reports that nothing is known.
func (r RateLimits) IsZero() bool {
	return !r.Requests.Known && !r.Tokens.Known && len(r.Windows) == 0
}

// Latest returns the latest answer; the zero Answer before the first.
func (m *Meta) Latest() Answer {
	m.mu.RLock()
	r := m.latest
	m.mu.RUnlock()
	if r.status == 0 {
		return Answer{}
	}
	a := AnswerOf(&http.Response{StatusCode: r.status, Header: r.header})
	a.Attempts = r.attempt
	return a
}

// RequestID returns the latest answer's, and how many answers came so far.
func (m *Meta) RequestID() (id string, answers int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return requestID(m.latest.header), m.count
}

type metaKey struct{}

// WithMeta returns a context whose requests tell the Meta what was answered.
// The clients of this module do; others call [FillMeta].
func WithMeta(ctx context.Context) (context.Context, *Meta) {
	m := new(Meta)
	m.around, _ = ctx.Value(metaKey{}).(*Meta)
	return context.WithValue(ctx, metaKey{}, m), m
}

// FillMeta tells the context's [Meta], if it has one, of an answer to the given
// attempt, counted from 1. Clients call it for every answer, failures and the
// handshake of a WebSocket included.
func FillMeta(ctx context.Context, resp *http.Response, attempt int) {
	m, _ := ctx.Value(metaKey{}).(*Meta)
	if m == nil || resp == nil {
		return
	}
	r := reply{status: resp.StatusCode, attempt: attempt, header: resp.Header}
	for ; m != nil; m = m.around {
		m.mu.Lock()
		m.latest = r
		m.count++
		m.mu.Unlock()
	}
}

// AnswerOf reads an answer's status and headers.
func AnswerOf(resp *http.Response) Answer {
	h := resp.Header.Clone()
	for _, name := range []string{
		"Set-Cookie", "Set-Cookie2", "Cookie", "Authorization", "Proxy-Authorization", "Api-Key", "X-Api-Key",
	} {
		h.Del(name)
	}
	took, _ := number(h.Get("Openai-Processing-Ms"), time.Millisecond)
	return Answer{
		Status: resp.StatusCode, RequestID: requestID(h), Attempts: 1,
		Processing: took, Limits: limitsOf(h), Header: h,
	}
}

// limitsOf reads the rate limits out of the headers that are in use for them.
func limitsOf(h http.Header) RateLimits {
	var r RateLimits
	for _, names := range []struct {
		to *Limit

		limit, remaining, reset string
	}{
		{&r.Requests, "X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{&r.Requests, "Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{&r.Requests, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		{&r.Requests, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"},
		{&r.Tokens, "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
		{&r.Tokens, "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	} {
		if !names.to.Known {
			*names.to = limitOf(h, names.limit, names.remaining, names.reset)
		}
	}
	for _, name := range []string{"primary", "secondary"} {
		prefix := "X-Codex-" + name
		used, err := strconv.ParseFloat(h.Get(prefix+"-Used-Percent"), 64)
		if err != nil || math.IsNaN(used) || math.IsInf(used, 0) {
			continue
		}
		minutes, _ := count(h.Get(prefix + "-Window-Minutes"))
		length := min(time.Duration(min(minutes, 1e6))*time.Minute, longest)
		r.Windows = append(r.Windows, Window{name, used, length, until(h.Get(prefix+"-Reset-At"), h)})
	}
	return r
}

func limitOf(h http.Header, limit, remaining, reset string) Limit {
	l := Limit{Reset: until(h.Get(reset), h)}
	var ok [2]bool
	l.Limit, ok[0] = count(h.Get(limit))
	l.Remaining, ok[1] = count(h.Get(remaining))
	if l.Known = ok[0] || ok[1]; !l.Known {
		return Limit{}
	}
	return l
}

// count reads a number of requests or tokens. Azure writes -1 for what it does
// not tell.
func count(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	return n, true
}

// longest bounds what is believed of a limit's time.
const longest = 365 * 24 * time.Hour

// until reads how long it is to a reset, in all the ways it is told: "6m0s",
// "120ms", seconds, a date, and the seconds or milliseconds of Unix time.
// What makes no sense is 0.
func until(s string, h http.Header) time.Duration {
	s = strings.TrimSpace(s)
	if d, err := time.ParseDuration(s); err == nil {
		return min(max(d, 0), longest)
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsNaN(f) || f > 1e14:
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			if at, err = http.ParseTime(s); err != nil {
				return 0
			}
		}
		return min(max(at.Sub(now), 0), longest)
	case f >= 1e11: // milliseconds of Unix time
		return min(max(time.UnixMilli(int64(f)).Sub(now), 0), longest)
	case f >= 1e9: // seconds of Unix time
		return min(max(time.Unix(int64(f), 0).Sub(now), 0), longest)
	case f <= 0:
		return 0
	}
	return min(time.Duration(min(f, longest.Seconds())*float64(time.Second)), longest)
}
