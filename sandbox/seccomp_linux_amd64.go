// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "golang.org/x/sys/unix"

const (
	processor    = unix.AUDIT_ARCH_X86_64
	foreignCalls = 0x40000000 // the numbers of the x32 interface
	cloneFlags   = 0          // the argument of clone
)

var neverHere = []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}

// denialsHere are about calls that newer processors do not have.
var denialsHere = []rule{
	{unix.SYS_CHMOD, unix.EPERM, []condition{hasAny(1, setid)}},
	{unix.SYS_CREAT, unix.EPERM, []condition{hasAny(1, setid)}},
	{unix.SYS_MKNOD, unix.EPERM, []condition{hasAny(1, setid)}},
	{unix.SYS_OPEN, unix.EPERM, []condition{hasAny(1, makesFile), hasAny(2, setid)}},
	{unix.SYS_SETRLIMIT, unix.EPERM, []condition{is(0, unix.RLIMIT_NPROC)}},
	{unix.SYS_SETRLIMIT, unix.EPERM, []condition{is(0, unix.RLIMIT_DATA)}},
}
