// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// A limit is reserved when a request is admitted, and settled when its real usage is
// known. So many requests at once cannot all use what is left.

// account is what a key has used.
type account struct {
	requests, tokens bucket
	running          int64
	typical          float64 // tokens of a response: the recent average

	day      int64 // since 1970, in UTC
	cost     float64
	reserved float64 // cost of the responses that are being made
	priced   int64   // responses of the day
}

// bucket counts what is used. It empties within a minute.
type bucket struct {
	used float64
	at   time.Time
}

// level returns what counts as used at a time, with a limit for each minute.
func (b *bucket) level(limit int64, now time.Time) float64 {
	if gone := now.Sub(b.at); gone > 0 {
		b.used -= gone.Minutes() * float64(limit)
		if b.used < 0 {
			b.used = 0
		}
	}
	b.at = now
	return b.used
}

// wait returns how long it takes until there is room for n more.
func (b *bucket) wait(limit int64, n float64, now time.Time) time.Duration {
	over := b.level(limit, now) + n - float64(limit)
	if over <= 0 {
		return 0
	}
	return time.Duration(over / float64(limit) * float64(time.Minute))
}

// exceeded says which limit refuses a request.
type exceeded struct {
	limit   string // requests, tokens, running, cost
	text    string
	wait    time.Duration // until it frees, as far as that is known
	forLong bool          // trying again soon is of no use
}

// accounts are those of all keys.
type accounts struct {
	mu   sync.Mutex
	byID map[string]*account
}

func (a *accounts) of(key *Key, now time.Time) *account {
	if a.byID == nil {
		a.byID = map[string]*account{}
	}
	acc := a.byID[key.ID]
	if acc == nil {
		acc = new(account)
		a.byID[key.ID] = acc
	}
	if day := dayOf(now); acc.day != day {
		acc.day, acc.cost, acc.priced = day, 0, 0
	}
	return acc
}

func dayOf(t time.Time) int64 { return t.Unix() / int64(24*time.Hour/time.Second) }

// request counts a request.
func (a *accounts) request(key *Key, now time.Time) *exceeded {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc, limit := a.of(key, now), key.Limits.Requests
	if limit == 0 {
		return nil
	}
	if wait := acc.requests.wait(limit, 1, now); wait > 0 { // it does not count, in a trial either
		return &exceeded{"requests", fmt.Sprintf("Rate limit reached for the key %s: %d requests a minute.", key.Name, limit), wait, false}
	}
	acc.requests.used++
	return nil
}

// reservation is what an admitted response holds of its key's limits.
type reservation struct {
	key    Key
	tokens float64
	cost   float64
	least  int64 // tokens that the request has for certain
	spared bool  // only a trial let it in: the limits count as if it had been refused
}

// reserve admits a response with an estimate of its tokens and its cost. A limit of a trial is
// returned although it admits the response. est.spared says that another limit of a trial would have
// refused it.
func (a *accounts) reserve(key *Key, est reservation, now time.Time) (*reservation, []*exceeded) {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc, l := a.of(key, now), key.Limits
	r := &reservation{key: *key, tokens: math.Max(est.tokens, acc.typical), least: est.least, cost: est.cost}
	if acc.priced > 0 {
		r.cost = math.Max(r.cost, acc.cost/float64(acc.priced))
	}
	var over []*exceeded
	if l.Running > 0 && acc.running >= l.Running {
		over = append(over, &exceeded{"running", fmt.Sprintf("Rate limit reached for the key %s: %s at once. It frees when one ends.", key.Name, responses(l.Running)), time.Second, false})
	}
	if l.Tokens > 0 {
		r.tokens = math.Min(r.tokens, float64(l.Tokens)) // it would never be admitted; what it uses counts all the same
		if wait := acc.tokens.wait(l.Tokens, r.tokens, now); wait > 0 {
			over = append(over, &exceeded{"tokens", fmt.Sprintf("Rate limit reached for the key %s: %d tokens a minute, of which %d are used or reserved, and this request reserves %d.",
				key.Name, l.Tokens, int64(acc.tokens.used), int64(r.tokens)), wait, false})
		}
	}
	if spent := acc.cost + acc.reserved; l.Cost > 0 && (spent >= l.Cost || spent > 0 && spent+r.cost > l.Cost) {
		tomorrow := time.Unix((dayOf(now)+1)*int64(24*time.Hour/time.Second), 0)
		over = append(over, &exceeded{"cost", fmt.Sprintf("The key %s has used or reserved %s of its %s a day.", key.Name, excerpt.Number(spent), excerpt.Number(l.Cost)), tomorrow.Sub(now), true})
	}
	switch {
	case len(over) > 0 && !l.Trial:
		return nil, over
	case len(over) > 0 || est.spared:
		return &reservation{key: *key, least: est.least, spared: true}, over
	}
	acc.running++
	acc.tokens.level(l.Tokens, now)
	acc.tokens.used += r.tokens
	acc.reserved += r.cost
	return r, over
}

// settle replaces a reservation by what was used. It returns the tokens that count.
func (a *accounts) settle(r *reservation, o server.Outcome, now time.Time) (tokens int64) {
	if o.Usage != nil {
		tokens = max(o.Usage.TotalTokens, o.Usage.InputTokens+o.Usage.OutputTokens)
	}
	// Of a response that broke off, the endpoint may have counted what it did not report.
	if o.ID != "" && o.Status != item.StatusCompleted && (o.Status != item.StatusIncomplete || o.Usage == nil) {
		tokens = max(tokens, r.least)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	acc := a.of(&r.key, now)
	if !r.spared {
		acc.running--
		acc.tokens.level(r.key.Limits.Tokens, now)
		acc.tokens.used = math.Max(0, acc.tokens.used+float64(tokens)-r.tokens)
		acc.reserved = math.Max(0, acc.reserved-r.cost)
	}
	if o.ID != "" || o.Usage != nil {
		acc.cost += o.Cost
		acc.priced++
		acc.typical += (float64(tokens) - acc.typical) / 4
	}
	return tokens
}

// spent adds what a key has cost before this process began.
func (a *accounts) spent(id string, cost float64, n int64, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc := a.of(&Key{ID: id}, now)
	acc.cost += cost
	acc.priced += n
}

// head sets the headers that tell a client what is left.
func (a *accounts) head(h http.Header, key *Key, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc := a.of(key, now)
	for _, one := range []struct {
		name  string
		limit int64
		b     *bucket
	}{{"requests", key.Limits.Requests, &acc.requests}, {"tokens", key.Limits.Tokens, &acc.tokens}} {
		if one.limit == 0 {
			continue
		}
		used := one.b.level(one.limit, now)
		h.Set("X-Ratelimit-Limit-"+one.name, strconv.FormatInt(one.limit, 10))
		h.Set("X-Ratelimit-Remaining-"+one.name, strconv.FormatInt(max(0, one.limit-int64(math.Ceil(used))), 10))
		h.Set("X-Ratelimit-Reset-"+one.name, time.Duration(used/float64(one.limit)*float64(time.Minute)).Round(time.Millisecond).String())
	}
}

// refusal returns the error for a client.
func (e *exceeded) refusal() *server.Error {
	wait := "Please try again in " + e.wait.Round(time.Millisecond).String() + "."
	if e.limit == "running" {
		wait = "Please try again then."
	}
	kind, code := e.limit, "rate_limit_exceeded"
	if e.forLong {
		kind, code = "insufficient_quota", "insufficient_quota"
	}
	return &server.Error{Status: http.StatusTooManyRequests, Type: kind, Code: code, Message: e.text + " " + wait, Header: retryAfter(e.wait)}
}

// retryAfter returns the header with whole seconds, rounded up.
func retryAfter(wait time.Duration) http.Header {
	return http.Header{"Retry-After": {strconv.FormatInt(max(1, int64(math.Ceil(wait.Seconds()))), 10)}}
}

func responses(n int64) string {
	if n == 1 {
		return "1 response"
	}
	return fmt.Sprintf("%d responses", n)
}
