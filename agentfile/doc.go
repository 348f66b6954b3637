// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package agentfile makes a runnable agent of a ChatMarkdown file: it resolves
// documents and images, makes the tools that the file declares, and keeps the
// transcript that a run appends to.
//
// The package reads files and nothing else: it does not look at the
// environment and sends nothing.
package agentfile
