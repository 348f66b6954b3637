// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"io"
	"strings"
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
		clock, slept := time.Unix(0, 0), time.Duration(0)
		m := newMeter()
		m.at, m.now = clock, func() time.Time { return clock }
		m.sleep = func(d time.Duration) { slept += d; clock = clock.Add(d) }
		if _, err := io.Copy(io.Discard, newTapReader(strings.NewReader(c.stream), 1<<20, paced(m, c.messages, func(line []byte) ([]byte, error) { return line, nil }))); err != nil {
			t.Fatal(err)
		}
		if slept.Round(10*time.Millisecond) != c.waits {
			t.Errorf("%s: waited %v, not %v", name, slept, c.waits)
		}
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
