// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

func sh(script string, more ...string) kittest.Args {
	return kittest.Args{"command": append([]string{"sh", "-c", script}, more...)}
}

// gone waits until a process has ended.
func gone(t *testing.T, pidText string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(pidText))
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d was left", pid)
}

// zombie reports a process that has ended and that nobody has asked about.
func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && strings.HasPrefix(state, "Z")
}

// A2: the whole group is ended, grandchildren too.
func TestCommandGroup(t *testing.T) {
	for limit := 500 * time.Millisecond; ; limit *= 2 { // until the machine lets them start
		k := commandKit(t, Options{Timeout: limit})
		k.Write("pid", "")
		k.Write("pid2", "")
		o := k.Call("run_command", sh("sleep 1000 & echo $! > pid; sh -c 'sleep 1000 & echo $! > pid2; wait'"))
		if !strings.Contains(o.Error, "its time limit, with all its processes") || limit > time.Minute {
			t.Fatalf("%s", o.Content.Display())
		}
		if k.Content("pid") != "" {
			gone(t, k.Content("pid"))
		}
		if k.Content("pid2") != "" {
			gone(t, k.Content("pid2"))
			return
		}
	}
}

// A2: what is left in the background neither holds the call up nor stays.
func TestCommandBackground(t *testing.T) {
	k := commandKit(t, Options{})
	o := k.Call("run_command", sh("echo begun; sleep 1000 & echo $! > pid"))
	if got := o.Content.Display(); o.Failed || got != "begun\n[processes that the command left in the background were ended]" {
		t.Errorf("%s", got)
	}
	gone(t, k.Content("pid"))
	o = k.Call("run_command", sh("sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > pid"))
	if o.Failed {
		t.Errorf("%s", o.Content.Display())
	}
	gone(t, k.Content("pid"))
}

// What makes itself a session of its own is out of reach; it does not hold the
// call up either.
func TestCommandEscaped(t *testing.T) {
	k := commandKit(t, Options{})
	o := k.Call("run_command", sh("command -v setsid >/dev/null || exit 9; setsid sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do sleep 0.05; done; echo done"))
	if strings.Contains(o.Error, "exit code 9") {
		t.Skip("there is no setsid here")
	}
	if got := o.Content.Display(); !strings.HasPrefix(got, "done") {
		t.Errorf("%s", got)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(k.Content("pid")))
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
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
