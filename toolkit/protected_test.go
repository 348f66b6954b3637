// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
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
	var led []string // nothing is written through a link to a protected file, so nobody is asked about it
	if links {
		led = append(led, "innocent/hooks/pre-commit")
	}
	plain := []string{"a.md", "git/config", "docs/.gitignore", "bashrc", ".github/workflows/x.yml", "Makefile", "agent.md.txt", ".vscodes/x", "x.git/config"}
	for _, list := range []struct {
		paths []string
		want  session.Verdict
	}{{protected, session.Ask}, {led, session.Deny}, {plain, ""}} {
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

// A5: a tool reads its arguments as the question about them does: whatever the names of the
// members, a call that nobody is asked about writes to no protected file.
func TestProtectedWritesByOtherNames(t *testing.T) {
	const hook = ".git/hooks/pre-commit"
	patchOf := func(path string) string { return "*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch\n" }
	for _, c := range []struct {
		tool, member, value, harmless, rest string
		form                                patch.Form
	}{
		{"append_to_file", "path", hook, "safe", `"content":"x"`, patch.API},
		{"find_and_replace", "path", hook, "safe", `"find":"x","replace":"y"`, patch.API},
		{"index_markdown_docs", "vector_db_root", ".git/hooks", "safe", `"root":".","index_name":"x"`, patch.API},
		{"apply_patch", "path", hook, "safe", `"type":"create_file","diff":"+x"`, patch.API},
		{"apply_patch", "path", hook, "safe", `"type":"delete_file"`, patch.API},
		{"apply_patch", "input", patchOf(hook), patchOf("safe"), `"x":1`, patch.Function},
	} {
		quoted := func(s string) string { return string(item.Quote(s)) }
		for _, name := range []string{c.member, "_" + c.member, c.member[:2] + "-" + c.member[2:], c.member[:1] + "__" + c.member[1:], strings.ReplaceAll(c.member, "_", ""), strings.ToUpper(c.member), strings.ToUpper(c.member[:1]) + "-" + c.member[1:], `\u00` + fmt.Sprintf("%x", c.member[0]) + c.member[1:]} {
			evil, good := `"`+name+`":`+quoted(c.value), `"`+c.member+`":`+quoted(c.harmless)
			for _, arguments := range []string{"{" + evil + "," + c.rest + "}", "{" + good + "," + evil + "," + c.rest + "}", "{" + evil + "," + good + "," + c.rest + "}"} {
				k := kittest.New(t)
				k.Write("safe", "x")
				k.Write("a.md", "# x\n")
				k.Write(".git/hooks/other", "x")
				if !strings.Contains(c.rest, "create_file") && c.tool != "index_markdown_docs" && c.form != patch.Function {
					k.Write(hook, "x")
				}
				hooks := func() (list []string) {
					entries, _ := os.ReadDir(filepath.Join(k.Dir, ".git", "hooks"))
					for _, e := range entries {
						text, _ := os.ReadFile(filepath.Join(k.Dir, ".git", "hooks", e.Name()))
						list = append(list, e.Name()+": "+string(text))
					}
					return list
				}
				before := hooks()
				one := made(t, c.tool, toolkit.Deps{Files: k.Files, PatchForm: c.form})
				call := tool.Call{Name: c.tool, Arguments: arguments}
				verdict, _ := one.(agent.ApprovalAdvisor).Approval(call, nil)
				_, _ = one.Run(t.Context(), call) // it may refuse the arguments
				if after := hooks(); verdict != session.Ask && !slices.Equal(before, after) {
					t.Errorf("%s %s: nobody was asked, and the hooks were %q and are %q", c.tool, arguments, before, after)
				}
			}
		}
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
		"cd .cargo && echo x > config.toml": session.Ask, "cd sub; cd .cargo; touch config": session.Ask, "cd .github && cp f copilot-instructions.md": session.Ask, "cd .github && cat hooks": "", "cd x && echo x > config.toml": "",
		"cp config.toml .cargo/": session.Ask, "cp -t .cargo config.toml": session.Ask, "cp -t.cargo config.toml": session.Ask, "cp --target-directory=.cargo config.toml": session.Ask, "mv x .cargo": session.Ask, "ln -s x .cargo": session.Ask, "cp -r x .github": session.Ask, "cp -r x ~/.config": session.Ask, "rsync -r x/ sub/.Cargo/": session.Ask, "git clone u .cargo": session.Ask, "git mv x .github": session.Ask, "tar -C .cargo -xf x.tar": session.Ask,
		"cd .cargo && cp ../config.toml .": session.Ask, "cd .github/workflows && cp ../../copilot-instructions.md ..": session.Ask, "cd .c* && echo x > config.toml": session.Ask, "cd .g* && cp ../f hooks": session.Ask, "cp config.toml .c?rgo": session.Ask, "echo x > .cargo/$f": session.Ask, "cd .cargo --; echo x > config.toml": session.Ask, "cd -P -- .cargo; touch config.toml": session.Ask, "for i in 1 2; do cd systemd; cd .config; done; touch x": session.Ask, "bash -c 'cd systemd; cd .config; cd systemd; touch x'": session.Ask, "pushd .cargo; touch config.toml": session.Ask,
		"cd .;cd .;cd .;cd .;cd .;cd .;cd .;cd .cargo; echo x > config.toml": session.Ask, "cd a;cd b;cd c;cd d;cd e;cd f;cd g;cd h;cd i;cd .cargo; echo x > config.toml": session.Ask, "cd a;cd b;cd c;cd d;cd e;cd f;cd g;cd h;cd i;cd j; tee x": session.Ask,
		// What is usual in such folders is not asked about.
		"mkdir .github": "", "mkdir -p .github/workflows": "", "git add .github": "", "git add -A .github .cargo && git commit -m x": "", "git --no-pager diff .github": "", "chmod -R u+w .github": "", "cd a && make; cd ../b && make; cd ../c && make; cd ../d && make": "", "ls .cargo": "", "cat .github/*": "", "rm -r .github": "", "cp ci.yml .github/workflows/": "", "cp ci.yml .github/workflows/x.yml": "", "cd .github/workflows && cp ../../ci.yml .": "", "cd .github && echo x > dependabot.yml": "", "sed -i s/a/b/ .github/workflows/*.yml": "",
		"cd a && make && cd .. && cd b && make && cd .. && cd c && make && cd .. && cd d && make": "", "cd \"$(mktemp -d)\" && cp -r ../src .": "", "cd \"$dir\" && make": "", "cd a;cd b;cd c;cd d;cd e;cd f;cd g;cd h;cd i;cd j; ls": "", "cp -r src/* build": "", "cp -r . /tmp/x": "", "rm -f .coverage.*": "", "ls -d .*": "", "cp cargo/config.toml x": "",
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
