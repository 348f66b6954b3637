// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

// withoutSandbox makes this system one that confines nothing, or only not to hosts.
func withoutSandbox(t *testing.T, onlyHosts bool) {
	t.Helper()
	was := supports
	supports = func(p sandbox.Profile) error {
		if p.Unconfined || onlyHosts && len(p.Hosts) == 0 {
			return nil
		}
		return fmt.Errorf("sandbox: %w: this kernel has nothing", sandbox.ErrUnavailable)
	}
	t.Cleanup(func() { supports = was })
}

// A11: on a system without a sandbox each command is asked about, whatever allows it, and
// says why. An answer about a confined command does not cover it; one that was given here
// does.
func TestCommandWithoutSandbox(t *testing.T) {
	k := kittest.New(t)
	c, err := RunCommand("run_command", k.Files, Options{Policy: Policy{Allow: []Rule{{"cat"}, {"sh"}}, Deny: []Rule{{"rm"}}}})
	k.Add(c, err)
	call := func(words ...string) tool.Call {
		return tool.Call{Name: "run_command", Arguments: kittest.JSON(t, kittest.Args{"command": words})}
	}
	confined := []session.Rule{{Verdict: session.Allow, Tool: "run_command", Member: "command", Prefix: []string{"cat", "x"}}}
	withoutSandbox(t, false)
	outside := filepath.Join(t.TempDir(), "made")
	k.OK("run_command", sh("echo x > "+outside)) // a person has approved it
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	for name, rules := range map[string][]session.Rule{"no rule": nil, "an answer about the sandbox": confined} {
		if verdict, why := c.Approval(call("cat", "x"), rules); verdict != session.Ask || why != unconfined {
			t.Errorf("%s: %q %s", name, verdict, why)
		}
	}
	rules := c.Suggest(call("cat", "x"))
	if len(rules) == 0 || rules[0].Member != "command with full" {
		t.Errorf("%+v", rules)
	}
	if verdict, why := c.Approval(call("cat", "x"), rules); verdict != session.Allow {
		t.Errorf("%q %s", verdict, why)
	}
	if verdict, _ := c.Approval(call("rm", "x"), nil); verdict != session.Deny {
		t.Error(verdict)
	}
	if o := k.Call("run_command", sh("cat /etc/none")); !o.Failed || strings.Contains(o.Content.Display(), "sandbox") {
		t.Errorf("%s", o.Content.Display())
	}
	shell, err := APITool(k.Files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if verdict, why := agentAdvice(t, shell, `{"commands":["cat x"]}`); verdict != session.Ask || why != unconfined {
		t.Errorf("shell: %q %s", verdict, why)
	}
}

// agentAdvice is a tool's opinion about a call without rules.
func agentAdvice(t *testing.T, of tool.Tool, arguments string) (session.Verdict, string) {
	t.Helper()
	advisor, ok := of.(interface {
		Approval(call tool.Call, rules []session.Rule) (session.Verdict, string)
	})
	if !ok {
		t.Fatal("the tool has no opinion")
	}
	return advisor.Approval(tool.Call{Arguments: arguments}, nil)
}

// A11: where a profile was chosen that the system cannot give, no command runs, and the error
// names what is missing. With the profile full they run as agreed.
func TestChosenProfileWithoutSandbox(t *testing.T) {
	withoutSandbox(t, false)
	for _, profile := range []func(...string) sandbox.Profile{sandbox.ReadOnly, sandbox.Workspace, sandbox.Network} {
		k := kittest.New(t)
		c, err := RunCommand("run_command", k.Files, Options{Sandbox: profile, Policy: Policy{Allow: []Rule{{"*"}}}})
		k.Add(c, err)
		const want = "this system cannot confine programs: this kernel has nothing; without a sandbox the command would run with all permissions of the user"
		k.Fails("run_command", sh("echo x > made"), want)
		if _, made := k.Tree()["made"]; made {
			t.Error("the command has run")
		}
		if verdict, why := agentAdvice(t, c, `{"command":["ls"]}`); verdict != session.Deny || !strings.Contains(why, want) {
			t.Errorf("%q %s", verdict, why)
		}
		if rules := c.Suggest(tool.Call{Name: "run_command", Arguments: `{"command":["ls"]}`}); rules != nil {
			t.Errorf("%+v", rules)
		}
	}
	k := kittest.New(t)
	c, err := RunCommand("run_command", k.Files, Options{Sandbox: sandbox.Full, Policy: Policy{Allow: []Rule{{"*"}}}})
	k.Add(c, err)
	k.OK("run_command", sh("echo x"))
	if verdict, _ := agentAdvice(t, c, `{"command":["ls"]}`); verdict != session.Allow {
		t.Error(verdict)
	}
}

// A11: where the network cannot be limited to hosts, that is said at once, with what can be
// asked for instead.
func TestHostsWithoutNamespaces(t *testing.T) {
	k := kittest.New(t)
	c, err := RunCommand("run_command", k.Files, Options{})
	k.Add(c, err)
	withoutSandbox(t, true)
	if verdict, why := agentAdvice(t, c, `{"command":["ls"],"hosts":["a.example"]}`); verdict != session.Deny || !strings.Contains(why, `this kernel has nothing; instead of hosts, the call can ask for "sandbox": "network"`) {
		t.Errorf("%q %s", verdict, why)
	}
}
