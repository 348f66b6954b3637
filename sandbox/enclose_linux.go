// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Enclose permanently removes all rights of this process, except to compute and to read
// and write the files that it has opened. It then opens no files and no sockets, starts
// no programs and no processes, and reaches no other process. It keeps its standard
// input, output and error, and loses other files that it was started with. Use it in a
// process that reads data of strangers, before it reads them.
//
// The limits hold for the process, except that of processes, which is always one. Memory
// limits what it may use, or reserve, in addition to what it has now. A program in Go needs files of
// its own for timers: if Files is limited, start a timer first.
//
// If the system cannot take away the rights, Enclose sets the limits as far as the system
// has them, and returns an error with [ErrUnavailable]. Only Linux can.
func Enclose(l Limits) error {
	runtime.LockOSThread() // no_new_privs is set for one thread; the filter takes it to the others
	defer runtime.UnlockOSThread()
	closeInherited()
	used := memoryUsed() // before the limit of files
	s := stage{Limits: l}
	if err := s.limitAll(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if l.Memory > 0 {
		// The kernel lets a mapping in the place of a reserved one exceed the limit of data, and
		// that is how Go gets its memory. So what is reserved is limited, too.
		for resource, name := range map[int]string{unix.RLIMIT_DATA: "VmData", unix.RLIMIT_AS: "VmSize"} {
			if err := lower(resource, used[name]+uint64(l.Memory), true); err != nil {
				return fmt.Errorf("sandbox: the memory cannot be limited: %w", err)
			}
		}
	}
	if err := Hide(); err != nil {
		return err
	}
	if !seccompWorks() {
		return fmt.Errorf("sandbox: %w: system calls cannot be filtered", ErrUnavailable)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: no_new_privs cannot be set: %w", err)
	}
	if err := enclose(); err != nil {
		return fmt.Errorf("sandbox: the filter of system calls: %w", err)
	}
	return nil
}

// closeInherited closes the files that another process has left open for this one by
// mistake. Those that Go opens are closed when a program starts, so they have a mark.
func closeInherited() {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc there is no list
	}
	for _, e := range names {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < 3 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// memoryUsed returns how much memory this process has, in bytes, by the names of the kernel.
func memoryUsed() map[string]uint64 {
	used := map[string]uint64{}
	text, _ := os.ReadFile("/proc/self/status") // without /proc, what there is counts as new
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err == nil {
			used[name] = kib << 10
		}
	}
	return used
}
