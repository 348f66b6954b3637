// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/antiphon-go/antiphon/sandbox"
)

func init() {
	// series runs the orders on its input, a line each, and prints what each one did.
	roles["series"] = func([]string) {
		in := json.NewDecoder(os.Stdin)
		for {
			var o order
			if err := in.Decode(&o); err != nil {
				return
			}
			a, err := o.run()
			if err != nil {
				a.Error = err.Error()
			}
			_ = json.NewEncoder(os.Stdout).Encode(a)
		}
	}
	// leave leaves a segment of shared memory behind, and prints its number.
	roles["leave"] = func([]string) {
		id, err := unix.SysvShmGet(4711, 4096, unix.IPC_CREAT|0o600)
		fmt.Println(id, err)
	}
	// look reports whether there is such a segment, and whether a program sleeps so long.
	roles["look"] = func(args []string) {
		_, err := unix.SysvShmGet(4711, 4096, 0)
		fmt.Println(err)
		names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range names {
			if text, _ := os.ReadFile(name); string(text) == "sleep\x00"+args[0]+"\x00" {
				fmt.Println(name)
			}
		}
	}
	// meddle changes the process that started it.
	roles["meddle"] = func([]string) {
		low := unix.Rlimit{Cur: 8, Max: 8}
		parent := os.Getppid()
		fmt.Println(unix.Prlimit(parent, unix.RLIMIT_NOFILE, &low, nil), unix.Setpriority(unix.PRIO_PROCESS, parent, 19),
			unix.Setpriority(unix.PRIO_USER, os.Getuid(), 19))
	}
}

// series starts a process that runs one order after another.
func (g *ground) series() (run func(p sandbox.Profile, argv ...string) answer, cmd *exec.Cmd) {
	g.t.Helper()
	cmd = g.process("series")
	in, err := cmd.StdinPipe()
	g.must(err)
	out, err := cmd.StdoutPipe()
	g.must(err)
	g.must(cmd.Start())
	g.t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	answers := json.NewDecoder(out)
	return func(p sandbox.Profile, argv ...string) (a answer) {
		g.t.Helper()
		g.must(json.NewEncoder(in).Encode(order{Profile: p, Argv: argv, Dir: g.path("workspace"), Hide: g.setting.hide}))
		g.must(answers.Decode(&a))
		if a.Error != "" {
			g.t.Errorf("%v: %+v", argv, a)
		}
		return a
	}, cmd
}

// TestNothingIsPassedOn proves that programs started by the same process find nothing of
// each other, except in the workspace.
func TestNothingIsPassedOn(t *testing.T) {
	const leave = `echo $PPID $$; echo x > "$TMPDIR/left"; echo x > "/dev/shm/$1"; "$0" leave; "$0" meddle; (setsid sleep "$2" &) ; `
	const attack = `for n in TERM HUP QUIT KILL; do kill -$n $PPID; done; true`
	const look = `echo $PPID $$; for f in "$TMPDIR/left" "/dev/shm/$1"; do test -e "$f" && echo "$f"; done; "$0" look "$2"; ulimit -n; nice`
	ours, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the kernel counts it from 20 down
	if err != nil {
		t.Fatal(err)
	}
	end := fmt.Sprintf(" %d %d", sandbox.DefaultLimits.Files, 20-ours)
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			run, _ := g.series()
			p := g.workspace()
			do := func(script string) []string {
				unique := filepath.Base(g.dir)
				return strings.Fields(run(p, "/bin/sh", "-c", script, g.executable, unique, "1000.0"+strings.TrimPrefix(unique, "escape")).Output)
			}
			first, second := do(leave+"true"), do(look)
			if number(second[0]) != number(first[0]) || number(second[1]) <= number(first[1]) {
				t.Errorf("the second program was not started by the same process: %v %v", first, second)
			}
			want := "no such file or directory" + end
			if s.shared() { // one table of segments for all programs of the user
				want = "operation not permitted" + end
			}
			if got := strings.Join(second[2:], " "); got != want {
				t.Errorf("%q, not %q, after %v", got, want, first)
			}
			third, fourth := do(leave+attack), do(look)
			if got := strings.Join(fourth[2:], " "); got != want {
				t.Errorf("%q, not %q, after %v", got, want, third)
			}
		})
	}
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// TestViewIsNew proves that a program sees what its profile shows when it starts, also
// if other programs with the same profile were started before.
func TestViewIsNew(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			run, _ := g.series()
			replace := func(name, text string) {
				g.must(os.WriteFile(g.path("new"), []byte(text), 0o600))
				g.own("new")
				g.must(os.Rename(g.path("new"), g.path(name)))
			}
			p := g.workspace()
			p.Read = append(p.Read, g.path("outside/file"))
			p.Hidden = []string{g.path("workspace/key"), g.path("workspace/later")}
			replace("outside/file", "one")
			replace("workspace/key", "secret")
			script := fmt.Sprintf("cat %s; echo; cat key later; true", g.path("outside/file"))
			for i, text := range []string{"one", "two", "three"} {
				replace("outside/file", text)
				replace("workspace/key", "secret")
				if i == 2 {
					replace("workspace/later", "secret")
				}
				if a := run(p, "/bin/sh", "-c", script); !strings.HasPrefix(a.Output, text+"\n") || strings.Contains(a.Output, "secret") {
					t.Errorf("%+v", a)
				}
			}
			// Less is less at once.
			p.Read = p.Read[:1]
			if a := run(p, "/bin/sh", "-c", script); strings.Contains(a.Output, "three") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestIdleEnds proves that the processes that wait for programs end with the process that
// they belong to, also if it is killed, and that one that was killed is replaced.
func TestIdleEnds(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			run, cmd := g.series()
			run(g.workspace(), "/bin/true")
			for _, fd := range idleChildren(t, cmd.Process.Pid) {
				g.must(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0))
				awaitExit(t, fd)
			}
			run(g.workspace(), "/bin/true")
			fds := idleChildren(t, cmd.Process.Pid)
			g.must(cmd.Process.Kill())
			for _, fd := range fds {
				awaitExit(t, fd)
			}
		})
	}
}

// idleChildren returns the children of a process. There is at least one.
func idleChildren(t *testing.T, pid int) (fds []int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range tasks {
		more, _ := os.ReadFile(name)
		text = append(text, more...)
	}
	if err != nil {
		t.Skipf("the children of a process cannot be listed: %v", err)
	}
	seen := map[string]bool{}
	for _, child := range strings.Fields(string(text)) {
		if seen[child] {
			continue
		}
		seen[child] = true
		fd, err := unix.PidfdOpen(number(child), 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		fds = append(fds, fd)
	}
	if len(fds) == 0 {
		t.Error("no process waits")
	}
	return fds
}

func awaitExit(t *testing.T, fd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Errorf("a process has not ended: %d %v", n, err)
		}
		return
	}
}

// TestStreams proves that the readers and writers of a command are used as package
// os/exec does.
func TestStreams(t *testing.T) {
	for _, p := range []sandbox.Profile{sandbox.ReadOnly(), {Without: []sandbox.Part{sandbox.Namespaces}}, sandbox.Full()} {
		needs(t, p)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var both, errs bytes.Buffer
		big := strings.Repeat("0123456789", 100_000)
		for _, c := range []struct {
			cmd   *exec.Cmd
			check func() bool
		}{
			{&exec.Cmd{Args: []string{"sh", "-c", "cat; echo; echo error >&2"}, Stdin: strings.NewReader(big), Stdout: &both, Stderr: &both},
				func() bool { return both.String() == big+"\nerror\n" }},
			{&exec.Cmd{Args: []string{"sh", "-c", "read x; echo $x >&2; echo gone"}, Stdin: strings.NewReader("a\n" + big), Stderr: &errs},
				func() bool { return errs.String() == "a\n" }},
			{&exec.Cmd{Args: []string{"sh", "-c", `cat; echo "$V" >&3; printf '%s' "$1" >&3`, "sh", "arg\xff"}, Env: []string{"V=\xfe\n"}, ExtraFiles: []*os.File{w}},
				func() bool {
					_ = w.Close()
					got, err := io.ReadAll(r)
					return err == nil && string(got) == "\xfe\n\narg\xff"
				}},
		} {
			c.cmd.Path, c.cmd.Dir = "/bin/sh", "/"
			run, err := sandbox.Command(context.Background(), p, c.cmd)
			if err != nil {
				t.Fatal(err)
			}
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			if end, err := run.Wait(); err != nil || end.Code != 0 || !c.check() {
				t.Errorf("%s %q: %+v %v", p.Name, c.cmd.Args, end, err)
			}
		}
		_ = r.Close()
	}
}

// TestSignal proves that a program can be asked to end.
func TestSignal(t *testing.T) {
	for _, p := range []sandbox.Profile{sandbox.ReadOnly(), {Without: []sandbox.Part{sandbox.Namespaces}}, sandbox.Full()} {
		needs(t, p)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", "trap 'kill $!; exit 7' TERM; sleep 1000 & echo ready; wait")
		cmd.Dir, cmd.Stdout = "/", w
		run, err := sandbox.Command(context.Background(), p, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		if line, err := bufio.NewReader(r).ReadString('\n'); line != "ready\n" {
			t.Error(line, err)
		}
		if err := run.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if end, err := run.Wait(); err != nil || end.Code != 7 {
			t.Errorf("%+v %v", end, err)
		}
		if err := run.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		_ = r.Close()
	}
}

// TestCommandsThatCannotBe proves that settings that a run would ignore are errors.
func TestCommandsThatCannotBe(t *testing.T) {
	ctx := context.Background()
	piped := exec.Command("/bin/true")
	if _, err := piped.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("/bin/true")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody}}
	extra := exec.Command("/bin/true")
	extra.ExtraFiles = []*os.File{nil}
	zero := exec.Command("/bin/true")
	zero.Env = []string{"TOKEN=secret\x00"}
	for text, cmd := range map[string]*exec.Cmd{
		"give the context to": exec.CommandContext(ctx, "/bin/true"), "use os.Pipe": piped, "may only set": other, "is nil": extra, `variable "TOKEN" has a zero byte`: zero,
	} {
		if _, err := sandbox.Command(ctx, sandbox.Full(), cmd); err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWaitAndCloseTwice proves that a run may be closed while it runs, and that another
// Wait is an error.
func TestWaitAndCloseTwice(t *testing.T) {
	p := sandbox.Workspace(t.TempDir())
	needs(t, p)
	cmd := exec.Command("/bin/sh", "-c", "echo x > $TMPDIR/x && cat $TMPDIR/x")
	cmd.Dir = p.Write[0]
	var out bytes.Buffer
	cmd.Stdout = &out
	run, err := sandbox.Command(t.Context(), p, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	run.Close()
	if end, err := run.Wait(); err != nil || end.Code != 0 || out.String() != "x\n" {
		t.Errorf("%+v, %v: %q", end, err, out.String())
	}
	run.Close()
	if _, err := run.Wait(); err == nil || !strings.Contains(err.Error(), "before") {
		t.Errorf("a second Wait: %v", err)
	}
}
