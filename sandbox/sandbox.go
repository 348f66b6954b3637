// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs a program with fewer rights than its user has.
//
//	profile := sandbox.Workspace("/home/ada/project")
//	run, err := sandbox.Command(ctx, profile, exec.Command("make", "test"))
//	if err != nil {
//		return err // for example: this system cannot confine programs
//	}
//	if err := run.Start(); err != nil {
//		return err
//	}
//	end, err := run.Wait()
//
// A [Profile] says what the program may do: which folders it reads and writes,
// whether it reaches the network, and how much it may use. [Command] either confines
// the program as the profile says, or returns an error; it never confines less.
// On Linux, every process that the program starts ends with the run.
//
// On Linux, the running executable is started again: this copy sets up the confinement,
// starts the program, and waits for it (stage_linux.go). The copy does its work in an init
// function of this package, so main never sees it. Starting a copy takes longer than many
// programs run. So it stays for the next programs with the same profile, until none has come
// for a while or this process ends (keeper_linux.go). On macOS, Command uses sandbox-exec.
// Other systems have no sandbox: there Command returns [ErrUnavailable] for every profile
// except full. Outside of Linux, a program and what it starts are a group that ends as a
// whole: a process that leaves the group on Unix, or that is started before the group is
// made on Windows, survives the run.
//
// A profile confines a program. It does not make its output trustworthy: what a
// program wrote in the workspace may still be run by somebody later.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/antiphon-go/antiphon/internal/variables"
)

// A Part is something of the operating system that confines programs.
type Part string

// The parts on Linux, and the one on macOS.
const (
	Landlock   Part = "Landlock"   // rules about files, TCP ports and signals
	Namespaces Part = "namespaces" // a view of files, processes and networks of its own
	Seccomp    Part = "seccomp"    // a filter of system calls
	Seatbelt   Part = "Seatbelt"   // the sandbox of macOS
)

// Support says what this system can confine.
type Support struct {
	// Parts lists the parts that work here.
	Parts []Part
	// Missing says in plain words what does not work and what follows from it, a
	// sentence each.
	Missing []string
}

// Has reports whether a part works.
func (s Support) Has(p Part) bool { return slices.Contains(s.Parts, p) }

// Confines reports whether [Command] can confine programs on this system.
func (s Support) Confines() bool {
	return s.Has(Seatbelt) || s.Has(Seccomp) && (s.Has(Namespaces) || s.Has(Landlock))
}

// Available says what this system can confine. The first call tries it out, which
// takes a few milliseconds; later calls return the same.
func Available() Support {
	s := available()
	return Support{Parts: slices.Clone(s.Parts), Missing: slices.Clone(s.Missing)}
}

// ErrUnavailable is in the errors of [Command] if the system cannot confine programs as
// a profile asks. The program was not run.
var ErrUnavailable = errors.New("this system cannot confine programs")

// Limits bound what a program may use. Zero means no limit.
type Limits struct {
	// Memory is the number of bytes of private memory that each process may use. The
	// system does not count memory that is reserved and not used, so programs in Go,
	// Java and JavaScript need no more than others.
	Memory int64
	// Processes is the number of processes and threads that may exist at a time. Without
	// namespaces the system counts all of the user's.
	Processes int64
	// Files is the number of files that a process may have open.
	Files int64
	// FileSize is the size of the largest file, in bytes, that a process may write.
	FileSize int64
	// CPU is the number of seconds of processor time that each process may use.
	CPU int64
}

// A Run is a program that runs in a sandbox. Its methods may be called from several
// goroutines.
type Run struct {
	cmd      *exec.Cmd
	profile  Profile
	ctx      context.Context
	control  control
	proxy    *proxy // if the profile names hosts
	view     view   // what the profile shows, if it confines
	planted  []string
	cleanup  []func()
	stopOnce sync.Once
	waited   atomic.Bool
	exited   chan struct{}
	unwatch  func() bool // set if the program was started
}

// An Exit says how a run ended.
type Exit struct {
	// Code is the exit code of the program, or -1 if a signal ended it.
	Code int
	// Signal is the signal that ended the program, or 0.
	Signal syscall.Signal
	// Rest reports whether the program left processes behind, which were ended.
	Rest bool
}

// A SetupError says that a sandbox could not be set up, or that the program could not
// be started in it. The program did not run.
type SetupError struct {
	Program string
	Problem string // what went wrong, in words
}

func (e *SetupError) Error() string { return "sandbox: " + e.Program + ": " + e.Problem }

// Command prepares to run cmd's program as the profile says. It does not start it:
// [Run.Start], [Run.Wait] and [Run.Signal] take the place of the methods of cmd, which
// must not be called. Of cmd, Path, Args, Dir, Env, Stdin, Stdout, Stderr, ExtraFiles and
// WaitDelay are used, and cmd.Process stays nil on Linux. The program leads a session
// of its own. When ctx is done, all processes of the run are ended.
//
// Command returns an error for a command of [exec.CommandContext], whose context it
// cannot see, and for one with pipes of [exec.Cmd.StdoutPipe] and the like: use
// [os.Pipe], and close the program's ends after Start.
//
// The program gets cmd.Env and the variables TMPDIR and XDG_CACHE_HOME, which name the
// private temporary folder. Of several values of a variable it gets the last. If cmd.Env is
// nil, the program gets PATH, HOME and the like, and nothing else of this program's
// environment.
//
// A caller that does not start the run calls [Run.Close].
func Command(ctx context.Context, p Profile, cmd *exec.Cmd) (*Run, error) {
	if cmd == nil {
		return nil, errors.New("sandbox: the command is nil")
	}
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	if cmd.Process != nil {
		return nil, errors.New("sandbox: the command was started before")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := usable(cmd); err != nil {
		return nil, err
	}
	if cmd.Env == nil {
		cmd.Env = variables.Take(os.LookupEnv)
	}
	cmd.Env = cmd.Environ() // of several values of a variable, most programs take the first
	r := &Run{cmd: cmd, profile: p, ctx: ctx, exited: make(chan struct{})}
	if err := r.prepare(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// errNotMade is the error of a Run that Command did not return.
var errNotMade = errors.New("sandbox: a Run is made by Command")

// Start starts the program. Use it instead of cmd.Start.
func (r *Run) Start() error {
	if r.cmd == nil {
		return errNotMade
	}
	if err := r.ctx.Err(); err != nil {
		r.Close()
		return err
	}
	if r.unwatch != nil {
		return errors.New("sandbox: the run was started before")
	}
	if err := r.start(); err != nil {
		r.Close()
		return fmt.Errorf("sandbox: %w", err)
	}
	r.unwatch = context.AfterFunc(r.ctx, r.Stop)
	return nil
}

// Wait waits until the program and all processes that it started have ended. Use it
// instead of cmd.Wait. The error is a [*SetupError] if the program did not run, the
// context's error if that ended it, and otherwise one about reading or writing its
// input and output. A program that fails is not an error.
func (r *Run) Wait() (Exit, error) {
	if r.cmd == nil {
		return Exit{Code: -1}, errNotMade
	}
	if r.unwatch == nil {
		return Exit{Code: -1}, errors.New("sandbox: the run was not started")
	}
	if r.waited.Swap(true) {
		return Exit{Code: -1}, errors.New("sandbox: Wait was called before")
	}
	end, problem, err := r.wait()
	if r.view.scan != nil && problem == "" {
		r.planted = r.view.scan.Since()
	}
	close(r.exited)
	r.unwatch()
	r.free()
	if problem != "" {
		return Exit{Code: -1}, &SetupError{Program: r.profile.program, Problem: problem}
	}
	if r.ctx.Err() != nil && !end.finished {
		return end.Exit, r.ctx.Err()
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = nil
	}
	return end.Exit, err
}

// Planted says, a sentence each, what is now in the folders that the program could write
// and what git and other programs of the user run or obey there, if it was not there when
// the run was prepared: a repository with hooks, for example. With namespaces, and on
// macOS, a program cannot change what exists. It may be called when [Run.Wait] has returned.
func (r *Run) Planted() []string { return slices.Clone(r.planted) }

// Stop ends all processes of the run. It does not wait for them: [Run.Wait] does.
func (r *Run) Stop() {
	if r.exited == nil { // not made by Command
		return
	}
	r.stopOnce.Do(r.stop)
}

// Signal sends a signal to the program and its process group, for example to ask it to
// end. It returns [os.ErrProcessDone] if the program has ended or was not started. Windows
// has no signals other than SIGKILL: for them it returns an error.
func (r *Run) Signal(sig syscall.Signal) error {
	if r.cmd == nil {
		return errNotMade
	}
	return r.signal(sig)
}

// Close frees what a run that was never started holds. For a run that was started it does
// nothing, because Wait does so.
func (r *Run) Close() {
	if r.unwatch == nil {
		r.free()
	}
}

// free frees what the run holds.
func (r *Run) free() {
	for _, f := range slices.Backward(r.cleanup) {
		f()
	}
	r.cleanup = nil
}

// ended is an Exit, and whether the program had ended before all was stopped.
type ended struct {
	Exit
	finished bool
}

// usable returns an error if a command has something that runs do not use.
func usable(cmd *exec.Cmd) error {
	if cmd.Cancel != nil {
		return errors.New("sandbox: the command has a context of its own: make it by exec.Command, and give the context to sandbox.Command")
	}
	for _, v := range cmd.Env {
		if name, _, _ := strings.Cut(v, "="); strings.ContainsRune(v, 0) {
			return fmt.Errorf("sandbox: the environment variable %q has a zero byte", name)
		}
	}
	// Nothing else tells a pipe that Start would close from one that its owner closes.
	if made := reflect.ValueOf(cmd).Elem().FieldByName("childIOFiles"); made.Kind() == reflect.Slice && made.Len() > 0 {
		return errors.New("sandbox: pipes of StdinPipe, StdoutPipe and StderrPipe cannot be used: use os.Pipe")
	}
	return nil
}

// programOf returns the absolute path of a command's program.
func programOf(cmd *exec.Cmd) (string, error) {
	if filepath.IsAbs(cmd.Path) {
		return cmd.Path, nil
	}
	return filepath.Abs(filepath.Join(cmp.Or(cmd.Dir, "."), cmd.Path))
}
