// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlstore

// writable does nothing here: SQLite reports a file that cannot be written.
func writable(string) error { return nil }
