// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/sandbox"
)

// WithoutSandbox makes this system one that confines nothing.
func WithoutSandbox(t *testing.T) {
	was := supports
	supports = func(p sandbox.Profile) error {
		if p.Unconfined {
			return nil
		}
		return fmt.Errorf("sandbox: %w: this kernel has nothing", sandbox.ErrUnavailable)
	}
	t.Cleanup(func() { supports = was })
}

// Hurried are options of a bridge for tests. It waits little, but not where a busy machine would make a server
// look hung, mute or unwilling to end.
func Hurried(o Options) Options {
	const patience = 2 * time.Minute
	o.pace = &pace{
		backoff: func(int) time.Duration { return time.Millisecond },
		tries:   3,
		ping:    patience,
		refresh: patience,
		stream:  patience,
		slow:    100 * time.Millisecond,
		grace:   patience,
	}
	return o
}

// Impatient are options of a bridge that takes a server for hung soon, which any may be on a busy machine.
func Impatient(o Options) Options {
	const soon = 100 * time.Millisecond
	o = Hurried(o)
	o.pace.ping, o.pace.stream, o.pace.grace = soon, soon, soon
	return o
}

// Names is the table of names.
type Names struct{ n *names }

// NewNames makes a table.
func NewNames(always bool, reserved ...string) Names { return Names{newNames(always, reserved)} }

// Assign names pairs of server and tool.
func (n Names) Assign(pairs ...[2]string) []string {
	var list []origin
	for _, p := range pairs {
		list = append(list, origin{p[0], p[1]})
	}
	n.n.assign(list)
	var given []string
	for _, o := range list {
		given = append(given, n.n.given[o])
	}
	return given
}

// Tap is what every message of a server passes.
func Tap(message []byte) ([]byte, error) { return tapper{}.tap(message) }

// Words splits a command line.
func Words(line string) ([]string, error) { return words(line) }

// Environment returns the variables of a server's program.
func Environment(s Server, lookup func(string) (string, bool)) []string { return s.environment(lookup) }

// CloseOutput closes the output of a program while it is read. It returns the error of the calls
// that wait for answers, and whether it counts as one of calls that were not sent.
func CloseOutput() (err error, unsent bool) {
	r, w, err := os.Pipe()
	if err != nil {
		return err, true
	}
	defer w.Close()
	p := new(process)
	messages, feed := io.Pipe()
	go p.pump(newTapReader(r, 1<<10, fixLines(tapper{}, func(string) {})), r, feed)
	_ = r.Close()
	_, err = messages.Read(make([]byte, 1))
	return err, (&session{proc: p}).unsent(err)
}

// Accepted reports whether a request with answers of these statuses may have begun.
func Accepted(statuses ...int) bool {
	s := new(sending)
	for _, status := range statuses {
		s.made.Add(1)
		s.answered(status, true)
	}
	return s.accepted()
}
