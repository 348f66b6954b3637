// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package item defines the contents of a conversation: items and their parts, calls
// and their outputs, tool definitions, and the JSON of all of these. Requests,
// responses and stream events, which carry them, are in package api.
//
// An [Item] is the bytes that were received, which never change, and its type. Typed
// structs such as [Message] and [FunctionCall] are decoded copies. Members that a
// struct has no field for are in its Extra, so decoding an item and encoding it
// again loses nothing. To edit an item, decode it, change the struct and call [New].
// Items, lists and [Content] have the methods of encoding/json; the JSON of a struct is
// that of the item which [New] makes of it.
//
// The package is lenient when it reads and strict when it writes. It keeps types,
// members and enum values that it does not know, and never reports them as errors.
// Invalid JSON, invalid UTF-8 and nesting deeper than [MaxDepth] give a
// [*SyntaxError] with the offset. A value of the wrong kind, where the schema allows
// no other reading, gives a [*ShapeError] with the path.
//
// The comment of a wire type names its schema in OpenAI's published OpenAPI document
// (the "Responses" part).
package item
