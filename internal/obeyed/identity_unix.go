// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package obeyed

import (
	"io/fs"
	"syscall"
	"time"
)

// An identity describes a file or folder by its number and its times. Programs cannot set
// the time of the last change.
type identity struct {
	device, number uint64
	size           int64
	mode           uint32
	changed        int64 // in nanoseconds
}

func identityOf(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(st.Dev), uint64(st.Ino), st.Size, uint32(st.Mode), changeTime(st)} //nolint:unconvert // they differ by system
}

// settled reports whether a folder was last changed before a time.
func (i identity) settled(before time.Time) bool { return i.changed < before.UnixNano() }
