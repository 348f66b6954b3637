// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix && !windows

package shell

import (
	"os"
	"os/exec"
)

// ownGroup does nothing, because this system has no process groups. Processes
// that a program started survive it.
func ownGroup(*exec.Cmd) {}

// group is a program.
type group struct{ leader *os.Process }

func groupOf(leader *os.Process) *group { return &group{leader} }

// kill kills the program itself.
func (g *group) kill() bool {
	g.leader.Kill()
	return false
}

func (g *group) release() {}

// limitMemory is never called, because [RunCommand] rejects the option on this
// system.
func (p *process) limitMemory(int64) {}
