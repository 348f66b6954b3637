// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// passedOn are the variables that every command gets from this process.
var passedOn = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES",
	// Windows programs do not start without some of these.
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES", "PROGRAMDATA",
}

// setAlways tell programs that nobody is at a terminal.
var setAlways = []string{"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// secretName fits variables that hold keys.
var secretName = regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSW|CREDENTIAL`)

// commandEnv returns the environment of commands.
func commandEnv(more []string) ([]string, error) {
	var env []string
	pass := func(name string) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range passedOn {
		pass(name)
	}
	env = append(env, setAlways...)
	for _, v := range more {
		name, _, set := strings.Cut(v, "=")
		switch {
		case name == "" || strings.ContainsRune(v, 0):
			return nil, fmt.Errorf("shell: %q is not an environment variable", v)
		case set:
			env = append(env, v)
		case secretName.MatchString(name):
			return nil, fmt.Errorf("shell: the variable %s looks like a secret, which commands do not get", name)
		default:
			pass(name)
		}
	}
	return env, nil
}

// absolutePath leaves only absolute directories in PATH, and returns them: a
// program is never found in the directory that happens to be the current one.
func absolutePath(env []string) (_, dirs []string) {
	for i, v := range env {
		if name, list, _ := strings.Cut(v, "="); strings.EqualFold(name, "PATH") {
			dirs = slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
			env[i] = name + "=" + strings.Join(dirs, string(filepath.ListSeparator))
		}
	}
	return env, dirs
}

// programs finds programs as a command will.
type programs struct {
	dir      string   // the working directory
	dirs     []string // of PATH
	writable []string // directories that tools write to
}

var errNoProgram = errors.New("no such program in the directories of PATH")

// find returns the absolute path of a program: from PATH if the name has no
// slash, and else from the working directory.
func (p *programs) find(name string) (string, error) {
	if strings.ContainsRune(filepath.ToSlash(name), '/') || filepath.VolumeName(name) != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.dir, name)
		}
		return exec.LookPath(name)
	}
	if name == "." || name == ".." {
		return "", errNoProgram
	}
	for _, dir := range p.dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", errNoProgram
}

// trusted reports whether a program lies where the tools of this package cannot
// put one of their own.
func (p *programs) trusted(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for _, dir := range p.writable {
		for _, path := range []string{path, real} {
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
				return false
			}
		}
	}
	return true
}

// baseName is the name of a program without what differs between systems.
func baseName(name string) string {
	name = filepath.Base(filepath.FromSlash(name))
	if runtime.GOOS == "windows" {
		name = strings.ToLower(name)
		for _, ext := range []string{".exe", ".com", ".bat", ".cmd"} {
			name = strings.TrimSuffix(name, ext)
		}
	}
	return name
}

// identify returns the name that an Allow rule may know a program by, "" for
// one that is not what its name says, and all the names that a Deny or Ask rule
// may know it by.
func (p *programs) identify(name string) (sure string, all []string) {
	base := baseName(name)
	all = []string{name, base}
	path, err := p.find(name)
	if err != nil {
		return "", all
	}
	all = append(all, path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", all
	}
	all = append(all, baseName(real), real)
	usual, err := p.find(base)
	if err != nil || !p.trusted(path) {
		return "", all
	}
	if usual, err = filepath.EvalSymlinks(usual); err != nil || usual != real {
		return "", all
	}
	return base, all
}
