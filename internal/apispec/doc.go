// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package apispec checks JSON bodies against OpenAI's published API document,
// for tests.
//
// The document is not part of the project. It is read from the folder
// ../shared/spec beside the module root; where that is missing, [Load] skips
// the test and says so. Taken literally the document refuses its own examples,
// so [Lenient] is what tests want; see [Reading].
package apispec
