// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package files

// openNonblock is zero on systems whose directories contain no named pipes.
const openNonblock = 0
