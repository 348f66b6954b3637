// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// moving is a conversation of calls that goes on until it has moved: when a run takes a
// delivery is not for a test to say.
type moving struct {
	store, dir, file string
	flags            []string      // of those who run it
	turns            []string      // and of those who have it first
	asked            chan struct{} // has an element when the endpoint is asked for the first reply
	gate             chan struct{} // closed to let it answer
	last             chan struct{} // closed to let it answer without a call, from the third reply on
}

func newMoving(t *testing.T, store string) *moving {
	t.Helper()
	m := &moving{store: store, dir: t.TempDir(), asked: make(chan struct{}, 9), gate: make(chan struct{}), last: make(chan struct{})}
	over := make(chan struct{})
	server := httptest.NewServer(agenttest.Wrap(http.NotFoundHandler(), func(_ int, r agenttest.Request, _ agenttest.Reply) agenttest.Reply {
		n := strings.Count(string(r.Body), "function_call_output")
		if n == 0 {
			m.asked <- struct{}{}
		}
		select {
		case <-m.gate:
		case <-over:
		}
		select {
		case <-m.last:
			if n > 1 {
				return agenttest.Completed(item.Assistant("Done."))
			}
		default:
		}
		return agenttest.Completed(item.Call(fmt.Sprintf("call_%d", n), "append_to_file", fmt.Sprintf(`{"path":"notes.txt","content":"%d\n"}`, n)))
	}))
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	t.Chdir(m.dir)
	if err := os.Mkdir("agents", 0o700); err != nil {
		t.Fatal(err)
	}
	m.file = write(t, filepath.Join(m.dir, "agents", "agent.md"), "<tool name=\"append_to_file\" approval=\"allow\"/>\n<user>Count.</user>\n")
	m.flags = []string{"--store", store, "--trust", "--base-url", server.URL, "--model", "m"}
	m.turns = []string{"--max-turns", "100000"}
	t.Cleanup(func() { program(t, "sessions", "--store", store, "rm", "--force", "talk") })
	return m
}

// start starts a command whose output until reads, also what it says on standard error.
func (m *moving) start(t *testing.T, args ...string) *process {
	t.Helper()
	return startAs(t, nil, "sh", append([]string{"-c", `exec antiphon "$@" 2>&1`, "sh"}, args...)...)
}

// reached waits until the endpoint was asked for the first reply.
func (m *moving) reached(t *testing.T, p *process) {
	t.Helper()
	select {
	case <-m.asked:
	case <-time.After(stay):
		p.signal(t, syscall.SIGKILL)
		_, rest := p.wait(t)
		t.Fatalf("the endpoint is not asked\n%s", rest)
	}
}

// worker is the command of a worker.
func (m *moving) worker(more ...string) []string {
	return slices.Concat([]string{"work", "--agents", "agents", "--json"}, m.flags, m.turns, more)
}

// ended checks that nothing was lost and nothing was done twice.
func (m *moving) ended(t *testing.T, runs int) {
	t.Helper()
	text, calls := read(t, filepath.Join(m.dir, "notes.txt")), ""
	n := strings.Count(text, "\n")
	for i := range n {
		calls += fmt.Sprintln(i)
	}
	if text != calls || n < 2 {
		t.Errorf("the tool wrote %q", text)
	}
	o := program(t, "sessions", "export", "talk", "--store", m.store, "--to", "jsonl")
	for part, want := range map[string]int{`"kind":"run_started"`: runs, `"kind":"call_started"`: n, `"text":"Count."`: 1, `"text":"Done."`: 1, `"kind":"delivered"`: 1} {
		if n := strings.Count(o.out, part); n != want {
			t.Errorf("%s: %d times, want %d\n%s", part, n, want, o.out)
		}
	}
	if o := program(t, "work", "list", "--store", m.store); !strings.Contains(o.out, " done ") {
		t.Errorf("the work: %s%s", o.out, o.err)
	}
}

func want(t *testing.T, p *process, code int, says string) {
	t.Helper()
	if got, rest := p.wait(t); got != code || !strings.Contains(rest, says) {
		t.Errorf("exit code %d, want %d and %q\n%s", got, code, says, rest)
	}
}

// J2 D1: a run at a terminal is handed over to workers at the end of its turn, whoever of
// the two sides is killed meanwhile.
func TestDetach(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts and kills processes")
	}
	for _, killed := range []string{"nobody", "the terminal", "the command"} {
		t.Run(killed, func(t *testing.T) { detached(t, filepath.Join(t.TempDir(), "s.db"), killed) })
	}
}

// The same on a real server.
func TestDetachOnPostgres(t *testing.T) {
	for _, killed := range []string{"nobody", "the terminal", "the command"} {
		t.Run(killed, func(t *testing.T) { detached(t, postgresStore(t), killed) })
	}
}

func detached(t *testing.T, store, killed string) {
	m := newMoving(t, store)
	terminal := m.start(t, slices.Concat([]string{"run", m.file, "--session", "talk"}, m.flags, m.turns)...)
	m.reached(t, terminal)
	command := m.start(t, "sessions", "detach", "talk", "--store", store)
	command.until(t, "asked for the end of the run of talk-")
	const goesOn, handed = "workers go on with it", "the session goes on elsewhere: handed over to workers by "
	switch killed {
	case "the terminal":
		terminal.signal(t, syscall.SIGKILL)
		want(t, terminal, -1, "")
		want(t, command, 0, goesOn)
		close(m.gate)
	case "the command":
		command.signal(t, syscall.SIGKILL)
		want(t, command, -1, "")
		close(m.gate)
		want(t, terminal, exitLimit, handed)
	default:
		close(m.gate)
		want(t, terminal, exitLimit, handed)
		want(t, command, 0, goesOn)
	}
	close(m.last)
	if o := program(t, m.worker("--once")...); o.code != 0 || !strings.Contains(o.out, `"state":"done"`) {
		t.Errorf("the worker: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	m.ended(t, 2)
}

// J2 D1: a session that a worker runs is taken to a terminal at the end of its turn, whoever
// of the two sides is killed meanwhile.
func TestTake(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts and kills processes")
	}
	for _, killed := range []string{"nobody", "the worker", "the command"} {
		t.Run(killed, func(t *testing.T) { takenOver(t, filepath.Join(t.TempDir(), "s.db"), killed) })
	}
}

// The same on a real server.
func TestTakeOnPostgres(t *testing.T) {
	for _, killed := range []string{"nobody", "the worker", "the command"} {
		t.Run(killed, func(t *testing.T) { takenOver(t, postgresStore(t), killed) })
	}
}

func takenOver(t *testing.T, store, killed string) {
	m := newMoving(t, store)
	if o := program(t, "work", "submit", m.file, "talk", "--store", store); o.code != 0 {
		t.Fatal(o.err)
	}
	worker := m.start(t, m.worker()...)
	m.reached(t, worker)
	command := m.start(t, append([]string{"sessions", "take", "talk"}, m.flags...)...)
	command.until(t, "asked for the end of the run of talk-")
	switch killed {
	case "the worker":
		worker.signal(t, syscall.SIGKILL)
		want(t, worker, -1, "")
		close(m.gate)
		close(m.last)
		want(t, command, 0, "Done.")
	case "the command":
		command.signal(t, syscall.SIGKILL)
		want(t, command, -1, "")
		close(m.gate)
		worker.until(t, `"state":"parked"`)
		if o := program(t, "work", "status", "--store", store); !strings.Contains(o.out, "parked, waits for an operator: taken to a terminal by ") {
			t.Errorf("the status: %s%s", o.out, o.err)
		}
		close(m.last)
		if o := program(t, "work", "retry", "talk", "--store", store); o.code != 0 {
			t.Error(o.err)
		}
		worker.until(t, `"state":"done"`)
	default:
		close(m.gate)
		worker.until(t, `"state":"parked"`)
		close(m.last)
		want(t, command, 0, "Done.")
	}
	if killed != "the worker" {
		worker.signal(t, syscall.SIGTERM)
		want(t, worker, 0, "")
	}
	m.ended(t, 2)
}

// A terminal that took a session, and loses it to another one, says only where it goes on.
func TestTakenAndDetached(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts processes")
	}
	m := newMoving(t, filepath.Join(t.TempDir(), "s.db"))
	if o := program(t, "work", "submit", m.file, "talk", "--store", m.store); o.code != 0 {
		t.Fatal(o.err)
	}
	terminal := m.start(t, append([]string{"sessions", "take", "talk"}, m.flags...)...)
	m.reached(t, terminal)
	command := m.start(t, "sessions", "detach", "talk", "--store", m.store)
	command.until(t, "asked for the end of the run of talk-")
	close(m.gate)
	const stays = "the session stays with you"
	if code, said := terminal.wait(t); code != exitLimit || !strings.Contains(said, "the session goes on elsewhere: handed over to workers by ") || strings.Contains(said, stays) {
		t.Errorf("exit code %d\n%s", code, said)
	}
	want(t, command, 0, "workers go on with it")
}
