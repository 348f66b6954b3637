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

// ownGroup makes the program the leader of a session, and so of a process
// group, of its own: the group can be ended as a whole, and nothing in it can
// reach the terminal.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// group is a program and what it has started.
type group struct{ leader *os.Process }

func groupOf(leader *os.Process) *group { return &group{leader} }

// kill ends all that is in the group of a program, and reports whether there was
// anything. The program itself may have ended: its number stays taken as long as
// the group has members; when it has none left, the number could in theory be
// another's already, though systems hand numbers out in turn.
func (g *group) kill() bool { return syscall.Kill(-g.leader.Pid, syscall.SIGKILL) == nil }

func (g *group) release() {}

// limitMemory bounds the address space, by a shell that sets the limit and then
// becomes the program: so it is there before the program is, and all that the
// program starts has it too. The shell reads no word of the command.
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
