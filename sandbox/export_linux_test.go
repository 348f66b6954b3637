// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"strconv"
)

// Programs of tests may act as on a kernel with an older Landlock.
func init() {
	if abi, err := strconv.Atoi(os.Getenv("TEST_LANDLOCK")); err == nil {
		landlockABI = func() int { return abi }
	}
}
