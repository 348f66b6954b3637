// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/antiphon-go/antiphon/sandbox"
)

func executable() (string, error) { return os.Executable() }

// launch starts the program in the sandbox of the system, if it has one.
func launch(cmd *exec.Cmd) (kill func(), exited func() end, err error) {
	if !sandbox.Available().Confines() {
		return launchPlain(cmd)
	}
	cmd.Dir = "/"
	run, err := sandbox.Command(context.Background(), sandbox.Profile{Name: "decoder", Read: []string{cmd.Path}}, cmd)
	if err != nil {
		return nil, nil, err
	}
	if err := run.Start(); err != nil {
		return nil, nil, err
	}
	exited = func() end {
		e, err := run.Wait()
		switch {
		case err != nil:
			return end{code: -1, how: err.Error()}
		case e.Signal != 0:
			return end{code: -1, killed: e.Signal == syscall.SIGKILL, how: "signal: " + e.Signal.String()}
		}
		return end{code: e.Code, how: fmt.Sprintf("exit status %d", e.Code)}
	}
	return run.Stop, exited, nil
}

func wasKilled(s *os.ProcessState) bool {
	ws, ok := s.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}
