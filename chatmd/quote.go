// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import "strings"

// appendQuoted appends s as an attribute's value on one line, including quotes. It
// uses single quotes around a value that contains double quotes, such as JSON.
func appendQuoted(dst []byte, s string) []byte {
	quote := byte('"')
	if strings.IndexByte(s, '"') >= 0 && strings.IndexByte(s, '\'') < 0 {
		quote = '\''
	}
	dst = append(dst, quote)
	start := 0
	for i := range len(s) {
		ref := ""
		switch s[i] {
		case '&':
			ref = "&amp;"
		case '<':
			ref = "&lt;"
		case '>':
			ref = "&gt;"
		case '"':
			if quote == '"' {
				ref = "&quot;"
			}
		case '\'':
			if quote == '\'' {
				ref = "&apos;"
			}
		case '\n':
			ref = "&#10;"
		case '\r':
			ref = "&#13;"
		case '\t':
			ref = "&#9;"
		case '\\':
			if i+1 == len(s) || s[i+1] == quote {
				ref = "&#92;"
			}
		}
		if ref != "" {
			dst = append(dst, s[start:i]...)
			dst = append(dst, ref...)
			start = i + 1
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, quote)
}

// appendAttr appends an attribute after a space, unless value is "".
func appendAttr(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, ' ')
	dst = append(dst, name...)
	dst = append(dst, '=')
	return appendQuoted(dst, value)
}

// Fence returns s in a fence, for callers that write ChatMarkdown by hand.
func Fence(s string) string { return strings.TrimSuffix(string(appendFence(nil, s)), "\n") }

// appendFence appends s in a fence, followed by a newline. It adds a label if the
// text contains a closing mark, which would end the fence, or the closing tag of an
// element: see [Recover] for the latter.
func appendFence(dst []byte, s string) []byte {
	label := ""
	if strings.Contains(s, "|RAW") || holdsClosingTag(s) {
		label = ":" + freeLabel(s)
	}
	dst = append(dst, "RAW"...)
	dst = append(dst, label...)
	dst = append(dst, '|')
	if s != "" {
		dst = append(dst, '\n')
		dst = append(dst, s...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "|RAW"...)
	dst = append(dst, label...)
	return append(dst, '\n')
}

// freeLabel returns a label that does not follow "|RAW:" in s: a longer row of x
// than any there.
func freeLabel(s string) string {
	longest := 0
	for i := find(s, 0, "|RAW:"); i < len(s); i = find(s, i, "|RAW:") {
		i += len("|RAW:")
		run := 0
		for i < len(s) && s[i] == 'x' {
			run++
			i++
		}
		longest = max(longest, run)
	}
	return strings.Repeat("x", longest+1)
}

// holdsClosingTag reports whether s contains the closing tag of a top-level element.
func holdsClosingTag(s string) bool {
	for i := find(s, 0, "</"); i < len(s); i = find(s, i+1, "</") {
		if name, _ := tagName(s, i); isTop(name) && !IsMark(name) { // marks have no closing tag
			return true
		}
	}
	return false
}

// readsPlainly reports whether s can be read back unchanged without a fence when it
// is on its own lines. Text with carriage returns needs a fence, because editors
// drop them.
func readsPlainly(s string) bool {
	return s != "" && !isSpace(s[0]) && !isSpace(s[len(s)-1]) &&
		strings.IndexByte(s, '<') < 0 && strings.IndexByte(s, '\r') < 0 && !strings.Contains(s, "RAW")
}

// appendPlain appends s, in a fence if it needs one.
func appendPlain(dst []byte, s string) []byte {
	if !readsPlainly(s) {
		return appendFence(dst, s)
	}
	dst = append(dst, s...)
	return append(dst, '\n')
}
