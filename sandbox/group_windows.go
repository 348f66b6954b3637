// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// lead does nothing; [groupOf] adds the program to a job after its start.
func lead(*exec.Cmd) {}

// group is a program and what it starts, in a job object. Processes that the program starts
// before it is added to the job survive it. If no job can be created, the group is the
// program alone.
type group struct {
	leader *os.Process

	mu  sync.Mutex
	job windows.Handle // 0 if there is no job
}

func groupOf(leader *os.Process) *group {
	g := &group{leader: leader}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return g
	}
	if takeIn(job, leader) != nil {
		_ = windows.CloseHandle(job)
		return g
	}
	g.job = job
	return g
}

// takeIn adds a program to a job. Windows kills the processes of the job when its
// last handle is closed, which also happens when this process dies.
func takeIn(job windows.Handle, leader *os.Process) error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return err
	}
	program, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(leader.Pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(program)
	return windows.AssignProcessToJobObject(job, program)
}

// signal ends the group for SIGKILL. The system has no other signals.
func (g *group) signal(sig syscall.Signal) error {
	if sig != syscall.SIGKILL {
		return syscall.EWINDOWS
	}
	g.kill()
	return nil
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
	_ = g.leader.Kill() // it may have ended
}

// end ends what a program left behind. It cannot tell whether there was anything.
func (g *group) end() bool {
	g.kill()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
	return false
}

func signalOf(*os.ProcessState) syscall.Signal { return 0 }
