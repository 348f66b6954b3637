// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/antiphon-go/antiphon/sandbox"
)

// order is what a runner does: it runs a program in a sandbox. It is a process of its
// own, so that it can be another user's, be hidden, and be killed.
type order struct {
	Profile sandbox.Profile
	Argv    []string
	Dir     string
	Hide    bool
}

// answer is what a runner prints.
type answer struct {
	Exit    sandbox.Exit
	Output  string
	Planted []string
	Error   string
}

func init() {
	roles["runner"] = func(args []string) {
		var o order
		if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
			panic(err)
		}
		a, err := o.run()
		if err != nil {
			a.Error = err.Error()
		}
		_ = json.NewEncoder(os.Stdout).Encode(a)
	}
}

func (o order) run() (a answer, err error) {
	if o.Hide {
		if err := sandbox.Hide(); err != nil {
			return a, err
		}
	}
	cmd := exec.Command(o.Argv[0], o.Argv[1:]...)
	cmd.Dir = o.Dir
	if os.Getenv("KEEP_FILE") != "" {
		cmd.ExtraFiles = []*os.File{os.NewFile(3, "kept")}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	run, err := sandbox.Command(context.Background(), o.Profile, cmd)
	if err != nil {
		return a, err
	}
	if err := run.Start(); err != nil {
		return a, err
	}
	a.Exit, err = run.Wait()
	a.Output, a.Planted = out.String(), run.Planted()
	return a, err
}

// A setting is a way in which programs are confined.
type setting struct {
	name    string
	without []sandbox.Part
	nobody  bool // the runner is a user without privileges
	hide    bool // the runner hides itself
}

// settings returns the ways that this system can confine programs in. Tests with root
// run the runner both as root and as a user without privileges.
func settings(t *testing.T) (list []setting) {
	t.Helper()
	has := sandbox.Available()
	for _, nobody := range []bool{false, true} {
		who := "as this user, "
		if nobody {
			if who = "as nobody, "; os.Getuid() != 0 {
				continue // this user is as good
			}
		}
		if has.Has(sandbox.Namespaces) {
			list = append(list, setting{who + "with everything", nil, nobody, false},
				setting{who + "hidden", nil, nobody, true},
				setting{who + "without Landlock", []sandbox.Part{sandbox.Landlock}, nobody, false})
		} else {
			t.Logf("not tried with namespaces: %s", strings.Join(has.Missing, "; "))
		}
		if has.Has(sandbox.Landlock) {
			list = append(list, setting{who + "without namespaces", []sandbox.Part{sandbox.Namespaces}, nobody, false})
		} else {
			t.Logf("not tried with Landlock: %s", strings.Join(has.Missing, "; "))
		}
	}
	if len(list) == 0 {
		t.Skipf("this system confines nothing: %s", strings.Join(has.Missing, "; "))
	}
	return list
}

// shared reports whether the processes of the setting see those outside.
func (s setting) shared() bool { return slices.Contains(s.without, sandbox.Namespaces) }

// unlimited reports whether the system cannot limit the number of processes.
func (s setting) unlimited() bool { return s.shared() && !s.nobody && os.Getuid() == 0 }

// ground is where a test runs: folders that the runner's user owns, and this
// executable where that user can start it.
type ground struct {
	t          *testing.T
	setting    setting
	dir        string
	executable string
}

func newGround(t *testing.T, s setting) *ground {
	t.Helper()
	dir, err := os.MkdirTemp("", "escape")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	g := &ground{t, s, dir, filepath.Join(dir, "program")}
	g.must(os.Chmod(dir, 0o755))
	self, err := os.Executable()
	g.must(err)
	text, err := os.ReadFile(self)
	g.must(err)
	// A program that another test starts meanwhile would have the file open for writing for a
	// moment, and then it cannot be started.
	syscall.ForkLock.RLock()
	err = os.WriteFile(g.executable, text, 0o755)
	syscall.ForkLock.RUnlock()
	g.must(err)
	for _, name := range []string{"home", "home/.ssh", "workspace", "outside", "temp"} {
		g.must(os.Mkdir(g.path(name), 0o700))
		g.own(name)
	}
	for _, name := range []string{"home/.ssh/id", "outside/file", "outside/moved", "outside/doomed"} {
		g.must(os.WriteFile(g.path(name), []byte("secret"), 0o600))
		g.own(name)
	}
	return g
}

func (g *ground) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) path(name string) string { return filepath.Join(g.dir, name) }

const nobody = 65534

// own gives a path to the user of the runner.
func (g *ground) own(name string) {
	g.t.Helper()
	if g.setting.nobody {
		g.must(os.Chown(g.path(name), nobody, nobody))
	}
}

// process returns a command of this executable as the runner's user.
func (g *ground) process(args ...string) *exec.Cmd {
	cmd := exec.Command(g.executable, args...)
	cmd.Dir = g.path("workspace")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.path("home"), "TMPDIR=" + g.path("temp"), "SECRET=in the environment"}
	cmd.Stderr = os.Stderr
	if g.setting.nobody {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

func (g *ground) workspace() sandbox.Profile {
	p := sandbox.Workspace(g.path("workspace"))
	p.Read, p.Without = []string{g.executable}, g.setting.without
	return p
}

func (g *ground) runner(p sandbox.Profile, argv ...string) *exec.Cmd {
	g.t.Helper()
	text, err := json.Marshal(order{Profile: p, Argv: argv, Dir: g.path("workspace"), Hide: g.setting.hide})
	g.must(err)
	return g.process("runner", string(text))
}

// run runs a program in a sandbox and returns what the runner says.
func (g *ground) run(p sandbox.Profile, argv ...string) (a answer) {
	g.t.Helper()
	out, err := g.runner(p, argv...).Output()
	g.must(err)
	g.must(json.Unmarshal(out, &a))
	return a
}

// targets starts what the attempts aim at.
func (g *ground) targets() targets {
	g.t.Helper()
	unique := filepath.Base(g.dir)
	to := targets{Workspace: g.path("workspace"), Outside: g.path("outside"), Home: g.path("home"), Abstract: "@" + unique, Unique: unique}
	listen := func(network, address string) string {
		l, err := net.Listen(network, address)
		g.must(err)
		g.t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.CopyN(c, c, 1)
				_ = c.Close()
			}
		}()
		return l.Addr().String()
	}
	to.TCP = listen("tcp", "127.0.0.1:0")
	listen("unix", to.Abstract)
	to.Socket = listen("unix", g.path("outside/socket"))
	g.own("outside/socket")
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	g.must(err)
	g.t.Cleanup(func() { _ = udp.Close() })
	go func() {
		b := make([]byte, 1)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(b[:n], from)
		}
	}()
	to.UDP = udp.LocalAddr().String()
	to.Datagrams = g.path("outside/datagrams")
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: to.Datagrams, Net: "unixgram"})
	g.must(err)
	g.t.Cleanup(func() { _ = datagrams.Close() })
	g.own("outside/datagrams")
	to.Victim = g.victim()
	return to
}

// victim starts a process of the runner's user that waits.
func (g *ground) victim() int {
	g.t.Helper()
	cmd := g.process("victim")
	in, err := cmd.StdinPipe()
	g.must(err)
	out, err := cmd.StdoutPipe()
	g.must(err)
	g.must(cmd.Start())
	g.t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	_, err = bufio.NewReader(out).ReadString('\n')
	g.must(err)
	return cmd.Process.Pid
}

// TestEscape proves that a program in the sandbox cannot do what it must not, in every
// way in which this system confines programs.
func TestEscape(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			to := g.targets()
			text, err := json.Marshal(to)
			g.must(err)
			profiles := []sandbox.Profile{g.workspace()}
			if !s.shared() {
				p := g.workspace()
				p.Hosts = []string{"example.com", to.TCP} // which only the proxy may reach
				profiles = append(profiles, p)
			}
			for _, p := range profiles {
				a := g.run(p, g.executable, "attempts", string(text))
				var outcome map[string]string
				if err := json.Unmarshal([]byte(a.Output), &outcome); err != nil || a.Error != "" {
					t.Fatalf("%+v: %v", a, err)
				}
				for _, at := range attempts {
					if got := outcome[at.name]; !strings.HasPrefix(got, "failed: ") {
						t.Errorf("%s: %s", at.name, got)
					} else {
						t.Logf("%s %s", at.name, got)
					}
				}
				g.untouched()
				g.clear()
			}
		})
	}
}

// untouched proves that the folder outside is as it was.
func (g *ground) untouched() {
	g.t.Helper()
	entries, err := os.ReadDir(g.path("outside"))
	g.must(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"datagrams", "doomed", "file", "moved", "socket"}; !slices.Equal(names, want) {
		g.t.Errorf("outside are now %v", names)
	}
	if text, err := os.ReadFile(g.path("outside/file")); err != nil || string(text) != "secret" {
		g.t.Errorf("the file outside is now %q (%v)", text, err)
	}
}

// clear empties the workspace.
func (g *ground) clear() {
	g.t.Helper()
	entries, err := os.ReadDir(g.path("workspace"))
	g.must(err)
	for _, e := range entries {
		g.must(os.RemoveAll(filepath.Join(g.path("workspace"), e.Name())))
	}
}

// TestAttemptsAreReal proves that the attempts succeed without a sandbox. The folder of
// the test is the only place that they change.
func TestAttemptsAreReal(t *testing.T) {
	s := setting{name: "unconfined", nobody: os.Getuid() == 0}
	g := newGround(t, s)
	text, err := json.Marshal(g.targets())
	g.must(err)
	out, err := g.process("attempts", string(text), "those that succeed").Output()
	g.must(err)
	var outcome map[string]string
	g.must(json.Unmarshal(out, &outcome))
	for _, at := range attempts {
		if got := outcome[at.name]; at.control && got != "succeeded" {
			if at.name == "make a user namespace" && !sandbox.Available().Has(sandbox.Namespaces) {
				continue
			}
			t.Errorf("%s: %s", at.name, got)
		}
	}
}

// TestNothingSurvives proves that all processes end with the run, also those that left
// their group and session and whose parents have ended, however the run ends.
func TestNothingSurvives(t *testing.T) {
	const daemons = `for i in 1 2 3; do (setsid sh -c 'setsid sleep 1000 & setsid sleep 1000' &) ; done; echo ready >&3; `
	for _, s := range settings(t) {
		for _, full := range []bool{false, true} {
			for end, script := range map[string]string{"it exits": "exit 3", "its runner is killed": "sleep 1000", "it is killed": "kill -9 $$",
				"a main thread has ended": "mkfifo ended; setsid ../program survivor & read x < ended; exit 3"} {
				t.Run(fmt.Sprintf("%s, full %v, %s", s.name, full, end), func(t *testing.T) {
					t.Parallel()
					g := newGround(t, s)
					p := g.workspace()
					if p.Unconfined = full; full {
						p.Limits = sandbox.Limits{}
					}
					cmd := g.runner(p, "/bin/sh", "-c", daemons+script)
					cmd.Env = append(cmd.Env, "KEEP_FILE=1")
					var out bytes.Buffer
					cmd.Stdout = &out
					r, w, err := os.Pipe()
					g.must(err)
					cmd.ExtraFiles = []*os.File{w}
					g.must(cmd.Start())
					g.must(w.Close())
					in := bufio.NewReader(r)
					if line, err := in.ReadString('\n'); line != "ready\n" {
						t.Errorf("%q: %v", line, err)
					}
					if end == "its runner is killed" {
						g.must(cmd.Process.Kill())
					}
					err = cmd.Wait()
					// Each process has the pipe: the end of it means that none is left.
					if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					g.must(r.Close())
					if end == "its runner is killed" {
						return
					}
					g.must(err)
					var a answer
					g.must(json.Unmarshal(out.Bytes(), &a))
					want := sandbox.Exit{Code: 3, Rest: true}
					if end == "it is killed" {
						want = sandbox.Exit{Code: -1, Signal: syscall.SIGKILL, Rest: true}
					}
					if a.Exit != want || a.Error != "" {
						t.Errorf("%+v", a)
					}
				})
			}
		}
	}
}

// TestStop proves that the end of the context ends all processes of a run.
func TestStop(t *testing.T) {
	for _, p := range []sandbox.Profile{sandbox.ReadOnly(), {Without: []sandbox.Part{sandbox.Namespaces}}, sandbox.Full()} {
		t.Run(fmt.Sprint(p.Name, p.Without), func(t *testing.T) {
			needs(t, p)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := exec.Command("/bin/sh", "-c", "(setsid sleep 1000 &); echo ready; sleep 1000")
			cmd.Dir = "/"
			cmd.Stdout = w
			run, err := sandbox.Command(ctx, p, cmd)
			if err != nil {
				t.Fatal(err)
			}
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			in := bufio.NewReader(r)
			if _, err := in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			cancel()
			e, err := run.Wait()
			if !errors.Is(err, context.Canceled) || e.Signal != syscall.SIGKILL {
				t.Errorf("%+v %v", e, err)
			}
			if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		})
	}
}

// needs skips a test if the system cannot confine as the profile asks.
func needs(t *testing.T, p sandbox.Profile) {
	t.Helper()
	run, err := sandbox.Command(context.Background(), p, exec.Command("/bin/true"))
	if err != nil {
		t.Skip(err)
	}
	run.Close()
}

// TestSupervisorIsSafe proves that a program cannot end the process that watches it, or
// the one that started it.
func TestSupervisorIsSafe(t *testing.T) {
	const script = `kill -9 $PPID; for i in $(ls /proc/$PPID/task); do kill -9 $i; done; `
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			script := script
			if s.shared() { // otherwise -1 means all processes of the program, itself included
				script += `kill -9 -1; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); `
			}
			if a := g.run(g.workspace(), "/bin/sh", "-c", script+"exit 5"); a.Exit.Code != 5 || a.Error != "" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestSupervisorIsSafeOnOlderKernels proves that where Landlock does not restrict signals, a
// program cannot reach the process that watches it by a file that stands for it.
func TestSupervisorIsSafeOnOlderKernels(t *testing.T) {
	for _, s := range settings(t) {
		if !s.shared() {
			continue // the processes have a namespace of their own
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			cmd := g.runner(g.workspace(), g.executable, "signals")
			cmd.Env = append(cmd.Env, "TEST_LANDLOCK=5")
			out, err := cmd.Output()
			g.must(err)
			var a answer
			g.must(json.Unmarshal(out, &a))
			if a.Exit.Code != 5 || a.Error != "" || strings.Contains(a.Output, "succeeded") {
				t.Errorf("%+v", a)
			}
		})
	}
}

func init() {
	// signals tries to end the process that watches this one.
	roles["signals"] = func([]string) {
		parent := os.Getppid()
		dir, err := unix.Open(fmt.Sprintf("/proc/%d", parent), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.PidfdSendSignal(dir, unix.SIGKILL, nil, 0)
		}
		fmt.Println("a file of /proc:", cmp.Or(fmt.Sprint(err), "succeeded"))
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			fmt.Println(err)
		}
		for _, owner := range []int{parent, -parent} {
			_, err = unix.FcntlInt(uintptr(pair[0]), unix.F_SETOWN, owner)
			fmt.Println("F_SETOWN:", cmp.Or(fmt.Sprint(err), "succeeded"))
		}
		ex := [2]int32{1, int32(parent)} // 1 is a process
		_, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(pair[0]), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&ex)))
		fmt.Println("F_SETOWN_EX:", errno)
		for _, request := range []uint{0x8901, 0x8902} { // FIOSETOWN, SIOCSPGRP
			fmt.Println("ioctl:", unix.IoctlSetPointerInt(pair[0], request, parent))
		}
		_, _ = unix.FcntlInt(uintptr(pair[0]), unix.F_SETSIG, int(unix.SIGKILL))
		_, _ = unix.FcntlInt(uintptr(pair[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK)
		_, _ = unix.Write(pair[1], []byte("x"))
		os.Exit(5)
	}
}

// TestLimitsOfPrograms proves that a program cannot use more than its profile says.
func TestLimitsOfPrograms(t *testing.T) {
	if underRace {
		t.Skip("the race detector needs more memory than the limit leaves the program: skipped here, and run without it")
	}
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			p := g.workspace()
			p.Limits = sandbox.Limits{Memory: 256 << 20, Processes: 64, Files: 50, FileSize: 1 << 20, CPU: 1}
			if a := g.run(p, g.executable, "eat", "1000"); a.Exit.Code == 0 || strings.HasPrefix(a.Output, "ate") {
				t.Errorf("memory: %+v", a)
			}
			if a := g.run(p, g.executable, "eat", "50"); a.Exit.Code != 0 {
				t.Errorf("memory: %+v", a)
			}
			if a := g.run(p, "/bin/sh", "-c", "ulimit -n; head -c 2000000 /dev/zero > big; wc -c < big"); a.Output[:3] != "50\n" || !strings.Contains(a.Output, "1048576\n") {
				t.Errorf("files: %+v", a)
			}
			if a := g.run(p, g.executable, "spin"); a.Exit.Signal != syscall.SIGXCPU && a.Exit.Signal != syscall.SIGKILL && a.Exit.Code == 0 {
				t.Errorf("processor: %+v", a)
			}
			if s.unlimited() {
				t.Log("not tried: this system cannot limit the processes of root without namespaces")
				return
			}
			a := g.run(p, g.executable, "bomb", "once")
			first, _, _ := strings.Cut(a.Output, " ")
			if n, err := strconv.Atoi(first); err != nil || n < 8 || n > 64+runningThreads(t, s) {
				t.Errorf("processes: %+v", a)
			}
		})
	}
}

// runningThreads allows for the processes of others, if they count.
func runningThreads(t *testing.T, s setting) int {
	t.Helper()
	if !s.shared() {
		return 16
	}
	return 2000
}

// TestForkBomb proves that a fork bomb runs into its limit and is gone with its run.
func TestForkBomb(t *testing.T) {
	for _, s := range settings(t) {
		if s.unlimited() || s.hide || slices.Contains(s.without, sandbox.Landlock) {
			continue // the limits are the same, and TestLimitsOfPrograms says where there is none
		}
		t.Run(s.name, func(t *testing.T) {
			g := newGround(t, s)
			p := g.workspace()
			p.Limits.Processes = 40
			r, w, err := os.Pipe()
			g.must(err)
			// The shell ends when it cannot start another process.
			cmd := g.runner(p, "/bin/sh", "-c", `bomb() { while :; do setsid sleep 1000 & done; }; bomb 2>/dev/null & bomb 2>/dev/null & bomb`)
			cmd.Env = append(cmd.Env, "KEEP_FILE=1")
			cmd.ExtraFiles = []*os.File{w}
			var out bytes.Buffer
			cmd.Stdout = &out
			g.must(cmd.Start())
			g.must(w.Close())
			if _, err := io.Copy(io.Discard, r); err != nil { // until no process is left
				t.Error(err)
			}
			g.must(r.Close())
			g.must(cmd.Wait())
			if !strings.Contains(out.String(), "fork") {
				t.Error(out.String())
			}
		})
	}
}

// TestOrdinaryWork proves that the sandbox lets programs do their work.
func TestOrdinaryWork(t *testing.T) {
	const script = `set -e
echo text > a; mkdir d; mv a d/b; ln -s d/b c; cat c; chmod 755 c; touch -d 2001-01-01 c; rm c
echo temporary > "$TMPDIR/x"; cat "$TMPDIR/x"; mktemp >/dev/null
test "$(ls /usr/bin | wc -l)" -gt 10; cat /etc/passwd >/dev/null; head -c 4 /dev/urandom >/dev/null; echo gone >/dev/null
cat /proc/self/status >/dev/null; echo a | cat | grep -q a; (sleep 0; exit 4) || test $? = 4
(set +e; ulimit -n 40; true)
if command -v git >/dev/null; then git init -q r && cd r && git -c user.name=a -c user.email=b@c.d commit -q --allow-empty -m x && git log --oneline | grep -q x; fi
`
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			a := g.run(g.workspace(), "/bin/sh", "-c", script)
			if a.Exit != (sandbox.Exit{}) || a.Error != "" || !strings.HasPrefix(a.Output, "text\ntemporary\n") {
				t.Errorf("%+v", a)
			}
			if text, err := os.ReadFile(g.path("workspace/d/b")); err != nil || string(text) != "text\n" {
				t.Errorf("%q %v", text, err)
			}
			if left, err := os.ReadDir(g.path("temp")); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v %v", left, err)
			}
		})
	}
}

// TestReplacedFolder proves that a folder of a profile which a program has replaced by a link,
// since it was chosen or since the run was prepared, is not opened.
func TestReplacedFolder(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			folder := g.path("workspace/sub")
			g.must(os.Mkdir(folder, 0o700))
			g.own("workspace/sub")
			write, read := sandbox.Workspace(folder), sandbox.Workspace(g.path("temp"))
			write.Read, read.Read = []string{g.executable}, []string{g.executable, folder}
			for _, p := range []*sandbox.Profile{&write, &read} {
				p.Without = s.without
				p.Held = sandbox.Hold(append(p.Write, p.Read...)...)
				if a := g.run(*p, "/bin/sh", "-c", "ls "+folder); a.Exit.Code != 0 || a.Error != "" {
					t.Errorf("%+v", a)
				}
			}
			// The link is put in between the steps of this run.
			out, err := g.process("replaced", folder, g.path("outside"), fmt.Sprint(s.shared()), g.executable).Output()
			g.must(err)
			if got := string(out); !strings.Contains(got, "a link has been put in its place") || strings.Contains(got, "secret") {
				t.Errorf("prepared before: %s", got)
			}
			for what, p := range map[string]sandbox.Profile{"write": write, "read": read} {
				a := g.run(p, "/bin/sh", "-c", "echo new > "+folder+"/new; cat "+folder+"/file")
				if strings.Contains(a.Output, "secret") || what == "write" && !strings.Contains(a.Error, "leads to "+g.path("outside")) {
					t.Errorf("%s: %+v", what, a)
				}
			}
			if _, err := os.Stat(g.path("outside/new")); err == nil {
				t.Error("a file was written outside")
			}
		})
	}
}

func init() {
	// replaced runs a program whose folder is replaced by a link when the run is prepared.
	roles["replaced"] = func(args []string) {
		folder, to := args[0], args[1]
		p := sandbox.Workspace(folder)
		if p.Read = args[3:]; args[2] == "true" {
			p.Without = []sandbox.Part{sandbox.Namespaces}
		}
		cmd := exec.Command("/bin/cat", folder+"/file")
		cmd.Dir = "/"
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		run, err := sandbox.Command(context.Background(), p, cmd)
		if err == nil {
			err = errors.Join(os.Rename(folder, folder+".old"), os.Symlink(to, folder), run.Start())
		}
		if err == nil {
			_, err = run.Wait()
		}
		fmt.Println(err)
	}
}

// TestInheritedFiles proves that a program gets none of the files that the parent of this
// process has left open, such as a terminal or a key.
func TestInheritedFiles(t *testing.T) {
	for _, s := range settings(t) {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, full %v", s.name, full), func(t *testing.T) {
				t.Parallel()
				g := newGround(t, s)
				p := g.workspace()
				if p.Unconfined = full; full {
					p.Limits = sandbox.Limits{}
				}
				cmd := g.runner(p, "/bin/sh", "-c", "for i in 3 4 5 6 7 8 9; do cat <&$i; done; for i in 3 4 5 6 7 8 9; do echo changed >&$i; done; ls -l /proc/self/fd")
				for range 8 {
					f, err := os.OpenFile(g.path("outside/file"), os.O_RDWR, 0)
					g.must(err)
					defer f.Close()
					cmd.ExtraFiles = append(cmd.ExtraFiles, f)
				}
				out, err := cmd.Output()
				g.must(err)
				if strings.Contains(string(out), "secret") || strings.Contains(string(out), "outside") {
					t.Errorf("%s", out)
				}
				if text, err := os.ReadFile(g.path("outside/file")); err != nil || string(text) != "secret" {
					t.Errorf("%q %v", text, err)
				}
			})
		}
	}
}

// TestShownSockets proves that programs without the network cannot connect to the sockets of
// services in folders that they read or write.
func TestShownSockets(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			g.must(os.Mkdir(g.path("shown"), 0o755))
			g.must(os.Symlink("shown", g.path("linked")))
			p := g.workspace()
			p.Read = append(p.Read, g.path("shown"))
			online := p
			online.Network = true
			for listens, name := range map[string]string{"shown/service": "shown/service", "linked/other": "shown/other", "workspace/service": "workspace/service"} {
				l, err := net.Listen("unix", g.path(listens))
				g.must(err)
				defer l.Close()
				g.own(name)
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						_, _ = io.CopyN(c, c, 1)
						_ = c.Close()
					}
				}()
				if a := g.run(p, g.executable, "connect", g.path(name)); a.Exit.Code != 1 || a.Error != "" {
					t.Errorf("%s: %+v", name, a)
				}
				if a := g.run(online, g.executable, "connect", g.path(name)); a.Exit.Code != 0 && s.without == nil || a.Error != "" {
					t.Errorf("with the network, %s: %+v", name, a)
				}
			}
		})
	}
}

// TestSystemSecrets proves that the programs of root read nothing of the system's settings
// that is for root and groups alone, and go on reading what is for everybody.
func TestSystemSecrets(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root could read them")
	}
	secrets := map[string]string{}
	err := filepath.WalkDir("/etc", func(path string, entry fs.DirEntry, err error) error {
		info, infoErr := os.Lstat(path)
		if err == nil && infoErr == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0 {
			if text, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(text)) > 0 {
				secrets[path] = string(text)
			}
		}
		return nil
	})
	if err != nil || secrets["/etc/shadow"] == "" {
		t.Skipf("%d secrets: %v", len(secrets), err)
	}
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			for path, text := range secrets {
				if a := g.run(g.workspace(), "/bin/cat", path); strings.Contains(a.Output, text) || a.Error != "" {
					t.Errorf("%s: %+v", path, a)
				}
			}
			if a := g.run(g.workspace(), "/bin/cat", "/etc/passwd"); !strings.Contains(a.Output, "root") {
				t.Errorf("/etc/passwd: %+v", a)
			}
		})
	}
}

// TestHiddenStaysHidden proves that a program cannot move a folder that it writes so that
// what is hidden in it is not found by the next one.
func TestHiddenStaysHidden(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			for _, name := range []string{"workspace/a", "workspace/a/b", "workspace/a/b/keys"} {
				g.must(os.Mkdir(g.path(name), 0o700))
				g.own(name)
			}
			g.must(os.WriteFile(g.path("workspace/a/b/keys/key"), []byte("secret"), 0o600))
			g.own("workspace/a/b/keys/key")
			p := g.workspace()
			p.Hidden = []string{g.path("workspace/a/b/keys")}
			for _, script := range []string{"mv a c; mv a/b d; mv a/b/keys e", "cat a/b/keys/key c/b/keys/key d/keys/key e/key"} {
				if a := g.run(p, "/bin/sh", "-c", script); strings.Contains(a.Output, "secret") || a.Error != "" {
					t.Errorf("%s: %+v", script, a)
				}
			}
		})
	}
}

func init() {
	roles["connect"] = func(args []string) {
		if err := echo("unix", args[0]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}
