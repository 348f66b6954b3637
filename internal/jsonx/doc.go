// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsonx reads JSON text in place, for the other packages of this module.
// It builds no values: what it finds are slices of the text.
//
// What is checked where:
//
//   - [Whole] and [Scanner] take any text. They accept RFC 8259 in UTF-8, nested
//     at most [MaxDepth] deep; lone surrogates may be escaped, and names may be
//     given twice. Everything else is a [*SyntaxError]. They never read beyond
//     the text.
//   - [EachMember], [EachElement], [MemberOf], [SkipString], [SkipValue], [Unquote]
//     and [Means] take only text that one of those has accepted, and check nothing
//     again. Given other text they may panic.
//   - [Members] takes what those visit, and finds members by their names.
//   - [SkipSpace], [Integer], [IsNumber], [ShortNumber], [KindOf], [AppendQuoted]
//     and [AppendUnescaped] take any text.
//
// The size of a text is not limited here; package item does that.
package jsonx
