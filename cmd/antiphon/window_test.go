// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
)

// E8: a history that an endpoint cuts ends the run as one that it refuses, with
// the exit code that docs/commands.md names.
func TestCutHistoryHasItsExitCode(t *testing.T) {
	l := agenttest.StartLocal(t, &agenttest.Local{Ollama: true, Text: "It is so.", Window: 1200})
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "a.md"), "<user>Hello</user>\n")
	args := []string{"run", file, strings.Repeat("word ", 400), "--base-url", l.URL, "--profile", "ollama", "--model", "m", "--session", "s", "--store", filepath.Join(dir, "store.db")}
	for range 4 {
		if o := program(t, args...); o.code != 0 {
			if o.code != exitProvider || !strings.Contains(o.err, "--compact auto") {
				t.Errorf("exit code %d\n%s", o.code, o.err)
			}
			return
		}
	}
	t.Error("nobody noticed")
}

// TestFullContextNamesFlags: the error of a history that is too long says which
// flags help, and only those that do. U8
func TestFullContextNamesFlags(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "a.md"), "<user>Hello</user>\n")
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Failure(400, "context_length_exceeded", "the input is too long")
	})
	for _, c := range []struct {
		more       []string
		want, lack string
	}{
		{nil, "--compact auto shortens the history, and --session NAME keeps", "run it again"},
		{[]string{"--session", "s", "--store", filepath.Join(dir, "store.db")}, "run it again with --compact auto", "--session NAME"},
		{[]string{"--compact", "auto"}, "too long", "--compact auto"},
	} {
		o := program(t, append([]string{"run", file, "--base-url", srv.URL, "--model", "m"}, c.more...)...)
		if o.code != exitProvider || !strings.Contains(o.err, c.want) || strings.Contains(o.err, c.lack) {
			t.Errorf("%v: exit code %d\n%s", c.more, o.code, o.err)
		}
	}
}
