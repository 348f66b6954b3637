// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import "time"

// lingerTime is how long the processes that a program leaves behind may take to end
// themselves.
const lingerTime = 100 * time.Millisecond
