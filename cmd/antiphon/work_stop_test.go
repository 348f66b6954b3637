// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/sandbox"
)

// A worker that is killed, and a session that is parked, leave no process of a tool or of an MCP server behind:
// neither children, nor those that left their group and their parent. Each process holds
// a named pipe open, whose end is seen when the last one is gone.
func TestNoProcessStays(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts workers and kills them")
	}
	for _, profile := range []string{"workspace", "full"} {
		if profile == "workspace" && !sandbox.Available().Has(sandbox.Seccomp) {
			continue
		}
		for _, end := range []string{"kill", "park", "park the agent", "park the endpoint"} {
			t.Run(profile+", "+end, func(t *testing.T) {
				noProcessStays(t, profile, end, "<tool name=\"run_command\" approval=\"allow\"/>\n")
			})
		}
		t.Run(profile+", kill, of an MCP server", func(t *testing.T) {
			bin := t.TempDir()
			write(t, filepath.Join(bin, "stays"), "#!/bin/sh\ntrap '' TERM HUP\n"+processes+"\n") // it reads nothing, and does not see the end of its input
			if err := os.Chmod(filepath.Join(bin, "stays"), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			noProcessStays(t, profile, "kill", "<tool mcp_server=\"stdio:stays\" approval=\"allow\"/>\n")
		})
	}
}

// processes stay for longer than a test waits.
const processes = `exec 9>alive; sleep 1000 & setsid sh -c "sleep 1000 & sleep 1000" & (setsid sleep 1000 &) ; echo started >&9; sleep 1000`

func noProcessStays(t *testing.T, profile, end, tools string) {
	dir := t.TempDir()
	t.Chdir(dir)
	if end == "kill" { // a program that is killed leaves its temporary folders
		t.Setenv("TMPDIR", t.TempDir())
	}
	store, agents := filepath.Join(dir, "s.db"), filepath.Join(dir, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "alive"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(agents, "agent.md"), tools)
	url, _ := stalling(t, []item.Item{item.Call("call_1", "run_command", `{"command":["sh","-c",`+strconv.Quote(processes)+`]}`)})
	if o := program(t, "work", "submit", file, "talk", "Go", "--store", store); o.code != 0 {
		t.Fatal(o.err)
	}
	p := start(t, nil, "work", "--store", store, "--agents", agents, "--trust", "--base-url", url, "--model", "m", "--json", "--sandbox", profile)
	alive, err := os.OpenFile(filepath.Join(dir, "alive"), os.O_RDWR, 0) // it does not wait for the processes
	if err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(filepath.Join(dir, "alive"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := reader.SetReadDeadline(time.Now().Add(stay)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(reader)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("the processes did not start: %v\n%s", err, p.err.String())
	}
	if err := alive.Close(); err != nil { // now the processes alone hold it
		t.Fatal(err)
	}
	switch end {
	case "kill":
		p.signal(t, syscall.SIGKILL)
		p.wait(t)
	case "park":
		park(t, store, "--all")
	case "park the agent":
		park(t, store, "--agent", file)
	case "park the endpoint":
		park(t, store, "--endpoint", url)
	}
	if err := reader.SetReadDeadline(time.Now().Add(stay)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil {
		t.Errorf("processes are left: %q, %v", rest, err)
	}
	if end == "kill" {
		return
	}
	p.signal(t, syscall.SIGTERM)
	if code, rest := p.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, rest, p.err.String())
	}
	if o := program(t, "work", "status", "--store", store); !strings.Contains(o.out, "parked, waits for an operator") {
		t.Errorf("%s%s", o.out, o.err)
	}
}

func park(t *testing.T, store string, what ...string) {
	t.Helper()
	if o := program(t, append([]string{"work", "park", "--store", store}, what...)...); o.code != 0 || !strings.Contains(o.out, "1 session: parked") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}
