// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/antiphon-go/antiphon/sandbox"
)

// withoutParts is a variable that makes the program, when it is a process of its own, act on a machine
// without a sandbox. The kernel itself refuses the parts, so nothing of the program knows of it.
const withoutParts = "TEST_WITHOUT"

// Of withoutParts: a kernel without Landlock that gives no namespaces, as in many containers, and one that
// filters no system calls either.
const (
	noConfinement = "confinement"
	noFilter      = "filter"
)

func init() {
	theProgram = func() {
		if parts := os.Getenv(withoutParts); parts != "" {
			if err := takeAway(parts == noFilter); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		main()
	}
}

// takeAway makes the kernel refuse to this process, and to all that it starts, what sandboxes are made of.
func takeAway(filters bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const (
		namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
		call, flag = 0, 16 // where the number of the call, and its first argument, are
	)
	var code []unix.SockFilter
	load := func(offset uint32) {
		code = append(code, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
	}
	answer := func(errno unix.Errno) {
		code = append(code, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	refuse := func(number uint32, errno unix.Errno) {
		load(call)
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1})
		answer(errno)
	}
	refuse(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS)
	refuse(unix.SYS_UNSHARE, unix.EPERM)
	refuse(unix.SYS_CLONE3, unix.ENOSYS)
	if filters {
		refuse(unix.SYS_SECCOMP, unix.ENOSYS)
	}
	load(call)
	code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jf: 3})
	load(flag)
	code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: namespaces, Jf: 1})
	answer(unix.EPERM)
	code = append(code, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})

	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}

// bare is a folder, and the program on a machine without a sandbox.
type bare struct {
	t         *testing.T
	home, dir string
	lack      string // see withoutParts; "" is this machine
}

// antiphon runs the program in the folder.
func (m bare) antiphon(args ...string) outcome {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "antiphon", args...)
	cmd.Dir = m.dir
	cmd.Env = []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE")}
	if m.lack != "" {
		cmd.Env = append(cmd.Env, withoutParts+"="+m.lack)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		m.t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ran reports whether the command of the agent has run, and forgets it.
func (m bare) ran() bool { return os.Remove(filepath.Join(m.dir, "ran")) == nil }

// made is ran for the command that the file declares, which makes a file of its own: one that another
// call made would be asked about.
func (m bare) made() bool { return os.Remove(filepath.Join(m.dir, "made")) == nil }

// The lines of a machine without a sandbox.
const (
	saidOnce   = "this system has no sandbox, so programs run with all your permissions, and each command is asked about, unless its profile is full: "
	askedAbout = "this system has no sandbox, so the command would run with all your permissions"
)

// A11: on a machine without a sandbox, this is said once for a run, and each command is asked about whatever
// allows it: a flag, a trusted file, an answer about commands in the sandbox. Who chooses the profile full leaves it
// to the rules, and commands of other profiles do not run.
func TestWithoutSandbox(t *testing.T) {
	for _, lack := range []string{noConfinement, noFilter} {
		t.Run(lack, func(t *testing.T) {
			t.Parallel()
			m := bare{t, t.TempDir(), t.TempDir(), lack}
			script := "turn\n  call run_command {\"command\": [\"sh\", \"-c\", \"echo x > ran\"]}\n"
			write(t, filepath.Join(m.dir, "a.script"), script+"turn\n  call made {}\nturn\n  say {{if failed 1}}refused{{else}}ran{{end}}\n")
			agent := func(name, attributes string) string {
				write(t, filepath.Join(m.dir, name), `<config model="rehearsal:a.script"/>
<tool name="run_command" `+attributes+`/>
<tool name="made" command="touch made" description="d" `+attributes+`/>
<user>go</user>
`)
				return name
			}
			plain := agent("plain.md", "")
			allowed := agent("allowed.md", `approval="allow"`)
			full := agent("full.md", `sandbox="full"`)
			allowedFull := agent("allowed_full.md", `sandbox="full" approval="allow"`)
			workspace := agent("workspace.md", `sandbox="workspace"`)
			answers := write(t, filepath.Join(m.dir, "answers"), "{\"tool\":\"run_command\",\"allow\":true}\n{\"tool\":\"made\",\"allow\":true}\n")

			cases := []struct {
				name string
				args []string
				code int
				ran  bool
				said int    // how many lines say that the sandbox is missing
				want string // on standard error
			}{
				{"a flag", []string{plain, "--allow", "run_command,made"}, 5, false, 1, askedAbout},
				{"all tools", []string{plain, "--allow", "*"}, 5, false, 1, askedAbout},
				{"a trusted file", []string{allowed, "--trust"}, 5, false, 1, askedAbout},
				{"both", []string{allowed, "--trust", "--allow", "*"}, 5, false, 1, askedAbout},
				{"yes", []string{plain, "--approve-from", answers}, 0, true, 1, saidOnce},
				{"denied", []string{plain, "--approve-from", answers, "--deny", "run_command,made"}, 0, false, 1, saidOnce},
				{"full, not allowed", []string{plain, "--sandbox", "full"}, 5, false, 0, ""},
				{"full, and allowed", []string{plain, "--sandbox", "full", "--allow", "run_command,made"}, 0, true, 0, ""},
				{"full by a file, not trusted", []string{full, "--allow", "run_command,made"}, 2, false, 0, "all your permissions, outside of the sandbox"},
				{"full by a trusted file, not allowed", []string{full, "--trust"}, 5, false, 1, saidOnce},
				{"full by a trusted file", []string{full, "--trust", "--allow", "run_command,made"}, 0, true, 1, saidOnce},
				{"full and allowed by a trusted file", []string{allowedFull, "--trust"}, 0, true, 1, saidOnce},
				{"another profile of a file", []string{workspace, "--allow", "run_command,made", "--approve-from", answers}, 0, false, 1, "so the programs of this tool do not run"},
				{"another profile of the person", []string{plain, "--allow", "run_command,made", "--sandbox", "workspace"}, 2, false, 0, "programs cannot be confined here"},
				{"hosts", []string{plain, "--allow", "run_command,made", "--hosts", "a.example"}, 2, false, 0, "programs cannot be confined here"},
			}
			decoding := "which reaches no files, network or other processes"
			if lack == noFilter {
				cases, decoding = cases[3:5], "with limits of memory and time only: this system does not confine it"
			}
			for _, c := range cases {
				o := m.antiphon(append([]string{"run"}, c.args...)...)
				if ran, made := m.ran(), m.made(); o.code != c.code || ran != c.ran || made != c.ran || strings.Count(o.err, saidOnce) != c.said || !strings.Contains(o.err, c.want) {
					t.Errorf("%s: exit code %d, want %d; ran %v, %v; %d lines say that the sandbox is missing, want %d, with %q:\n%s%s",
						c.name, o.code, c.code, ran, made, strings.Count(o.err, saidOnce), c.said, c.want, o.out, o.err)
				}
			}
			wantAll(t, "doctor", m.antiphon("doctor", "--offline").out, "confines nothing: commands and MCP servers run with all your permissions", decoding)
		})
	}
}

// A6 A11: an answer about commands in the sandbox does not count where there is none, and one that was given
// there counts there.
func TestAnswersElsewhere(t *testing.T) {
	if !sandbox.Available().Confines() {
		t.Skip("this system confines nothing")
	}
	m := bare{t: t, home: t.TempDir(), dir: t.TempDir()}
	write(t, filepath.Join(m.dir, "a.script"), "again\nturn\n  call run_command {\"command\": [\"touch\", \"ran\"]}\nturn\n  say done\n")
	write(t, filepath.Join(m.dir, "a.md"), "<config model=\"rehearsal:a.script\"/>\n<tool name=\"run_command\"/>\n")
	for name, remembered := range map[string]string{
		"the tool": `{"verdict":"allow","tool":"run_command"}`,
		"words":    `{"verdict":"allow","tool":"run_command","member":"command","prefix":["touch","ran"]}`,
	} {
		answers := write(t, filepath.Join(m.dir, "answers"), `{"tool":"run_command","allow":true,"remember":`+remembered+"}\n")
		m.lack = ""
		o := m.antiphon("run", "a.md", "go", "--session", name, "--approve-from", answers)
		if o.code != 0 || !m.ran() {
			t.Fatalf("%s: exit code %d: %s%s", name, o.code, o.out, o.err)
		}
		if o = m.antiphon("run", "a.md", "again", "--session", name); o.code != 0 || !m.ran() {
			t.Fatalf("%s: with a sandbox it is asked again, exit code %d: %s%s", name, o.code, o.out, o.err)
		}
		m.lack = noConfinement
		if o = m.antiphon("run", "a.md", "here", "--session", name); o.code != 5 || m.ran() || !strings.Contains(o.err, askedAbout) {
			t.Errorf("%s: exit code %d: %s%s", name, o.code, o.out, o.err)
		}
	}
	answers := write(t, filepath.Join(m.dir, "answers"), `{"tool":"run_command","allow":true,"remember":{"verdict":"allow","tool":"run_command","member":"command with full","prefix":["touch","ran"]}}`)
	if o := m.antiphon("run", "a.md", "go", "--session", "there", "--approve-from", answers); o.code != 0 || !m.ran() {
		t.Fatalf("exit code %d: %s%s", o.code, o.out, o.err)
	}
	if o := m.antiphon("run", "a.md", "again", "--session", "there"); o.code != 0 || !m.ran() {
		t.Errorf("what was agreed to without a sandbox is asked again, exit code %d: %s%s", o.code, o.out, o.err)
	}
}
