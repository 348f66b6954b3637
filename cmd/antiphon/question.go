// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// shortCall is the maximum length in characters of a call on one line.
const shortCall = 100

// shown is a call in the form for approval: it contains every character exactly
// once, because nobody should approve what they cannot see.
type shown struct {
	title string
	lines []shownLine // of the arguments, unless the title contains them
}

// shownLine is a line of arguments. Its mark precedes every part of a broken line,
// so that no text can look like output of the program. Words are the parts of it that a
// change made different.
type shownLine struct {
	mark, text, colour string
	words              []tui.Span
}

// asRun formats a call of a tool that runs a command. The arguments are part of the
// command, so the command replaces them unless they are short. The last line says in which
// sandbox it runs.
func asRun(call tool.Call, command []string, profile string) shown {
	s := inFull(call)
	if command != nil {
		s.run(command)
	}
	if profile != "" {
		s.add("   ", inSandbox(profile), "")
	}
	return s
}

// inSandbox says with which profile a call would run, given its name and hosts, and what that
// lets programs do. No argument's name has a blank, so no argument can look like it.
func inSandbox(profile string) string {
	name, hosts, listed := strings.Cut(profile, " ")
	var list []string
	if listed {
		list = []string{hosts}
	}
	made, err := sandbox.Maker(name, list...)
	if err != nil {
		return "sandbox profile " + visible(profile)
	}
	return "sandbox profile " + name + ": " + made("/").Words()
}

// of adds whose tool it is, before everything else.
func (s shown) of(whose string) shown {
	if whose != "" {
		s.lines = append([]shownLine{{mark: "   ", text: "a tool of " + visible(whose)}}, s.lines...)
	}
	return s
}

// fails adds why the call will not run even if it is allowed.
func (s shown) fails(problem string) shown {
	if problem != "" {
		s.add("   ", "its arguments do not fit, so that nothing will run: "+visible(strings.Join(strings.Fields(problem), " ")), red)
	}
	return s
}

// run shows a command in the place of the arguments.
func (s *shown) run(command []string) {
	s.lines = nil
	if line := trust.CommandLine(command...); len(line) <= shortCall && !strings.Contains(line, "\n") {
		s.add("   ", "runs: "+visible(line), "")
		return
	}
	s.add("   ", "runs:", bold)
	for _, word := range command {
		s.named("-", word)
	}
}

// inFull formats a call: a script as lines, a patch and an edit as a diff, other arguments by
// name.
func inFull(call tool.Call) shown {
	lines := strings.Contains(strings.ReplaceAll(call.Arguments, `\n"`, ""), `\n`) // a text of several
	short := !call.Custom && len([]rune(call.Arguments)) <= shortCall && !lines && !strings.ContainsAny(call.Arguments, "\n\r") && !strings.Contains(call.Arguments, `\u`)
	args, err := item.Parse([]byte(call.Arguments))
	var names []string
	var swap replacement
	isEdit := false
	if !call.Custom && err == nil {
		names = membersOf(args)
		swap, isEdit = editOf(args, names)
	}
	if short && !isEdit {
		return shown{title: visible(call.Name + " " + call.Arguments)}
	}
	s := shown{title: visible(call.Name)}
	if call.Custom || err != nil {
		s.text(call.Arguments)
		return s
	}
	jsonx.EachMember(args.JSON(), func(literal, value string) {
		name := jsonx.Unquote(literal)
		if isEdit && name == "replace" {
			return // shown with what it replaces
		}
		if isEdit && name == "find" {
			s.edit(swap)
			return
		}
		if strings.ContainsFunc(name, func(r rune) bool { return r > 0x7e || strings.ContainsRune(" ?:[]|", r) || r < ' ' }) {
			name = string(item.Quote(name)) // so that no name looks like output of the program
		}
		s.value(visible(name), item.JSON(value))
	})
	return s
}

// value adds a named value: a text verbatim, a list of texts one by one, and other
// values as JSON.
func (s *shown) value(name string, value item.JSON) {
	if text, isText := value.Unquote(); isText {
		s.named(name, text)
		return
	}
	var texts []string
	if list, ok := elementsOf(value); ok && len(list) > 0 {
		for _, e := range list {
			if text, isText := e.Unquote(); isText {
				texts = append(texts, text)
			}
		}
		if len(texts) == len(list) {
			s.add("   ", name+":", bold)
			for _, text := range texts {
				s.named("-", text)
			}
			return
		}
	}
	s.named(name, plainJSON(value))
}

// named adds a text: after its name if it is one line, otherwise below it.
func (s *shown) named(name, text string) {
	if name != "-" {
		name += ":"
	}
	if !strings.Contains(text, "\n") {
		s.add("   ", name+" "+visible(text), "")
		return
	}
	s.add("   ", name, bold)
	s.lines = append(s.lines, diffLines(text, "   | ", name == memberDiff+":")...)
}

// text adds the lines of a text, and marks what diffs change.
func (s *shown) text(text string) {
	s.lines = append(s.lines, diffLines(text, "   | ", false)...)
}

// edit adds a text and what replaces it, as a diff.
func (s *shown) edit(e replacement) {
	s.add("   ", "find (-) and replace (+):", bold)
	s.lines = append(s.lines, e.lines("   | ")...)
	ends := ""
	switch before, after := strings.HasSuffix(e.find, "\n"), strings.HasSuffix(e.replace, "\n"); {
	case before && after:
		ends = "both end with a line end"
	case before:
		ends = "find ends with a line end, replace does not"
	case after:
		ends = "replace ends with a line end, find does not"
	default:
		return
	}
	s.add("   ", "("+ends+")", dim)
}

func (s *shown) add(mark, text, colour string) {
	s.lines = append(s.lines, shownLine{mark: mark, text: text, colour: colour})
}

// whole returns the text, with why it is asked about, before it is wrapped and coloured.
func (s *shown) whole(why string) string {
	var b strings.Builder
	b.WriteString("?? " + s.title + "\n")
	for _, l := range s.lines {
		b.WriteString(l.mark + l.text + "\n")
	}
	if why != "" {
		b.WriteString("   asked because " + visible(why) + "\n")
	}
	return b.String()
}

// look says how changed words are marked: not at all, by a row of carets below, or by colours.
type look int

const (
	unmarked look = iota
	underlined
	coloured
)

// lookOf returns the look for a terminal. Carets would only be in the way of a screen reader.
func lookOf(colour, plain bool) look {
	switch {
	case plain:
		return unmarked
	case colour:
		return coloured
	}
	return underlined
}

// rows wraps the lines at the terminal's width.
func (s *shown) rows(columns int, as look) (rows []string) {
	for _, l := range s.lines {
		rows = append(rows, l.rows(columns, as)...)
	}
	return rows
}

func (l shownLine) rows(columns int, as look) (rows []string) {
	mark, at := l.mark, 0
	for first := true; first || at < len(l.text); first = false {
		if !first {
			mark = "   ⋮ "
		}
		part := head(l.text[at:], max(10, columns-columnsOf(mark)-1))
		end := at + len(part)
		if as == coloured {
			part = painted(l.text, l.colour, l.words, at, end)
		}
		rows = append(rows, mark+part)
		if carets := caretsBelow(l.text, l.words, at, end); as == underlined && carets != "" {
			rows = append(rows, strings.Repeat(" ", columnsOf(mark))+carets)
		}
		at = end
	}
	return rows
}

// head returns the beginning of a text that fits into the given columns.
func head(s string, columns int) string {
	n := 0
	for i, r := range s {
		if n += columnsOfRune(r); n > columns {
			return s[:i]
		}
	}
	return s
}

// mostRows is the number of rows of a call that are shown at first.
const mostRows = 40

// folded leaves out the middle of many rows, and returns how many are hidden.
func folded(rows []string) (seen []string, hidden int) {
	if len(rows) <= mostRows {
		return rows, 0
	}
	hidden = len(rows) - mostRows + 1
	half := mostRows / 2
	seen = append(seen, rows[:half]...)
	seen = append(seen, fmt.Sprintf("   … %s hidden here: answer s to see all …", plural(hidden, "line")))
	return append(seen, rows[half+hidden:]...), hidden
}

// wrapped wraps a text between words. Lines after the first are indented.
func wrapped(text string, columns int, in string) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		n := columnsOf(word)
		switch {
		case i == 0:
		case used+1+n > columns:
			b.WriteString("\n" + in)
			used = len(in)
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

// plainJSON returns a JSON value over several lines, with escapes decoded. Line ends
// in texts stay escaped, because they belong to the text.
func plainJSON(value item.JSON) string {
	v := jsontext.Value(value)
	if err := v.Canonicalize(); err != nil {
		return string(value)
	}
	if len(v) > shortCall {
		if err := v.Indent(); err != nil {
			return string(value)
		}
	}
	return string(v)
}

// elementsOf returns the elements of a list.
func elementsOf(value item.JSON) (list []item.JSON, ok bool) {
	d := jsontext.NewDecoder(strings.NewReader(string(value)))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, false
	}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		list = append(list, item.JSON(v.Clone()))
	}
	return list, true
}
