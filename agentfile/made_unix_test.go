// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agentfile_test

import (
	"context"
	"path/filepath"
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

// K6: a later run does not ask about what a call of the command left, unless something else changed it since, it was there before
// any call, or it could be run as code.
func TestOutputOfEarlierRun(t *testing.T) {
	for command, c := range map[string]struct {
		before string // is there before the first run
		asks   bool
	}{
		"sh gen.sh --junit-xml=report.xml":            {},
		"sh gen.sh -o report.xml":                     {},
		"sh gen.sh --log report.xml":                  {before: "report.xml", asks: true},
		"sh gen.sh out.js":                            {asks: true},
		"sh gen.sh run":                               {asks: true}, // which may be executed
		"env sh gen.sh report.xml":                    {asks: true},
		"env sh gen.sh -o report.xml":                 {asks: true},
		"sh gen.sh report.xml":                        {asks: true}, // it may be read
		"sh gen.sh -o report.xml report.xml":          {asks: true},
		"sh gen.sh --output=report.xml -f Report.XML": {asks: true}, // one file on some systems
		"sh gen.sh -f report.xml":                     {asks: true},
		"sh gen.sh --config=report.xml":               {asks: true},
		"sh gen.sh -o x.mk":                           {asks: true},
		"sh gen.sh -o Makefile":                       {asks: true},
	} {
		t.Run(command, func(t *testing.T) {
			dir := t.TempDir()
			write(t, "echo x >> report.xml; echo x >> out.js; echo x >> run; chmod +x run; echo x >> x.mk; echo x >> Makefile\n", dir, "gen.sh")
			if c.before != "" {
				write(t, "before\n", dir, c.before)
			}
			path := write(t, `<tool name="t" command="`+command+`" approval="allow"/><user>x</user>`, dir, "agent.md")
			outputs := trust.OpenOutputs(filepath.Join(t.TempDir(), "outputs"))
			var claims []trust.Claim
			opts := agentfile.Options{Workspace: dir, Made: outputs, Consent: func(_ context.Context, c trust.Claim) (trust.Agreement, error) {
				claims = append(claims, c)
				return trust.Agreement{Powers: c.Powers}, nil
			}}
			says := func(f *agentfile.File) string {
				_, why := f.Tools[0].(agent.ApprovalAdvisor).Approval(tool.Call{Name: "t", Arguments: "{}"}, nil)
				return why
			}
			for range 3 {
				f := load(t, path, opts)
				a := f.Agent(new(witness))
				attempt(t, a, "t")
				attempt(t, a, "t")
				if why := says(f); !c.asks && strings.Contains(why, "since the agent's file") {
					t.Errorf("it says %q", why)
				}
			}
			if same := claims[0].Hash() == claims[1].Hash() && claims[1].Hash() == claims[2].Hash(); same == c.asks {
				t.Errorf("the claims are the same: %v", same)
			}
			write(t, "evil\n", dir, "report.xml")
			f := load(t, path, opts)
			if claims[3].Hash() == claims[2].Hash() && strings.Contains(command, "report.xml") {
				t.Error("a change by something else is not asked about")
			}
			attempt(t, f.Agent(new(witness)), "t")
			last := len(claims)
			load(t, path, opts)
			if claims[last].Hash() == claims[0].Hash() && strings.Contains(command, "report.xml") {
				t.Error("a call took a change by something else for its own")
			}
		})
	}
}
