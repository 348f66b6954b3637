// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// alone runs the program with nothing attached to standard input, as a
// supervisor does.
func alone(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), args, nil, stdio{nil, &stdout, &stderr})
	return outcome{code, stdout.String(), stderr.String()}
}

// TestStoredAnswer: a run that is started again after its answer was stored
// shows it and has done what it was for, wherever it is kept. U3
func TestStoredAnswer(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	for name, keep := range map[string][]string{
		"session":    {"--session", "work", "--store", filepath.Join(dir, "s.db")},
		"transcript": {"--out", filepath.Join(dir, "talk.md")},
		"both":       {"--session", "two", "--store", filepath.Join(dir, "s.db"), "--out", filepath.Join(dir, "two.md")},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("All is well.")))
			args := append([]string{"run", file, "--model", "m", "--base-url", srv.URL}, keep...)
			if o := alone(t, args...); o.code != exitOK || o.out != "All is well.\n" {
				t.Fatalf("exit code %d, output %q\n%s", o.code, o.out, o.err)
			}
			for _, more := range [][]string{nil, {"--json"}} {
				o := alone(t, append(args, more...)...)
				if o.code != exitOK || !strings.Contains(o.out, "All is well.") || !strings.Contains(o.err, "this is the stored answer\n") {
					t.Errorf("again: exit code %d, output %q\n%s", o.code, o.out, o.err)
				}
			}
			if o := alone(t, append(args, "--quiet")...); o.code != exitOK || o.out != "All is well.\n" || o.err != "" {
				t.Errorf("--quiet: exit code %d, output %q\n%s", o.code, o.out, o.err)
			}
			if n := len(srv.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
	if o := alone(t, "run", filepath.Join(dir, "talk.md"), "--rehearsal"); o.code != exitUsage || o.out != "" || !strings.Contains(o.err, "has been answered; give a prompt") {
		t.Errorf("a transcript that is not kept: exit code %d, output %q\n%s", o.code, o.out, o.err)
	}
}

// TestEmptyReply: a reply without a word is not success, in the run that got it
// and in the next. U6
func TestEmptyReply(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	for name, reply := range map[string]agenttest.Reply{
		"no items":   agenttest.Completed(),
		"no content": agenttest.Completed(item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Parts()})),
		"a call that the endpoint answered itself": agenttest.Completed(item.Call("c1", "lookup", "{}"),
			item.Must(&item.FunctionCallOutput{CallID: "c1", Output: item.Text("42")})),
	} {
		srv := agenttest.NewServer(t, reply)
		for n := range 2 {
			o := alone(t, "run", file, "--model", "m", "--base-url", srv.URL, "--session", name, "--store", filepath.Join(dir, "s.db"))
			if o.code != exitProvider || o.out != "" || !strings.Contains(o.err, "antiphon: the reply is empty: ") {
				t.Errorf("%s, run %d: exit code %d, output %q\n%s", name, n, o.code, o.out, o.err)
			}
		}
	}
}
