// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package completions converts between Chat Completions and items, in both directions, streamed or
// not. It is also a client for the many servers that only support Chat Completions. The client is a
// model like any other: it yields the events that the Responses API would have sent, so a loop
// works the same way with both.
//
// If one API has no form for something, a conversion reports it as a [Loss]. Nothing is dropped
// silently, and no text is invented. [Options] describe how a server differs from Chat Completions
// as specified.
package completions
