// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package obeyed_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/obeyed"
)

// The files of a checkout are those of a project. What a worker keeps beside them, and what
// other programs obey in them, is asked about as elsewhere.
func TestNamesInCheckouts(t *testing.T) {
	const cache, files = "/home/u/.cache/antiphon/", "/home/u/.cache/antiphon/checkouts/sessions/fix-1_a/files"
	for _, path := range []string{
		files, files + "/", files + "/a.go", files + "/sub/state.json", "/home/u/.cache/antiphon/checkouts/sessions/0123abcd.id/files/a",
		`C:\Users\u\.cache\antiphon\checkouts\sessions\fix\files\a`,
	} {
		if name := obeyed.Name(path); name != "" {
			t.Errorf("%s is asked about as %s", path, name)
		}
	}
	for path, want := range map[string]string{
		files + "/.git/hooks/pre-commit":                                               ".git",
		files + "/.envrc":                                                              ".envrc",
		files + "/sub/.cache/antiphon/answers/a":                                       ".cache/antiphon",
		files + "/../state.json":                                                       ".cache/antiphon",
		files + "/{a,../../state.json}":                                                ".cache/antiphon",
		files + "/.. /state.json":                                                      ".cache/antiphon",
		cache + "checkouts/sessions/fix/state.json":                                    ".cache/antiphon",
		cache + "checkouts/sessions/fix/lock":                                          ".cache/antiphon",
		cache + "checkouts/sessions/fix/home/.x":                                       ".cache/antiphon",
		cache + "checkouts/sessions/*/files/a":                                         ".cache/antiphon",
		cache + "checkouts/sessions/{x/files/a,y/b}":                                   ".cache/antiphon",
		cache + "checkouts/sessions/../files/a":                                        ".cache/antiphon",
		cache + "checkouts/sessions":                                                   ".cache/antiphon",
		cache + "checkouts/repositories/x.git/HEAD":                                    ".cache/antiphon",
		cache + "answers/a":                                                            ".cache/antiphon",
		"/home/u/.ssh/.cache/antiphon/checkouts/sessions/fix/files/a":                  ".ssh",
		"/home/u/.local/share/antiphon/.cache/antiphon/checkouts/sessions/fix/files/a": ".local/share/antiphon",
		"/home/u/.cache/antiphon/x/.cache/antiphon/checkouts/sessions/fix/files/a":     ".cache/antiphon",
		"/home/u/.cache/antiphon/checkouts/sessions/a/files/.cache/antiphon/checkouts/sessions/b/lock": ".cache/antiphon",
	} {
		if name := obeyed.Name(path); name != want {
			t.Errorf("%s: %q, want %q", path, name, want)
		}
	}
}

// A file system may take these names for the file itself, or a program obeys them as it obeys .envrc.
func TestNamesInOtherForms(t *testing.T) {
	for path, want := range map[string]string{
		".g\u200cit/hooks/x": ".git", "a/.gi\u202et/config": ".git", "\ufeff.git/config": ".git", // HFS+ ignores these characters
		".git::$INDEX_ALLOCATION/config": ".git", ".envrc::$DATA": ".envrc", ".envrc:": ".envrc", ".git ::$INDEX_ALLOCATION/x": ".git", // streams of NTFS
		".\u017fsh/authorized_keys": ".ssh",                                                                                                                       // a long s
		"git~1/config":              ".git", "GIT~1. /config": ".git", "git~1::$INDEX_ALLOCATION/hooks/pre-commit": ".git", "gi\u200ct~1": ".git", "git~12/x": "", // the short name of .git
		"HG~1/hgrc": ".hg", "SL~1/config": ".sl", "JJ~2/repo": ".jj", "SSH~1/x": ".ssh", "ENVRC~1": ".envrc", "VSCODE~1/tasks.json": ".vscode", "BASH_P~1": ".bash_profile", "a/MISE~1.TOM": ".mise.toml",
		"GI7EBA~1/config": ".git", "MISELO~1.TOM": "mise.*.toml", "mise/CONFIG~1.TOM": "mise/config.toml", "CONFIG~1/MISE/x": ".config/mise", "LIBRAR~1/LaunchAgents": "", "PROGRA~1/x": "", "~1/x": "", "CONFIG~1.TOM": "",
		".cargo/config.toml": ".cargo/config.toml", "a/.Cargo/CONFIG": ".cargo/config", "CARGO~1/CONFIG~1.TOM": ".cargo/config.toml", ".cargo/registry/x": "", "cargo/config.toml": "",
		"AGENTS.md": "agents.md", "a/Claude.md. ": "claude.md", ".cursorrules": ".cursorrules", ".clinerules/a.md": ".clinerules", ".github/copilot-instructions.md": ".github/copilot-instructions.md",
		".github/prompts/a.md": ".github/prompts", ".github/workflows/ci.yml": "", ".pre-commit-config.yaml": ".pre-commit-config.yaml", "lefthook.yml": "lefthook.yml",
		"a.code-workspace": "a.code-workspace", ".devcontainer.json": ".devcontainer.json", "DEVCON~1.JSO": ".devcontainer.json", "opencode.json": "opencode.json", ".kiro/hooks/a": ".kiro",
		"package.json": "", "Makefile": "", "conftest.py": "", "pyproject.toml": "", "agent.md": "", "agents/a.md": "",
		".antiphon/agents/run.md": ".antiphon", "a/.Antiphon/x": ".antiphon", ".antiphon-backup-x": "",
		".sl/config": ".sl", ".jj/repo/config.toml": ".jj",
		"a/mise.toml": "mise.toml", ".mise.toml": ".mise.toml", ".config/mise/config.toml": ".config/mise", ".hg/hgrc": ".hg", ".hgrc": ".hgrc",
		".nvim.lua": ".nvim.lua", ".nvimrc": ".nvimrc", ".helix/languages.toml": ".helix", ".zed/tasks.json": ".zed", ".fleet/run.json": ".fleet", ".windsurf/mcp.json": ".windsurf",
		"mise.local.toml": "mise.*.toml", "a/mise.dev.local.toml": "mise.*.toml", ".mise.local.toml": ".mise.*.toml", ".config/mise.dev.toml": "mise.*.toml", ".config/mise.toml": "mise.toml",
		"mise/config.toml": "mise/config.toml", "a/MISE/config.dev.toml::$DATA": "mise/config.toml", ".mise/config.toml": ".mise", ".tool-versions": ".tool-versions",
		"mise/a.go": "", "premise.toml": "", "mise.go": "", "config.toml": "", "mise/config/a.toml": "", "a.mise.toml": "",
		"git/x": "", "a.git/x": "", ".gitignore": "", "x:y/z": "", "notes.envrc": "", "mise.lock": "", "C:/w/a.go": "",
	} {
		if name := obeyed.Name(path); name != want {
			t.Errorf("%+q: %q, want %q", path, name, want)
		}
	}
}

// Of these folders some files are obeyed: what is put there under another name than the written one may be such a file.
func TestHolds(t *testing.T) {
	for path, want := range map[string]string{
		".cargo": ".cargo", "/w/a/.GitHub/": ".github", `C:\w\.cargo`: ".cargo", "CARGO~1": ".cargo", ".g\u200cithub. ": ".github", "/home/u/.config": ".config",
		"": "", "/": "", ".": "", "cargo": "", ".cargo/registry": "", ".github/workflows": "", ".cache": "",
	} {
		if name := obeyed.Holds(path); name != want {
			t.Errorf("%+q: %q, want %q", path, name, want)
		}
	}
}

func TestMatching(t *testing.T) {
	for pattern, want := range map[string]string{
		".carg*": ".cargo", "a/.g*b/x": "a/.github/x", ".gi[t]": ".git", "*": "", "./*": "", "../x*": "", ".cargo": "", ".[": "", ".coverage.*": "",
	} {
		if got := strings.Join(obeyed.Matching(pattern), " "); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
