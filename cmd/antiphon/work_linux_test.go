// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// machine is a place for programs with a network, process numbers, a name and a home folder
// of its own. It shares nothing with others but the socket of the database. The home folder
// has the same path at all machines, since an approval is for a tool with its folders.
type machine struct{ name, home, at string }

// newMachine makes one with the agent of the test in its folder.
func newMachine(t *testing.T, name, at string) *machine {
	t.Helper()
	m := &machine{name, t.TempDir(), at}
	agents := filepath.Join(m.home, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(agents, "note.md"), "<config model=\"rehearsal:note.script\"/>\n<tool name=\"append_to_file\"/>\n")
	write(t, filepath.Join(agents, "note.script"), "turn\n  call append_to_file {\"path\":\"notes.txt\",\"content\":\"Water is wet.\\n\"}\nturn\n  say Noted.\n")
	return m
}

// start starts the program there.
func (m *machine) start(t *testing.T, args ...string) *process {
	t.Helper()
	inside := `hostname "$0"; ip link set lo up; mount --bind "$OWN" "$HOME"; cd "$HOME"; exec antiphon "$@"`
	return startAs(t, nil, "unshare", append([]string{
		"--net", "--pid", "--uts", "--mount", "--mount-proc", "--fork", "--kill-child",
		"env", "OWN=" + m.home, "HOME=" + m.at, "XDG_DATA_HOME=" + filepath.Join(m.at, "data"), "sh", "-c", inside, m.name,
	}, args...)...)
}

// run runs the program there to its end.
func (m *machine) run(t *testing.T, args ...string) string {
	t.Helper()
	p := m.start(t, args...)
	code, out := p.wait(t)
	if code != 0 {
		t.Fatalf("%s at %s: exit code %d\n%s%s", strings.Join(args, " "), m.name, code, out, p.err.String())
	}
	return out
}

// D1 D2: machines that share nothing but the database. Work is left at one; another
// begins it, asks for an approval and dies; the answer is given at the first; and a
// third goes on.
func TestMachinesOnPostgres(t *testing.T) {
	store := postgresStore(t)
	_, unshare := exec.LookPath("unshare")
	_, ip := exec.LookPath("ip")
	if err := cmp.Or(unshare, ip); err != nil || os.Getuid() != 0 {
		t.Skip("wants to make network namespaces: root, unshare and ip: skipped")
	}
	home := t.TempDir()
	desk, first, second := newMachine(t, "desk", home), newMachine(t, "first", home), newMachine(t, "second", home)
	on := []string{"--store", store}
	at := func(args ...string) []string { return append(args, on...) }
	defer func() { desk.run(t, at("sessions", "rm", "--force", "monday")...) }()
	desk.run(t, at("work", "submit", "agents/note.md", "monday", "Write down that water is wet")...)

	worker := first.start(t, at("work", "--agents", "agents", "--json")...)
	worker.until(t, `"state":"waiting"`)
	if out := desk.run(t, at("work", "status")...); !strings.Contains(out, "monday") || !strings.Contains(out, "append_to_file") {
		t.Errorf("the status at the desk: %s", out)
	}
	worker.signal(t, syscall.SIGKILL)
	_, _ = worker.wait(t)

	call := regexp.MustCompile(`call_\w+`).FindString(desk.run(t, at("sessions", "info", "monday")...))
	desk.run(t, at("sessions", "approve", "monday", call)...)
	if out := second.run(t, at("work", "--agents", "agents", "--json", "--once")...); !strings.Contains(out, `"state":"done"`) {
		t.Errorf("the second worker: %s", out)
	}
	if out := desk.run(t, at("sessions", "show", "monday")...); strings.Count(out, "Noted.") != 1 {
		t.Errorf("the conversation at the desk: %s", out)
	}
	for m, want := range map[*machine]string{desk: "", first: "", second: "Water is wet.\n"} {
		text, err := os.ReadFile(filepath.Join(m.home, "notes.txt"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if string(text) != want {
			t.Errorf("notes at %s: %q, want %q", m.name, text, want)
		}
	}
}
