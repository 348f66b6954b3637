// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "golang.org/x/sys/unix"

const (
	processor    = unix.AUDIT_ARCH_RISCV64
	foreignCalls = 0xffffffff // there are none
	cloneFlags   = 0          // the argument of clone
)

var neverHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}

// denialsHere has nothing: this processor has no older calls.
var denialsHere []rule
