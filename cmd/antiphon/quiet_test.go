// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// TestQuiet: a quiet run that goes well says nothing beside the answer, in a
// session too; what a person must know is said all the same. U8
func TestQuiet(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("All is well.")), agenttest.Completed(item.Assistant("All is well.")))
	for _, more := range [][]string{nil, {"--session", "s", "--store", filepath.Join(dir, "s.db")}} {
		args := append([]string{"run", file, "-q", "--model", "m", "--base-url", srv.URL}, more...)
		if o := alone(t, args...); o.code != exitOK || o.out != "All is well.\n" || o.err != "" {
			t.Errorf("%v: exit code %d, output %q\n%s", more, o.code, o.out, o.err)
		}
	}
	if o := alone(t, "run", file, "-q"); o.code != exitOK || !strings.Contains(o.err, "no endpoint is configured, so the rehearsal model answers") {
		t.Errorf("an answer that is made up, without a warning: exit code %d\n%s", o.code, o.err)
	}
	if o := alone(t, "run", file, "-q", "--model", "m"); o.code != exitUsage || !strings.Contains(o.err, "no endpoint is configured for the model") {
		t.Errorf("an error: exit code %d\n%s", o.code, o.err)
	}
}

// TestQuietTrust: what a quiet run agrees to by --trust is in the audit log, and is
// printed only if none is written. K1, U8
func TestQuietTrust(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<tool name=\"run_command\" approval=\"allow\"/>\n<user>Hello?</user>\n")
	const power = "allows itself run_command"
	for _, c := range []struct {
		audit string
		args  []string
		says  bool
	}{
		{"audit.jsonl", []string{"--trust"}, true},
		{"quiet.jsonl", []string{"--trust", "--quiet"}, false},
		{"off", []string{"--trust", "--quiet"}, true},
	} {
		path := c.audit
		if path != "off" {
			path = filepath.Join(dir, path)
		}
		env := []string{"HOME=" + dir, "ANTIPHON_AUDIT=" + path}
		o := programEnv(t, env, append([]string{"run", file}, c.args...)...)
		if o.code != exitOK || strings.Contains(o.err, power) != c.says {
			t.Errorf("%v, audit log %s: exit code %d\n%s", c.args, c.audit, o.code, o.err)
		}
		if c.audit == "quiet.jsonl" && o.err != "" {
			t.Errorf("a quiet run says %q", o.err)
		}
		if log := programEnv(t, env, "audit", "show"); path != "off" && !strings.Contains(log.out, power) {
			t.Errorf("%v: the audit log does not have the power:\n%s%s", c.args, log.out, log.err)
		}
	}
}
