// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64 && !arm64 && !riscv64

package sandbox

import "errors"

func (s *stage) seccomp() error {
	return errors.New("system calls of this processor cannot be filtered")
}

func enclose() error { return errors.New("system calls of this processor cannot be filtered") }

func seccompWorks() bool { return false }
