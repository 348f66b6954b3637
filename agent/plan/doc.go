// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a run of an agent does next.
//
// A [State] folds the entries of a session's log, one by one, and [State.Next] names
// the next [Effect]: ask the model, get verdicts on calls, run them, make the
// history shorter, stop. An effect is a plain value with a JSON form, which names
// calls and entries of the log and holds no pointers, so that another process can
// perform it. Its outcome is one or more entries of the log; an effect counts once
// they are applied.
//
// The package is pure: it has no clock, no I/O, no randomness and no context, and a
// test checks that. The same entries always give the same effect. To resume after a
// crash, read the log and decide again. A tool that inspects a log can show the next
// effect in the same way.
//
// Programs that run agents use package agent, which performs the effects. Use this
// package to test decisions, to inspect logs, or to perform effects elsewhere.
package plan
