// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The SDK reads messages as fast as they come and keeps those that nobody has handled yet in memory, without a limit. So a server that
// sends more than it may is read more slowly: its pipe or connection is full then, and it waits.
const (
	mostAtOnce   = 10_000 // messages that are read without a pause
	mostInSecond = 5000   // messages a second, after them
	mostInBatch  = 1000   // messages in one line, which older versions of the protocol have
)

// meter makes the readers of a server's messages wait.
type meter struct {
	now   func() time.Time
	sleep func(time.Duration)

	mu   sync.Mutex
	left int       // messages that may be read now; below 0, those that must be waited for
	at   time.Time // when left was raised last
}

func newMeter() *meter {
	return &meter{now: time.Now, sleep: time.Sleep, left: mostAtOnce, at: time.Now()}
}

// count counts messages that were read, and waits if they are too many.
func (m *meter) count(n int) {
	if wait := m.take(n); wait > 0 {
		m.sleep(wait)
	}
}

// take counts messages and returns how long their reader must wait.
func (m *meter) take(n int) time.Duration {
	const each = time.Second / mostInSecond
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left -= n; m.left >= 0 {
		return 0
	}
	now := m.now()
	m.left += int(min(now.Sub(m.at)/each, mostAtOnce)) // divided first: the time may be years
	m.at = now
	return time.Duration(max(-m.left, 0)) * each
}

// paced counts the messages of lines before it calls fix.
func paced(m *meter, messages func(line []byte) (int, error), fix func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(line []byte) ([]byte, error) {
		n, err := messages(line)
		if err != nil {
			return nil, err
		}
		m.count(n)
		return fix(line)
	}
}

// inLine returns the number of messages in a line of a program.
func inLine(line []byte) (n int, err error) {
	text := bytes.TrimSpace(line)
	if len(text) == 0 || text[0] != '[' {
		return min(len(text), 1), nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(text), lenient)
	for _, err = d.ReadToken(); err == nil && d.PeekKind() != ']'; err = d.SkipValue() {
		if n++; n > mostInBatch {
			return n, fmt.Errorf("sent more than %d messages in one line, which is the limit", mostInBatch)
		}
	}
	return n, nil // what is no message is found by the reader
}

// inEvents returns 1 for the end of an event.
func inEvents(line []byte) (int, error) {
	if len(bytes.TrimRight(line, "\r\n")) == 0 {
		return 1, nil
	}
	return 0, nil
}
