// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitAll sets the limits that do not hinder the supervisor. They hold for it, too.
func (s *stage) limitAll() error {
	limits := []struct {
		resource int
		most     int64
	}{{unix.RLIMIT_NOFILE, s.Limits.Files}, {unix.RLIMIT_FSIZE, s.Limits.FileSize}, {unix.RLIMIT_CPU, s.Limits.CPU}}
	for _, l := range limits {
		if l.most > 0 {
			if err := lower(l.resource, uint64(l.most), true); err != nil {
				return fmt.Errorf("a limit cannot be set: %w", err)
			}
		}
	}
	if s.Unconfined {
		return nil
	}
	return lower(unix.RLIMIT_CORE, 0, true) // a core dump would show the program's memory to others
}

// lower lowers a limit of this process. If it is not for good, the process could raise
// it again: the filter of system calls keeps programs from that.
func lower(resource int, most uint64, forGood bool) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(resource, &l); err != nil {
		return err
	}
	l.Cur = min(l.Max, most)
	if forGood {
		l.Max = l.Cur
	}
	if resource == unix.RLIMIT_NOFILE {
		// The runtime raised the limit of this process and would give the program the
		// earlier one: this tells it not to.
		return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: l.Cur, Max: l.Max})
	}
	return unix.Setrlimit(resource, &l)
}

// reserved is the number of threads that the supervisor needs itself.
const reserved = 16

// limitsOfChildren returns functions that set and take back the limits of memory and of
// processes, which would stop a supervisor whose program has used them up.
func (s *stage) limitsOfChildren() (set func() error, restore func()) {
	var memory, processes unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_DATA, &memory)
	_ = unix.Getrlimit(unix.RLIMIT_NPROC, &processes)
	set = func() error {
		if s.Limits.Memory > 0 {
			if err := lower(unix.RLIMIT_DATA, uint64(s.Limits.Memory), s.Unconfined); err != nil {
				return fmt.Errorf("the memory cannot be limited: %w", err)
			}
		}
		if s.Limits.Processes > 0 {
			most := s.Limits.Processes + reserved
			if !s.Namespaces {
				most += running()
			}
			if err := lower(unix.RLIMIT_NPROC, uint64(most), s.Unconfined); err != nil {
				return fmt.Errorf("the processes cannot be limited: %w", err)
			}
		}
		return nil
	}
	restore = func() {
		_ = unix.Setrlimit(unix.RLIMIT_DATA, &memory)
		_ = unix.Setrlimit(unix.RLIMIT_NPROC, &processes)
	}
	return set, restore
}

// running returns the number of threads on this system. The user's are not more.
func running() int64 {
	text, _ := os.ReadFile("/proc/loadavg") // 0.20 0.18 0.12 1/80 11206
	fields := strings.Fields(string(text))
	if len(fields) < 4 {
		return 1 << 16
	}
	_, all, _ := strings.Cut(fields[3], "/")
	n, err := strconv.ParseInt(all, 10, 64)
	if err != nil {
		return 1 << 16
	}
	return n
}

// firstReserved is the number up to which the kernel uses a process number only once.
const firstReserved = 300

// limitNumbers limits the numbers of processes in the namespace of /proc, because the kernel
// does not limit the processes of root in the other way. Kernels before 6.14 have one
// limit for all namespaces, which this process may not change.
func (s *stage) limitNumbers(proc string) {
	if os.Getuid() == 0 && s.Limits.Processes > 0 {
		most := firstReserved + 1 + s.Limits.Processes + reserved
		_ = os.WriteFile(proc+"/sys/kernel/pid_max", strconv.AppendInt(nil, most, 10), 0)
	}
}

// Bits of PR_SET_SECUREBITS: root gets no capabilities when it starts a program, and
// none of this can be changed.
const securebits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// dropCapabilities takes all capabilities from this thread and from what it starts.
func dropCapabilities() error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if capable() {
		for c := uintptr(0); c <= unix.CAP_LAST_CAP+8; c++ { // also those that are newer than this code
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && c <= unix.CAP_LAST_CAP && err != unix.EINVAL {
				return err
			}
		}
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0); err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// capable reports whether this thread may change its own capabilities.
func capable() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return false
	}
	return have[0].Effective&(1<<unix.CAP_SETPCAP) != 0
}

// loopbackUp starts the network of this namespace within itself, so that programs can
// test their servers.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the private network: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("the private network: %w", err)
	}
	return nil
}
