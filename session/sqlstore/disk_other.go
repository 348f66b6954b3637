// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !darwin && !linux

package sqlstore

import "math"

// largestFile and freeBytes report no limit: it is not known on this system.
func largestFile() int64     { return math.MaxInt64 }
func freeBytes(string) int64 { return math.MaxInt64 }
