// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"os"
	"os/exec"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ownGroup does nothing; [groupOf] adds the program to a job after its start.
func ownGroup(*exec.Cmd) {}

// group is a program and what it starts, in a job object. Processes that the
// program starts before it is added to the job survive it. If no job can be
// created, the group is the program alone.
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

// kill kills all processes in the group. It cannot tell whether there were any.
func (g *group) kill() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
	_ = g.leader.Kill()
	return false
}

func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}

// limitMemory is never called, because [RunCommand] rejects the option on this
// system.
func (p *process) limitMemory(int64) {}
