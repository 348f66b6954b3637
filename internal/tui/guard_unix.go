// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tui

import (
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
)

// guard is a small process that gives the terminal back if the program cannot do it any more: after a panic in
// a goroutine that nobody recovers, a fatal error of the runtime, or kill -9. It is a shell, because that
// starts quickly everywhere.
//
// It reads from a socket what gives the terminal back, in one line for each change. The runtime of Go writes
// panics there, too, and the end of the program ends the socket. The socket holds only a few writes, so a program that
// panics waits in the middle of its report until the guard has given the terminal back and reads on. Without
// that, the shell below would look at the terminal first, and take raw mode for what the person wants.
type guard struct {
	cmd  *exec.Cmd
	to   *os.File // the socket
	said string
}

// guardScript gets the escape character, and what erases the live part. It leaves the mode of the terminal alone if another program
// has set one since: the terminal is then not ours any more. What the runtime printed while the terminal was
// raw is lost with the other screen, or looks like stairs, so its first line is printed again.
const guardScript = `trap '' HUP INT QUIT TERM TSTP TTIN TTOU
back=
while IFS= read -r line <&3; do
	case $line in
	"$1"*) back=$line ;;
	*) break ;;
	esac
done
[ "$back" != "$1" ] || back=
case $back$(stty -a) in
"$1"*-opost*)
	stty icrnl ixon brkint opost echo icanon isig iexten
	printf '%s\r%s' "$back" "$2"
	[ -z "$line" ] || printf '%s\n' "$line" | tr -c '\11\12\40-\176' '?'
	;;
*) printf %s "$back" ;;
esac
cat <&3 >/dev/null
`

// guardPath has stty, tr and cat, whatever the person's own path has.
const guardPath = "PATH=/usr/bin:/bin:/run/current-system/sw/bin"

// guarded starts a guard, or returns nil if that is not possible.
func guarded(in, out *os.File) *guard {
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
	from, to := os.NewFile(uintptr(ends[1]), "guard"), os.NewFile(uintptr(ends[0]), "guard")
	defer from.Close()
	_ = syscall.SetsockoptInt(ends[0], syscall.SOL_SOCKET, syscall.SO_SNDBUF, 1)                          // as small as the system lets it be
	g := &guard{to: to, cmd: exec.Command("/bin/sh", "-c", guardScript, "antiphon-guard", paused, erase)} //nolint:noctx // it outlives the program
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.ExtraFiles, g.cmd.Env = in, out, []*os.File{from}, []string{guardPath, "LC_ALL=C"}
	if err := errors.Join(g.cmd.Start(), debug.SetCrashOutput(to, debug.CrashOptions{})); err != nil {
		g.end()
		return nil
	}
	return g
}

// say tells what gives the terminal back from now on. It never waits.
func (g *guard) say(back string) {
	if g == nil || back == g.said {
		return
	}
	g.said = back
	_, _ = syscall.SendmsgN(int(g.to.Fd()), []byte(back+"\n"), nil, nil, syscall.MSG_DONTWAIT)
}

// end ends the guard, because the terminal is given back.
func (g *guard) end() {
	if g == nil {
		return
	}
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	if g.cmd.Process != nil {
		_ = g.cmd.Process.Kill()
		_ = g.cmd.Wait()
	}
	_ = g.to.Close()
}
