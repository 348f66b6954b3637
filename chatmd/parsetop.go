// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// topLevel reads the next piece of the top level.
func (p *parser) topLevel() {
	p.addText(p.pos, skipSpace(p.src, p.pos))
	i := p.pos
	if i == len(p.src) {
		return
	}
	if strings.HasPrefix(p.src[i:], "<!--") {
		p.comment()
		return
	}
	if p.src[i] != '<' {
		p.stray()
		return
	}
	name, closing := tagName(p.src, i)
	_, known := tags[name]
	switch {
	case name == "":
		p.stray()
	case closing && known:
		p.strayClosing(name)
	case closing:
		p.stray()
	case isTop(name):
		p.element(name)
	case known:
		hint := "" // home describes it
		if place("user", name) == child {
			hint = "put it inside <user> … </user>"
		}
		p.fail(i, "<"+name, home(name)+", not at the top level", hint)
		p.skipElement(name)
	default:
		p.unknown(name)
	}
}

// unknown reports an unknown tag and skips its element.
func (p *parser) unknown(name string) {
	hint := "tags at the top level are: " + strings.ReplaceAll(topTags, " ", ", ")
	if tag := suggest(name, topTags); tag != "" {
		hint = "did you mean <" + tag + ">?"
	}
	p.fail(p.pos, "<"+name, "unknown tag <"+name+"> at the top level", hint)
	p.skipElement(name)
}

// stray reports text outside of any element.
func (p *parser) stray() {
	start := p.pos
	if p.src[start:] == "<" {
		p.endsInside(start)
	}
	text, hint := excerpt(p.src[start:]), "put it inside <user> … </user>"
	said := text
	behind := strings.TrimLeft(p.src[start+1:], "/abcdefghijklmnopqrstuvwxyz_") // the name, in a tag
	if r, ok := unseen(p.src[start:]); ok {
		text = fmt.Sprintf("the invisible character %U", r)
		said, hint = text, "delete it; white space between elements is spaces, tabs and line ends"
	} else if r, ok := unseen(behind); ok && p.src[start] == '<' {
		said, hint = fmt.Sprintf("the invisible character %U ends the name of the tag in %s", r, text), "write a space in its place, or delete it"
	}
	p.fail(start, text, "text outside of any element: "+said, hint)
	if p.src[start] == '<' {
		start++
	}
	p.skip(start, "")
}

// unseen returns the first character of a text if it is invisible and not white
// space of the language.
func unseen(s string) (rune, bool) {
	r, _ := utf8.DecodeRuneInString(s)
	return r, r > unicode.MaxASCII && unicode.In(r, unicode.Z, unicode.Cf)
}

// skipElement skips an element that is not allowed here, up to its closing tag or,
// if there is none, up to the next top-level element.
func (p *parser) skipElement(name string) {
	t := readTag(p.src, p.pos, name)
	if t.unfinished {
		p.endsInside(p.pos)
	}
	if spec, known := tags[name]; t.selfClosed || known && spec.mode == emptyMode {
		p.addText(p.pos, t.end)
		return
	}
	p.skip(t.end, name)
}

// skip turns everything from pos to the next top-level element after i into text. A
// closing tag of name, or, if name is "", a tag at the beginning of a line, also
// ends the text.
func (p *parser) skip(i int, name string) {
	for {
		i = p.marks.next(i)
		if i == len(p.src) {
			break
		}
		if n, closer := fenceAt(p.src, i); n > 0 {
			i = min(len(p.src), find(p.src, i+n, closer)+len(closer))
			continue
		}
		tag, closing := tagName(p.src, i)
		if closing && name != "" && tag == name {
			i = skipSpace(p.src, i+len("</")+len(name))
			if strings.HasPrefix(p.src[i:], ">") {
				i++
			}
			break
		}
		atLineStart := name == "" && (p.src[i-1] == '\n' || p.src[i-1] == '\r')
		if strings.HasPrefix(p.src[i:], "<!--") || tag != "" && (!closing && isTop(tag) || atLineStart) {
			break
		}
		i++
	}
	p.addText(p.pos, i)
}
