// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package agentfile makes a runnable agent from a ChatMarkdown file: it resolves
// documents and images, makes the tools that the file declares, and keeps the
// transcript that a run appends to.
//
// The package does not read the environment. Its only network requests are for
// documents that a file names by URL, and it sends none when a file is only checked.
// The caller provides the means to run agents in messages: see [Runner].
package agentfile
