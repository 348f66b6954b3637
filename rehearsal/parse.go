// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Parse parses the text of a script. The name is used in errors, both here and in
// responses. The error joins a [*SyntaxError] for each problem.
func Parse(name string, src []byte) (*Script, error) {
	p := &parser{script: &Script{name: name}}
	text := strings.TrimPrefix(string(src), "\ufeff")
	if !utf8.ValidString(text) {
		p.invalidUTF8(text)
		return nil, errors.Join(p.errs...)
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.lines = append(p.lines, strings.TrimRight(line, " \t\r"))
	}
	for p.next < len(p.lines) {
		p.readLine()
	}
	p.finish()
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.script, nil
}

// parser reads a script line by line.
type parser struct {
	script *Script
	lines  []string
	next   int // index of the line to read next
	seen   map[string]int
	titled bool // the line of a turn was read, whether valid or not
	errs   []error
}

func (p *parser) fail(line, column int, hint, format string, args ...any) {
	p.errs = append(p.errs, &SyntaxError{
		File: p.script.name, Line: line, Column: column,
		Problem: fmt.Sprintf(format, args...), Hint: hint,
	})
}

func (p *parser) invalidUTF8(text string) {
	valid := 0
	for valid < len(text) {
		r, n := utf8.DecodeRuneInString(text[valid:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		valid += n
	}
	before := text[:valid]
	p.fail(1+strings.Count(before, "\n"), valid-strings.LastIndexByte(before, '\n'),
		"save the file as UTF-8", "invalid UTF-8")
}

// readLine reads a line without indentation or a statement with its continuation.
func (p *parser) readLine() {
	text := p.lines[p.next]
	p.next++
	if text == "" || strings.HasPrefix(strings.TrimLeft(text, " \t"), "#") {
		return
	}
	indent := p.indent(p.next - 1)
	word, rest, column := cutWord(text, indent)
	if indent == 0 {
		p.margin(word, rest, column)
		return
	}
	if !p.titled {
		p.fail(p.next, indent+1, `begin a turn with the line "turn"`, "%q is not below a turn", word)
		p.continuation(indent, "", 0)
		return
	}
	p.statement(indent, word, rest, column)
}

// indent returns the number of leading spaces of line i. A tab is an error, but
// counts as one.
func (p *parser) indent(i int) int {
	text := p.lines[i]
	n := len(text) - len(strings.TrimLeft(text, " \t"))
	if k := strings.IndexByte(text[:n], '\t'); k >= 0 {
		p.fail(i+1, k+1, "indent with spaces", "tab in the indentation")
	}
	return n
}

// cutWord splits a line after its indentation into its first word and the
// rest, with the rest's column.
func cutWord(text string, indent int) (word, rest string, column int) {
	body := text[indent:]
	n := strings.IndexAny(body, " \t")
	if n < 0 {
		return body, "", len(text) + 1
	}
	rest = strings.TrimLeft(body[n:], " \t")
	return body[:n], rest, len(text) - len(rest) + 1
}

var marginWords = []string{"turn", "round", "again", "pace", "window"}

// margin reads a line without indentation.
func (p *parser) margin(word, rest string, column int) {
	line, s := p.next, p.script
	if word != "turn" {
		p.titled = false
	}
	switch word {
	case "turn":
		p.titled = true
		p.addTurn(turn{line: line, title: rest})
	case "round", "again":
		p.section(word, line)
		if rest != "" {
			p.fail(line, column, "write it as a comment above", "text after %q", word)
		}
	case "pace":
		if p.once("pace", line) {
			s.pace = p.duration(rest, line, column)
		}
	case "window":
		if p.once("window", line) {
			s.window = p.tokens(rest, line, column)
		}
	default:
		hint := "allowed without indentation: " + strings.Join(marginWords, ", ")
		if slices.Contains(verbs, verb(word)) {
			hint = "indent it under a turn"
		}
		p.fail(line, 1, hint, "%q is not allowed without indentation", shorten(40, word))
		p.continuation(0, "", 0)
	}
}

// once reports whether a line is the first of its kind, and fails if not.
func (p *parser) once(word string, line int) bool {
	if first := p.seen[word]; first > 0 {
		p.fail(line, 1, "", "a second %q; the first is in line %d", word, first)
		return false
	}
	if p.seen == nil {
		p.seen = map[string]int{}
	}
	p.seen[word] = line
	return true
}

// section begins a round, or the turns that answer all later messages.
func (p *parser) section(word string, line int) {
	s := p.script
	switch {
	case word == "again":
		if p.once(word, line) {
			s.again = []turn{}
		}
	case s.again != nil:
		p.fail(line, 1, "move it above", `a round after "again"`)
	case len(s.rounds) == 0 || len(s.rounds[len(s.rounds)-1]) == 0:
		p.fail(line, 1, "turns before the first round line are the first round", "the round before this one has no turn")
	default:
		s.rounds = append(s.rounds, nil)
	}
}

func (p *parser) addTurn(t turn) {
	s := p.script
	if s.again != nil {
		s.again = append(s.again, t)
		return
	}
	if len(s.rounds) == 0 {
		s.rounds = [][]turn{nil}
	}
	last := len(s.rounds) - 1
	s.rounds[last] = append(s.rounds[last], t)
}

// current returns the turn that statements belong to.
func (p *parser) current() *turn {
	list := p.script.again
	if list == nil {
		list = p.script.rounds[len(p.script.rounds)-1]
	}
	return &list[len(list)-1]
}

// finish checks the rules that need the whole script.
func (p *parser) finish() {
	s := p.script
	if len(p.errs) > 0 {
		return
	}
	total := 0
	for _, list := range append(slices.Clone(s.rounds), s.again) {
		total += len(list)
		for _, t := range list {
			if len(t.steps) == 0 {
				p.fail(t.line, 1, "indent at least one statement under it, such as: say Hello.", "a turn without statements")
			} else if !slices.ContainsFunc(t.steps, func(st statement) bool { return !st.blank }) {
				p.fail(t.steps[0].line, 1, "write text after it, or indented deeper below it", "a turn without text: an empty say is an empty line between two others")
			}
		}
	}
	switch line := max(len(p.lines), 1); {
	case total == 0:
		p.fail(line, 1, `begin one with the line "turn"`, "the script has no turn")
	case s.again != nil && len(s.again) == 0:
		p.fail(p.seen["again"], 1, `begin one with the line "turn"`, `"again" has no turn`)
	case len(s.rounds) > 0 && len(s.rounds[len(s.rounds)-1]) == 0:
		p.fail(line, 1, `begin one with the line "turn"`, "the last round has no turn")
	}
}

// maxPause limits delays, so that a typing error does not look like a hang.
const maxPause = 10 * time.Minute

func (p *parser) duration(text string, line, column int) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxPause {
		p.fail(line, column, fmt.Sprintf("such as 20ms or 1.5s, at most %v", maxPause), "%q is not a duration", shorten(40, text))
		return 0
	}
	return d
}

func (p *parser) tokens(text string, line, column int) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		p.fail(line, column, "such as 4000, in tokens", "%q is not a context size", shorten(40, text))
	}
	return n
}

// span is the place of a text of several lines in the file.
type span struct {
	line  int // of the text's first line
	first int // column where its first line begins
	rest  int // column where its other lines begin
}

// at returns the place of a byte, given its line, counted from 1, and its offset in
// that line.
func (s span) at(line, offset int) (int, int) {
	if line <= 1 {
		return s.line, s.first + offset
	}
	return s.line + line - 1, s.rest + offset
}

// continuation reads the lines that are indented deeper than indent, and returns
// them joined to text, which begins at the given column of the line before.
func (p *parser) continuation(indent int, text string, column int) (string, span) {
	at := span{line: p.next, first: column}
	begin, end, common := p.next, p.next, -1
	for i := begin; i < len(p.lines); i++ {
		line := p.lines[i]
		if line == "" {
			continue
		}
		n := len(line) - len(strings.TrimLeft(line, " \t"))
		if n <= indent {
			break
		}
		if p.indent(i); common < 0 || n < common {
			common = n
		}
		end = i + 1
	}
	if end == begin {
		return text, at
	}
	p.next, at.rest = end, common+1
	if text == "" {
		for p.lines[begin] == "" {
			begin++
		}
		at.line, at.first = begin+1, at.rest
	}
	var b strings.Builder
	b.WriteString(text)
	for i, line := range p.lines[begin:end] {
		if i > 0 || text != "" {
			b.WriteByte('\n')
		}
		b.WriteString(line[min(common, len(line)):])
	}
	return b.String(), at
}

// shorten returns at most n characters of s on one line.
func shorten(n int, s string) string {
	s = strings.Join(strings.Fields(s), " ")
	runes := []rune(s)
	if n = max(n, 1); len(runes) <= n {
		return s
	}
	return strings.TrimRight(string(runes[:n-1]), " ") + "…"
}
