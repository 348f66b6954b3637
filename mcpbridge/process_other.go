// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package mcpbridge

import (
	"os"
	"os/exec"
)

// ownGroup does nothing, because there are no process groups here. The children of a
// program outlive it when it is killed.
func ownGroup(*exec.Cmd) {}

// askToEnd does nothing, because there is no such signal.
func askToEnd(*os.Process) {}

// killGroup ends the program itself.
func killGroup(leader *os.Process) { _ = leader.Kill() }
