// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

func sh(script string, more ...string) kittest.Args {
	return kittest.Args{"command": append([]string{"sh", "-c", script}, more...)}
}

// marked returns a text that no other process of this machine has in its arguments.
func marked() string { return fmt.Sprintf("1000.%09d", rand.Uint32N(1e9)) }

// gone waits until no process has the mark in its arguments. The numbers that a command
// sees of its processes are not those that a test sees.
func gone(t *testing.T, mark string) {
	t.Helper()
	var left []int
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); {
		if left = withMark(t, mark); len(left) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("process %d was left", pid)
	}
}

// withMark lists the processes that have a mark in their arguments.
func withMark(t *testing.T, mark string) (list []int) {
	t.Helper()
	all, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=", "-o", "args=").Output()
	if err != nil {
		t.Skip("ps is needed to look for processes: ", err)
	}
	for line := range strings.Lines(string(all)) {
		if pid, args, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Contains(args, mark) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
	}
	return list
}

// A2, A9: the whole group is ended when the time is up, grandchildren too, and those
// that made themselves a session of their own.
func TestCommandGroup(t *testing.T) {
	for limit := 500 * time.Millisecond; ; limit *= 2 { // until the machine lets them start
		mark := marked()
		k := commandKit(t, Options{Timeout: limit})
		k.Write("began", "")
		o := k.Call("run_command", sh("sleep "+mark+" & setsid sh -c 'sleep "+mark+" & echo yes > began; wait' & wait"))
		if !strings.Contains(o.Error, "its time limit, with all its processes") || limit > time.Minute {
			t.Fatalf("%s", o.Content.Display())
		}
		gone(t, mark)
		if k.Content("began") != "" {
			return
		}
	}
}

// A2, A9: what is left in the background neither holds the call up nor stays.
func TestCommandBackground(t *testing.T) {
	for _, sandboxed := range []func(...string) sandbox.Profile{nil, sandbox.Full, withoutNamespaces} {
		mark := marked()
		k := commandKit(t, Options{Sandbox: sandboxed})
		o := k.Call("run_command", sh("echo begun; sleep "+mark+" &"))
		if got := o.Content.Display(); o.Failed || got != "begun\n[processes that the command left in the background were ended]" {
			t.Errorf("%s", got)
		}
		gone(t, mark)
		o = k.Call("run_command", sh("sleep "+mark+" >/dev/null 2>&1 </dev/null &"))
		if o.Failed {
			t.Errorf("%s", o.Content.Display())
		}
		gone(t, mark)
		o = k.Call("run_command", sh("setsid sh -c 'echo yes > began; exec sleep "+mark+"' & while [ ! -s began ]; do sleep 0.05; done; echo done"))
		if got := o.Content.Display(); o.Failed || !strings.HasPrefix(got, "done\n") {
			t.Errorf("%s", got)
		}
		if runtime.GOOS == "linux" {
			gone(t, mark)
		} else {
			for _, pid := range withMark(t, mark) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// withoutNamespaces is the profile of a system on which users cannot make them.
func withoutNamespaces(roots ...string) sandbox.Profile {
	p := sandbox.Workspace(roots...)
	p.Without = []sandbox.Part{sandbox.Namespaces}
	return p
}

// A program ended by a signal has failed.
func TestCommandSignal(t *testing.T) {
	k := commandKit(t, Options{})
	k.Fails("run_command", sh("echo x; kill -TERM $$"), "the command was ended by the system (signal: terminated)")
}

// There is no terminal to ask at, and endless output is ended.
func TestCommandRealPrograms(t *testing.T) {
	k := commandKit(t, Options{MaxOutput: 1 << 18, Keep: 100})
	k.Fails("run_command", sh("exec 3</dev/tty"), "the command failed with exit code")
	k.Fails("run_command", kittest.Args{"command": []string{"yes"}}, "it had put out 262144 bytes")
	if got := k.OK("run_command", kittest.Args{"command": []string{"env", "printf", "%s|", "$HOME", "a b"}}); got != "$HOME|a b|" {
		t.Errorf("%s", got)
	}
}

// A2: a shell reads the text only where that is declared.
func TestCommandShell(t *testing.T) {
	k := commandKit(t, Options{Shell: true, Policy: Policy{Allow: []Rule{{"wc"}}, Deny: []Rule{{"rm"}}}})
	if got := strings.TrimSpace(k.OK("run_command", kittest.Args{"command": "printf 'a\nb\n' | wc -l"})); got != "2" {
		t.Errorf("%s", got)
	}
	k.Write("x", "")
	k.Fails("run_command", kittest.Args{"command": "echo $(r\\m x)"}, `the rule "rm" denies "rm x"`)
	k.Content("x")
	k.Fails("run_command", kittest.Args{"command": "  "}, "the command is empty")
	k.Fails("run_command", kittest.Args{"command": "echo out; echo err >&2; exit 4"}, "the command failed with exit code 4")
	tl, _ := k.Set.Lookup("run_command")
	for script, want := range map[string]session.Verdict{"printf x | wc": Allowed, "env rm x": Denied, "$x": Asked, "ls": Unruled} {
		got, _ := tl.(*Command).Approval(tool.Call{Arguments: kittest.JSON(t, kittest.Args{"command": script})}, nil)
		if got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// A program in a root is found from the directory that the command runs in, and
// one that another program put there is not taken for one of PATH.
func TestCommandOwnProgram(t *testing.T) {
	k := commandKit(t, Options{})
	path := k.Write("bin/tool", "#!/bin/sh\necho mine\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := k.OK("run_command", kittest.Args{"command": []string{"./tool"}, "directory": "bin"}); got != "mine\n" {
		t.Errorf("%q", got)
	}
	k.Fails("run_command", kittest.Args{"command": []string{"tool"}, "directory": "bin"}, "no such program in the directories of PATH")
	t.Setenv("PATH", "."+string(filepath.ListSeparator)+filepath.Join(k.Dir, "bin"))
	c, err := RunCommand("run_command", k.Files, Options{Policy: Policy{Allow: []Rule{{"tool"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := c.Approval(tool.Call{Arguments: `{"command":["tool"]}`}, nil); got != "" {
		t.Errorf("%q", got)
	}
}

// A6: a named pipe in a repository is a question at once. Git would wait for it, and so would the
// one who reads it to judge the command.
func TestPipeInRepository(t *testing.T) {
	for _, name := range []string{"config", "index", "HEAD"} {
		p := newPlayground(t, Options{})
		p.repositories()
		path := filepath.Join(p.work(), ".git", name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		if repositoryProblem(p.work(), []string{p.work()}) == "" {
			t.Errorf("no problem with a pipe as %s", name)
		}
	}
}
