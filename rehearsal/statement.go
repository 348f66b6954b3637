// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"errors"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/item"
)

var verbs = []verb{verbReason, verbSay, verbCall, verbCallRaw, verbCustom, verbPause}

// toolName matches the tool names that the API accepts.
var toolName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// statement reads one statement under a turn.
func (p *parser) statement(indent int, word, rest string, column int) {
	st := statement{verb: verb(word), line: p.next}
	if !slices.Contains(verbs, st.verb) {
		p.unknownVerb(indent, word)
		return
	}
	if st.verb == verbPause {
		st.pause = p.duration(rest, st.line, column)
		p.nothingDeeper(indent, word)
		p.add(st)
		return
	}
	isCall := st.verb == verbCall || st.verb == verbCallRaw || st.verb == verbCustom
	if isCall {
		name, args, at := cutWord(rest, 0)
		if !toolName.MatchString(name) {
			p.fail(st.line, column, "such as: "+word+" read_file …", "%q is not the name of a tool", shorten(40, name))
			p.continuation(indent, "", 0)
			return
		}
		st.tool, rest, column = name, args, column+at-1
	}
	text, at := p.continuation(indent, rest, column)
	st.blank = text == "" && st.verb == verbSay
	if text == "" && !isCall && !st.blank {
		p.fail(st.line, column, "write text after it, or indented deeper below it", "%q without text", word)
		return
	}
	if st.verb == verbCall && text == "" {
		text = "{}"
	}
	st.span = at
	p.compile(&st, text)
	p.add(st)
}

func (p *parser) add(st statement) {
	t := p.current()
	t.steps = append(t.steps, st)
}

func (p *parser) unknownVerb(indent int, word string) {
	var known []string
	for _, v := range verbs {
		known = append(known, string(v))
	}
	hint := "statements are " + strings.Join(known, ", ")
	if slices.Contains(marginWords, word) {
		hint = "write it without indentation"
	}
	p.fail(p.next, indent+1, hint, "unknown statement %q", shorten(40, word))
	p.continuation(indent, "", 0)
}

// nothingDeeper refuses indented lines after a statement that has no text.
func (p *parser) nothingDeeper(indent int, word string) {
	before := p.next
	_, at := p.continuation(indent, "", 0)
	if p.next > before {
		p.fail(at.line, at.first, "indent it like the line before", "%q has no text to continue", word)
	}
}

// compile parses a statement's text as a template.
func (p *parser) compile(st *statement, text string) {
	t, err := parseTemplate(text)
	if err != nil {
		line, offset, problem := templateError(err)
		l, c := st.span.at(line, offset)
		p.fail(l, c, "see the list of functions in the documentation of package rehearsal", "%s: %s", st.verb, problem)
		return
	}
	st.text = t
	if st.verb != verbCall || strings.Contains(text, "{{") {
		return
	}
	if offset, problem := checkArguments(text); problem != "" {
		before := text[:min(offset, len(text))]
		l, c := st.span.at(1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n')-1)
		p.fail(l, c, "arguments are a JSON object; call_raw sends any text", "%s %s: %s", st.verb, st.tool, problem)
	}
}

// checkArguments returns the problem and its offset if text is not a JSON object.
func checkArguments(text string) (offset int, problem string) {
	_, err := item.ParseString(text)
	var syntax *item.SyntaxError
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &syntax):
		return syntax.Offset, syntax.Problem
	}
	return 0, "the arguments are JSON but not an object"
}
