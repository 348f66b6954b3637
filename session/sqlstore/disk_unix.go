// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || linux

package sqlstore

import (
	"math"
	"syscall"
)

// largestFile returns the size limit in bytes that this process has for a file.
func largestFile() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit) != nil || limit.Cur > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(limit.Cur)
}

// freeBytes returns the number of bytes that this process may still write to the
// disk that holds path, or [math.MaxInt64] if that is not known.
func freeBytes(path string) int64 {
	var fs syscall.Statfs_t
	// Some file systems, such as those in user space, do not report their size.
	if syscall.Statfs(path, &fs) != nil || fs.Blocks == 0 {
		return math.MaxInt64
	}
	// The limit keeps the product from overflowing.
	return int64(min(fs.Bavail, math.MaxInt64/(1<<20))) * int64(fs.Bsize)
}
