// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agentfile_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// K6: a file that a command itself made is not asked about, until something else changes it. A file
// that its program would run is always asked about.
func TestOutputOfCommandIsItsOwn(t *testing.T) {
	for command, asks := range map[string]bool{
		"sh gen.sh out.txt":          false,
		"sh gen.sh --out=out.txt":    false,
		"sh gen.sh ./sub/../out.txt": false,
		"sh -e gen.sh out.txt":       false,
		"env sh gen.sh out.txt":      true, // env may run any word
		"nice sh gen.sh Makefile":    true,
	} {
		t.Run(command, func(t *testing.T) {
			dir := t.TempDir()
			write(t, "mkdir -p sub; echo x >> out.txt; echo x >> Makefile\n", dir, "gen.sh")
			text := `<tool name="t" command="` + command + `" approval="allow"/><user>x</user>`
			f := load(t, write(t, text, dir, "agent.md"), agentfile.Options{Workspace: dir, Consent: trust.Everything})
			a := f.Agent(new(witness))
			says := func() string {
				_, why := f.Tools[0].(agent.ApprovalAdvisor).Approval(tool.Call{Name: "t", Arguments: "{}"}, nil)
				return why
			}
			if why := says(); strings.Contains(why, "since the agent's file") {
				t.Fatalf("it asks before the first call: %q", why)
			}
			for range 2 {
				attempt(t, a, "t")
				if why := says(); strings.Contains(why, "is new since the agent's file was read") != asks {
					t.Errorf("after its own call it says %q", why)
				}
			}
			write(t, "evil\n", dir, "out.txt")
			write(t, "evil\n", dir, "Makefile")
			if why := says(); !strings.Contains(why, "is new since the agent's file was read") {
				t.Errorf("after another change it says %q", why)
			}
			if attempt(t, a, "t"); !strings.Contains(says(), "is new since") {
				t.Error("a call after it took the change for its own")
			}
		})
	}
}
