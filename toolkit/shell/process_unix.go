// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import "strconv"

// limitMemory limits the address space. It starts the program through a shell that
// sets the limit and then executes the program, so that the limit is in place
// from the beginning and is inherited. The shell does not interpret the command.
func (p *process) limitMemory(bytes int64) {
	if bytes == 0 {
		return
	}
	p.memory = bytes
	const script = `ulimit -v "$1" && shift && exec "$@"`
	argv := []string{"/bin/sh", "-c", script, "sh", strconv.FormatInt(max(bytes/1024, 1), 10), p.path}
	p.argv = append(argv, p.argv[1:]...)
	p.path = "/bin/sh"
}
