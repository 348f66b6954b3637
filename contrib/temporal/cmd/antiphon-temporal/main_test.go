// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/contrib/temporal"
)

// cliVariable names the Temporal CLI, whose dev server the test uses.
const cliVariable = "ANTIPHON_TEMPORAL"

// text is what a command printed.
type text struct {
	sync.Mutex
	strings.Builder
}

func (t *text) Write(p []byte) (int, error) {
	t.Lock()
	defer t.Unlock()
	return t.Builder.Write(p)
}

func (t *text) String() string {
	t.Lock()
	defer t.Unlock()
	return t.Builder.String()
}

// shell runs commands with the same store and server.
type shell struct {
	t      *testing.T
	flags  []string
	worker text
}

func (s *shell) run(ctx context.Context, args ...string) (code int, out, errs string) {
	var stdout, stderr text
	code = run(ctx, append(args, s.flags...), os.Environ(), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// ok runs a command that must succeed.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	code, out, errs := s.run(s.t.Context(), args...)
	if code != 0 {
		s.t.Fatalf("%v: exit %d: %s%s\nthe worker: %s", args, code, out, errs, &s.worker)
	}
	return out
}

// until waits for a state.
func (s *shell) until(id string, status temporal.Status, why string) (state temporal.State) {
	s.t.Helper()
	out := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var code int
		if code, out, _ = s.run(s.t.Context(), "state", id); code != 0 {
			continue
		}
		if err := json.Unmarshal([]byte(out), &state); err != nil {
			s.t.Fatal(err)
		}
		if state.Status == status && state.Why == why {
			return state
		}
	}
	s.t.Fatalf("%s is not %s: %s\nthe worker: %s", id, status, out, &s.worker)
	return state
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A session is begun by a delivery, waits for an answer, and goes on with the definition
// that it began with. D3
func TestCommands(t *testing.T) {
	cli := os.Getenv(cliVariable)
	if cli == "" {
		t.Skipf("%s does not name the Temporal CLI: run .ci/temporal", cliVariable)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = free.Close()
	server := exec.CommandContext(t.Context(), cli, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port, "--log-level", "error")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })

	dir := t.TempDir()
	agents, before := filepath.Join(dir, "agents"), filepath.Join(dir, "before")
	for _, d := range []string{agents, before} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const clerk = "<config model=\"rehearsal:clerk.script\"/>\n<tool name=\"append_to_file\"/>\n<system>You write notes.</system>\n"
	const script = "turn\n  call append_to_file {\"path\": \"notes.txt\", \"content\": \"one\\n\"}\nturn\n  say It is written.\n"
	write(t, filepath.Join(agents, "clerk.md"), clerk)
	write(t, filepath.Join(agents, "clerk.script"), script)
	t.Setenv("OPENAI_BASE_URL", "")
	_ = os.Unsetenv("OPENAI_BASE_URL")

	s := &shell{t: t, flags: []string{"--store", filepath.Join(dir, "sessions.db"), "--address", address}}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		code, _, errs := s.run(t.Context(), "approve", "nobody")
		if code == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal(errs)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		args := []string{"work", "--agents", agents, "--agents", before, "--trust-all", "--workspace", dir, "--deployment", "clerks", "--build", "1", "--current", "--add-search-attributes"}
		if code := run(ctx, append(args, s.flags...), os.Environ(), &s.worker, &s.worker); code != 0 {
			t.Errorf("the worker: exit %d: %s", code, &s.worker)
		}
	})
	defer working.Wait()
	defer stop()

	if code, _, errs := s.run(t.Context(), "say", "note", "Write."); code != 1 || !strings.Contains(errs, "--agent NAME begins a session") {
		t.Errorf("exit %d: %s", code, errs)
	}
	s.ok("say", "note", "Write.", "--agent", "clerk")
	first := s.until("note", temporal.Waiting, "approval_wanted")
	if !strings.HasPrefix(first.Agent, "clerk@") {
		t.Errorf("%+v", first)
	}
	call, _, _ := strings.Cut(s.ok("approve", "note"), "\t")

	// The file changes while the call waits.
	write(t, filepath.Join(agents, "clerk.md"), strings.Replace(clerk, "notes", "letters", 1))
	s.ok("approve", "note", call)
	parked := s.until("note", temporal.Parked, temporal.WhyStep)
	if !strings.Contains(parked.Problem, "the definition "+first.Agent[len("clerk@"):][:12]) {
		t.Errorf("%+v", parked)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err == nil {
		t.Error("the call ran")
	}
	// The definition comes back, beside the new one.
	write(t, filepath.Join(before, "clerk.md"), clerk)
	write(t, filepath.Join(before, "clerk.script"), script)
	s.ok("retry", "note")
	if done := s.until("note", temporal.Done, "answered"); done.Agent != first.Agent {
		t.Errorf("%+v, but it began with %s", done, first.Agent)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "notes.txt")); err != nil || string(got) != "one\n" {
		t.Errorf("%q, %v", got, err)
	}

	// The session is not that of another agent, whoever says so.
	write(t, filepath.Join(agents, "lawyer.md"), clerk)
	s.ok("say", "note", "Write again.", "--agent", "lawyer")
	if parked := s.until("note", temporal.Parked, temporal.WhyStep); !strings.Contains(parked.Problem, `the session belongs to "clerk"`) {
		t.Errorf("%+v", parked)
	}

	// An agent that no worker has.
	s.ok("say", "other", "Hello.", "--agent", "nobody")
	if parked := s.until("other", temporal.Parked, temporal.WhyStep); !strings.Contains(parked.Problem, `the agent "nobody" is not in --agents`) {
		t.Errorf("%+v", parked)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "missing flags: --store"},
		{"work --store x.db", 2, "missing flags: --agents"},
		{"work --store x.db --agents . --build 1", 1, "--deployment and --build belong together"},
		{"work --store x.db --agents . --pinned", 1, "--pinned and --current need them"},
	} {
		var out, errs text
		if code := run(t.Context(), strings.Fields(c.args), nil, &out, &errs); code != c.code || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%q: exit %d: %s", c.args, code, &errs)
		}
	}
}
