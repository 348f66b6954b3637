// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A keeper is a stage as this process sees it: a copy of this executable that runs
// programs with one profile, one at a time.
//
// To start a copy of a large program takes as long as a hundred system calls, so keepers
// that have nothing to do wait for the next program. They hold nothing of the last one:
// its processes have ended, and each program gets a view of files, a network and a
// temporary folder of its own. They end with this process, however it ends, because the
// kernel then closes their connection.
type keeper struct {
	key     string // what the stage was made for
	process *os.Process
	conn    *os.File
	root    string      // a folder that the stage needs until it is set up, or ""
	timer   *time.Timer // ends an idle keeper
}

// How many keepers wait, and how long.
const (
	mostIdle = 4
	idleTime = 30 * time.Second
)

// idle holds the keepers that wait, the newest last.
var idle struct {
	sync.Mutex
	list   []*keeper
	mounts int // a file that tells when the mounts of this system change, or 0
}

// takeKeeper returns a keeper for a stage: one that waits, or a new one.
func takeKeeper(s stage) (*keeper, error) {
	key, err := s.key()
	if err != nil {
		return nil, err
	}
	for {
		k, old := takeIdle(key)
		for _, k := range old {
			k.end()
		}
		if k == nil {
			return s.startKeeper(key)
		}
		if k.waits() {
			return k, nil
		}
		k.end()
	}
}

// takeIdle returns a keeper that waits, or nil, and those whose views are old.
func takeIdle(key string) (k *keeper, old []*keeper) {
	idle.Lock()
	defer idle.Unlock()
	if mountsChanged() {
		for _, k := range idle.list {
			k.timer.Stop()
		}
		old, idle.list = idle.list, nil
	}
	for i, k := range slices.Backward(idle.list) {
		if k.key == key {
			idle.list = slices.Delete(idle.list, i, i+1)
			k.timer.Stop()
			return k, old
		}
	}
	return nil, old
}

// mountsChanged reports whether something was mounted since the last call.
func mountsChanged() bool {
	if idle.mounts == 0 {
		fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return true
		}
		idle.mounts = fd
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(idle.mounts), Events: unix.POLLPRI}}, 0)
	return n != 0 || err != nil
}

// waits reports whether the stage of an idle keeper waits, rather than has ended.
func (k *keeper) waits() bool {
	waits := false
	raw, err := k.conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		waits = n == 0 && err == nil
	})
	return waits
}

// rest makes a keeper wait for the next program. If too many wait, the oldest ends.
func (k *keeper) rest() {
	var oldest *keeper
	idle.Lock()
	k.timer = time.AfterFunc(idleTime, k.retire)
	if idle.list = append(idle.list, k); len(idle.list) > mostIdle {
		oldest = idle.list[0]
		idle.list = slices.Delete(idle.list, 0, 1)
		oldest.timer.Stop()
	}
	idle.Unlock()
	if oldest != nil {
		oldest.end()
	}
}

// retire ends a keeper that has waited long enough.
func (k *keeper) retire() {
	idle.Lock()
	at := slices.Index(idle.list, k)
	if at >= 0 {
		idle.list = slices.Delete(idle.list, at, at+1)
	}
	idle.Unlock()
	if at >= 0 {
		k.end()
	}
}

// end ends the stage, which ends all of its processes first, and waits for it.
func (k *keeper) end() {
	_ = k.conn.Close()
	_, _ = k.process.Wait()
	k.settle()
}

// settle removes what the stage needed to set itself up.
func (k *keeper) settle() {
	if k.root != "" {
		_ = os.Remove(k.root)
		k.root = ""
	}
}

// hangUp tells the stage to end the program that it runs.
func (k *keeper) hangUp() {
	if raw, err := k.conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
}

// key describes all that a stage sets up once. It names files by their numbers, too: a
// file that was replaced is not the one that the stage shows.
func (s *stage) key() (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("sandbox: %w", err)
	}
	var b strings.Builder
	b.Write(text)
	for _, list := range [][]string{s.Read, s.Write, s.Hidden, {s.Temp}, s.Fixed, s.Pinned} {
		b.WriteString("\n")
		for _, path := range list {
			b.WriteString(" " + path)
			var info unix.Stat_t
			if err := unix.Lstat(path, &info); err == nil {
				fmt.Fprintf(&b, " %d:%d", info.Dev, info.Ino)
			}
		}
	}
	return b.String(), nil
}

// startKeeper starts a stage.
func (s stage) startKeeper(key string) (*keeper, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(fds[0], true) // reads then wait without a thread
	k := &keeper{key: key, conn: os.NewFile(uintptr(fds[0]), "sandbox")}
	theirs := os.NewFile(uintptr(fds[1]), "sandbox")
	defer theirs.Close()
	if k.process, err = s.startStage(k, theirs); err != nil {
		_ = k.conn.Close()
		k.settle()
		return nil, err
	}
	// These may be too many for an argument.
	if err := send(k.conn, message{Protect: &protect{Fixed: s.Fixed, Pinned: s.Pinned}}, nil); err != nil {
		k.end()
		return nil, err
	}
	return k, nil
}

func (s stage) startStage(k *keeper, theirs *os.File) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	// Keys at the terminal signal this process, and not the stage.
	attr := &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{null, null, null, theirs}, Sys: &syscall.SysProcAttr{Setsid: true}}
	if s.Namespaces {
		if k.root, err = os.MkdirTemp("", "antiphon-"); err != nil {
			return nil, fmt.Errorf("no temporary folder: %w", err)
		}
		if s.Root, err = filepath.EvalSymlinks(k.root); err != nil {
			return nil, fmt.Errorf("no temporary folder: %w", err)
		}
		if s.Launch = hidden(); !s.Launch {
			s.ownNamespaces(attr.Sys)
		}
	}
	argv, err := s.argv()
	if err != nil {
		return nil, err
	}
	return os.StartProcess(executable, argv, attr)
}

// mostFiles is how many files the kernel passes on with a message.
const mostFiles = 253

// send sends a message over a connection, with files.
func send(conn *os.File, message any, files []*os.File) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		n, failed = unix.SendmsgN(int(fd), frame, rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	runtime.KeepAlive(files)
	if err = errors.Join(err, failed); err != nil || n == len(frame) {
		return err
	}
	_, err = conn.Write(frame[n:])
	return err
}

// receive reads a message from a connection, and the files that came with it. The error
// is [io.EOF] if the other end has closed it.
func receive(conn *os.File, message any) ([]int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var header [4]byte
	oob := make([]byte, unix.CmsgSpace(4*mostFiles))
	var n, oobn int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, oobn, _, _, failed = unix.Recvmsg(int(fd), header[:], oob, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	var fds []int
	controls, _ := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range controls {
		got, _ := unix.ParseUnixRights(&controls[i])
		fds = append(fds, got...)
	}
	if _, err := io.ReadFull(conn, header[n:]); err != nil {
		return fds, err
	}
	text := make([]byte, binary.BigEndian.Uint32(header[:]))
	if _, err := io.ReadFull(conn, text); err != nil {
		return fds, err
	}
	return fds, json.Unmarshal(text, message)
}
