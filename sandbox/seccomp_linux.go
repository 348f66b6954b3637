// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64

package sandbox

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule is a system call that the filter answers with an error, or allows if errno is 0,
// if all conditions are true. Arguments have 64 bits, and a condition looks at one half:
// numbers have 32 bits in all of these calls, and addresses need both halves.
type rule struct {
	call  uint32
	errno unix.Errno
	when  []condition
}

type condition struct {
	argument uint32
	test     uint16 // unix.BPF_JEQ, or unix.BPF_JSET for any of the bits
	value    uint32
	negate   bool
	upper    bool // look at the upper half
}

func is(argument, value uint32) condition {
	return condition{argument: argument, test: unix.BPF_JEQ, value: value}
}

func isNot(argument, value uint32) condition {
	return condition{argument: argument, test: unix.BPF_JEQ, value: value, negate: true}
}

func hasAny(argument, bits uint32) condition {
	return condition{argument: argument, test: unix.BPF_JSET, value: bits}
}

// never lists the calls that no program in a sandbox needs: they reach into other
// processes or change the system, or are so rarely used and so complex that their
// mistakes are the usual ways out.
var never = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SYSLOG,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	sysOpenTreeAttr, sysFileSetattr,
}

// ofOthers lists the calls that reach what processes share by number or by path, and that
// neither Landlock nor the view of files confines.
var ofOthers = []rule{
	// Lists of access rights are attributes of files.
	{unix.SYS_SETXATTR, unix.ENOTSUP, nil}, {unix.SYS_LSETXATTR, unix.ENOTSUP, nil}, {unix.SYS_FSETXATTR, unix.ENOTSUP, nil}, {sysSetxattrat, unix.ENOTSUP, nil},
	{unix.SYS_REMOVEXATTR, unix.ENOTSUP, nil}, {unix.SYS_LREMOVEXATTR, unix.ENOTSUP, nil}, {unix.SYS_FREMOVEXATTR, unix.ENOTSUP, nil}, {sysRemovexattrat, unix.ENOTSUP, nil},
	// Memory, messages and semaphores of System V.
	{unix.SYS_SHMGET, unix.EPERM, nil}, {unix.SYS_SHMAT, unix.EPERM, nil}, {unix.SYS_SHMCTL, unix.EPERM, nil},
	{unix.SYS_MSGGET, unix.EPERM, nil}, {unix.SYS_MSGSND, unix.EPERM, nil}, {unix.SYS_MSGRCV, unix.EPERM, nil}, {unix.SYS_MSGCTL, unix.EPERM, nil},
	{unix.SYS_SEMGET, unix.EPERM, nil}, {unix.SYS_SEMOP, unix.EPERM, nil}, {unix.SYS_SEMTIMEDOP, unix.EPERM, nil}, {unix.SYS_SEMCTL, unix.EPERM, nil},
	// Message queues have names for all processes, too.
	{unix.SYS_MQ_OPEN, unix.EPERM, nil}, {unix.SYS_MQ_UNLINK, unix.EPERM, nil},
	// How other processes are scheduled. Of ioprio_set, 1 is a process.
	{unix.SYS_SCHED_SETAFFINITY, unix.EPERM, []condition{isNot(0, 0)}}, {unix.SYS_SCHED_SETSCHEDULER, unix.EPERM, []condition{isNot(0, 0)}},
	{unix.SYS_SCHED_SETPARAM, unix.EPERM, []condition{isNot(0, 0)}}, {unix.SYS_SCHED_SETATTR, unix.EPERM, []condition{isNot(0, 0)}},
	{unix.SYS_IOPRIO_SET, unix.EPERM, []condition{isNot(0, 1)}}, {unix.SYS_IOPRIO_SET, unix.EPERM, []condition{isNot(1, 0)}},
	{unix.SYS_MIGRATE_PAGES, unix.EPERM, []condition{isNot(0, 0)}}, {unix.SYS_MOVE_PAGES, unix.EPERM, []condition{isNot(0, 0)}},
}

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	setid     = unix.S_ISUID | unix.S_ISGID
	makesFile = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

	// Newer calls have one number on all processors.
	sysFchmodat      = 452
	sysSetxattrat    = 463
	sysRemovexattrat = 466
	sysOpenTreeAttr  = 467
	sysFileSetattr   = 469
)

// denials returns what the filter refuses.
func (s *stage) denials() (list []rule) {
	for _, call := range slices.Concat(never, neverHere) {
		list = append(list, rule{call: call, errno: unix.EPERM})
	}
	list = append(list,
		rule{unix.SYS_CLONE, unix.EPERM, []condition{hasAny(cloneFlags, newNamespaces)}},
		// The flags of these are in memory, where a filter cannot look. Programs then use
		// the older calls.
		rule{unix.SYS_CLONE3, unix.ENOSYS, nil},
		rule{unix.SYS_OPENAT2, unix.ENOSYS, nil},
		// Input for another program on the same terminal.
		rule{unix.SYS_IOCTL, unix.EPERM, []condition{is(1, unix.TIOCSTI)}},
		rule{unix.SYS_IOCTL, unix.EPERM, []condition{is(1, unix.TIOCLINUX)}},
		// Files that run as this user, whoever starts them.
		rule{unix.SYS_FCHMOD, unix.EPERM, []condition{hasAny(1, setid)}},
		rule{unix.SYS_FCHMODAT, unix.EPERM, []condition{hasAny(2, setid)}},
		rule{sysFchmodat, unix.EPERM, []condition{hasAny(2, setid)}},
		rule{unix.SYS_MKNODAT, unix.EPERM, []condition{hasAny(2, setid)}},
		rule{unix.SYS_OPENAT, unix.EPERM, []condition{hasAny(2, makesFile), hasAny(3, setid)}},
	)
	// The limits that the supervisor could not set for good. Asking for them is allowed.
	for _, resource := range []uint32{unix.RLIMIT_NPROC, unix.RLIMIT_DATA} {
		upper := isNot(2, 0)
		upper.upper = true
		list = append(list,
			rule{unix.SYS_PRLIMIT64, unix.EPERM, []condition{is(1, resource), isNot(2, 0)}},
			rule{unix.SYS_PRLIMIT64, unix.EPERM, []condition{is(1, resource), upper}})
	}
	// The limits and the priority of other processes: those of the supervisor would be
	// passed on to the next program.
	list = append(list,
		rule{unix.SYS_PRLIMIT64, unix.EPERM, []condition{isNot(0, 0), isNot(2, 0)}},
		rule{unix.SYS_SETPRIORITY, unix.EPERM, []condition{isNot(0, unix.PRIO_PROCESS)}},
		rule{unix.SYS_SETPRIORITY, unix.EPERM, []condition{isNot(1, 0)}})
	list = append(list, denialsHere...)
	list = append(list, s.socketDenials()...)
	if !s.Namespaces {
		list = append(list, s.denialsInSharedRoot()...)
	}
	return list
}

// socketDenials returns the kinds of sockets that the program does not get.
func (s *stage) socketDenials() []rule {
	others := []condition{}
	allow := func(family uint32) { others = append(others, isNot(0, family)) }
	var list []rule
	// Without namespaces, a socket of a service that runs programs, such as one of the
	// desktop, would be a way out, and so would an abstract one with the network of the
	// user.
	if s.Namespaces && (!s.Network || s.Landlock >= 6) {
		allow(unix.AF_UNIX)
	}
	if s.Network || s.Namespaces {
		allow(unix.AF_INET)
		allow(unix.AF_INET6)
		allow(unix.AF_NETLINK)
		list = append(list, rule{unix.SYS_SOCKET, unix.EACCES, []condition{is(0, unix.AF_NETLINK), isNot(2, unix.NETLINK_ROUTE)}})
	}
	list = append(list, rule{unix.SYS_SOCKET, unix.EACCES, others})
	if len(others) == 0 || others[0].value != unix.AF_UNIX {
		// A pair for datagrams could send elsewhere, too. The other type with this bit is
		// another name for it.
		list = append(list, rule{unix.SYS_SOCKETPAIR, unix.EACCES, []condition{hasAny(1, unix.SOCK_DGRAM)}})
	}
	return list
}

// signalsByFiles are the ways to signal a process which a filter cannot recognize. Programs
// use the number of the process where the first are missing.
var signalsByFiles = []rule{
	{unix.SYS_PIDFD_OPEN, unix.ENOSYS, nil}, {unix.SYS_PIDFD_SEND_SIGNAL, unix.ENOSYS, nil},
	{unix.SYS_FCNTL, unix.EPERM, []condition{is(1, unix.F_SETOWN)}}, {unix.SYS_FCNTL, unix.EPERM, []condition{is(1, unix.F_SETOWN_EX)}},
	{unix.SYS_IOCTL, unix.EPERM, []condition{is(1, fioSetOwn)}}, {unix.SYS_IOCTL, unix.EPERM, []condition{is(1, siocSetPgrp)}},
}

// Operations that package unix does not name.
const (
	fioSetOwn   = 0x8901
	siocSetPgrp = 0x8902
)

// denialsInSharedRoot returns what the program could otherwise do to processes and files
// outside, because it can name them.
func (s *stage) denialsInSharedRoot() (list []rule) {
	group, _ := unix.Getpgid(0)
	protected := []int{os.Getpid(), unix.Gettid(), -group, os.Getppid(), -1}
	if theirs, err := unix.Getpgid(os.Getppid()); err == nil {
		protected = append(protected, -theirs)
	}
	for _, call := range []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN} {
		for _, id := range protected {
			list = append(list, rule{call, unix.EPERM, []condition{is(0, uint32(id))}})
		}
	}
	list = append(list, ofOthers...)
	if s.Landlock < 6 { // files that stand for processes, and signals that files send
		list = append(list, signalsByFiles...)
	}
	if s.Landlock < 3 {
		list = append(list, rule{unix.SYS_TRUNCATE, unix.EPERM, nil})
	}
	return list
}

// Offsets in the data about a call.
const (
	offsetCall      = 0
	offsetProcessor = 4
	offsetArguments = 16
)

// filter compiles rules: for each one, the number of the call and the conditions are
// tested, and the first that does not fit leads to the next rule. All other calls are
// answered with the error others, or allowed if it is 0.
func filter(list []rule, others unix.Errno) (code []unix.SockFilter) {
	emit := func(op uint16, k uint32, yes, no uint8) {
		code = append(code, unix.SockFilter{Code: op, Jt: yes, Jf: no, K: k})
	}
	load := func(offset uint32) { emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
	answer := func(errno unix.Errno) {
		action := unix.SECCOMP_RET_ERRNO | uint32(errno)
		if errno == 0 {
			action = unix.SECCOMP_RET_ALLOW
		}
		emit(unix.BPF_RET|unix.BPF_K, action, 0, 0)
	}

	load(offsetProcessor)
	emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, processor, 1, 0)
	answer(unix.ENOSYS) // calls of another processor have other numbers
	load(offsetCall)
	emit(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, foreignCalls, 0, 1)
	answer(unix.ENOSYS)
	for _, d := range list {
		rest := uint8(2*len(d.when) + 1) // what is to be skipped
		load(offsetCall)
		emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, d.call, 0, rest)
		for _, c := range d.when {
			rest -= 2
			half := uint32(0)
			if c.upper {
				half = 4
			}
			load(offsetArguments + 8*c.argument + half)
			if c.negate {
				emit(unix.BPF_JMP|c.test|unix.BPF_K, c.value, rest, 0)
			} else {
				emit(unix.BPF_JMP|c.test|unix.BPF_K, c.value, 0, rest)
			}
		}
		answer(d.errno)
	}
	answer(others)
	return code
}

// seccomp installs the filter for this thread and what it starts.
func (s *stage) seccomp() error { return install(filter(s.denials(), 0), 0) }

// install installs a filter for this thread, and for all threads if the flags say so.
func install(code []unix.SockFilter, flags uintptr) error {
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d has a filter of its own", thread)
	}
	return nil
}

// computing lists the calls of a process that computes, and reads and writes what it has
// open: those of the runtimes of Go and C.
var computing = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_MEMBARRIER,
	unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_GETRUSAGE,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM, unix.SYS_RESTART_SYSCALL,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// enclose installs a filter for all threads that allows nothing but computing.
func enclose() error {
	list := []rule{
		{unix.SYS_CLONE, 0, []condition{hasAny(cloneFlags, unix.CLONE_THREAD)}},
		{unix.SYS_CLONE3, unix.ENOSYS, nil},
		// Memory never becomes a program.
		{unix.SYS_MMAP, unix.EPERM, []condition{hasAny(2, unix.PROT_EXEC)}},
		{unix.SYS_MMAP, 0, nil},
		{unix.SYS_MPROTECT, unix.EPERM, []condition{hasAny(2, unix.PROT_EXEC)}},
		{unix.SYS_MPROTECT, 0, nil},
		{unix.SYS_TGKILL, 0, []condition{is(0, uint32(os.Getpid()))}},
		{unix.SYS_PRCTL, 0, []condition{is(0, unix.PR_SET_VMA)}}, // names of memory, for debuggers
	}
	for _, call := range computing {
		list = append(list, rule{call: call})
	}
	return install(filter(list, unix.EPERM), unix.SECCOMP_FILTER_FLAG_TSYNC)
}

// seccompWorks asks the kernel for an action that filters use.
func seccompWorks() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}
