// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package shell

// limitMemory is never called, because [RunCommand] rejects the option on this
// system.
func (p *process) limitMemory(int64) {}
