// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package torture

import (
	"os"
	"syscall"
)

// die ends this process as nothing else does: no deferred function runs, nothing
// is flushed.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// limitFiles makes every file as good as full at a size.
func limitFiles(size uint64) error {
	limit := syscall.Rlimit{Cur: size, Max: size}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}
