// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix && !windows

package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

// lead does nothing: this system has no process groups. What a program starts survives it.
func lead(*exec.Cmd) {}

// group is a program.
type group struct{ leader *os.Process }

func groupOf(leader *os.Process) *group { return &group{leader} }

func (g *group) signal(sig syscall.Signal) error { return g.leader.Signal(sig) }

func (g *group) kill() { _ = g.leader.Kill() } // it may have ended

func (g *group) end() bool { return false }

func signalOf(*os.ProcessState) syscall.Signal { return 0 }
