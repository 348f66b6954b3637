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
	state := p.value(s.inner().form)
	if state == broken || state == absent {
		return "", false
	}
	if state == whole && strings.TrimSpace(p.text[p.at:]) != "" {
		return "", false
	}
	return string(p.out), true
}

// partial reads the beginning of a JSON text. All values are written to one output, so that
// the work is proportional to the length of the text, however deep it is.
type partial struct {
	text   string
	at     int
	depth  int
	out    []byte
	silent int // if it is not 0, nothing is written
}

func (p *partial) write(text string) {
	if p.silent == 0 {
		p.out = append(p.out, text...)
	}
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

// value reads a value and writes it as complete JSON. What it has written of a value that
// is absent or broken is of no use.
func (p *partial) value(f *form) (got state) {
	c := p.next()
	switch {
	case c == 0:
		return absent
	case f != nil && (f.never || f.entire):
		start := p.at
		p.silent++
		got = p.value(nil)
		p.silent--
		if got == whole && !f.never {
			p.write(p.text[start:p.at])
			return whole
		}
		if got != broken {
			got = absent
		}
		return got
	case c == '{' || c == '[':
		if p.depth++; p.depth > maxPartialDepth {
			return broken
		}
		if c == '{' {
			got = p.object(f)
		} else {
			got = p.array(f)
		}
		p.depth--
		return got
	case c == '"':
		text, got := p.string()
		p.write(text)
		return got
	default:
		word, got := p.scalar()
		p.write(word)
		return got
	}
}

// end writes the end of an object or a list.
func (p *partial) end(mark string, got state) state {
	if got == whole {
		p.at++
	}
	p.write(mark)
	return got
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
func (p *partial) object(f *form) state {
	p.write("{")
	p.at++
	shown := 0
	for first := true; ; first = false {
		switch c := p.next(); {
		case c == 0:
			return p.end("}", begun)
		case c == '}' && (first || !p.endsInComma()):
			return p.end("}", whole)
		case c != '"':
			return broken
		}
		name, got := p.string()
		switch got {
		case broken:
			return broken
		case begun:
			return p.end("}", begun)
		}
		switch p.next() {
		case 0:
			return p.end("}", begun)
		case ':':
			p.at++
		default:
			return broken
		}
		if member, known := f.partOf(name); !known {
			p.silent++
			got = p.value(nil)
			p.silent--
		} else if got = p.part(shown, name+":", member); got != absent {
			shown++
		}
		if got == broken {
			return broken
		}
		switch c := p.next(); {
		case c == 0:
			return p.end("}", begun)
		case c == ',':
			p.at++
		case c != '}':
			return broken
		}
	}
}

// part reads a member or an element after so many others that are shown. One that is not
// there yet leaves nothing in the output.
func (p *partial) part(others int, label string, f *form) state {
	before := len(p.out)
	if others > 0 {
		p.write(",")
	}
	p.write(label)
	got := p.value(f)
	if got == absent {
		p.out = p.out[:before]
	}
	return got
}

// endsInComma reports whether a comma precedes the place, where no value follows.
func (p *partial) endsInComma() bool {
	before := strings.TrimRight(p.text[:p.at], " \t\r\n")
	return strings.HasSuffix(before, ",")
}

// array reads an array. An element that is not there yet is left out; it is the last.
func (p *partial) array(f *form) state {
	p.write("[")
	p.at++
	shown := 0
	for i := 0; ; i++ {
		switch c := p.next(); {
		case c == 0:
			return p.end("]", begun)
		case c == ']' && (i == 0 || !p.endsInComma()):
			return p.end("]", whole)
		case c == ']' || c == '}' || c == ',' || c == ':':
			return broken
		}
		var elem *form
		if f != nil {
			elem = f.element(i)
		}
		switch p.part(shown, "", elem) {
		case broken:
			return broken
		case begun, whole:
			shown++
		case absent:
		}
		switch c := p.next(); {
		case c == 0:
			return p.end("]", begun)
		case c == ',':
			p.at++
		case c != ']':
			return broken
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
