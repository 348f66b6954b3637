// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

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

// ShortCall is the maximum length in characters of a call on one line.
const ShortCall = 100

// Shown is what a person is asked to allow: a call, or what a file may do. Of a call it
// contains every character exactly once, because nobody should approve what they cannot
// see.
type Shown struct {
	Title string
	Lines []Line // of the arguments, unless the title contains them
}

// Line is a line of arguments. Its mark, or one of a broken line, precedes every row of it, so
// that no text can look like output of the program. Words are the parts of it that a
// change made different.
type Line struct {
	Mark, Text, colour string
	words              []tui.Span
}

// Asked formats a call of a tool that runs a command. The arguments are part of the
// command, so the command replaces them unless they are short. The last line says in which
// sandbox it runs.
func Asked(call tool.Call, command []string, profile string) Shown {
	s := inFull(call)
	if command != nil {
		s.run(command)
	}
	if profile != "" {
		s.Add("   ", InSandbox(profile), "")
	}
	return s
}

// InSandbox says with which profile a call would run, given its name and hosts, and what that
// lets programs do. No argument's name has a blank, so no argument can look like it.
func InSandbox(profile string) string {
	name, hosts, listed := strings.Cut(profile, " ")
	var list []string
	if listed {
		list = []string{hosts}
	}
	made, err := sandbox.Maker(name, list...)
	if err != nil {
		return "sandbox profile " + Visible(profile)
	}
	return "sandbox profile " + name + ": " + made("/").Words()
}

// Of adds whose tool it is, before everything else.
func (s Shown) Of(whose string) Shown {
	if whose != "" {
		s.Lines = append([]Line{{Mark: "   ", Text: "a tool of " + Visible(whose)}}, s.Lines...)
	}
	return s
}

// Fails adds why the call will not run even if it is allowed.
func (s Shown) Fails(problem string) Shown {
	if problem != "" {
		s.Add("   ", "its arguments do not fit, so that nothing will run: "+Visible(strings.Join(strings.Fields(problem), " ")), Red)
	}
	return s
}

// run shows a command in the place of the arguments.
func (s *Shown) run(command []string) {
	s.Lines = nil
	if line := trust.CommandLine(command...); len(line) <= ShortCall && !strings.Contains(line, "\n") {
		s.Add("   ", "runs: "+Visible(line), "")
		return
	}
	s.Add("   ", "runs:", bold)
	for _, word := range command {
		s.named("-", word)
	}
}

// inFull formats a call: a script as lines, a patch and an edit as a diff, other arguments by
// name.
func inFull(call tool.Call) Shown {
	lines := strings.Contains(strings.ReplaceAll(call.Arguments, `\n"`, ""), `\n`) // a text of several
	short := !call.Custom && len([]rune(call.Arguments)) <= ShortCall && !lines && !strings.ContainsAny(call.Arguments, "\n\r") && !strings.Contains(call.Arguments, `\u`)
	args, err := item.Parse([]byte(call.Arguments))
	var names []string
	var swap replacement
	isEdit := false
	if !call.Custom && err == nil {
		names = membersOf(args)
		swap, isEdit = editOf(args, names)
	}
	if short && !isEdit {
		return Shown{Title: Visible(call.Name + " " + call.Arguments)}
	}
	s := Shown{Title: Visible(call.Name)}
	if call.Custom || err != nil {
		s.Text(call.Arguments)
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
		s.value(Visible(name), item.JSON(value))
	})
	return s
}

// value adds a named value: a text verbatim, a list of texts one by one, and other
// values as JSON.
func (s *Shown) value(name string, value item.JSON) {
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
			s.Add("   ", name+":", bold)
			for _, text := range texts {
				s.named("-", text)
			}
			return
		}
	}
	s.named(name, plainJSON(value))
}

// named adds a text: after its name if it is one line, otherwise below it.
func (s *Shown) named(name, text string) {
	if name != "-" {
		name += ":"
	}
	if !strings.Contains(text, "\n") {
		s.Add("   ", name+" "+Visible(text), "")
		return
	}
	s.Add("   ", name, bold)
	s.Lines = append(s.Lines, diffLines(text, "   | ", name == memberDiff+":")...)
}

// Text adds the lines of a text, and marks what diffs change.
func (s *Shown) Text(text string) {
	s.Lines = append(s.Lines, diffLines(text, "   | ", false)...)
}

// edit adds a text and what replaces it, as a diff.
func (s *Shown) edit(e replacement) {
	s.Add("   ", "find (-) and replace (+):", bold)
	s.Lines = append(s.Lines, e.lines("   | ")...)
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
	s.Add("   ", "("+ends+")", Dim)
}

// Add adds a line.
func (s *Shown) Add(mark, text, colour string) {
	s.Lines = append(s.Lines, Line{Mark: mark, Text: text, colour: colour})
}

// Whole returns the text, with why it is asked about, before it is wrapped and coloured.
func (s *Shown) Whole(why string) string {
	var b strings.Builder
	b.WriteString("?? " + s.Title + "\n")
	for _, l := range s.Lines {
		b.WriteString(l.Mark + l.Text + "\n")
	}
	if why != "" {
		b.WriteString("   asked because " + Visible(why) + "\n")
	}
	return b.String()
}

// Look says how changed words are marked: not at all, by a row of carets below, or by colours.
type Look int

// The looks.
const (
	Unmarked Look = iota
	Underlined
	Coloured
)

// LookOf returns the look for a terminal. Carets would only be in the way of a screen reader.
func LookOf(colour, plain bool) Look {
	switch {
	case plain:
		return Unmarked
	case colour:
		return Coloured
	}
	return Underlined
}

// Rows wraps the lines at the terminal's width.
func (s *Shown) Rows(columns int, as Look) (rows []string) {
	for _, l := range s.Lines {
		rows = append(rows, l.rows(columns, as)...)
	}
	return rows
}

// Head wraps the title like the lines: the terminal would break it where it likes, and the rest could
// look like output of the program.
func (s *Shown) Head(columns int, as Look) []string {
	rows := Line{Mark: "?? ", Text: s.Title}.rows(columns, Unmarked)
	if as == Coloured {
		for i, row := range rows {
			rows[i] = "\x1b[" + Yellow + "m" + row + "\x1b[0m"
		}
	}
	return rows
}

func (l Line) rows(columns int, as Look) (rows []string) {
	mark := l.Mark
	for at := 0; ; {
		end, next := cut(l.Text, at, max(10, columns-ColumnsOf(mark)-1))
		part := l.Text[at:end]
		if as == Coloured {
			part = painted(l.Text, l.colour, l.words, at, end)
		}
		rows = append(rows, mark+part)
		if carets := caretsBelow(l.Text, l.words, at, end); as == Underlined && carets != "" {
			rows = append(rows, strings.Repeat(" ", ColumnsOf(mark))+carets)
		}
		if next == len(l.Text) && next == end {
			return rows
		}
		mark, at = withinWord, next
		if next > end {
			mark = afterBlank
		}
	}
}

// The marks before the rest of a broken line say whether a blank stood at the break: without them,
// "rm -rf / tmp" would look like "rm -rf /tmp".
const (
	withinWord = "   ⋮ "
	afterBlank = "   ⋮␣"
)

// cut returns where a row of a text ends that begins at a place, and where the next one begins: behind
// a blank, or within a word that takes half a row or more.
func cut(text string, at, columns int) (end, next int) {
	end = at + len(head(text[at:], columns))
	if end == len(text) {
		return end, end
	}
	for i := end; i > at && ColumnsOf(text[at:i]) >= columns/2; i-- {
		if text[i] == ' ' && text[i-1] != ' ' { // no row ends with a blank, which nobody would see
			return i, i + 1
		}
	}
	return end, end
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

// Folded leaves out the middle of many rows, and returns how many are hidden.
func Folded(rows []string) (seen []string, hidden int) {
	if len(rows) <= mostRows {
		return rows, 0
	}
	hidden = len(rows) - mostRows + 1
	half := mostRows / 2
	seen = append(seen, rows[:half]...)
	seen = append(seen, fmt.Sprintf("   … %s hidden here: answer s to see all …", Plural(hidden, "line")))
	return append(seen, rows[half+hidden:]...), hidden
}

// Wrap wraps a text between words. Lines after the first are indented.
func Wrap(text string, columns int, in string) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		n := ColumnsOf(word)
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
	if len(v) > ShortCall {
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
