// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package export writes what leaves a session: a page for people ([HTML]),
// lines of JSON that say all there is to say and can be read back
// ([JSONLines]), and a transcript in ChatMarkdown ([ChatMarkdown]).
//
// What a model, a tool or a person said is never taken for markup or script,
// and secrets that the caller names are in none of them.
package export
