// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package sandbox

import (
	"fmt"
	"runtime"
)

// Enclose returns an error with [ErrUnavailable]: this system cannot take away rights.
func Enclose(Limits) error {
	return fmt.Errorf("sandbox: %w: there is no sandbox on %s", ErrUnavailable, runtime.GOOS)
}
