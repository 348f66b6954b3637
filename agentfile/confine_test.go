// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/trust"
)

// loaded loads a file with one tool, as a person would who trusts it, and returns its warnings.
func loaded(t *testing.T, attributes string, o Options) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(path, []byte("<config model=\"rehearsal\"/>\n<tool "+attributes+"/>\n<user>go</user>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Consent = trust.Everything
	f, err := Load(t.Context(), path, o)
	if f == nil {
		return "", err
	}
	_ = f.Close()
	return fmt.Sprint(f.Warnings), err
}

// M4: a mistake in sandbox or hosts is an error with its place and what to write instead.
func TestConfinementMistakes(t *testing.T) {
	for attributes, want := range map[string]string{
		`name="run_command" sandbox="ful"`:                            `a.md:2:1: <tool>: sandbox is "ful" (want read-only, workspace, hosts, network, full)`,
		`name="run_command" sandbox=""`:                               `a.md:2:1: <tool>: sandbox is ""`,
		`name="run_command" sandbox="hosts"`:                          `a.md:2:1: <tool>: the profile hosts names no host: write names`,
		`name="run_command" hosts=""`:                                 `a.md:2:1: <tool>: the profile hosts names no host`,
		`name="run_command" hosts="https://a.example/"`:               `a.md:2:1: <tool>: the host "https://a.example/" is not the name of a host`,
		`name="shell" hosts="a.example:http"`:                         `has the port "http"`,
		`mcp_server="stdio:sh s.sh" sandbox="full" hosts="b.example"`: `a.md:2:1: <tool>: hosts are for the profile hosts, and the profile is full: give one of them (such as hosts=`,
		// Two lines of one server cannot say different things about it.
		`mcp_server="stdio:sh s.sh" server="s" include="a"/><tool mcp_server="stdio:sh s.sh" server="s" include="b" hosts="b.example"`: `lines for the same server may differ only in include and approval`,
		`name="read_file" hosts="b.example"`:               `a.md:2:1: <tool>: hosts is for tools that run programs`,
		`mcp_server="https://m.example" hosts="b.example"`: `a.md:2:1: <tool>: hosts is for tools that run programs`,
	} {
		for _, check := range []bool{false, true} {
			if _, err := loaded(t, attributes, Options{Check: check}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", attributes, err)
			}
		}
	}
	if _, err := loaded(t, `name="run_command"`, Options{Hosts: []string{"b.example"}, Sandbox: sandbox.NameFull}); err == nil || !strings.Contains(err.Error(), "give one of them") {
		t.Error(err)
	}
}

// A11: on a system without a sandbox, a profile that the file names is a warning with its place:
// the programs do not run. Nobody's choice leaves it to the tools to ask. The person can choose to run
// without.
func TestConfinementWithoutSandbox(t *testing.T) {
	was := supports
	supports = func(p sandbox.Profile) error {
		if p.Unconfined {
			return nil
		}
		return fmt.Errorf("sandbox: %w: this kernel has nothing", sandbox.ErrUnavailable)
	}
	t.Cleanup(func() { supports = was })
	const want = "a.md:2:1: <tool>: this system cannot confine programs: this kernel has nothing (so the programs of this tool do not run; with the sandbox full for the run, they do with all your permissions) [warning]"
	for attributes, warns := range map[string]bool{
		`name="run_command"`: false, `name="run_command" sandbox="full"`: false, `name="run_command" sandbox="read-only"`: true, `name="run_command" sandbox="workspace"`: true,
		`name="hi" command="sh s.sh" hosts="b.example"`: true, `mcp_server="stdio:sh s.sh"`: false, `mcp_server="stdio:sh s.sh" sandbox="workspace"`: true,
	} {
		for o, warns := range map[*Options]bool{{}: warns, {Check: true}: warns, {Sandbox: sandbox.NameFull}: false, {Sandbox: sandbox.NameWorkspace}: true} {
			warnings, err := loaded(t, attributes, *o)
			if err != nil || strings.Contains(warnings, want) != warns {
				t.Errorf("%s with %+v: %v, %s", attributes, *o, err, warnings)
			}
		}
	}
}
