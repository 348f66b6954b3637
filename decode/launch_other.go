// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package decode

import (
	"os"
	"os/exec"
)

func executable() (string, error) { return os.Executable() }

func launch(cmd *exec.Cmd) (kill func(), exited func() end, err error) { return launchPlain(cmd) }

func wasKilled(*os.ProcessState) bool { return false }
