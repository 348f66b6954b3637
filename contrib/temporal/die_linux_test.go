// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes a process end with the tests, however they end.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// freeze stops a process, and thaw lets it go on.
func freeze(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGSTOP) }
func thaw(cmd *exec.Cmd)   { _ = cmd.Process.Signal(syscall.SIGCONT) }
