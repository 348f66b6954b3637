// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package host runs agents that are kept as files. A [Config] names the file, the
// endpoint, the store of sessions, rules and limits; [Open] makes an agent and a
// session of it. It is all of the command antiphon run but for flags, words for a
// terminal and exit codes, so that a server or another front end runs a file with a
// few lines.
//
// What may run and what is sent is as safe as the zero value of Config: without a
// model, a key or an endpoint the rehearsal model answers, a named model is never
// replaced by it, a key does not go to an address that only a file names, and a
// call that needs an approval is refused where nobody can give it.
//
// To build an agent in Go, use package agent.
package host
