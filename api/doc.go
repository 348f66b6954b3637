// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package api holds what a client and an endpoint of the Responses API send each
// other: a [Request], a [Response], the [Event] values of a stream, the bodies for
// conversations, compaction and token counts, usage and errors. The contents of a
// conversation, its items and their parts, are in package item.
//
// Three types read a stream, and each can be used without the others: [EventDecoder]
// reads events, [Accumulator] builds the response from them, and [Auditor] checks
// that the events agree with each other.
//
// The comment of a struct names its schema in the API document. Structs keep members
// that they have no field for: they are in Extra, and encoding writes them back.
package api
