// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package filelock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// flock fails, because this system has no lock that ends with its process.
func flock(*os.File) error {
	return fmt.Errorf("locks on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
