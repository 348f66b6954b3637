// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// flock fails: there is no lock here that ends with its process.
func flock(*os.File) error {
	return fmt.Errorf("locks on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// writable leaves it to SQLite to report a file that may not be written to.
func writable(string) error { return nil }
