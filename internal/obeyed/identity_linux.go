// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package obeyed

import "syscall"

func changeTime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
