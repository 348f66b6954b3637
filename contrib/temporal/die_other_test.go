// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package temporal

import (
	"os/exec"
	"syscall"
)

func dieWithParent() *syscall.SysProcAttr { return nil }

func freeze(*exec.Cmd) {}
func thaw(*exec.Cmd)   {}
