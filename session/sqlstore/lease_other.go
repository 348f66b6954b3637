// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sqlstore

// Whether a process that holds a lease has ended is known only on Linux. Elsewhere its
// lease ends by itself.
func thisProcess() string { return "-" }

func isDead(string) bool { return false }
