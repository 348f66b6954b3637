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

// ownGroup does nothing: the job of [groupOf] takes the program once it runs.
func ownGroup(*exec.Cmd) {}

// group is a program and what it starts, in a job object. What a program starts
// in the moment before it is in the job is not, and outlives it. Where no job
// can be had, the group is the program alone.
type group struct {
	leader *os.Process

	mu  sync.Mutex
	job windows.Handle // 0 if there is none
}

func groupOf(leader *os.Process) *group {
	g := &group{leader: leader}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return g
	}
	if takeIn(job, leader) != nil {
		windows.CloseHandle(job)
		return g
	}
	g.job = job
	return g
}

// takeIn puts a program into a job, which ends it when the last handle of the
// job is closed: also when this process dies.
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

// kill ends all that is in the group. Whether there was anything is not known.
func (g *group) kill() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		windows.TerminateJobObject(g.job, 1)
	}
	g.leader.Kill()
	return false
}

func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		windows.CloseHandle(g.job)
		g.job = 0
	}
}

// limitMemory is never asked for: [RunCommand] refuses it here.
func (p *process) limitMemory(int64) {}
