// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package sandbox

import (
	"fmt"
	"runtime"
)

// Hide returns an error: this system cannot hide a process from others.
func Hide() error {
	return fmt.Errorf("sandbox: a process cannot be hidden from others on %s", runtime.GOOS)
}

func available() Support {
	return Support{Missing: []string{"programs cannot be confined on " + runtime.GOOS, "processes that a program leaves behind may remain"}}
}

func (r *Run) prepare() error {
	program, err := programOf(r.cmd)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	r.profile.program = program
	return r.profile.Supported()
}

// supported is like [Profile.Supported], for a profile that confines, given what the system has.
func (*Profile) supported(Support) error {
	return fmt.Errorf("sandbox: %w: there is no sandbox on %s", ErrUnavailable, runtime.GOOS)
}
