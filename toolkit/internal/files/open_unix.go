// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import "syscall"

// openNonblock makes opening a named pipe return at once instead of waiting for
// a writer.
const openNonblock = syscall.O_NONBLOCK
