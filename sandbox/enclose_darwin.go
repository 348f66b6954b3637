// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Enclose limits this process, as far as the limits are those of this system, and returns
// an error with [ErrUnavailable]: a process of macOS is confined when it is started, by
// [Command].
func Enclose(l Limits) error {
	for _, limit := range []struct {
		resource int
		most     int64
	}{{unix.RLIMIT_NOFILE, l.Files}, {unix.RLIMIT_FSIZE, l.FileSize}, {unix.RLIMIT_CPU, l.CPU}, {unix.RLIMIT_DATA, l.Memory}} {
		if limit.most <= 0 {
			continue
		}
		most := uint64(limit.most)
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("sandbox: a limit cannot be set: %w", err)
		}
	}
	return fmt.Errorf("sandbox: %w from within", ErrUnavailable)
}
