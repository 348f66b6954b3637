// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsonx reads JSON text in place, for the other packages of this module. It
// does not build values: its results are slices of the text.
//
// The functions differ in the text that they accept:
//
//   - [Whole], [Checked] and [Scanner] accept any text. Valid text is RFC 8259 in
//     UTF-8, nested at most [MaxDepth] deep; lone surrogates may be escaped, and
//     names may occur more than once. Everything else gives a [*SyntaxError]. They
//     never read beyond the text.
//   - [EachMember], [EachElement], [MemberOf], [SkipString], [SkipValue], [Unquote]
//     and [Means] accept only text that one of the above has found valid. They check
//     nothing again, and may panic for other text.
//   - [Members] collects what those visit, and finds members by name.
//   - [SkipSpace], [Integer], [IsNumber], [ShortNumber], [KindOf], [AppendQuoted]
//     and [AppendUnescaped] accept any text.
//
// [Checked] and [CheckSize] also limit the size of a text; see [SetMaxSize].
package jsonx
