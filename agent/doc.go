// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package agent runs tool-calling conversations: it asks a model, runs the
// calls it makes and asks again, until there is an answer or a reason to stop.
//
// Deciding and acting are apart. Package plan folds a session's log and names
// what to do next; it has no clock, no I/O and no randomness, so resuming a
// session after a crash is reading its log and deciding again. A [Run] does it
// and appends the outcome. There is one loop: [Agent.Run] drains what
// [Agent.Stream] yields.
//
// To stop a run there are [Run.StopAfterTurn] and the context, to approve a call
// [Decide], and to compact a session [Agent.Compact].
//
// A client repeats only the same request, and only before any of its answer
// arrived. The loop asks again in a few cases only, with something left out
// and before any output: reasoning that the endpoint cannot read, an item that it
// refuses, and, if [Compaction] is on, older items of a history that it finds too
// long. All are recorded decisions; the first two draw on the budget of the
// client's retries.
//
// Near the end of the model's context a run can send a summary instead of
// older items; see [Compaction], [Agent.Compact] and [Restore]. What a tool reads
// again can be sent once; see [Agent].CollapseReads. The log keeps all of it.
//
// A call that needs an approval which nobody is there to give is refused, or
// waits: the run stops, the log holds what is wanted, and anyone who has the log
// can answer, now or next week. See [Policy], [Wanted] and [Decide].
//
// A tool can be a run: of a copy that knows the history so far ([ForkTool]), or
// of another agent ([AsTool]). It is the same loop on a session of its own. It
// inherits the limits, every [Budget] and the denials of the run around it, and
// ends with it. Its events arrive as [Nested].
//
// [Hooks] see each question and each call, and can change or stop them.
package agent
