// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package torture kills processes that run agents, and looks at what is left.
//
// A test plays worlds. A world is a store with a few sessions, a ledger of what
// tools did, and a rehearsal server whose script is random. It lives again and
// again: a worker, which is the test binary as a process of its own, opens the
// store and does whatever people do with sessions, and is killed at a step that
// was chosen beforehand, or at any moment. What it reported until then is held
// against what the store has.
//
//	go test ./internal/torture                        about 30 kills
//	go test ./internal/torture -v -kills 1000         as many as that
//	go test ./internal/torture -v -seed 17            the world of that seed
//	go test ./internal/torture -v -first 1000         other worlds than usual
//
// Transcripts are killed too, a tenth as often as stores.
//
// ANTIPHON_KILLS says how many kills too, and ANTIPHON_POSTGRES, a connection
// string, has them done on Postgres as well.
package torture
