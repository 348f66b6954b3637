// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix && !windows

package shell

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: there are no process groups here. What a program has
// started outlives it when it is ended.
func ownGroup(*exec.Cmd) {}

// group is a program.
type group struct{ leader *os.Process }

func groupOf(leader *os.Process) *group { return &group{leader} }

// kill ends the program itself, if it runs.
func (g *group) kill() bool {
	g.leader.Kill()
	return false
}

func (g *group) release() {}

// limitMemory is never asked for: [RunCommand] refuses it here.
func (p *process) limitMemory(int64) {}
