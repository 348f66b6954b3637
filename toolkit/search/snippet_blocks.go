// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"regexp"
	"strings"
)

// kind is what a block of Markdown is, as far as cutting it into snippets goes.
type kind int

const (
	prose kind = iota // a paragraph, a list, a table, a quotation, HTML
	code              // from fence to fence
	heading
	frontMatter
)

// block is a run of lines of one kind.
type block struct {
	kind       kind
	start, end int    // bytes; the end is after the last line
	level      int    // of a heading
	title      string // of a heading
}

// blocksOf finds the blocks of a Markdown text. It knows what CommonMark says of
// headings, fences and HTML, and of everything else only where it ends.
func blocksOf(text string) []block {
	s := scanner{text: text}
	s.pos = s.frontMatter()
	for s.pos < len(text) {
		s.lineStart = s.pos
		end := strings.IndexByte(text[s.pos:], '\n') + 1
		if end == 0 {
			end = len(text) - s.pos
		}
		s.pos += end
		s.line(strings.TrimRight(text[s.lineStart:s.pos], " \t\r\n"))
	}
	s.end(len(text))
	return s.out
}

type scanner struct {
	text           string
	out            []block
	pos, lineStart int

	open      bool // a block is open
	kind      kind
	from      int
	fence     string // the opening fence, while it is open
	html      string // what ends the HTML; " " is an empty line
	paragraph bool   // the block is a plain paragraph, which an underline makes a heading
	list      bool   // the last line that was not indented was one of a list
}

// frontMatter takes YAML between --- or TOML between +++ at the very beginning.
func (s *scanner) frontMatter() (end int) {
	begin := len(s.text) - len(strings.TrimPrefix(s.text, utf8BOM))
	first, rest, ok := strings.Cut(s.text[begin:], "\n")
	mark := strings.TrimRight(first, " \t\r")
	if !ok || mark != "---" && mark != "+++" {
		return begin
	}
	at := begin + len(first) + 1
	for line := range strings.Lines(rest[:min(len(rest), maxFront)]) {
		at += len(line)
		line = strings.TrimRight(line, " \t\r\n")
		if line == mark || mark == "---" && line == "..." {
			s.out = append(s.out, block{kind: frontMatter, start: begin, end: at})
			return at
		}
	}
	return begin
}

func (s *scanner) begin(k kind) {
	s.end(s.lineStart)
	s.open, s.kind, s.from = true, k, s.lineStart
}

// end closes the open block.
func (s *scanner) end(at int) {
	if s.open && at > s.from {
		s.out = append(s.out, block{kind: s.kind, start: s.from, end: at})
	}
	s.open, s.paragraph, s.fence, s.html = false, false, "", ""
}

var (
	atxLine     = regexp.MustCompile(`^(#{1,6})(?:[ \t]+(.*))?$`)
	setextLine  = regexp.MustCompile(`^(?:=+|-+)$`)
	listLine    = regexp.MustCompile(`^(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]|$)`)
	rawHTML     = regexp.MustCompile(`(?i)^<(pre|script|style|textarea)(?:[ \t>]|$)`)
	blockOfHTML = regexp.MustCompile(`(?i)^</?(?:address|article|aside|blockquote|body|center|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frameset|h[1-6]|header|hr|html|iframe|legend|li|link|main|menu|nav|ol|optgroup|option|p|param|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul)(?:[ \t>]|/>|$)`)
)

// line takes the next line, given without its end.
func (s *scanner) line(line string) {
	bare := strings.TrimLeft(line, " \t")
	switch {
	case s.fence != "":
		if closes(bare, s.fence) {
			s.end(s.pos)
		}
	case s.html != "" && s.html != " ":
		if strings.Contains(strings.ToLower(line), s.html) {
			s.end(s.pos)
		}
	case bare == "":
		s.end(s.lineStart)
	case s.html != "":
	default:
		s.markup(bare, indent(line))
	}
}

// markup takes a line that is not empty, outside of fences and HTML.
func (s *scanner) markup(bare string, indent int) {
	if indent == 0 && !s.open {
		s.list = false
	}
	if mark := fenceOf(bare); mark != "" && (indent < 4 || s.list) && (mark[0] == '~' || !strings.Contains(bare[len(mark):], "`")) {
		s.begin(code)
		s.fence = mark
		return
	}
	if indent < 4 && s.special(bare) {
		return
	}
	starts := strings.IndexByte("-+*0123456789", bare[0]) >= 0 && listLine.MatchString(bare)
	if starts {
		s.list = true
	}
	if !s.open {
		s.begin(prose)
		s.paragraph = indent < 4 && !starts && !s.list && bare[0] != '>' && bare[0] != '|'
	} else if starts {
		s.paragraph = false
	}
}

// special takes headings and the beginnings of HTML.
func (s *scanner) special(bare string) bool {
	if strings.IndexByte("#=-*_<", bare[0]) < 0 {
		return false
	}
	if m := atxLine.FindStringSubmatch(bare); m != nil {
		s.begin(heading)
		s.heading(len(m[1]), withoutClosing(m[2]))
		return true
	}
	if s.paragraph && setextLine.MatchString(bare) {
		level := 1
		if bare[0] == '-' {
			level = 2
		}
		s.kind = heading
		s.heading(level, s.text[s.from:s.lineStart])
		return true
	}
	if isRule(bare) {
		s.begin(prose)
		s.end(s.pos)
		s.list = false
		return true
	}
	return s.beginsHTML(bare)
}

func (s *scanner) heading(level int, title string) {
	s.end(s.pos)
	b := &s.out[len(s.out)-1]
	b.level, b.title = level, plainHeading(title)
	s.list = false
}

func (s *scanner) beginsHTML(bare string) bool {
	end := ""
	switch m := rawHTML.FindStringSubmatch(bare); {
	case strings.HasPrefix(bare, "<!--"):
		end = "-->"
	case m != nil:
		end = "</" + strings.ToLower(m[1]) + ">"
	case blockOfHTML.MatchString(bare):
		end = " "
	default:
		return false
	}
	s.begin(prose)
	if s.html = end; end != " " && strings.Contains(strings.ToLower(bare), end) {
		s.end(s.pos)
	}
	return true
}

// fenceOf is the fence that a line begins with, if it does.
func fenceOf(bare string) string {
	rest := strings.TrimLeft(bare, bare[:1])
	if n := len(bare) - len(rest); n >= 3 && (bare[0] == '`' || bare[0] == '~') {
		return bare[:n]
	}
	return ""
}

// closes reports whether a line ends the fence.
func closes(bare, fence string) bool {
	return len(bare) >= len(fence) && strings.Trim(bare, fence[:1]) == ""
}

// isRule reports whether a line is a thematic break.
func isRule(bare string) bool {
	return strings.Count(bare, bare[:1]) >= 3 && strings.IndexByte("*-_", bare[0]) >= 0 && strings.Trim(bare, bare[:1]+" \t") == ""
}

// withoutClosing takes off the signs that may stand after a heading.
func withoutClosing(title string) string {
	rest := strings.TrimRight(title, "#")
	if rest == "" || strings.HasSuffix(rest, " ") || strings.HasSuffix(rest, "\t") {
		return rest
	}
	return title
}

// indent counts the columns before a line's text.
func indent(line string) int {
	n := 0
	for _, c := range []byte(line) {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}
