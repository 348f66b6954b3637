// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

const (
	// wantSnippet is the desired size of a snippet in bytes, about 300 words. The
	// blocks of the text may require another.
	wantSnippet = 2000
	// maxSnippet is the largest size of a snippet in bytes. A longer code block is
	// cut after a line.
	maxSnippet = 8000
	// maxHeading limits the bytes of a heading that are shown in a path.
	maxHeading = 120
	// maxFront limits the size of front matter in bytes.
	maxFront = 16 << 10
)

// A snippet is a piece of a Markdown file: consecutive blocks under one heading.
type snippet struct {
	start, end  int // byte offsets in the file
	first, last int // line numbers, from 1
	// headings are the headings above the piece, outermost first. If the front
	// matter has a title that is not among them, it comes first.
	headings []string
}

// splitMarkdown cuts a file into snippets, in order. They leave out only white
// space, and headings that are followed directly by deeper headings.
func splitMarkdown(text string) []snippet {
	p := packer{text: text, line: 1}
	for _, b := range blocksOf(text) {
		p.add(b)
	}
	p.flush()
	return p.out
}

// A packer combines the blocks of a section.
type packer struct {
	text   string
	out    []snippet
	title  string    // from the front matter
	levels [7]string // the current headings by level
	level  int       // of the last heading

	open     bool // a piece is open
	bare     bool // the piece consists of headings
	front    bool // the piece consists of front matter, perhaps with a heading
	heads    int  // number of headings in it
	from, to int

	at, line int // line is the line that contains the byte at
}

func (p *packer) add(b block) {
	switch b.kind {
	case frontMatter:
		p.title = titleOf(p.text[b.start:b.end])
		p.content(b)
		p.front = true
	case heading:
		p.heading(b)
	default:
		p.content(b)
		p.front = false
	}
}

// heading begins a section. A single heading directly above a deeper one appears
// only in the path; other headings without content are combined.
func (p *packer) heading(b block) {
	if p.heads == 1 && p.bare && b.level > p.level {
		p.open, p.heads = false, 0
	}
	if !p.front && !p.bare || b.end-p.from > wantSnippet {
		p.flush()
	}
	p.level, p.levels[b.level] = b.level, b.title
	clear(p.levels[b.level+1:])
	if b.end-b.start > wantSnippet { // an underlined paragraph
		p.content(b)
		return
	}
	p.take(b)
	p.bare = !p.front
	p.heads++
}

// content adds a block to the open piece, or begins a new piece if the block does
// not fit. Code may exceed the desired size, so that it is neither cut nor
// separated from the words before it.
func (p *packer) content(b block) {
	room, limit := wantSnippet, wantSnippet
	if b.kind == code {
		room, limit = 2*wantSnippet, maxSnippet
	}
	if p.open && !p.bare && b.end-p.from > room {
		p.flush()
	}
	most := limit
	if p.open {
		most -= b.start - p.from // the headings before it
	}
	if most < limit/2 {
		p.flush()
		most = limit
	}
	for b.end-b.start > most {
		cut := b.start + breakIn(p.text[b.start:b.start+most], b.kind == code)
		p.take(block{start: b.start, end: cut})
		p.flush()
		b.start, most = cut, limit
	}
	p.take(b)
}

func (p *packer) take(b block) {
	if !p.open {
		p.from = b.start
	}
	p.open, p.bare, p.to = true, false, b.end
}

func (p *packer) flush() {
	if !p.open {
		return
	}
	p.open, p.bare, p.front, p.heads = false, false, false, 0
	text := strings.TrimRight(p.text[p.from:p.to], " \t\r\n")
	if text == "" {
		return
	}
	s := snippet{start: p.from, end: p.from + len(text), headings: p.path()}
	p.line += strings.Count(p.text[p.at:s.start], "\n")
	s.first = p.line
	p.line += strings.Count(text, "\n")
	p.at, s.last = s.end, p.line
	p.out = append(p.out, s)
}

func (p *packer) path() (path []string) {
	for _, h := range p.levels[1:] {
		if h != "" {
			path = append(path, h)
		}
	}
	if p.title != "" && !slices.Contains(path, p.title) {
		path = slices.Insert(path, 0, p.title)
	}
	return path
}

// breakIn returns where to cut a text that is too long: after a line, sentence or
// word in its second half or, failing that, between two runes.
func breakIn(text string, lines bool) int {
	half := len(text) / 2
	ends := []string{"\n", ". ", " "}
	if lines {
		ends = ends[:1]
	}
	for _, end := range ends {
		if i := strings.LastIndex(text[half:], end); i >= 0 {
			return half + i + len(end)
		}
	}
	if n := len(text) - wording.PartialRune([]byte(text)); n > 0 {
		return n
	}
	return len(text)
}

var (
	linkMarkup  = lazyregexp.New(`!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])`)
	otherMarkup = lazyregexp.New("<[^<>]*>|\\{#[^{}]*\\}$|[`*]|\\\\")
	titleLine   = lazyregexp.New(`(?mi)^[ \t]*"?title"?[ \t]*[:=][ \t]*(.+?)[ \t\r]*$`)
)

// plainHeading returns a heading without its markup.
func plainHeading(s string) string {
	s = strings.TrimSpace(s)
	s = linkMarkup.ReplaceAllString(s[:min(len(s), 8*maxHeading)], "$1")
	s = otherMarkup.ReplaceAllString(s, "")
	return wording.Shorten(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "), maxHeading)
}

// titleOf returns the title in front matter, or "".
func titleOf(front string) string {
	m := titleLine.FindStringSubmatch(front)
	if m == nil {
		return ""
	}
	return plainHeading(strings.Trim(m[1], `"',`))
}

// utf8BOM is the byte order mark that a file may begin with.
const utf8BOM = "\uFEFF"

// kind is the kind of a Markdown block, as far as it matters for snippets.
type kind int

const (
	prose kind = iota // a paragraph, a list, a table, a quotation, HTML
	code              // a fenced code block
	heading
	frontMatter
)

// A block is a run of lines of the same kind.
type block struct {
	kind       kind
	start, end int    // byte offsets; end is after the last line
	level      int    // of a heading
	title      string // of a heading
}

// blocksOf finds the blocks of a Markdown text. It follows CommonMark for
// headings, fences and HTML; of everything else it only finds the end.
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
	fence     string // the opening fence of the current code block
	html      string // the end mark of the current HTML; " " is an empty line
	paragraph bool   // the block is a plain paragraph, which an underline turns into a heading
	list      bool   // the last line without indentation belongs to a list
}

// frontMatter consumes YAML between --- or TOML between +++ at the very beginning.
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
	atxLine     = lazyregexp.New(`^(#{1,6})(?:[ \t]+(.*))?$`)
	setextLine  = lazyregexp.New(`^(?:=+|-+)$`)
	listLine    = lazyregexp.New(`^(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]|$)`)
	rawHTML     = lazyregexp.New(`(?i)^<(pre|script|style|textarea)(?:[ \t>]|$)`)
	blockOfHTML = lazyregexp.New(`(?i)^</?(?:address|article|aside|blockquote|body|center|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frameset|h[1-6]|header|hr|html|iframe|legend|li|link|main|menu|nav|ol|optgroup|option|p|param|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul)(?:[ \t>]|/>|$)`)
)

// line processes the next line, given without its line end.
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

// markup processes a line that is not empty, outside fences and HTML.
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

// special processes headings and the beginnings of HTML.
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

// fenceOf returns the fence that a line begins with, or "".
func fenceOf(bare string) string {
	rest := strings.TrimLeft(bare, bare[:1])
	if n := len(bare) - len(rest); n >= 3 && (bare[0] == '`' || bare[0] == '~') {
		return bare[:n]
	}
	return ""
}

// closes reports whether a line closes the fence.
func closes(bare, fence string) bool {
	return len(bare) >= len(fence) && strings.Trim(bare, fence[:1]) == ""
}

// isRule reports whether a line is a thematic break.
func isRule(bare string) bool {
	return strings.Count(bare, bare[:1]) >= 3 && strings.IndexByte("*-_", bare[0]) >= 0 && strings.Trim(bare, bare[:1]+" \t") == ""
}

// withoutClosing removes the closing # characters of a heading.
func withoutClosing(title string) string {
	rest := strings.TrimRight(title, "#")
	if rest == "" || strings.HasSuffix(rest, " ") || strings.HasSuffix(rest, "\t") {
		return rest
	}
	return title
}

// indent returns the columns before the text of a line.
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
