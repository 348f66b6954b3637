// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This is Landlock by its system calls, because the restrictions are for one thread,
// which will start the program; the library restricts all threads of a process, and the
// supervisor must not be among them.

// Rights by what they are about. Nobody gets the right to make devices.
const (
	rightsToRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsToWrite = rightsToRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	rightsToDevices = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// rightsSince lists the version that brought the rights up to a bit.
var rightsSince = []struct {
	abi  int
	upTo uint64
}{{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {2, unix.LANDLOCK_ACCESS_FS_REFER}, {1, unix.LANDLOCK_ACCESS_FS_MAKE_SYM}}

// knownRights returns the rights that a version of Landlock knows.
func knownRights(abi int) uint64 {
	for _, r := range rightsSince {
		if abi >= r.abi {
			return r.upTo<<1 - 1
		}
	}
	return 0
}

// landlockABI returns the version of Landlock in the kernel, or 0.
var landlockABI = sync.OnceValue(func() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
})

// ruleset is a set of rules that is being made.
type ruleset struct {
	fd    int
	known uint64
}

// landlock restricts this thread.
func (s *stage) landlock(temp string) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: knownRights(s.Landlock)}
	if s.Landlock >= 4 && !s.Network && !s.Namespaces {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if s.Landlock >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	// The members of version 6 only: older versions accept this size too.
	const size = unsafe.Offsetof(attr.Quiet_access_fs)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	r := ruleset{int(fd), attr.Handled_access_fs}
	var err error
	if s.Namespaces {
		err = s.rulesInOwnRoot(r)
	} else {
		err = s.rulesInSharedRoot(r, temp)
	}
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// rulesInOwnRoot allows to read everything in the tree that mountAll made.
func (s *stage) rulesInOwnRoot(r ruleset) error {
	if err := r.allow("/", rightsToRead); err != nil {
		return err
	}
	writable := append([]string{"/tmp", "/dev/shm"}, s.Write...)
	if s.covered {
		writable = append(writable, s.GoCache)
	}
	for _, path := range writable {
		if err := r.allow(path, rightsToWrite); err != nil {
			return err
		}
	}
	return r.allow("/dev", rightsToDevices)
}

// rulesInSharedRoot allows what the profile names, and the usual devices.
func (s *stage) rulesInSharedRoot(r ruleset, temp string) error {
	for _, path := range append([]string{"/proc"}, s.Read...) {
		if err := s.allowApart(r, path, rightsToRead); err != nil {
			return err
		}
	}
	for _, path := range append([]string{temp}, s.Write...) {
		if err := s.allowApart(r, path, rightsToWrite); err != nil {
			return err
		}
	}
	for _, name := range devices {
		if err := r.allow("/dev/"+name, rightsToDevices); err != nil {
			return err
		}
	}
	return nil
}

// allowApart allows a path except for what is hidden in it. A right to a folder is one
// to everything in it, so a folder with something hidden gets none itself, and what is
// beside the hidden path gets it instead: nothing can be made in such a folder.
func (s *stage) allowApart(r ruleset, path string, rights uint64) error {
	if within(path, s.Hidden) {
		return nil
	}
	if !s.hides(path) {
		return r.allow(path, rights)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			continue // what it leads to has its own rule, or none
		}
		if err := s.allowApart(r, filepath.Join(path, e.Name()), rights); err != nil {
			return err
		}
	}
	return nil
}

// hides reports whether something hidden lies in a folder.
func (s *stage) hides(folder string) bool {
	for _, path := range s.Hidden {
		if strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/") {
			return true
		}
	}
	return false
}

// openStraight opens a path that has no links, as a place for calls of the kernel. If there is
// one, another program has put it there meanwhile, and it would lead elsewhere.
func openStraight(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if errors.Is(err, unix.ELOOP) {
		return fd, errors.New("a link has been put in its place meanwhile")
	}
	return fd, err
}

// allow gives a right to a path and to everything in it. What does not exist, or is not
// accessible to the user, needs no rule.
func (r ruleset) allow(path string, rights uint64) error {
	fd, err := openStraight(path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if rights &= r.known; info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("%s: %w", path, errno)
	}
	return nil
}
