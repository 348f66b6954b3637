// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

// underRace says that the race detector is on, which makes this program slow.
const underRace = false
