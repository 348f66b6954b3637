// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"testing"
)

// TestFigures proves that the rows that measure no library come to figures, in
// small.
func TestFigures(t *testing.T) {
	if d := measureDurable(5, 1); d.err != nil || !(d.step > 0) || !(d.many > 0) {
		t.Errorf("durable step: %+v", d)
	}
	if dsn := os.Getenv("ANTIPHON_POSTGRES"); dsn == "" {
		t.Log("no figures of workers without ANTIPHON_POSTGRES")
	} else if s, err := measureScale(dsn, scaleSize{5, 1, 5, 20}); err != nil || math.IsNaN(s.parked) || !(s.step > 0) || !(s.many > 0) || !(s.claim > 0) || !(s.submit > s.claim) || !(s.watch >= 0) || !(s.notified > 0) {
		t.Errorf("workers on Postgres: %+v, %v", s, err)
	}
	if g := measureGateway(20, 100_000); g.err != nil || math.IsNaN(g.kb) || math.IsNaN(g.proxyKB) || !(g.direct > 0) || math.IsNaN(g.later) || !(g.resumed > 0) {
		t.Errorf("gateway: %+v", g)
	}
	o := measureOpening(largeSession{items: 200, images: 4, imageSize: 100_000}, 5)
	if o.err != nil || math.IsNaN(o.mb) || !(o.ms > 0) || !(o.http.cpu > 0) || !(o.socket.cpu > 0) {
		t.Errorf("opening: %+v", o)
	}
	// Turns cost the same, however long the history is.
	if o.http.allocs > 1.3 || o.socket.allocs > 1.3 {
		t.Errorf("allocations of a turn by those in a new session: %.2f over HTTP, %.2f over a WebSocket", o.http.allocs, o.socket.allocs)
	}
	if c := measureTerminal(terminalSize{starts: 1, entries: 100, many: 200, keys: 5, lines: 1000}); c.err != nil || !(c.first > 0) || !(c.open > 0) || !(c.key[1] > 0) || !(c.rate > 0) {
		t.Errorf("a chat in a terminal: %+v", c)
	}
	for name, one := range map[string]idler{"paused": pausedRun, "blocked": blockedRun, "goroutine": idleGoroutine} {
		if kb := idleMemory(20, one); math.IsNaN(kb) {
			t.Errorf("%s: no figure", name)
		}
	}
}
