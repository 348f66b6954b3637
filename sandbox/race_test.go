// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && race

package sandbox_test

// underRace says that the race detector is on, which needs more address space than a
// limit leaves it.
const underRace = true
