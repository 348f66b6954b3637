// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

// Forked is what a fork's log begins with, for property tests.
var Forked = forked

// Notice is what the loop tells the person with.
var Notice = (*Run).notice
