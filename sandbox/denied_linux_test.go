// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/sandbox"
)

// TestDenials proves that the usual failures name the permission that was missing.
func TestDenials(t *testing.T) {
	g := newGround(t, setting{})
	t.Setenv("HOME", g.path("home"))
	t.Setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
	outside, id := g.path("outside"), g.path("home/.ssh/id")
	for script, want := range map[string]sandbox.Permission{
		"echo x > " + outside + "/new": sandbox.PermissionWrite,
		"touch /usr/new":               sandbox.PermissionWrite,
		"cat " + outside + "/file":     sandbox.PermissionRead,
		"cat " + id:                    sandbox.PermissionRead,
		"unshare -Ur true":             sandbox.PermissionSystem,
		"getent hosts example.invalid; echo 'x: Temporary failure in name resolution'; exit 1": sandbox.PermissionNetwork,
		"sh -c 'ulimit -n 3; cat x' ; echo 'sh: Cannot fork'; exit 2":                          sandbox.PermissionLimit,
		"cat missing":                      "",
		"echo 'no such host'":              "",
		"cat " + g.path("nowhere/missing"): "",
		"cat " + g.path("home/missing"):    "",
		"ls " + outside + "/missing":       "",
	} {
		for _, without := range [][]sandbox.Part{nil, {sandbox.Namespaces}} {
			p := sandbox.Workspace(g.path("workspace"))
			p.Without = without
			needs(t, p)
			cmd := exec.Command("/bin/sh", "-c", script)
			cmd.Dir = g.path("workspace")
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			run, err := sandbox.Command(context.Background(), p, cmd)
			g.must(err)
			g.must(run.Start())
			end, err := run.Wait()
			g.must(err)
			text := errs.String()
			if end.Code != 0 {
				text = out.String() + text
			}
			var got sandbox.Permission
			if list := run.Denials(end, text); len(list) > 0 {
				got = list[0].Permission
				if list[0].Path != "" && !strings.HasPrefix(list[0].Path, g.dir) && list[0].Path != "/usr/new" {
					t.Errorf("%s: %+v", script, list)
				}
			}
			if got != want {
				t.Errorf("%s %v: %q, not %q: %+v %s", script, without, got, want, end, text)
			}
		}
	}
}

// TestDenialsOfSuccess proves that a program that goes on after an error of the sandbox, and
// ends with success, gets the missing permission named; and that the texts of errors
// that are about something else are not taken for it.
func TestDenialsOfSuccess(t *testing.T) {
	g := newGround(t, setting{})
	t.Setenv("HOME", g.path("home"))
	t.Setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
	outside, id := g.path("outside"), g.path("home/.ssh/id")
	for script, want := range map[string]sandbox.Permission{
		"touch " + outside + "/new; echo done":                                  sandbox.PermissionWrite,
		"bash -c 'echo x > " + outside + "/new; true'":                          sandbox.PermissionWrite,
		"bash -c '" + outside + "/new; true'":                                   "",
		"mkdir " + outside + "/a/b || true":                                     "", // nobody could
		"mkdir " + outside + "/folder || true":                                  sandbox.PermissionWrite,
		"cp file " + outside + "/file; true":                                    sandbox.PermissionWrite,
		"cat " + outside + "/file || echo none":                                 sandbox.PermissionRead,
		"cat " + id + " file; true":                                             sandbox.PermissionRead,
		"unshare -Ur true; true":                                                sandbox.PermissionSystem,
		"echo 'curl: (6) Could not resolve host: example.invalid' >&2":          sandbox.PermissionNetwork,
		"echo 'sh: Cannot fork' >&2":                                            sandbox.PermissionLimit,
		"echo 'dial tcp 127.0.0.1:5432: connect: connection refused' >&2":       "",
		"cat missing; true":                                                     "",
		"cat " + outside + "/missing; true":                                     "",
		"ls " + g.path("nowhere") + "; true":                                    "",
		"echo \"touch: cannot touch '" + outside + "/new': Permission denied\"": "", // a log, on standard output
		"echo 'write: resource temporarily unavailable, trying again' >&2":      "",
		"echo 'cat: /proc/1/no-such-file: Permission denied' >&2":               "",
		"echo 'the file is on a read-only file system' >&2":                     "",
		"chmod 000 file; cat file; touch done":                                  "",
	} {
		for _, without := range [][]sandbox.Part{nil, {sandbox.Namespaces}} {
			p := sandbox.Workspace(g.path("workspace"))
			p.Without = without
			needs(t, p)
			_ = os.Remove(g.path("workspace/file")) // an earlier script changed its mode
			g.must(os.WriteFile(g.path("workspace/file"), nil, 0o600))
			cmd := exec.Command("/bin/sh", "-c", script)
			cmd.Dir = g.path("workspace")
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			run, err := sandbox.Command(context.Background(), p, cmd)
			g.must(err)
			g.must(run.Start())
			end, err := run.Wait()
			g.must(err)
			var got sandbox.Permission
			list := run.Denials(end, errs.String())
			if len(list) > 0 {
				got = list[0].Permission
			}
			if got != want || end.Code != 0 {
				t.Errorf("%s %v: %q, not %q: %+v %+v %s", script, without, got, want, list, end, &errs)
			}
		}
	}
}

// TestProfiles proves what the named profiles let a program do.
func TestProfiles(t *testing.T) {
	for name, want := range map[string]string{
		sandbox.NameReadOnly:  "read",
		sandbox.NameWorkspace: "read write",
		sandbox.NameNetwork:   "read write network",
		sandbox.NameFull:      "read write network outside",
	} {
		g := newGround(t, setting{})
		made, err := sandbox.Maker(name)
		g.must(err)
		p := made(g.path("workspace"))
		needs(t, p)
		p.Read = append(p.Read, g.executable)
		to := g.targets()
		g.must(exec.Command("cp", g.path("outside/file"), g.path("workspace/file")).Run())
		script := `cat file >/dev/null && printf read; touch new && printf ' write'; "$0" dial "$1" && printf ' network'; touch "$2" && printf ' outside'`
		cmd := exec.Command("/bin/sh", "-c", script, g.executable, to.TCP, g.path("outside/new"))
		cmd.Dir = g.path("workspace")
		out, errs := bytes.Buffer{}, bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = &out, &errs
		run, err := sandbox.Command(context.Background(), p, cmd)
		g.must(err)
		g.must(run.Start())
		if _, err := run.Wait(); err != nil || out.String() != want {
			t.Errorf("%s: %q %v %s", name, &out, err, &errs)
		}
	}
}

// TestEnvironment proves that a program gets no secret of this process's environment
// unless the command names it, and that the last value of a variable counts: the first is
// what most programs would read. A10
func TestEnvironment(t *testing.T) {
	t.Setenv("SOME_KEY", "secret")
	p := sandbox.ReadOnly()
	needs(t, p)
	for _, env := range [][]string{nil, {"NAMED=no", "NAMED=yes"}} {
		cmd := exec.Command("/usr/bin/env")
		cmd.Dir, cmd.Env = "/", env
		var out bytes.Buffer
		cmd.Stdout = &out
		run, err := sandbox.Command(context.Background(), p, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = run.Wait()
		text := out.String()
		if err != nil || strings.Contains(text, "secret") || strings.Contains(text, "NAMED=yes") != (env != nil) || strings.Contains(text, "NAMED=no") || !strings.Contains(text, "TMPDIR=") {
			t.Errorf("%v: %v %s", env, err, text)
		}
	}
}

// TestWrongCommands proves that a command that cannot run as asked does not run.
func TestWrongCommands(t *testing.T) {
	dir := t.TempDir()
	relative, memory := sandbox.Workspace("here"), sandbox.Workspace(dir)
	memory.Limits.Memory = 1
	nothing := sandbox.Workspace(dir)
	nothing.Without = []sandbox.Part{sandbox.Landlock, sandbox.Namespaces}
	for text, p := range map[string]sandbox.Profile{
		"not an absolute path": relative, "at least": memory, "cannot confine": nothing,
		"cannot write in": sandbox.Workspace(filepath.Join(dir, "missing")),
	} {
		if _, err := sandbox.Command(context.Background(), p, exec.Command("/bin/true")); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	needs(t, sandbox.Workspace(dir))
	for text, cmd := range map[string]*exec.Cmd{"cannot be started": {Path: "/bin/missing", Dir: dir}, "not visible": {Path: "/bin/true", Dir: t.TempDir()}} {
		run, err := sandbox.Command(context.Background(), sandbox.Workspace(dir), cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Wait(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// BenchmarkStart compares the start and end of a program with and without a sandbox.
func BenchmarkStart(b *testing.B) {
	bare := func() error { return exec.Command("/bin/true").Run() }
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := bare(); err != nil {
				b.Fatal(err)
			}
		}
	})
	dir := b.TempDir()
	for name, without := range map[string][]sandbox.Part{"everything": nil, "without namespaces": {sandbox.Namespaces}} {
		p := sandbox.Workspace(dir)
		p.Without = without
		start := func(b *testing.B) {
			cmd := exec.Command("/bin/true")
			cmd.Dir = dir
			run, err := sandbox.Command(context.Background(), p, cmd)
			if err != nil {
				b.Skip(err)
			}
			if err := run.Start(); err != nil {
				b.Fatal(err)
			}
			if _, err := run.Wait(); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			start(b) // the first run with a profile starts a process that stays
			for b.Loop() {
				start(b)
			}
		})
	}
}

// TestDenialsNamePaths proves that a denial names the path that the program meant, also if
// the program printed it relative to its working folder, and none that is only a part of it.
func TestDenialsNamePaths(t *testing.T) {
	g := newGround(t, setting{})
	g.must(os.MkdirAll(g.path("workspace/etc"), 0o700))
	g.must(os.WriteFile(g.path("workspace/etc/passwd"), nil, 0o000))
	g.must(os.WriteFile(g.path("workspace/two words"), nil, 0o600))
	g.must(os.WriteFile(g.path("workspace/.envrc"), nil, 0o600))
	write, outside := sandbox.PermissionWrite, g.path("outside/file")
	for _, c := range []struct {
		profile, script string
		permission      sandbox.Permission
		path, reason    string
	}{
		{"read-only", "touch new", write, "workspace/new", "the sandbox does not allow writing new"},
		{"read-only", "echo x > new", write, "workspace/new", "the sandbox does not allow writing new"},
		{"read-only", "touch ./etc/new", write, "workspace/etc/new", "the sandbox does not allow writing ./etc/new"},
		{"read-only", "touch 'two words'", write, "workspace/two words", "the sandbox does not allow writing two words"},
		{"read-only", "rm 'two words'", write, "workspace/two words", "the sandbox does not allow writing two words"},
		{"read-only", "mkdir etc/x", write, "workspace/etc/x", "the sandbox does not allow writing etc/x"},
		{"read-only", "echo 'open new: read-only file system'; exit 1", write, "workspace/new", "the sandbox does not allow writing new"},
		{"read-only", `echo "OSError: [Errno 30] Read-only file system: 'new'"; exit 1`, write, "workspace/new", "the sandbox does not allow writing new"},
		{"workspace", "cat ../outside/file", sandbox.PermissionRead, "outside/file", "the sandbox does not show ../outside/file"},
		{"workspace", "echo x > ../outside/new", write, "outside/new", "the sandbox does not allow writing outside of the workspace: ../outside/new"},
		{"workspace", "cat '" + outside + "'", sandbox.PermissionRead, "outside/file", "the sandbox does not show " + outside},
		{"workspace", "echo 'x: etc/passwd: Permission denied'; exit 1", "", "", ""},
		{"workspace", "echo 'x: cannot open etc/passwd: Permission denied' >&2; exit 1", "", "", ""},
		{"workspace", "rm .envrc", write, "workspace/.envrc", "the sandbox does not allow changing .envrc, which other programs of the user run or obey"},
		{"workspace", "cd /usr && touch new", write, "", "the sandbox does not allow writing there: touch: cannot touch 'new': Read-only file system"},
		{"workspace", "echo 'Device or resource busy'; exit 1", "", "", ""},
	} {
		made, err := sandbox.Maker(c.profile)
		g.must(err)
		p := made(g.path("workspace"))
		needs(t, p)
		cmd := exec.Command("/bin/sh", "-c", c.script)
		cmd.Dir = g.path("workspace")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		run, err := sandbox.Command(context.Background(), p, cmd)
		g.must(err)
		g.must(run.Start())
		end, err := run.Wait()
		g.must(err)
		var got sandbox.Denial
		if list := run.Denials(end, out.String()); len(list) > 0 {
			got = list[0]
		}
		if c.path != "" {
			c.path = g.path(c.path)
		}
		if want := (sandbox.Denial{Permission: c.permission, Path: c.path, Reason: c.reason}); got != want {
			t.Errorf("%s: %s: %+v, not %+v: %s", c.profile, c.script, got, want, &out)
		}
	}
}
