// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

import (
	"os"
	"sync/atomic"
	"syscall"
)

// On systems without a supervisor, a program and what it starts are a group, which ends as a
// whole. On Unix, processes can leave it.

// control is the program, when it was started, with its group.
type control struct {
	all     atomic.Pointer[group]
	stopped atomic.Bool
}

func (r *Run) start() error {
	lead(r.cmd)
	if err := r.cmd.Start(); err != nil {
		return err
	}
	all := groupOf(r.cmd.Process)
	if r.control.all.Store(all); r.control.stopped.Load() { // Stop may have come before
		all.kill()
	}
	return nil
}

// running returns the group of a program, or nil if it was not started or has been waited
// for: its number may be another group's by then.
func (r *Run) running() *group {
	select {
	case <-r.exited:
		return nil
	default:
		return r.control.all.Load()
	}
}

func (r *Run) stop() {
	r.control.stopped.Store(true)
	if all := r.running(); all != nil {
		all.kill()
	}
}

func (r *Run) signal(sig syscall.Signal) error {
	all := r.running()
	if all == nil {
		return os.ErrProcessDone
	}
	return all.signal(sig)
}

// wait waits for the program, says how it ended, and ends what is left of its group.
func (r *Run) wait() (ended, string, error) {
	err := r.cmd.Wait()
	e := ended{Exit: Exit{Code: -1}}
	if state := r.cmd.ProcessState; state != nil {
		e.Code, e.Signal, e.finished = state.ExitCode(), signalOf(state), !r.control.stopped.Load()
	}
	e.Rest = r.control.all.Load().end()
	return e, "", err
}
