// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tui

import (
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// restorer is a small process that gives the terminal back if the program cannot do it any more: after a panic in
// a goroutine that nobody recovers, a fatal error of the runtime, or kill -9. It is a shell, because that
// starts quickly everywhere. It has a group of its own: what the system or a shell sends to the group of the
// program when that ends does not reach it.
//
// It reads from a socket what gives the terminal back, in one line for each change. The runtime of Go writes
// panics there, too, and the end of the program ends the socket. On Linux the socket holds only a few writes, so a program that
// panics waits in the middle of its report until the restorer has given the terminal back and reads on. Without
// that, the shell below would look at the terminal first, and take raw mode for what the person wants.
type restorer struct {
	cmd  *exec.Cmd
	to   *os.File // the socket
	said string
	rest []byte // of what was said, which the socket has not taken yet
}

// restorerScript gets the escape character, and what erases the live part. A line is what is written to the terminal, and
// behind the last bar the modes that stty sets. It leaves the modes alone if another program
// has set some since: the terminal is then not ours any more. What the runtime printed while the terminal was
// raw is lost with the other screen, or looks like stairs, so its first line is printed again.
const restorerScript = `# antiphon-restorer: gives the terminal back
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
back=
while IFS= read -r line <&3; do
	case $line in
	"$1"*) back=$line ;;
	*) break ;;
	esac
done
[ "$back" != "$1" ] || back=
modes=${back##*|} back=${back%|*}
case $back$(stty -a) in
"$1"*-opost*)
	stty $modes
	printf '%s\r%s' "$back" "$2"
	[ -z "$line" ] || printf '%s\n' "$line" | tr -c '\11\12\40-\176' '?'
	;;
*) printf %s "$back" ;;
esac
cat <&3 >/dev/null
`

// restorerPath has stty, tr and cat, whatever the person's own path has.
const restorerPath = "PATH=/usr/bin:/bin:/run/current-system/sw/bin"

// newRestorer starts a restorer, or returns nil if that is not possible.
func newRestorer(in, out *os.File) *restorer {
	if in == nil || out == nil {
		return nil
	}
	syscall.ForkLock.RLock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil
	}
	from, to := os.NewFile(uintptr(ends[1]), "restorer"), os.NewFile(uintptr(ends[0]), "restorer")
	defer from.Close()
	_ = syscall.SetsockoptInt(ends[0], syscall.SOL_SOCKET, syscall.SO_SNDBUF, socketSize)
	cmd := exec.Command("/bin/sh", "-c", restorerScript, "antiphon-restorer", paused, erase) //nolint:noctx // it outlives the program
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles, cmd.Env = in, out, []*os.File{from}, []string{restorerPath, "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r := &restorer{to: to, cmd: cmd}
	if err := errors.Join(cmd.Start(), debug.SetCrashOutput(to, debug.CrashOptions{})); err != nil {
		r.end()
		return nil
	}
	return r
}

// say tells what gives the terminal back from now on. It never waits: what the socket does not take goes with the next call.
func (r *restorer) say(line string) {
	if r == nil {
		return
	}
	if line != r.said {
		r.said, r.rest = line, append(r.rest, line+"\n"...)
	}
	if len(r.rest) > 0 {
		n, _ := syscall.SendmsgN(int(r.to.Fd()), r.rest, nil, nil, syscall.MSG_DONTWAIT)
		r.rest = r.rest[max(0, n):]
	}
}

// end ends the restorer, because the terminal is given back.
func (r *restorer) end() {
	if r == nil {
		return
	}
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	if r.cmd.Process != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
	_ = r.to.Close()
}

// modesOf returns the modes of a terminal that raw mode changes, as words of stty.
func modesOf(tty *os.File) string {
	now, err := unix.IoctlGetTermios(int(tty.Fd()), readModes)
	if err != nil {
		return "sane"
	}
	words := []string{"cs8", "min", strconv.Itoa(int(now.Cc[unix.VMIN])), "time", strconv.Itoa(int(now.Cc[unix.VTIME]))}
	switch now.Cflag & unix.CSIZE {
	case unix.CS5:
		words[0] = "cs5"
	case unix.CS6:
		words[0] = "cs6"
	case unix.CS7:
		words[0] = "cs7"
	}
	for _, mode := range []struct {
		word string
		on   bool
	}{
		{"ignbrk", now.Iflag&unix.IGNBRK != 0},
		{"brkint", now.Iflag&unix.BRKINT != 0},
		{"parmrk", now.Iflag&unix.PARMRK != 0},
		{"istrip", now.Iflag&unix.ISTRIP != 0},
		{"inlcr", now.Iflag&unix.INLCR != 0},
		{"igncr", now.Iflag&unix.IGNCR != 0},
		{"icrnl", now.Iflag&unix.ICRNL != 0},
		{"ixon", now.Iflag&unix.IXON != 0},
		{"opost", now.Oflag&unix.OPOST != 0},
		{"echo", now.Lflag&unix.ECHO != 0},
		{"echonl", now.Lflag&unix.ECHONL != 0},
		{"icanon", now.Lflag&unix.ICANON != 0},
		{"isig", now.Lflag&unix.ISIG != 0},
		{"iexten", now.Lflag&unix.IEXTEN != 0},
		{"parenb", now.Cflag&unix.PARENB != 0},
	} {
		if !mode.on {
			mode.word = "-" + mode.word
		}
		words = append(words, mode.word)
	}
	return strings.Join(words, " ")
}
