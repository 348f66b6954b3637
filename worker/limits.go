// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/session"
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
func (p *pool) closed(ctx context.Context) (shut, full map[string]bool, err error) {
	if p.limits == nil {
		return nil, nil, nil
	}
	list, err := p.limits.Endpoints(ctx)
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

// gate lets the requests of a run through as the limits of their endpoints allow, and
// tells the other workers what the endpoints ask for. It implements [endpoint.Gate].
type gate struct {
	*pool
	url string // the endpoint of the run's own agent

	mu   sync.Mutex
	sent time.Time // when the last request was sent, or its tokens were counted
}

// Enter implements [endpoint.Gate].
func (g *gate) Enter(ctx context.Context, url string) error {
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
		case wait > 0:
			if err := rest(ctx, wait); err != nil {
				return err
			}
			if e.Requests == 0 { // its time is not reserved
				continue
			}
			// The endpoint may have asked to wait meanwhile, or was stopped.
			shut, err := g.isShut(ctx, url)
			if err != nil {
				return err
			}
			if shut {
				continue
			}
		}
		g.mu.Lock()
		g.sent = time.Now()
		g.mu.Unlock()
		return nil
	}
}

// isShut reports whether nothing may be sent to an endpoint now.
func (p *pool) isShut(ctx context.Context, url string) (bool, error) {
	shut, _, err := p.closed(ctx)
	return shut[url], err
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
func (g *gate) Failed(ctx context.Context, url string, failure *endpoint.Error) {
	if failure.RetryAfter <= 0 {
		return
	}
	if err := g.limits.Slow(context.WithoutCancel(ctx), url, failure.RetryAfter); err != nil {
		g.log.Error("the store failed", "endpoint", url, "error", g.sayable(err))
	}
}

// count counts the tokens of the run's own turns and of its subagents, all for the
// endpoint of its agent.
func (g *gate) count(ctx context.Context, b session.Body) {
	if g.limits == nil || g.url == "" {
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
	now := time.Now()
	ago := now.Sub(g.sent)
	g.sent = now
	g.mu.Unlock()
	if err := g.limits.Used(context.WithoutCancel(ctx), g.url, tokens, ago); err != nil {
		g.log.Error("the store failed", "endpoint", g.url, "error", g.sayable(err))
	}
}
