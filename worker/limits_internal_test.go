// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/session/queue"
)

// gated is a gate whose store and clock are a test's.
type gated struct {
	*testing.T
	db    memstore.DB
	begun time.Time
}

// inGate runs a test whose time passes at once.
func inGate(t *testing.T, do func(g *gated)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { do(&gated{T: t, begun: time.Now()}) })
}

// enters returns when a request may be sent that draws a place in the spread.
func (g *gated) enters(place float64) (time.Duration, error) {
	p := &pool{Worker: &Worker{draw: func() float64 { return place }}, limits: g.db.Open(memstore.Options{})}
	err := p.gate("").Enter(g.Context(), simURL)
	return time.Since(g.begun), err
}

func (g *gated) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// at checks when a request may be sent.
func (g *gated) at(want time.Duration, place float64) {
	g.Helper()
	if got, err := g.enters(place); err != nil || got != want {
		g.Errorf("it is sent at %v, %v; want %v", got, err, want)
	}
}

// Requests are sent at the distances of their cap.
func TestGateKeepsDistances(t *testing.T) {
	inGate(t, func(g *gated) {
		g.must(g.db.Limit(simURL, queue.Caps{Requests: 6}))
		for n := range 4 {
			g.at(time.Duration(n)*10*time.Second, 1) // what waits for a cap is spread already
		}
	})
}

// A request waits until the tokens of those before it are free again.
func TestGateWaitsForTokens(t *testing.T) {
	inGate(t, func(g *gated) {
		g.must(g.db.Limit(simURL, queue.Caps{Tokens: 600}))
		g.at(0, 1)
		g.db.Used(simURL, 300, 0)
		g.at(30*time.Second, 1)
	})
}

// Those who wait for the end of a pause begin at different times: within a quarter of it, and
// at most 15 seconds.
func TestGateSpreadsStarts(t *testing.T) {
	for _, tt := range []struct {
		pause time.Duration
		place float64
		want  time.Duration
	}{
		{20 * time.Second, 0, 20 * time.Second},
		{20 * time.Second, 0.5, 22500 * time.Millisecond},
		{20 * time.Second, 1, 25 * time.Second},
		{time.Minute, 0, time.Minute},
	} {
		inGate(t, func(g *gated) {
			g.must(g.db.Slow(simURL, tt.pause))
			g.at(tt.want, tt.place)
		})
	}
	if got := spread(time.Hour); got != 15*time.Second {
		t.Errorf("after an hour they are spread over %v", got)
	}
	places := map[float64]bool{}
	for range 20 {
		places[new(Worker).chance()] = true
	}
	if len(places) < 15 {
		t.Errorf("20 requests have %d places", len(places))
	}
}

// An endpoint that asks to wait while a request waits for its turn is asked no sooner.
func TestGateLooksAgain(t *testing.T) {
	inGate(t, func(g *gated) {
		g.must(g.db.Limit(simURL, queue.Caps{Requests: 6}))
		g.at(0, 0)
		time.AfterFunc(5*time.Second, func() { g.must(g.db.Slow(simURL, 40*time.Second)) })
		g.at(45*time.Second, 0)
	})
	inGate(t, func(g *gated) {
		g.must(g.db.Limit(simURL, queue.Caps{Requests: 6}))
		g.at(0, 0)
		time.AfterFunc(5*time.Second, func() { g.must(g.db.Stop(simURL, "too dear")) })
		if got, err := g.enters(0); !errors.As(err, new(*closedError)) || got != 10*time.Second {
			g.Errorf("%v after %v", err, got)
		}
	})
}

// A request that would wait too long is not sent, and takes nobody's time.
func TestGateGivesUp(t *testing.T) {
	inGate(t, func(g *gated) {
		g.must(g.db.Slow(simURL, 2*longestWait))
		var closed *closedError
		if got, err := g.enters(0); !errors.As(err, &closed) || got != 0 || closed.wait != 2*longestWait {
			g.Errorf("%v after %v", err, got)
		}
	})
}
