// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/go-json-experiment/json/jsontext"
)

// Partial returns what the beginning of a JSON text says so far, as complete JSON. It
// reports false if it says nothing yet, or is not the beginning of JSON that has the
// shape of the schema. The values in it are those of the whole text:
//
//   - A number appears when the text goes on after it, because 4 may become 41.
//   - A text of any content appears as far as it has come, without half a character.
//     A text with an enum, a pattern or a format appears when it is complete; so does
//     a value that a Go type reads in its own way, such as a time, or keeps as JSON.
//   - Members and elements appear when their value does. An object or a list is
//     closed where the text ends; what is still to come is missing.
//   - Members that the schema does not know are left out.
//
// A partial value need not fit the schema: required members may be missing, and a
// list may be shorter than it must be.
func (s *Schema) Partial(text string) (string, bool) {
	p := partial{text: text}
	out, state := p.value(s.inner().form)
	if state == broken || state == absent {
		return "", false
	}
	if state == whole && strings.TrimSpace(p.text[p.at:]) != "" {
		return "", false
	}
	return out, true
}

// partial reads the beginning of a JSON text.
type partial struct {
	text  string
	at    int
	depth int
}

// maxPartialDepth is the depth up to which JSON is decoded.
const maxPartialDepth = 10_000

// state says what there is of a value.
type state int

const (
	absent state = iota // nothing that could be shown
	begun               // a part
	whole
	broken // the text is not JSON of the shape
)

// next skips white space and returns the next byte, or 0 at the end.
func (p *partial) next() byte {
	p.at = min(jsonx.SkipSpace(p.text, p.at), len(p.text))
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// value reads a value and returns it as complete JSON.
func (p *partial) value(f *form) (string, state) {
	start := p.at
	var out string
	var got state
	switch c := p.next(); {
	case c == 0:
		return "", absent
	case f != nil && f.never:
		if _, got = p.value(nil); got != broken {
			got = absent
		}
		return "", got
	case c == '{' || c == '[':
		if p.depth++; p.depth > maxPartialDepth {
			return "", broken
		}
		if c == '{' {
			out, got = p.object(f)
		} else {
			out, got = p.array(f)
		}
		p.depth--
	case c == '"':
		out, got = p.string()
	default:
		return p.scalar()
	}
	if got == begun && f != nil && f.entire {
		return "", absent
	}
	if got == whole && (f == nil || f.entire) {
		return p.text[jsonx.SkipSpace(p.text, start):p.at], whole
	}
	return out, got
}

// scalar reads a number, true, false or null.
func (p *partial) scalar() (string, state) {
	rest := p.text[p.at:]
	n := strings.IndexAny(rest, " \t\r\n,:]}[{\"")
	if n < 0 {
		for _, word := range []string{"true", "false", "null"} {
			if rest == word {
				p.at = len(p.text)
				return word, whole
			}
		}
		p.at = len(p.text)
		return "", absent
	}
	word := rest[:n]
	if !jsontext.Value(word).IsValid() {
		return "", broken
	}
	p.at += n
	return word, whole
}

// string reads a text, and closes it before half a character.
func (p *partial) string() (string, state) {
	start := p.at
	for i := start + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '"':
			p.at = i + 1
			if out := p.text[start:p.at]; jsontext.Value(out).IsValid() {
				return out, whole
			}
			return "", broken
		}
	}
	p.at = len(p.text)
	out := cutString(p.text[start:]) + `"`
	if !jsontext.Value(out).IsValid() {
		return "", broken
	}
	return out, begun
}

// cutString removes half a character from the end of a text that began with a quote.
func cutString(s string) string {
	end := 1
	for i := 1; i < len(s); {
		n, high := 1, false
		if s[i] == '\\' {
			n = 2
			if i+1 < len(s) && s[i+1] == 'u' {
				n = 6
				high = i+4 <= len(s) && strings.ContainsRune("dD", rune(s[i+2])) && strings.ContainsRune("89abAB", rune(s[i+3]))
			}
			if high {
				n = 12 // the other half of the pair follows
			}
		} else if _, size := utf8.DecodeRuneInString(s[i:]); size > 0 {
			if !utf8.FullRuneInString(s[i:]) {
				return s[:end]
			}
			n = size
		}
		if i+n > len(s) {
			return s[:end]
		}
		i += n
		end = i
	}
	return s[:end]
}

// object reads an object. A member that is not there yet is left out.
func (p *partial) object(f *form) (string, state) {
	var b strings.Builder
	b.WriteByte('{')
	p.at++
	for first := true; ; first = false {
		switch c := p.next(); {
		case c == 0:
			return b.String() + "}", begun
		case c == '}' && (first || !p.endsInComma()):
			p.at++
			return b.String() + "}", whole
		case c != '"':
			return "", broken
		}
		name, got := p.string()
		switch got {
		case broken:
			return "", broken
		case begun:
			return b.String() + "}", begun
		}
		switch p.next() {
		case 0:
			return b.String() + "}", begun
		case ':':
			p.at++
		default:
			return "", broken
		}
		member, known := f.partOf(name)
		value, got := p.value(member)
		if got == broken {
			return "", broken
		}
		if known && got != absent {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.WriteString(name + ":" + value)
		}
		switch c := p.next(); {
		case c == 0:
			return b.String() + "}", begun
		case c == ',':
			p.at++
		case c != '}':
			return "", broken
		}
	}
}

// endsInComma reports whether a comma precedes the place, where no value follows.
func (p *partial) endsInComma() bool {
	before := strings.TrimRight(p.text[:p.at], " \t\r\n")
	return strings.HasSuffix(before, ",")
}

// array reads an array. An element that is not there yet is left out; it is the last.
func (p *partial) array(f *form) (string, state) {
	var b strings.Builder
	b.WriteByte('[')
	p.at++
	for i := 0; ; i++ {
		switch c := p.next(); {
		case c == 0:
			return b.String() + "]", begun
		case c == ']' && (i == 0 || !p.endsInComma()):
			p.at++
			return b.String() + "]", whole
		case c == ']' || c == '}' || c == ',' || c == ':':
			return "", broken
		}
		var elem *form
		if f != nil {
			elem = f.element(i)
		}
		value, got := p.value(elem)
		if got == broken {
			return "", broken
		}
		if got != absent {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.WriteString(value)
		}
		switch c := p.next(); {
		case c == 0:
			return b.String() + "]", begun
		case c == ',':
			p.at++
		case c != ']':
			return "", broken
		}
	}
}

// partOf returns the form of the member with a name, which is written as JSON, and
// whether the schema allows the member.
func (f *form) partOf(name string) (*form, bool) {
	if f == nil {
		return nil, true
	}
	plain, err := jsontext.AppendUnquote(nil, name)
	if err != nil {
		return nil, false
	}
	if member, known := f.properties[string(plain)]; known {
		return member, true
	}
	return f.others, f.others == nil || !f.others.never
}
