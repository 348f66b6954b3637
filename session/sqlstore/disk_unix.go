// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || linux

package sqlstore

import (
	"math"
	"syscall"
)

// largestFile is the size in bytes that this process may let a file grow to.
func largestFile() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit) != nil || limit.Cur > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(limit.Cur)
}

// freeBytes is how much room the disk with the file has for us.
func freeBytes(path string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(path, &fs) != nil || fs.Blocks == 0 {
		return math.MaxInt64
	}
	return int64(min(fs.Bavail, math.MaxInt64/(1<<20))) * int64(fs.Bsize)
}
