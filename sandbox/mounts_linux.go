// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountAll makes a tree of files that has what the program may see and nothing else,
// and makes it the root of this namespace.
//
// So a program finds no socket of a service, such as those of a desktop, an agent for
// keys or Docker: Landlock does not keep programs from connecting to sockets.
func (s *stage) mountAll() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts cannot be private: %w", err)
	}
	if err := unix.Mount("tmpfs", s.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4m"); err != nil {
		return fmt.Errorf("no empty root can be made: %w", err)
	}
	steps := []func() error{s.bindAll, s.mountDevices, s.mountProcesses, s.link, s.hideAll, s.protectAll, s.enter}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// tempFolder is where programs see their temporary folder.
const tempFolder = "/tmp"

// sharedMemory is where programs share memory. Until a program has its own, the folder
// with the temporary folders of all programs is there.
const sharedMemory = "/dev/shm"

// A shown path is one that a program sees.
type shown struct {
	path  string
	write bool
}

// shows lists the paths of the profile. Folders come before what is in them.
func (s *stage) shows() (list []shown) {
	for _, path := range s.Read {
		list = append(list, shown{path, false})
	}
	for _, path := range s.Write {
		list = append(list, shown{path, true})
	}
	slices.SortStableFunc(list, func(a, b shown) int { return len(a.path) - len(b.path) })
	return list
}

// bindAll shows the folders and files of the profile.
func (s *stage) bindAll() error {
	if s.Temp != "" {
		if err := s.bind(s.Temp, s.Root+tempFolder, true); err != nil {
			return fmt.Errorf("%s cannot be shown: %w", s.Temp, err)
		}
	} else if err := place(s.Root+tempFolder, true); err != nil {
		return err
	}
	for _, e := range s.shows() {
		if err := s.bind(e.path, filepath.Join(s.Root, e.path), e.write); err != nil {
			return fmt.Errorf("%s cannot be shown: %w", e.path, err)
		}
	}
	return nil
}

// mountOwn shows this thread a temporary folder and shared memory of its own. They cover
// what was there, and a program cannot take them off.
func (s *stage) mountOwn(temp string) error {
	if s.Temp == "" {
		if err := s.coverTemp(sharedMemory + "/" + strings.TrimPrefix(temp, s.Temps)); err != nil {
			return fmt.Errorf("the temporary folder cannot be shown: %w", err)
		}
	}
	if err := unix.Mount("tmpfs", sharedMemory, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=256m"); err != nil {
		return fmt.Errorf("%s cannot be made: %w", sharedMemory, err)
	}
	s.covered = s.coverGoCache() == nil
	return nil
}

// coverGoCache lays a folder of the program's own over the cache of the Go compiler: the
// program reads what is in the cache, and what it adds ends with its temporary folder. A
// cache that it can only read would not do, because the compiler fails where it cannot
// add what is missing. On systems that cannot do this, the program's cache starts empty.
func (s *stage) coverGoCache() error {
	if s.GoCache == "" || strings.ContainsAny(s.GoCache, `,:\`) { // an option cannot hold these
		return errors.ErrUnsupported
	}
	err := errors.ErrUnsupported
	if s.Temp == "" { // otherwise other programs have it, too
		err = s.coverFrom(tempFolder)
	}
	if err != nil { // the temporary folder may lie on a file system that cannot do this
		err = s.coverFrom(sharedMemory)
	}
	return err
}

func (s *stage) coverFrom(own string) error {
	added, work := own+"/.go-build/added", own+"/.go-build/work"
	for _, dir := range []string{added, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	options := "userxattr,lowerdir=" + s.GoCache + ",upperdir=" + added + ",workdir=" + work
	return unix.Mount("overlay", s.GoCache, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// coverTemp shows a folder as the temporary one, and in it what the profile shows there.
func (s *stage) coverTemp(temp string) error {
	type kept struct {
		shown
		fd  int
		dir bool
	}
	var list []kept
	for _, e := range s.shows() {
		if !within(e.path, []string{tempFolder}) {
			continue
		}
		fd, err := unix.Open(e.path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
		defer unix.Close(fd)
		info, err := os.Lstat(e.path)
		if err != nil {
			return err
		}
		list = append(list, kept{e, fd, info.IsDir()})
	}
	if err := unix.Mount(temp, tempFolder, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	for _, k := range list {
		if err := place(k.path, k.dir); err != nil {
			return err
		}
		if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(k.fd), k.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", k.path, err)
		}
	}
	for from, to := range s.Links {
		if within(from, []string{tempFolder}) {
			if err := makeLink(from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// bind shows a folder or a file at another place.
func (s *stage) bind(from, to string, write bool) error {
	fd, err := openStraight(from)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if err := place(to, info.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return err
	}
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if !write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// place makes an empty folder or file, unless there is one, to mount something on.
func place(path string, dir bool) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() == dir {
		return nil
	}
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// devices are the devices that programs get.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// mountDevices makes a folder of harmless devices, with terminals of its own.
func (s *stage) mountDevices() error {
	dev := filepath.Join(s.Root, "dev")
	if err := os.MkdirAll(dev, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("/dev cannot be made: %w", err)
	}
	for _, name := range devices {
		to := filepath.Join(dev, name)
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+name, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("/dev/%s cannot be shown: %w", name, err)
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(to, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	pts := filepath.Join(dev, "pts")
	if err := os.Mkdir(pts, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("devpts", pts, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("/dev/pts cannot be made: %w", err)
	}
	if err := os.Mkdir(s.Root+sharedMemory, 0o755); err != nil || s.Temps == "" {
		return err
	}
	return s.bind(s.Temps, s.Root+sharedMemory, true)
}

// mountProcesses shows the processes of this namespace only.
func (s *stage) mountProcesses() error {
	proc := filepath.Join(s.Root, "proc")
	if err := os.MkdirAll(proc, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc cannot be made: %w", err)
	}
	s.limitNumbers(proc)
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus"} { // root could change the system with them
		path := filepath.Join(proc, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := s.bind(path, path, false); err != nil {
			return fmt.Errorf("/proc/%s cannot be protected: %w", name, err)
		}
	}
	return nil
}

// link makes the links that lead to what is shown, such as /bin on most systems.
func (s *stage) link() error {
	for from, to := range s.Links {
		if err := makeLink(filepath.Join(s.Root, from), to); err != nil {
			return fmt.Errorf("%s cannot be shown: %w", from, err)
		}
	}
	return nil
}

func makeLink(path, to string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil // within something that is shown
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(to, path)
}

// hideAll covers what must not be seen with a folder or a file that nobody can open.
func (s *stage) hideAll() error {
	if len(s.Hidden) == 0 {
		return nil
	}
	cover := filepath.Join(s.Root, "dev", "hidden")
	if err := os.Mkdir(cover, 0o755); err != nil {
		return err
	}
	folder, file := filepath.Join(cover, "folder"), filepath.Join(cover, "file")
	if err := os.Mkdir(folder, 0); err != nil {
		return err
	}
	if err := os.WriteFile(file, nil, 0); err != nil {
		return err
	}
	for _, path := range s.Hidden {
		to := filepath.Join(s.Root, path)
		info, err := os.Lstat(to)
		if err != nil {
			continue // it is not shown anyway
		}
		from := file
		if info.IsDir() {
			from = folder
		}
		if err := s.bind(from, to, false); err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", path, err)
		}
	}
	return nil
}

// protectAll mounts what must not be moved on itself, because nobody can move what something
// is mounted on, and what must not change so that it cannot be written.
func (s *stage) protectAll() error {
	root, err := unix.Open(s.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	for _, path := range s.Pinned {
		if err := s.protectOne(root, path, 0); err != nil {
			return err
		}
	}
	for _, path := range s.Fixed {
		if err := s.protectOne(root, path, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) protectOne(root int, path string, attributes uint64) error {
	if within(path, s.Hidden) {
		return nil
	}
	// Another program may have put a link there meanwhile.
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(root, strings.TrimPrefix(path, "/"), &how)
	if errors.Is(err, unix.ENOENT) {
		return nil // it is gone
	}
	if err != nil {
		return fmt.Errorf("%s cannot be protected: %w", path, err)
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("%s cannot be protected: %w", path, err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: attributes | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("%s cannot be protected: %w", path, err)
	}
	if err := unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("%s cannot be protected: %w", path, err)
	}
	return nil
}

// enter makes the new tree the root, and forgets the old one.
func (s *stage) enter() error {
	for _, made := range []string{"", "/dev"} {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(unix.AT_FDCWD, s.Root+made, 0, &attr); err != nil {
			return fmt.Errorf("the new root cannot be protected: %w", err)
		}
	}
	if err := os.Chdir(s.Root); err != nil {
		return err
	}
	// Both at the same place: the old root then lies over the new one and is taken off.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("the new root cannot be entered: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("the old root cannot be left: %w", err)
	}
	return os.Chdir("/")
}
