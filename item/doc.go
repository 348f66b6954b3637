// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package item is the vocabulary of the Responses API: items, their content,
// tools, requests, responses, stream events, usage and errors, and the JSON of
// all of them.
//
// An [Item] is the bytes that were received, kept for good, with its type
// read. Typed structs such as [Message] and [FunctionCall] are decoded copies:
// what they have no field for stands in their Extra, so decoding and encoding
// again loses nothing. Editing is decode, change, [New].
//
// The package reads leniently and writes strictly. Types, members and enum
// values that it does not know are kept and never an error; invalid JSON,
// invalid UTF-8 and nesting beyond [MaxDepth] are a [*SyntaxError] with the
// offset, and a value of the wrong shape where the schema leaves no choice is a
// [*ShapeError] with the path.
//
// Wire types name their schema in OpenAI's published OpenAPI document (the
// "Responses" part).
package item
