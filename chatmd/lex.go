// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// tagName reads the name of the opening or closing tag at s[at], which is '<'. It
// returns "" if no tag starts there.
func tagName(s string, at int) (name string, closing bool) {
	i := at + 1
	if i < len(s) && s[i] == '/' {
		closing = true
		i++
	}
	start := i
	for i < len(s) && isNameByte(s[i]) {
		i++
	}
	if i == start || !isLetter(s[start]) || i < len(s) && !isSpace(s[i]) && s[i] != '>' && s[i] != '/' {
		return "", closing
	}
	return s[start:i], closing
}

func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// isNameByte reports whether c is allowed in the name of a tag or attribute.
func isNameByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '-' || c == ':' || c == '.'
}

func skipSpace(s string, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}

// openTag is an opening tag, read from its source.
type openTag struct {
	attrs      []Attr
	end        int // after the '>'
	selfClosed bool
	problems   []*Error
	unfinished bool // the file ends before the tag does
}

// readTag reads the opening tag of name at s[at]. After a mistake it continues as
// far as it can, so that other problems of the file are found too.
func readTag(s string, at int, name string) openTag {
	t := openTag{end: at + 1 + len(name)}
	for {
		i := skipSpace(s, t.end)
		switch {
		case i == len(s):
			t.unfinished = true
			t.unterminated(s, at, name, len(s))
			return t
		case s[i] == '>':
			t.end = i + 1
			return t
		case strings.HasPrefix(s[i:], "/>"):
			t.end, t.selfClosed = i+2, true
			return t
		case s[i] == '<':
			t.unterminated(s, at, name, i)
			return t
		}
		t.end = i
		if !t.attribute(s, name) {
			return t
		}
	}
}

func (t *openTag) fail(offset int, text, message, hint string) {
	t.problems = append(t.problems, &Error{offset: offset, Text: excerpt(text), Message: message, Hint: hint})
}

func (t *openTag) unterminated(s string, at int, name string, end int) {
	t.fail(at, s[at:end], "<"+name+" is not ended by >", "")
	t.end = end
}

// attribute reads the attribute at t.end. It returns false if a quote is not closed;
// the tag then ends at the end of the line.
func (t *openTag) attribute(s, tag string) bool {
	i := t.end
	for i < len(s) && isNameByte(s[i]) {
		i++
	}
	a := Attr{Name: s[t.end:i], start: t.end, Bare: true}
	if t.attrs == nil {
		t.attrs = make([]Attr, 0, 4)
	}
	if a.Name == "" {
		for i++; i < len(s) && !isSpace(s[i]) && s[i] != '>' && s[i] != '<' && s[i] != '/'; i++ {
		}
		t.fail(t.end, s[t.end:i], "bad attribute in <"+tag+">: "+excerpt(s[t.end:i]), `write name="value"; a quote may be missing before it`)
		t.end = i
		return true
	}
	t.end = i
	i = skipSpace(s, i)
	if i == len(s) || s[i] != '=' {
		t.attrs = append(t.attrs, a)
		return true
	}
	a.Bare = false
	a.from = skipSpace(s, i+1)
	ok := t.value(s, tag, &a)
	t.attrs = append(t.attrs, a)
	return ok
}

// value reads the value at a.from.
func (t *openTag) value(s, tag string, a *Attr) bool {
	i := a.from
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		end := quoteEnd(s, i)
		if end < 0 {
			t.fail(i, s[i:], "the value of "+a.Name+" in <"+tag+"> has no closing "+s[i:i+1], `a quote inside a value is written &quot;, and \ before a closing quote &#92;`)
			t.unfinished = true
			t.end = lineEnd(s, i)
			return false
		}
		a.to, t.end = end, end
		a.Value = decode(s[i+1:end-1], s[i])
		return true
	}
	for i < len(s) && !isSpace(s[i]) && s[i] != '>' && s[i] != '<' && !strings.HasPrefix(s[i:], "/>") {
		i++
	}
	a.to, t.end = i, i
	a.Value = decode(s[a.from:i], 0)
	if r, _ := utf8.DecodeRuneInString(a.Value); strings.ContainsRune(typographic, r) && r != utf8.RuneError {
		t.fail(a.start, s[a.start:i], "the value of "+a.Name+" in <"+tag+"> begins with the typographic quote "+string(r), `write `+a.Name+`="…" with straight quotes`)
	}
	if i == a.from {
		t.fail(a.start, s[a.start:i], "attribute "+a.Name+" in <"+tag+"> has no value", `write `+a.Name+`="…"`)
	}
	return true
}

// typographic are quotation marks that word processors insert. They do not delimit
// values.
const typographic = "\u201C\u201D\u201E\u2018\u2019\u201A\u00AB\u00BB"

// quoteEnd returns the index after the quoted value that starts at s[i], or -1. A
// quote after a backslash is part of the value.
func quoteEnd(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		n := strings.IndexByte(s[i:], quote)
		if n < 0 {
			return -1
		}
		i += n
		if s[i-1] != '\\' {
			return i + 1
		}
	}
	return -1
}

// lineEnd returns the index of the end of the line that contains s[i].
func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s)
}

// decode replaces character references in an attribute's value, and escaped quotes
// of the enclosing kind. Unknown references stay.
func decode(s string, quote byte) string {
	if strings.IndexByte(s, '&') < 0 && (quote == 0 || strings.IndexByte(s, quote) < 0) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if quote != 0 && s[i] == '\\' && i+1 < len(s) && s[i+1] == quote {
			i++
		}
		if s[i] == '&' {
			if r, n := reference(s[i:]); n > 0 {
				b.WriteString(r)
				i += n
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// reference reads a character reference at the start of s. It returns the character
// and the length of the reference, or 0 if there is none.
func reference(s string) (string, int) {
	const longest = len("&#x10FFFF;") + 6 // leading zeros
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 0 {
		return "", 0
	}
	switch name := s[1:end]; name {
	case "amp":
		return "&", end + 1
	case "lt":
		return "<", end + 1
	case "gt":
		return ">", end + 1
	case "quot":
		return `"`, end + 1
	case "apos":
		return "'", end + 1
	default:
		digits, ok := strings.CutPrefix(name, "#")
		base := 10
		if hex := strings.TrimLeft(digits, "xX"); len(hex) == len(digits)-1 {
			digits, base = hex, 16
		}
		n, err := strconv.ParseUint(digits, base, 32)
		if !ok || err != nil || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
			return "", 0
		}
		return string(rune(n)), end + 1
	}
}

// fenceAt reads the opening mark of a fence at s[i], RAW| or RAW:label|. It returns
// the length of the mark and the closing mark, or 0.
func fenceAt(s string, i int) (n int, closer string) {
	if !strings.HasPrefix(s[i:], "RAW") || i > 0 && (isLetter(s[i-1]) || isDigit(s[i-1])) {
		return 0, ""
	}
	rest := s[i+3:]
	if strings.HasPrefix(rest, "|") {
		return 4, "|RAW"
	}
	if !strings.HasPrefix(rest, ":") {
		return 0, ""
	}
	k := 1
	for k < len(rest) && (isLetter(rest[k]) || isDigit(rest[k]) || rest[k] == '-') {
		k++
	}
	if k == 1 || k == len(rest) || rest[k] != '|' {
		return 0, ""
	}
	return 3 + k + 1, "|RAW" + rest[:k]
}

// payload returns the text of a fence: one newline after the opening mark and one
// before the closing mark belong to the fence. If a fence opens with CRLF, it is
// assumed to close with CRLF too. After a bare newline, a carriage return at the end
// is text, so that [Append] writes exactly what is read back.
func payload(s string) string {
	bare := false
	if rest, ok := strings.CutPrefix(s, "\r\n"); ok {
		s = rest
	} else if rest, ok := strings.CutPrefix(s, "\n"); ok {
		s, bare = rest, true
	}
	if rest, ok := strings.CutSuffix(s, "\r\n"); ok && !bare {
		return rest
	}
	return strings.TrimSuffix(s, "\n")
}

// marks finds the end of plain text. It remembers the place of the next mark of each
// kind, so that no byte is searched twice.
type marks struct {
	src          string
	angle, fence int // index of the next '<' and "RAW" at or after the last search; len(src) if none
}

// next returns the index of the first '<' or fence at or after i.
func (m *marks) next(i int) int {
	if m.angle < i {
		m.angle = find(m.src, i, "<")
	}
	if m.fence < i {
		m.fence = find(m.src, i, "RAW")
	}
	for m.fence < m.angle {
		if n, _ := fenceAt(m.src, m.fence); n > 0 {
			return m.fence
		}
		m.fence = find(m.src, m.fence+3, "RAW")
	}
	return m.angle
}

func find(s string, i int, what string) int {
	if i >= len(s) {
		return len(s)
	}
	if n := strings.Index(s[i:], what); n >= 0 {
		return i + n
	}
	return len(s)
}
