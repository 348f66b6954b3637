// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "golang.org/x/sys/unix"

const (
	processor    = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0xffffffff // there are none
	cloneFlags   = 0          // the argument of clone
)

var neverHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}

var denialsHere = []rule{
	{unix.SYS_SETRLIMIT, unix.EPERM, []condition{is(0, unix.RLIMIT_NPROC)}},
	{unix.SYS_SETRLIMIT, unix.EPERM, []condition{is(0, unix.RLIMIT_DATA)}},
}
