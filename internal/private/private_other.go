// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package private

import "io/fs"

// nonblock is not needed: this system's folders hold no named pipes.
const nonblock = 0

// Check cannot tell on this system: the user's own folder keeps others out.
func Check(fs.FileInfo) error { return nil }

// Owned cannot tell on this system.
func Owned(fs.FileInfo) bool { return true }
