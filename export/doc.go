// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package export writes sessions for use outside of the store: a page for people
// ([HTML]), lines of JSON that contain everything and can be read back
// ([JSONLines]), and a transcript in ChatMarkdown ([ChatMarkdown]).
//
// Text of a model, a tool or a person is never interpreted as markup or script, and
// all formats omit the secrets that the caller names.
package export
