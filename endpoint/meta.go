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

// Meta records the status and headers of the answers to all requests of a context and of contexts
// derived from it; see [WithMeta]. It is safe for concurrent use, also while requests run.
type Meta struct {
	mu     sync.RWMutex
	latest reply
	count  int
	around *Meta // Meta of the parent context
}

// reply is an answer as it came. Most replies are never read, so parsing waits until [Meta.Latest].
// The header must not change.
type reply struct {
	status, attempt int
	header          http.Header
}

// ResponseInfo is the status and headers of one answer, successful or not.
type ResponseInfo struct {
	// Status is the HTTP status. RequestID is the server's id for the request.
	Status    int
	RequestID string
	// Attempts is the number of times the request was sent to get this answer, starting at 1.
	Attempts int
	// Processing is the server's own measure of its working time; 0 means not known.
	Processing time.Duration
	// Limits is the server's report of its rate limits.
	Limits RateLimits
	// Header holds all headers except those that are or may be secret. It is a copy that the caller
	// may change.
	Header http.Header
}

// RateLimits is the state of an account's rate limits. A value that the server did not send is
// zero.
type RateLimits struct {
	Requests, Tokens Limit
	// Windows are the limits of a plan, which servers report as a percentage used.
	Windows []Window
}

// Limit is an allowance for some period.
type Limit struct {
	Known            bool // whether the server reported anything
	Limit, Remaining int64
	Reset            time.Duration // time until Remaining equals Limit again
}

// Window is the used share of a plan's limit.
type Window struct {
	Name   string        // the server's name, such as "primary"
	Used   float64       // in percent
	Length time.Duration // length of the window
	Reset  time.Duration // time until the next window begins
}

// IsZero reports whether nothing is known.
func (r RateLimits) IsZero() bool {
	return !r.Requests.Known && !r.Tokens.Known && len(r.Windows) == 0
}

// Latest returns the latest answer, or the zero Answer before the first one.
func (m *Meta) Latest() ResponseInfo {
	if m == nil {
		return ResponseInfo{}
	}
	m.mu.RLock()
	r := m.latest
	m.mu.RUnlock()
	if r.status == 0 {
		return ResponseInfo{}
	}
	a := AnswerOf(&http.Response{StatusCode: r.status, Header: r.header})
	a.Attempts = r.attempt
	return a
}

// RequestID returns the request id of the latest answer, and the number of answers so far.
func (m *Meta) RequestID() (id string, answers int) {
	if m == nil {
		return "", 0
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return requestID(m.latest.header), m.count
}

type metaKey struct{}

// WithMeta returns a context that records the answers to its requests in the returned Meta. The
// clients of this module fill it; other clients call [FillMeta].
func WithMeta(ctx context.Context) (context.Context, *Meta) {
	m := new(Meta)
	m.around, _ = ctx.Value(metaKey{}).(*Meta)
	return context.WithValue(ctx, metaKey{}, m), m
}

// FillMeta records an answer in the context's [Meta], if there is one. The attempt counts from 1.
// Clients call FillMeta for every answer, including failures and the handshake of a WebSocket.
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

// AnswerOf returns the Answer with an HTTP answer's status and headers.
func AnswerOf(resp *http.Response) ResponseInfo {
	if resp == nil {
		return ResponseInfo{}
	}
	h := resp.Header.Clone()
	for _, name := range []string{
		"Set-Cookie", "Set-Cookie2", "Cookie", "Authorization", "Proxy-Authorization", "Api-Key", "X-Api-Key",
	} {
		h.Del(name)
	}
	took, _ := number(h.Get("Openai-Processing-Ms"), time.Millisecond)
	return ResponseInfo{
		Status: resp.StatusCode, RequestID: requestID(h), Attempts: 1,
		Processing: took, Limits: limitsOf(h), Header: h,
	}
}

// limitsOf reads the rate limits from the headers that servers use for them.
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
	for _, names := range []struct{ window, percent, minutes, reset string }{
		{"primary", "X-Codex-Primary-Used-Percent", "X-Codex-Primary-Window-Minutes", "X-Codex-Primary-Reset-At"},
		{"secondary", "X-Codex-Secondary-Used-Percent", "X-Codex-Secondary-Window-Minutes", "X-Codex-Secondary-Reset-At"},
	} {
		percent := h.Get(names.percent)
		if percent == "" {
			continue
		}
		used, err := strconv.ParseFloat(percent, 64)
		if err != nil || math.IsNaN(used) || math.IsInf(used, 0) {
			continue
		}
		minutes, _ := count(h.Get(names.minutes))
		length := min(time.Duration(min(minutes, 1e6))*time.Minute, longest)
		r.Windows = append(r.Windows, Window{names.window, used, length, until(h.Get(names.reset), h)})
	}
	return r
}

func limitOf(h http.Header, limit, remaining, reset string) Limit {
	var l Limit
	var ok [2]bool
	l.Limit, ok[0] = count(h.Get(limit))
	l.Remaining, ok[1] = count(h.Get(remaining))
	if l.Known = ok[0] || ok[1]; !l.Known {
		return Limit{}
	}
	l.Reset = until(h.Get(reset), h)
	return l
}

// count reads a number of requests or tokens. Azure writes -1 for a number that it does not report.
func count(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	return n, true
}

// longest limits the time that is read from a server's rate limits.
const longest = 365 * 24 * time.Hour

// until reads the time until a reset in every form that servers use: "6m0s", "120ms", seconds, a
// date, and Unix time in seconds or milliseconds. A value that makes no sense gives 0.
func until(s string, h http.Header) time.Duration {
	if s = strings.TrimSpace(s); s == "" {
		return 0
	}
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
	case f >= 1e11: // Unix time in milliseconds
		return min(max(time.UnixMilli(int64(f)).Sub(now), 0), longest)
	case f >= 1e9: // Unix time in seconds
		return min(max(time.Unix(int64(f), 0).Sub(now), 0), longest)
	case f <= 0:
		return 0
	}
	return min(time.Duration(min(f, longest.Seconds())*float64(time.Second)), longest)
}
