// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrNotBuilt is wrapped by the [Error] for a part of the language that this version
// reads but does not support. The file is well formed nevertheless.
var ErrNotBuilt = errors.New("not built yet")

// Position is a place in a file.
type Position struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // in characters, from 1
}

// Error is one problem of a file: its place, the text there, the problem and, in
// Hint, a suggested correction. Err is the cause, or nil.
type Error struct {
	File    string
	Line    int // from 1
	Column  int // in characters, from 1
	Text    string
	Message string
	Hint    string
	Err     error

	src    *source
	offset int
}

// Error returns one line: file:line:column: message (hint).
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	fmt.Fprintf(&b, "%d:%d: %s", e.Line, e.Column, e.Message)
	if e.Err != nil && e.Err != ErrNotBuilt { //nolint:errorlint // an error that wraps it has text of its own
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Text != "" && !strings.Contains(e.Message, e.Text) {
		b.WriteString(": " + e.Text)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// ErrorList is the list of all problems found in one pass, in the order of the file.
type ErrorList []*Error

// Error returns one line for each problem.
func (l ErrorList) Error() string {
	var lines []string
	for _, e := range l {
		if e != nil {
			lines = append(lines, e.Error())
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems, for errors.Is and errors.As.
func (l ErrorList) Unwrap() []error {
	var list []error
	for _, e := range l {
		if e != nil {
			list = append(list, e)
		}
	}
	return list
}

// err returns l as an error, or nil if it is empty.
func (l ErrorList) err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// joined returns the problems found in parsing and in reading sources, in the order
// of the file.
func joined(parsed error, more ErrorList) error {
	list, ok := parsed.(ErrorList)
	if !ok || len(more) == 0 {
		return cmp.Or(parsed, more.err())
	}
	list = slices.Concat(list, more)
	list.sort()
	return list
}

// sort puts the problems in the order of the file. Problems of an imported file are
// placed at the import.
func (l ErrorList) sort() {
	at := func(e *Error) int {
		if e.src.from == nil {
			return e.offset
		}
		return e.src.at
	}
	slices.SortStableFunc(l, func(a, b *Error) int {
		return cmp.Or(at(a)-at(b), a.src.order-b.src.order, a.offset-b.offset)
	})
}

// notUTF8 is the beginning of the message about bytes that are not UTF-8.
const notUTF8 = "invalid UTF-8: "

// withoutEcho removes the other problems of lines that are not UTF-8, in files where
// that is reported, because they mostly have the same cause.
func (l ErrorList) withoutEcho() ErrorList {
	bad := map[*source]bool{}
	for _, e := range l {
		if strings.HasPrefix(e.Message, notUTF8) {
			bad[e.src] = true
		}
	}
	if len(bad) == 0 {
		return l
	}
	return slices.DeleteFunc(l, func(e *Error) bool {
		if !bad[e.src] || strings.HasPrefix(e.Message, notUTF8) {
			return false
		}
		text := e.src.text
		return !utf8.ValidString(text[strings.LastIndexByte(text[:e.offset], '\n')+1 : lineEnd(text, e.offset)])
	})
}

// locate sorts the problems and computes their lines and columns.
func (l ErrorList) locate() {
	l.sort()
	where := locators{}
	for _, e := range l {
		pos := where.at(e.src, e.offset)
		e.File, e.Line, e.Column = e.src.name, pos.Line, pos.Column
	}
}

// locators holds a locator for each of several files.
type locators map[*source]*locator

func (l locators) at(src *source, offset int) Position {
	one := l[src]
	if one == nil {
		one = &locator{src: src.text}
		l[src] = one
	}
	return one.at(offset)
}

// locator converts offsets to lines and columns. It continues from the last offset,
// so rising offsets cost only one pass over the file.
type locator struct {
	src  string
	last Position
}

func (l *locator) at(offset int) Position {
	if l.last.Line == 0 || offset < l.last.Offset {
		l.last = Position{Offset: 0, Line: 1, Column: 1}
		if strings.HasPrefix(l.src, byteOrderMark) {
			l.last.Offset = min(len(byteOrderMark), offset)
		}
	}
	passed := l.src[l.last.Offset:offset]
	if i := strings.LastIndexByte(passed, '\n'); i >= 0 {
		l.last.Line += strings.Count(passed, "\n")
		l.last.Column = 1
		passed = passed[i+1:]
	}
	l.last.Column += utf8.RuneCountInString(passed)
	l.last.Offset = offset
	return l.last
}

// excerptLength is the number of characters of a file that a message repeats.
const excerptLength = 60

// excerpt returns the beginning of the first line of s, for a message.
func excerpt(s string) string {
	s = strings.TrimLeft(s[:min(len(s), 8*excerptLength)], space)
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	s = strings.Map(visible, s)
	n := 0
	for i := range s {
		if n == excerptLength {
			s = s[:i] + "…"
			break
		}
		n++
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// visible replaces control characters, so that errors do not pass control characters
// of a file to the terminal.
func visible(r rune) rune {
	if unicode.IsControl(r) {
		return unicode.ReplacementChar
	}
	return r
}
