// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup makes the program the leader of a new session and so of a new process
// group. The group can be killed as a whole, and none of its processes can reach
// the terminal.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// group is a program and the processes it started.
type group struct{ leader *os.Process }

func groupOf(leader *os.Process) *group { return &group{leader} }

// kill kills all processes in the group of a program, and reports whether there
// were any. The program itself may have exited. Its number stays reserved as long
// as the group has members. After that, the number could in theory belong to
// another process, but systems assign numbers in turn.
func (g *group) kill() bool { return syscall.Kill(-g.leader.Pid, syscall.SIGKILL) == nil }

func (g *group) release() {}

// limitMemory limits the address space. It starts the program through a shell that
// sets the limit and then executes the program, so that the limit is in place
// from the beginning and is inherited. The shell does not interpret the command.
func (p *process) limitMemory(bytes int64) {
	if bytes == 0 {
		return
	}
	p.memory = bytes
	const script = `ulimit -v "$1" && shift && exec "$@"`
	argv := []string{"/bin/sh", "-c", script, "sh", strconv.FormatInt(max(bytes/1024, 1), 10), p.path}
	p.argv = append(argv, p.argv[1:]...)
	p.path = "/bin/sh"
}
