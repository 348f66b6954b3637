// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// longestWait is how long a run waits for its endpoint in memory, as long as for a single
// answer that asks it to wait. If it has to wait longer, it goes back to the queue, and the
// worker does something else.
const longestWait = endpoint.DefaultMaxAfter

// closedError means that nothing may be sent to an endpoint now.
type closedError struct {
	url     string
	wait    time.Duration
	stopped string // why an operator stopped it, or ""
}

func (e *closedError) Error() string {
	if e.stopped != "" {
		return fmt.Sprintf("the endpoint %s was stopped: %s", e.url, e.stopped)
	}
	return fmt.Sprintf("the endpoint %s takes no request for %s", e.url, e.wait.Round(time.Second))
}

// Until is when a subagent may ask the endpoint again. See [endpoint.Gate].
func (e *closedError) Until() time.Time {
	if e.stopped != "" {
		return time.Now().Add(longestWait)
	}
	return time.Now().Add(e.wait)
}

// closed returns the endpoints at which no run may begin now: those to which nothing may be sent, and
// those whose places are all taken.
func closed(ctx context.Context, limits queue.Limits) (shut, full map[string]bool, err error) {
	if limits == nil {
		return nil, nil, nil
	}
	list, err := limits.Endpoints(ctx)
	shut, full = map[string]bool{}, map[string]bool{}
	for _, e := range list {
		switch {
		case e.Stopped != "" || e.Wait > 0:
			shut[e.URL] = true
		case e.Runs > 0 && int64(e.Running) >= e.Runs:
			full[e.URL] = true
		}
	}
	return shut, full, err
}

// Gate lets the requests of a run through as the limits of their endpoints allow that the workers of a
// store share, and tells the other workers what the endpoints ask for. It implements [endpoint.Gate], for
// programs that make runs without a [Worker]. It does not count runs. It is safe for concurrent use, and the
// zero value limits nothing.
type Gate struct {
	limits queue.Limits
	chance func() float64              // draws a number from 0 to 1
	report func(url string, err error) // of the store

	mu     sync.Mutex
	url    string    // the endpoint of the run's own agent; if it is not known, the first that was asked
	sent   time.Time // when the last request was sent, or its tokens were counted
	closed error     // why the last request was not sent
}

// NewGate returns a gate for a run whose agent asks the endpoint with the base URL; "" means the first that
// it asks. Failed may be nil. It is called, from any goroutine, with errors of the store that keep the run from nothing.
func NewGate(limits queue.Limits, url string, failed func(error)) *Gate {
	if nils.Is(limits) {
		limits = nil
	}
	return &Gate{limits: limits, url: url, chance: rand.Float64, report: func(_ string, err error) {
		if failed != nil {
			failed(err)
		}
	}}
}

// gate returns the gate for the runs of a worker at an endpoint.
func (p *pool) gate(url string) *Gate {
	return &Gate{limits: p.limits, url: url, chance: p.chance, report: func(url string, err error) {
		p.log.Error("the store failed", "endpoint", url, "error", p.sayable(err))
	}}
}

// Closed returns why the last request was not sent, and when the endpoint may be asked again. The error is nil
// if it was sent.
func (g *Gate) Closed() (until time.Time, why error) {
	if g == nil {
		return until, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var closed *closedError
	if errors.As(g.closed, &closed) {
		until = closed.Until()
	}
	return until, g.closed
}

// Enter implements [endpoint.Gate].
func (g *Gate) Enter(ctx context.Context, url string) error {
	if g == nil || g.limits == nil {
		return nil
	}
	err := g.enter(ctx, url)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.url = cmp.Or(g.url, url)
	g.closed = nil
	switch {
	case err == nil:
		g.sent = time.Now()
	case errors.As(err, new(*closedError)):
		g.closed = err
	}
	return err
}

func (g *Gate) enter(ctx context.Context, url string) error {
	part := g.chance()
	for {
		e, err := g.limits.Send(ctx, url, longestWait)
		if err != nil {
			return err
		}
		wait := e.Wait + time.Duration(part*float64(spread(e.Pause)))
		switch {
		case e.Stopped != "":
			return &closedError{url: url, stopped: e.Stopped}
		case wait > longestWait:
			return &closedError{url: url, wait: wait}
		case wait <= 0:
			return nil
		}
		if err := rest(ctx, wait); err != nil {
			return err
		}
		if e.Requests == 0 { // its time is not reserved
			continue
		}
		// The endpoint may have asked to wait meanwhile, or was stopped.
		if shut, _, err := closed(ctx, g.limits); err != nil || !shut[url] {
			return err
		}
	}
}

// spread is the time over which those who waited for the end of a pause begin.
func spread(pause time.Duration) time.Duration { return min(pause/4, 15*time.Second) }

// rest waits, unless ctx ends first.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Failed implements [endpoint.Gate].
func (g *Gate) Failed(ctx context.Context, url string, failure *endpoint.Error) {
	if g == nil || g.limits == nil || failure == nil || failure.RetryAfter <= 0 {
		return
	}
	if err := g.limits.Slow(context.WithoutCancel(ctx), url, failure.RetryAfter); err != nil {
		g.report(url, err)
	}
}

// Count counts the tokens of an entry of the run: of its own turns and of its subagents, all for the
// endpoint of its agent.
func (g *Gate) Count(ctx context.Context, b session.Body) {
	if g == nil || g.limits == nil {
		return
	}
	var tokens int64
	switch b := b.(type) {
	case session.TurnEnded:
		if b.Usage != nil {
			tokens = b.Usage.TotalTokens
		}
	case session.SubagentUsage:
		tokens = b.Tokens
	}
	if tokens <= 0 {
		return
	}
	g.mu.Lock()
	url, now := g.url, time.Now()
	ago := now.Sub(g.sent)
	g.sent = now
	g.mu.Unlock()
	if url == "" { // nothing was sent
		return
	}
	if err := g.limits.Used(context.WithoutCancel(ctx), url, tokens, ago); err != nil {
		g.report(url, err)
	}
}
