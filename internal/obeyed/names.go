// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package obeyed knows the files that other programs run or obey without another
// question: hooks and settings of git, shell start files, tasks of editors. Whoever writes
// to them starts programs later, with all rights of the person.
//
// Tools ask before they write to such a file ([Name]). A sandbox keeps its programs from
// changing those that exist ([Scan.Fixed]), and says which ones they made ([Scan.Since]).
package obeyed

import (
	"path"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// files are names of files, in any folder.
var files = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".xprofile", ".xsession", ".xinitrc", ".pam_environment", // shells and sessions
	".envrc", ".mise.toml", "mise.toml", ".tool-versions", ".gitconfig", ".hgrc", ".npmrc", ".vimrc", ".nvimrc", ".nvim.lua", ".exrc", ".emacs", ".gdbinit", ".lldbinit", ".tmux.conf", ".screenrc", ".mcp.json",
	".devcontainer.json", ".gitpod.yml", ".rprofile", ".dir-locals.el", ".aider.conf.yml", ".crush.json", "crush.json", ".roomodes", "opencode.json", "opencode.jsonc",
}

// instructions are names of files in which agents read what to do, in any folder of a project, and of lists of what git runs before
// a commit. People change them often, and git with each branch, so a sandbox lets programs write them, and they are named afterwards.
var instructions = []string{
	"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", ".cursorrules", ".windsurfrules", ".clinerules", ".roorules", ".goosehints",
	".pre-commit-config.yaml", ".pre-commit-config.yml", ".overcommit.yml", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml",
	".lefthook.toml", ".lefthook.json", "lefthook-local.yml", "lefthook-local.yaml", ".lefthook-local.yml", ".lefthook-local.yaml",
}

// inFolders are names of files and folders that count in one folder only, with whether a sandbox lets programs write them.
var inFolders = map[string]map[string]bool{
	".cargo":  {"config": false, "config.toml": false},
	".github": {"copilot-instructions.md": true, "instructions": true, "prompts": true, "agents": true, "hooks": true},
}

// folders are folders with all that is in them.
var folders = []string{
	".git", ".hg", ".sl", ".jj", ".ssh", ".gnupg", ".vscode", ".idea", ".zed", ".fleet", ".helix", ".husky", ".devcontainer", ".emacs.d", ".vim", ".claude", ".cursor", ".codex", ".gemini", ".windsurf", ".antiphon",
	".agents", ".amazonq", ".augment", ".clinerules", ".continue", ".crush", ".factory", ".goose", ".junie", ".kilocode", ".kiro", ".opencode", ".qwen", ".roo", ".theia", ".trae", ".vs",
	".cargo/config", ".cargo/config.toml", ".github/copilot-instructions.md", ".github/instructions", ".github/prompts", ".github/agents", ".github/hooks",
	".mise", ".config/mise", ".config/fish", ".config/git", ".config/autostart", ".config/systemd", ".config/environment.d", ".config/nvim", "Library/LaunchAgents",
	".config/antiphon", ".local/share/antiphon", ".cache/antiphon", ".chatmd/cache", // trust, sessions, answers of agents
}

// ofProjects are names of files and folders that programs obey in the folder of a project.
var ofProjects = []string{
	".envrc", ".mise.toml", "mise.toml", ".mise", ".tool-versions", ".exrc", ".nvimrc", ".nvim.lua", ".mcp.json", ".vscode", ".idea", ".zed", ".fleet", ".helix", ".husky", ".devcontainer", ".claude", ".cursor", ".codex", ".gemini", ".windsurf", ".antiphon",
	".devcontainer.json", ".gitpod.yml", ".rprofile", ".dir-locals.el", ".aider.conf.yml", ".crush.json", "crush.json", ".roomodes", "opencode.json", "opencode.jsonc",
	".agents", ".amazonq", ".augment", ".continue", ".crush", ".factory", ".goose", ".junie", ".kilocode", ".kiro", ".opencode", ".qwen", ".roo", ".theia", ".trae", ".vs",
}

// Name returns the part of a path that names a file or folder that programs obey, or "".
// Some file systems ignore case, invisible characters, and dots and spaces at the end of a name, know
// .git as git~1, or reach a file by the name of its stream.
func Name(path string) string {
	names := strings.Split(strings.ToLower(strings.ReplaceAll(path, `\`, "/")), "/")
	for i, name := range names {
		names[i] = strings.TrimRight(name, ". ")
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if at := checkout(names); at > 0 && !strings.Contains(path, "..") {
		names = slices.Delete(names, at-len(checkouts)-2, at-1)
	}
	for i, name := range names {
		names[i] = long(plain(name), i == len(names)-1)
	}
	if n := len(names); n > 0 && (slices.Contains(files, names[n-1]) || slices.Contains(instructions, names[n-1]) || isWorkspace(names[n-1])) {
		return names[n-1]
	}
	whole := "/" + strings.Join(names, "/") + "/"
	for _, folder := range folders {
		if strings.Contains(whole, "/"+strings.ToLower(folder)+"/") {
			return folder
		}
	}
	if n := len(names); n > 0 {
		return ofMise(strings.Join(names[max(0, n-2):n-1], ""), names[n-1])
	}
	return ""
}

// Holds returns the name of a folder, by its path, of which programs obey some files and not others, or "".
func Holds(path string) string {
	names := strings.Split(strings.Trim(strings.ReplaceAll(path, `\`, "/"), "/"), "/")
	switch name := long(plain(strings.TrimRight(strings.ToLower(names[len(names)-1]), ". ")), false); {
	case inFolders[name] != nil, name == ".config":
		return name
	}
	return ""
}

// Matching returns a path with each name that the first pattern in it for hidden files may become, of the
// folders that programs obey, or that hold files which they obey.
func Matching(pattern string) (paths []string) {
	names := strings.Split(pattern, "/")
	at := slices.IndexFunc(names, func(name string) bool {
		return strings.HasPrefix(name, ".") && strings.ContainsAny(name, "*?[")
	})
	if at < 0 {
		return nil
	}
	for _, folder := range folders {
		first, _, _ := strings.Cut(folder, "/")
		if ok, err := path.Match(names[at], first); err != nil || !ok {
			continue
		}
		names := slices.Clone(names)
		names[at] = first
		if one := strings.Join(names, "/"); !slices.Contains(paths, one) {
			paths = append(paths, one)
		}
	}
	return paths
}

// isWorkspace reports whether a name is that of a file for an editor which says what runs when it is opened.
func isWorkspace(name string) bool { return strings.HasSuffix(name, ".code-workspace") }

// ofMise returns what a name in a folder is called that mise obeys beside mise.toml, or "": it has files for
// the person (mise.local.toml) and for environments (mise.dev.toml), and folders for both. The names are in lower case.
func ofMise(folder, name string) string {
	toml := strings.HasSuffix(name, ".toml")
	switch {
	case toml && strings.HasPrefix(name, "mise."):
		return "mise.*.toml"
	case toml && strings.HasPrefix(name, ".mise."):
		return ".mise.*.toml"
	case toml && strings.HasPrefix(name, "config.") && folder == "mise":
		return "mise/config.toml"
	case name == "mise" && folder == ".config":
		return ".config/mise"
	}
	return ""
}

// shortName matches a name that NTFS makes beside a long one: at most six characters, a number, three of the extension.
var shortName = lazyregexp.New(`^([^~.]{1,6})~([1-9])(\.[^.]{1,3})?$`)

// long returns the name of the lists for which a short name of NTFS may stand, or the name itself. That of a file is the last of a path.
func long(name string, last bool) string {
	found := shortName.FindStringSubmatch(name)
	if found == nil {
		return name
	}
	lists := [][]string{folders}
	if last {
		lists = append(lists, files)
	}
	for _, list := range lists {
		for _, path := range list {
			for of := range strings.SplitSeq(strings.ToLower(path), "/") {
				if isShort(of, found[1], found[3]) {
					return of
				}
			}
		}
	}
	switch {
	case found[3] == ".tom" && found[1] == "config":
		return "config.toml"
	case found[3] == ".tom" && strings.HasPrefix(found[1], "mise"):
		return "mise.*.toml"
	}
	return name
}

// plain returns a name, which is in lower case, as a file system may take it.
func plain(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimRight(alike.Replace(name), ". ")
}

// isShort reports whether a short name, without its number, may stand for a name: it begins as that does, or as its first two
// characters and four hexadecimal digits if many names begin alike.
func isShort(of, short, extension string) bool {
	base, ext := strings.TrimLeft(of, "."), ""
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
		base, ext = base[:dot], base[dot:]
	}
	base = strings.ReplaceAll(base, ".", "")
	if of == base && len(base) <= 8 || ext[:min(len(ext), 4)] != extension {
		return false
	}
	two := base[:min(len(base), 2)]
	hashed := len(short) == len(two)+4 && strings.HasPrefix(short, two) && strings.Trim(short[len(two):], "0123456789abcdef") == ""
	return short == base[:min(len(base), 6)] || hashed
}

// alike replaces the characters that HFS+ ignores, and a letter that is a small s where case is ignored.
var alike = strings.NewReplacer("\u200c", "", "\u200d", "", "\u200e", "", "\u200f", "", "\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "", "\u202e", "",
	"\u206a", "", "\u206b", "", "\u206c", "", "\u206d", "", "\u206e", "", "\u206f", "", "\ufeff", "", "\u017f", "s")

// checkouts is where workers keep the checkouts of sessions. Each is a folder, and what is below
// "files" in it is a project like others.
var checkouts = []string{".cache", "antiphon", "checkouts", "sessions"}

// checkout returns where the names below the files of a checkout begin, or 0. A name with signs
// that a shell replaces is none of a checkout.
func checkout(names []string) int {
	for i := range max(0, len(names)-len(checkouts)-1) {
		at := i + len(checkouts)
		if slices.Equal(names[i:at], checkouts) && names[at+1] == "files" && strings.Trim(names[at], "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" {
			return at + 2
		}
	}
	return 0
}

// The lines of a repository's configuration that start no program and read no file, as
// git init, clone and branch write them.
var (
	harmlessSection = lazyregexp.New(`^\[(core|user|init|pull|push|advice|color|remote "[^"\\]*"|branch "[^"\\]*")\]$`)
	harmlessSetting = lazyregexp.New(`^\s*(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|` +
		`quotepath|name|email|defaultbranch|rebase|default|url|pushurl|fetch|push|tagopt|prune|remote|merge|description|pushremote|ui)\s*=[^\\"#;]*$`)
)

// Setting returns the first line of a configuration of git that may start a program or
// read a file, or "".
func Setting(config string) string {
	for line := range strings.Lines(config) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != '#' && trimmed[0] != ';' &&
			!harmlessSection.MatchString(line) && !harmlessSetting.MatchString(strings.ToLower(line)) {
			return trimmed
		}
	}
	return ""
}
