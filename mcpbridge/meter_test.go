// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A server that floods is read at a bounded speed, however its messages come, and one that waits between them is not slowed.
func TestFloodIsReadSlowly(t *testing.T) {
	const notification = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	for name, c := range map[string]struct {
		stream   string
		messages func([]byte) (int, error)
		waits    time.Duration
	}{
		"a few lines":   {strings.Repeat(notification+"\n", mostAtOnce), inLine, 0},
		"a flood":       {strings.Repeat(notification+"\n", mostAtOnce+5*mostInSecond), inLine, 5 * time.Second},
		"batches":       {strings.Repeat("["+strings.Repeat(notification+",", 9)+notification+"]\n", (mostAtOnce+mostInSecond)/10), inLine, time.Second},
		"empty lines":   {strings.Repeat("\n", 3*mostAtOnce), inLine, 0},
		"a long event":  {strings.Repeat("data: "+notification+"\n", 3*mostAtOnce) + "\n", inEvents, 0},
		"events":        {strings.Repeat("data: "+notification+"\r\n\r\n", mostAtOnce+2*mostInSecond), inEvents, 2 * time.Second},
		"nothing in it": {strings.Repeat("[]\n", mostAtOnce+1), inLine, 0},
	} {
		m, clock := meterOfTest()
		if _, err := io.Copy(io.Discard, newTapReader(strings.NewReader(c.stream), 1<<20, paced(m, c.messages, func(line []byte) ([]byte, error) { return line, nil }))); err != nil {
			t.Fatal(err)
		}
		if slept := clock.slept.Round(10 * time.Millisecond); slept != c.waits {
			t.Errorf("%s: waited %v, not %v", name, slept, c.waits)
		}
	}
}

// A clock that goes on when somebody sleeps.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept time.Duration
}

func meterOfTest() (*meter, *clock) {
	c := &clock{now: time.Unix(0, 0)}
	m := newMeter()
	m.at, m.now = c.now, func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now
	}
	m.sleep = func(d time.Duration) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now, c.slept = c.now.Add(d), c.slept+d
	}
	return m, c
}

// A server that lives for weeks and sends little is not slowed.
func TestOldServerIsNotSlowed(t *testing.T) {
	const day = 24 * time.Hour
	for _, age := range []time.Duration{time.Hour, 21 * day, 22 * day, 30 * day, 60 * day, 400 * day, 290 * 365 * day} {
		m, clock := meterOfTest()
		for range 3 {
			clock.now = clock.now.Add(age)
			for range mostAtOnce {
				m.count(1)
			}
		}
		if clock.slept != 0 {
			t.Errorf("after %v: waited %v", age, clock.slept)
		}
		if m.count(mostInSecond); clock.slept.Round(10*time.Millisecond) != time.Second {
			t.Errorf("after %v: a flood waited %v", age, clock.slept)
		}
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A server that ends its responses and begins new ones is read as slowly as with one, also if they are read at the same time.
func TestFloodOverHTTPIsReadSlowly(t *testing.T) {
	events := strings.Repeat("data: {}\n\n", mostAtOnce)
	c, err := newCarrier(t.Context(), &Server{URL: "http://mcp.example/", MaxMessage: 1 << 20}, transportFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(events))}, nil
	}), time.Minute, func() {})
	if err != nil {
		t.Fatal(err)
	}
	m, clock := meterOfTest()
	c.meter = m
	read := func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.server.URL, http.NoBody)
		resp, err := c.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		read()
	}
	if slept := clock.slept.Round(10 * time.Millisecond); slept != 2*mostAtOnce/mostInSecond*time.Second {
		t.Errorf("three responses one after the other: waited %v", slept)
	}
	var both sync.WaitGroup
	both.Go(read)
	both.Go(read)
	both.Wait()
	if passed := clock.now.Sub(time.Unix(0, 0)).Round(10 * time.Millisecond); passed < 4*mostAtOnce/mostInSecond*time.Second {
		t.Errorf("two at the same time: %v have passed", passed)
	}
}

// A line with very many messages ends the session: they would be in memory at once.
func TestHugeBatchIsRefused(t *testing.T) {
	for n, want := range map[int]bool{mostInBatch: true, mostInBatch + 1: false} {
		_, err := inLine([]byte("[" + strings.Repeat(`{"jsonrpc":"2.0"},`, n-1) + `{"jsonrpc":"2.0"}]`))
		if (err == nil) != want {
			t.Errorf("%d messages: %v", n, err)
		}
	}
}
