// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package audit keeps a log of consent: who agreed to what, which rule let a call run,
// and what was started and sent because of it. Each line of the log has the hash of the
// line before, so that a line cannot be changed or removed without a trace:
//
//	log := audit.Open("/home/me/.local/share/antiphon/audit.jsonl")
//	h, err := host.Open(ctx, host.Config{File: "agent.md", Audit: log.Write})
//
// The log holds hashes of arguments and of shown texts, and not the texts.
//
// A chain shows every change to its middle. It does not show that the last lines are
// missing, nor that somebody wrote all of it anew. To find that too, keep the hash of
// the last line, the head, elsewhere, and give it to [Log.Verify] later.
package audit
