// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package temporal runs sessions as workflows of Temporal (temporal.io). Temporal decides
// where and when the next step runs, and repeats it elsewhere if a machine fails. The
// session's log stays the only record of the conversation: a workflow holds the id of its
// session and numbers, never text, arguments or outputs.
//
// The workflow of a session calls [agent.Agent.Step] in one activity after another until
// the run stops. It then ends, or waits for a person, for weeks if need be. What anybody
// says to the session is kept in its inbox first; a signal without content then wakes the
// workflow, or starts it. So a signal that is lost, doubled or late changes nothing but the
// time.
//
// [Engine] has everything: a program that delivers needs a Client and a Store, and one
// that works for sessions also Open. [Engine.Remote] makes the calls of a tool activities of
// their own.
package temporal
