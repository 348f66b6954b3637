// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/variables"
)

// The address and the reference of a repository stand in a row of the queue, and its
// content belongs to strangers. So git gets only addresses that the operator allowed, and
// no program that a repository, a checkout or a patch names is started: no hooks, no
// filters, no submodules. The folder in which git keeps its own data is beside the
// checkout, because the calls of a session can write to all that is in the checkout.

// Forms of addresses and references. What is not a letter or a digit at the beginning may be
// an option of a program.
var (
	hostPath  = lazyregexp.New(`^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]+:[^:-]`)
	helped    = lazyregexp.New(`^[A-Za-z0-9+.-]*::`)
	reference = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./+#@=,%-]*$`)
	below     = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)
)

// checkRepository returns an error for a repository or a reference that is not given to git.
func checkRepository(address, ref string) error {
	bad := func(why string) error { return fmt.Errorf("the repository %q: %s", address, why) }
	switch u, err := url.Parse(address); {
	case address == "" || len(address) > 2048 || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }):
		return bad("its address is text without spaces, control characters and #")
	case helped.MatchString(address):
		return bad("addresses that name a program are not used")
	case filepath.IsAbs(address):
		if filepath.Clean(address) != address {
			return bad("it is not a full path")
		}
	case !strings.Contains(address, "://"):
		if !hostPath.MatchString(address) {
			return bad("its address is a URL, HOST:PATH or a full path")
		}
	case err != nil || !slices.Contains([]string{"https", "http", "ssh", "git", "file"}, u.Scheme):
		return bad("its address begins with https, http, ssh, git or file")
	case u.Scheme != "file" && !below.MatchString(u.Hostname()) && !strings.HasPrefix(u.Host, "["):
		return bad("its address names no host")
	case u.RawQuery != "" || u.User != nil && (u.Scheme != "ssh" || strings.HasPrefix(u.User.Username(), "-")):
		return bad("its address has no user, password or query: the store would have them; set up credentials at the worker")
	case u.User != nil:
		if _, secret := u.User.Password(); secret {
			return bad("its address contains a password")
		}
	}
	if !reference.MatchString(ref) || len(ref) > 256 || strings.Contains(ref, "..") || strings.Contains(ref, "//") || strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".") || strings.HasSuffix(ref, ".lock") {
		return fmt.Errorf("%q is not the name of a branch, a tag or a commit", ref)
	}
	return nil
}

// isAllowed reports whether an operator allowed a repository, which may have "#" and a
// reference behind it.
func isAllowed(place string, list []string) bool {
	address, _, _ := strings.Cut(place, "#")
	return slices.ContainsFunc(list, func(allowed string) bool {
		rest, is := strings.CutPrefix(address, allowed)
		if is && strings.HasSuffix(allowed, "/") {
			return below.MatchString(rest) && !strings.Contains(rest, "..")
		}
		return is && rest == ""
	})
}

// fetches returns why the worker makes no checkouts of a place, or nil. K2
func (w *Worker) fetches(place string) error {
	address, ref, _ := strings.Cut(place, "#")
	switch {
	case checkRepository(address, ref) != nil, !isAllowed(address, w.Repositories):
		return errNoRepository
	case w.Checkouts == "" || !hasGit():
		return errNoGit
	}
	return nil
}

func hasGit() bool {
	_, err := exec.LookPath("git")
	return err == nil
}

// gitError is a failure of git, with what it said.
type gitError struct{ what, said string }

func (e *gitError) Error() string { return e.what + ": " + e.said }

// hopeless reports whether git will say the same at the next attempt, unless somebody does
// something. Git has one exit code for all, and says it in English.
func (e *gitError) hopeless() bool {
	return slices.ContainsFunc([]string{
		"couldn't find remote ref", "does not appear to be a git repository", "not our ref", "not found", "Not Found", "Repository not found", "could not read Username", "Authentication failed",
		"Permission denied", "Host key verification failed", "dubious ownership", "returned error: 30",
	}, func(s string) bool { return strings.Contains(e.said, s) })
}

// git is how git is started for one checkout.
type git struct {
	repository string // the bare repository with what was fetched
	objects    string // the folder for what git makes for this checkout alone
	index      string
	files      string
	home       string // a folder without settings
	lookup     func(string) (string, bool)
}

// fetchVariables are variables of the operator that say how a repository is reached.
var fetchVariables = []string{
	"SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
	"http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
}

// always are settings of all commands.
var always = []string{
	"core.hooksPath=" + os.DevNull, "core.fsmonitor=false", "protocol.ext.allow=never", "submodule.recurse=false", "fetch.recurseSubmodules=false", "gc.auto=0", "maintenance.auto=false",
	"core.protectHFS=true", "core.protectNTFS=true", "advice.detachedHead=false",
}

// local runs a command that uses nothing but this checkout, with no settings of the operator
// and of no repository but our own.
func (g *git) local(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	settings := append(slices.Clip(always), "core.attributesFile="+os.DevNull, "core.excludesFile="+os.DevNull, "core.autocrlf=false", "core.untrackedCache=false", "diff.ignoreSubmodules=all", "safe.directory=*")
	env := append(g.variables("HOME", "XDG_CONFIG_HOME"), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1", "HOME="+g.home, "XDG_CONFIG_HOME="+g.home,
		"GIT_DIR="+g.repository, "GIT_INDEX_FILE="+g.index, "GIT_WORK_TREE="+g.files,
		"GIT_OBJECT_DIRECTORY="+g.objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(g.repository, "objects"))
	return g.run(ctx, g.files, env, settings, in, args...)
}

// at is local for another repository.
func (g *git) at(ctx context.Context, folder, repository string, args ...string) ([]byte, error) {
	env := append(g.variables("HOME", "XDG_CONFIG_HOME"), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1", "HOME="+g.home, "XDG_CONFIG_HOME="+g.home, "GIT_DIR="+repository)
	return g.run(ctx, folder, env, append(slices.Clip(always), "protocol.allow=never", "protocol.file.allow=always", "safe.directory=*"), nil, args...)
}

// fetchTime is how long a server may take to send a repository.
const fetchTime = 30 * time.Minute

// remote runs a command that asks another machine, with the settings and credentials of the
// operator.
func (g *git) remote(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	// A redirect would lead to what the operator did not allow.
	return g.run(ctx, g.repository, append(g.variables(), "GIT_DIR="+g.repository), append(slices.Clip(always), "http.followRedirects=false"), nil, args...)
}

// variables returns the environment of git, but for some variables. Those that send git to
// other files are not among them.
func (g *git) variables(but ...string) []string {
	env := variables.Take(g.lookup, fetchVariables...)
	env = slices.DeleteFunc(env, func(v string) bool { name, _, _ := strings.Cut(v, "="); return slices.Contains(but, name) })
	named := func(name string) bool {
		return slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	}
	if !named("GIT_SSH") && !named("GIT_SSH_COMMAND") {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes") // or else it asks at the worker's terminal
	}
	return append(env, "LC_ALL=C", "LANGUAGE=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1")
}

func (g *git) run(ctx context.Context, dir string, env, settings []string, in io.Reader, args ...string) ([]byte, error) {
	var list []string
	for _, s := range settings {
		list = append(list, "-c", s)
	}
	cmd := exec.CommandContext(ctx, "git", append(list, args...)...)
	var out, said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, env, in, &limited{to: &out, left: mostPatch + 1}, &limited{to: &said, left: 16 << 10}, time.Second
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(ctx.Err(), &gitError{"git " + args[0], strings.TrimSpace(said.String() + " (" + err.Error() + ")")})
	}
	if out.Len() > mostPatch {
		return nil, errTooLarge
	}
	return out.Bytes(), nil
}

// mostPatch is the most bytes of a patch, and of what git says.
const mostPatch = 64 << 20

var errTooLarge = fmt.Errorf("the changes are larger than %d MB", mostPatch>>20)

// limited drops what is too much.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.to.Write(p[:n])
	return len(p), nil
}

// asTheyAre has git neither convert nor filter any file, whatever the files of a checkout
// say: bytes that were converted twice would not be those that a session wrote.
const asTheyAre = "* -text !eol -ident !filter !working-tree-encoding !diff !merge\n"

// fetch fetches a reference or a commit, and returns the commit.
func (g *git) fetch(ctx context.Context, address, what, to string) (commit string, err error) {
	if err := g.prepare(ctx); err != nil {
		return "", err
	}
	if isCommit(what) && g.has(ctx, what) {
		_, err := g.at(ctx, g.repository, g.repository, "update-ref", to, what)
		return what, err
	}
	if _, err := g.remote(ctx, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance", "--", address, "+"+what+":"+to); err != nil {
		return "", err
	}
	out, err := g.at(ctx, g.repository, g.repository, "rev-parse", "--verify", "--end-of-options", to+"^{commit}")
	return strings.TrimSpace(string(out)), err
}

// prepare makes the repository unless it is there.
func (g *git) prepare(ctx context.Context) error {
	info := filepath.Join(g.repository, "info")
	attributes := filepath.Join(info, "attributes")
	if text, err := os.ReadFile(attributes); err == nil && string(text) == asTheyAre {
		return nil
	}
	if _, err := g.at(ctx, filepath.Dir(g.repository), g.repository, "init", "--quiet", "--bare", "--template="); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(info, 0o700), os.WriteFile(attributes, []byte(asTheyAre), 0o600))
}

// has reports whether a commit was fetched.
func (g *git) has(ctx context.Context, commit string) bool {
	_, err := g.at(ctx, g.repository, g.repository, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

var wholeHash = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// isCommit reports whether a text is the full name of a commit.
func isCommit(s string) bool { return wholeHash.MatchString(s) }
