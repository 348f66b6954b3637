// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import "testing"

// SetMostStreamed changes the limit of a stream for a test.
func SetMostStreamed(t *testing.T, n int64) {
	was := mostStreamed
	mostStreamed = n
	t.Cleanup(func() { mostStreamed = was })
}
