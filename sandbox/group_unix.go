// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package sandbox

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// lead makes a program the leader of a session, and so of a group. None of its processes can
// reach the terminal: it cannot type into that of the person.
func lead(cmd *exec.Cmd) {
	attr := syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.Setsid, attr.Setpgid = true, false
	cmd.SysProcAttr = &attr
}

// group is a program and the processes that it started, except for those that left it. The
// number of the program stays reserved as long as the group has members.
type group struct{ number int }

func groupOf(leader *os.Process) *group { return &group{leader.Pid} }

func (g *group) signal(sig syscall.Signal) error { return syscall.Kill(-g.number, sig) }

func (g *group) kill() { _ = g.signal(syscall.SIGKILL) } // it may have ended

// end ends what a program left behind, and reports whether there was anything that did not
// end by itself soon.
func (g *group) end() bool {
	for limit := time.Now().Add(lingerTime); g.signal(0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			g.kill()
			return true
		}
	}
	return false
}

func signalOf(state *os.ProcessState) syscall.Signal {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}
