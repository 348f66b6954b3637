// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlstore

// writable leaves it to SQLite to report a file that may not be written to.
func writable(string) error { return nil }
