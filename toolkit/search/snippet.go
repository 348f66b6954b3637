// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"regexp"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

const (
	// wantSnippet is how many bytes a snippet has where its blocks allow it,
	// about 300 words.
	wantSnippet = 2000
	// maxSnippet is the most that a snippet has. A code fence longer than this is
	// cut at a line.
	maxSnippet = 8000
	// maxHeading is how much of a heading a path shows.
	maxHeading = 120
	// maxFront is how much of a file may be front matter.
	maxFront = 16 << 10
)

// snippet is a piece of a Markdown file: blocks that follow each other under one
// heading.
type snippet struct {
	start, end  int // bytes of the file
	first, last int // lines, counted from 1
	// headings are those that the piece stands under, the outermost first; when
	// the front matter has a title that is not one of them, it is the first.
	headings []string
}

// splitMarkdown cuts a file into snippets, in order. What is not in any is white
// space, and headings with nothing but deeper headings below them.
func splitMarkdown(text string) []snippet {
	p := packer{text: text, line: 1}
	for _, b := range blocksOf(text) {
		p.add(b)
	}
	p.flush()
	return p.out
}

// packer puts the blocks of a section together.
type packer struct {
	text   string
	out    []snippet
	title  string    // of the front matter
	levels [7]string // the headings that are open, by level
	level  int       // of the last heading

	open     bool // there is a piece
	bare     bool // it is nothing but headings
	front    bool // it is nothing but front matter, or that and a heading
	heads    int  // headings in it
	from, to int

	at, line int // line is the one that the byte at is in
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

// heading begins a section. One heading above a deeper one is in the path alone;
// others with nothing below them go together.
func (p *packer) heading(b block) {
	if p.heads == 1 && p.bare && b.level > p.level {
		p.open, p.heads = false, 0
	}
	if !p.front && !p.bare || b.end-p.from > wantSnippet {
		p.flush()
	}
	p.level, p.levels[b.level] = b.level, b.title
	clear(p.levels[b.level+1:])
	if b.end-b.start > wantSnippet { // a paragraph that is underlined
		p.content(b)
		return
	}
	p.take(b)
	p.bare = !p.front
	p.heads++
}

// content adds a block to the open piece, or begins a new one when there is no
// room. Code may be longer than what is wanted, rather than be cut or parted
// from the words before it.
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

// breakIn says where to cut a text that is too long: after a line, a sentence
// or a word of its second half, else between two runes.
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
	linkMarkup  = regexp.MustCompile(`!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])`)
	otherMarkup = regexp.MustCompile("<[^<>]*>|\\{#[^{}]*\\}$|[`*]|\\\\")
	titleLine   = regexp.MustCompile(`(?mi)^[ \t]*"?title"?[ \t]*[:=][ \t]*(.+?)[ \t\r]*$`)
)

// plainHeading is a heading without its markup.
func plainHeading(s string) string {
	s = strings.TrimSpace(s)
	s = linkMarkup.ReplaceAllString(s[:min(len(s), 8*maxHeading)], "$1")
	s = otherMarkup.ReplaceAllString(s, "")
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > maxHeading {
		s = s[:maxHeading]
		s = s[:len(s)-wording.PartialRune([]byte(s))] + "…"
	}
	return s
}

// titleOf is the title that front matter gives, if any.
func titleOf(front string) string {
	m := titleLine.FindStringSubmatch(front)
	if m == nil {
		return ""
	}
	return plainHeading(strings.Trim(m[1], `"',`))
}

// utf8BOM may begin a file.
const utf8BOM = "\uFEFF"
