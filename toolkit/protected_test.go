// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
	"github.com/antiphon-go/antiphon/toolkit/patch"
	"github.com/antiphon-go/antiphon/toolkit/shell"
)

// A5: a write to a file that other programs run or obey is asked about by name,
// whatever the tool, even if all its calls are allowed.
func TestProtectedWrites(t *testing.T) {
	k := kittest.New(t)
	k.Write("agent.md", "x")
	k.Write(".git/config", "x")
	k.Files.Protect(filepath.Join(k.Dir, "agent.md"))
	links := runtime.GOOS != "windows"
	if links {
		if err := os.Symlink(".git", filepath.Join(k.Dir, "innocent")); err != nil {
			t.Fatal(err)
		}
	}
	deps := toolkit.Deps{Files: k.Files, PatchForm: patch.Function}
	function := func(name string) tool.Tool { return made(t, name, deps) }
	deps.PatchForm = patch.Custom
	custom := made(t, "apply_patch", deps)
	deps.PatchForm = patch.API
	api := made(t, "apply_patch", deps)
	deps.PatchForm = patch.Function
	change := func(path string) string {
		return "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Add File: " + path + "\n+x\n*** End Patch\n"
	}
	protected := []string{".git/hooks/pre-commit", ".git/config", "sub/.git/config", "./x/../.git/config", "workspace:.git/config", ".GIT/config", ".git. /config", ".bashrc", "home/.zshrc", ".config/fish/config.fish", ".vscode/tasks.json", ".envrc", ".ssh/authorized_keys", "agent.md", "./agent.md", filepath.Join(k.Dir, ".envrc"), ".local/share/antiphon/sessions.db"}
	if links {
		protected = append(protected, "innocent/hooks/pre-commit")
	}
	plain := []string{"a.md", "git/config", "docs/.gitignore", "bashrc", ".github/workflows/x.yml", "Makefile", "agent.md.txt", ".vscodes/x", "x.git/config"}
	for _, list := range []struct {
		paths []string
		want  session.Verdict
	}{{protected, session.Ask}, {plain, ""}} {
		for _, path := range list.paths {
			for _, c := range []struct {
				tool tool.Tool
				call tool.Call
			}{
				{function("append_to_file"), tool.Call{Arguments: kittest.JSON(t, kittest.Args{"path": path, "content": "x"})}},
				{function("append_to_file"), tool.Call{Arguments: `{"path":"safe","PATH":` + kittest.JSON(t, kittest.Args{"x": path})[len(`{"x":`):]}},
				{function("find_and_replace"), tool.Call{Arguments: kittest.JSON(t, kittest.Args{"path": path, "find": "x", "replace": "y"})}},
				{function("index_markdown_docs"), tool.Call{Arguments: kittest.JSON(t, kittest.Args{"root": ".", "index_name": "x", "vector_db_root": path})}},
				{function("apply_patch"), tool.Call{Arguments: kittest.JSON(t, kittest.Args{"input": change(path)})}},
				{custom, tool.Call{Arguments: change(path), Custom: true}},
				{api, tool.Call{Arguments: kittest.JSON(t, kittest.Args{"type": "create_file", "path": path, "diff": "+x"})}},
			} {
				c.call.Name = "write"
				got, why := c.tool.(agent.ApprovalAdvisor).Approval(c.call, nil)
				if got != list.want || got == session.Ask && !strings.Contains(why, "writes to") {
					t.Errorf("%s %s: %q (%s), want %q", c.call.Name, c.call.Arguments, got, why, list.want)
				}
				offers := c.tool.(agent.RuleSuggester).Suggest(c.call)
				if len(offers) > 0 && list.want == session.Ask {
					t.Errorf("%s %s: it offers %v, which would not help", c.call.Name, c.call.Arguments, offers)
				}
			}
		}
	}
	// Rules keep their meaning, and a denial stays one.
	call := tool.Call{Name: "append_to_file", Arguments: `{"path":".envrc","content":"x"}`}
	deny := []session.Rule{{Verdict: session.Deny, Tool: "*", Member: "path", Under: "."}}
	if got, _ := function("append_to_file").(agent.ApprovalAdvisor).Approval(call, deny); got != session.Deny {
		t.Errorf("a denied call: %q", got)
	}
	call.Arguments = `{"path":"docs/a","content":"x"}`
	if offers := function("append_to_file").(agent.RuleSuggester).Suggest(call); len(offers) != 1 || offers[0].Under != "docs" {
		t.Errorf("%v", offers)
	}
}

func made(t *testing.T, name string, deps toolkit.Deps) tool.Tool {
	t.Helper()
	made, err := toolkit.New(name, deps)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A5: so is a command that names such a file, unless it only reads.
func TestProtectedCommands(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of Unix")
	}
	k := kittest.New(t)
	k.Write(".git/config", "x")
	k.Write("agent.md", "x")
	k.Files.Protect(filepath.Join(k.Dir, "agent.md"))
	c, err := shell.RunCommand("run_command", k.Files, shell.Options{Shell: true})
	if err != nil {
		t.Fatal(err)
	}
	allow := []session.Rule{{Verdict: session.Allow, Tool: "*", Member: "command", Prefix: []string{"cp", "f", ".git/hooks/pre-commit"}}}
	for line, want := range map[string]session.Verdict{
		"echo x > .git/hooks/pre-commit": session.Ask, "echo x >> ~/.bashrc": session.Ask, "echo x >> \"$HOME/.profile\"": session.Ask, "cp f .git/hooks/pre-commit": session.Ask, "tee .envrc": session.Ask, "dd of=.git/config": session.Ask,
		"env cp f .vscode/tasks.json": session.Ask, "sh -c 'echo x > .git/config'": session.Ask, "cd .git && cp ../f hooks/x": session.Ask, "echo x > agent.md": session.Ask, "mv f agent.md": session.Ask, "git config core.fsmonitor x": session.Ask, "git config --unset x": session.Ask, "git config -e": session.Ask,
		"cat .git/config": "", "ls .git": "", "git config user.name": "", "git config --get x": "", "echo x > f": "", "cp f g": "", "grep -r x .vscode": "",
	} {
		call := tool.Call{Name: "run_command", Arguments: kittest.JSON(t, kittest.Args{"command": line})}
		if got, why := c.Approval(call, allow); got != want {
			t.Errorf("%s: %q (%s), want %q", line, got, why, want)
		}
	}
	call := tool.Call{Name: "run_command", Arguments: kittest.JSON(t, kittest.Args{"command": "cp ../f x", "directory": ".git"})}
	if got, _ := c.Approval(call, nil); got != session.Ask {
		t.Errorf("in the folder: %q", got)
	}
}
