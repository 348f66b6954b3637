// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package attach is about sessions that another process runs: a person at this terminal sees what happens there, says something to
// the run, answers about its calls, stops it, or takes the session over. A session is in a store, or at a server.
package attach
