// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"os"
	"os/exec"
	"syscall"
)

// executable returns the path of the running program, also if its file was replaced since
// it started.
func executable() (string, error) { return "/proc/self/exe", nil }

func launch(cmd *exec.Cmd) (kill func(), exited func() end, err error) {
	cmd.Dir = "/" // it keeps no folder in use
	// Keys at the terminal signal this process, and not the child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return launchPlain(cmd)
}

func wasKilled(s *os.ProcessState) bool {
	ws, ok := s.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}
