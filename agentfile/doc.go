// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package agentfile makes a runnable agent of a ChatMarkdown file: it resolves
// documents and images, makes the tools that the file declares, and keeps the
// transcript that a run appends to.
//
// The package does not look at the environment. It sends nothing but requests
// for documents that a file names by their URLs, and nothing at all where a file
// is only checked. Agents that stand in messages are run by what the caller
// gives: see [Runner].
package agentfile
