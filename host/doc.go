// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package host runs agents that are stored as files. A [Config] names the file, the
// endpoint, the store of sessions, rules and limits; [Open] makes an agent and a
// session from it. The package contains everything of the command antiphon run
// except for flags, terminal output and exit codes, so that a server or another
// front end can run a file with a few lines of code.
//
// The zero value of Config is safe: without a model, a key or an endpoint the
// rehearsal model answers; a named model is never replaced by it; a key is not sent
// to an address that only a file names; and a call that needs approval is refused if
// there is no one to give it.
//
// To build an agent in Go, use package agent.
package host
