// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// markdown turns Markdown into styled lines while it arrives. A line is finished at its
// line end; only the rows of a table wait for each other, because their columns are
// aligned. Each line of a paragraph stays a line. Everything that a line says is in its
// styled form: without colours, only marks of emphasis, code and headings that have become
// styles are left out, and so nothing of them is.
type markdown struct {
	colour bool

	line  string   // the unfinished line
	rest  bool     // its beginning was already returned
	fence string   // the marks that end the current code block, or ""
	in    string   // the indentation of the code block
	code  coder    // highlights the code block
	table []string // the rows of a table that is not finished
	wide  []int    // the columns of a table of which rows were already returned
	above int      // the number of these rows
}

// write adds text and returns the lines that are finished.
func (m *markdown) write(text string) (lines []string) {
	for {
		line, rest, ended := strings.Cut(text, "\n")
		m.line += line
		if !ended {
			return lines
		}
		lines = append(lines, m.end()...)
		text = rest
	}
}

// flush ends the unfinished line and table.
func (m *markdown) flush() (lines []string) {
	if m.line != "" || m.rest {
		lines = m.end()
	}
	return append(lines, m.endTable()...)
}

// reset ends everything, also a code block: what follows is another text.
func (m *markdown) reset() (lines []string) {
	lines = m.flush()
	*m = markdown{colour: m.colour}
	return lines
}

// end ends the current line.
func (m *markdown) end() (lines []string) {
	line, rest := strings.TrimSuffix(m.line, "\r"), m.rest
	m.line, m.rest = "", false
	if m.fence == "" && !rest && isRow(line) {
		m.table = append(m.table, line)
		return nil
	}
	lines = m.endTable()
	return append(lines, m.render(line, rest, true))
}

// tail returns the unfinished end as lines. They are shown in the live part.
func (m *markdown) tail() (lines []string) {
	lines = m.tableLines(m.table)
	if m.line != "" {
		lines = append(lines, m.render(m.line, m.rest, false))
	}
	return lines
}

// shown returns the unfinished end as at most so many rows, and the lines of it that are
// finished because they do not fit.
func (m *markdown) shown(width, most int) (finished, rows []string) {
	finished = m.relieve(width, max(1, most))
	for _, line := range m.tail() {
		rows = append(rows, wrapped(line, width)...)
	}
	return finished, rows[max(0, len(rows)-max(0, most)):]
}

// relieve returns lines of an unfinished end that takes more than the given rows, so that
// the rest takes at most that many.
func (m *markdown) relieve(width, most int) (lines []string) {
	rows := func() (n int) {
		if len(m.line) > 4*width*most { // without measuring all of it again and again
			return most + 1
		}
		for _, line := range m.tail() {
			n += len(wrapped(line, width))
		}
		return n
	}
	for rows() > most {
		switch {
		case len(m.table) > 0:
			lines = append(lines, m.someTable()...)
		default:
			at := m.breakAt(max(1, most-1) * width)
			if at == 0 {
				return lines
			}
			line := m.line[:at]
			after := m.line[at:]
			if m.fence == "" {
				line, after = strings.TrimRight(line, " "), strings.TrimLeft(after, " ")
			}
			lines = append(lines, m.render(line, m.rest, true))
			m.line, m.rest = after, true
		}
	}
	return lines
}

// breakAt returns where to break the unfinished line, at most at the given column: at a
// blank outside of emphasis and links if there is one, else at a blank or anywhere.
func (m *markdown) breakAt(most int) int {
	used, at, blank, quiet := 0, 0, 0, 0
	for at < len(m.line) {
		c, n := cluster(m.line[at:])
		if used += n; used > most && at > 0 {
			break
		}
		if c == " " && m.fence == "" {
			blank = at + 1
			if settled(m.line[:at]) {
				quiet = at + 1
			}
		}
		at += len(c)
	}
	switch {
	case quiet > most/4:
		return quiet
	case blank > most/4:
		return blank
	}
	return min(at, len(m.line))
}

// settled reports whether a beginning of a line has no mark that its rest could close.
func settled(s string) bool {
	return strings.Count(s, "*")%2 == 0 && strings.Count(s, "`")%2 == 0 && strings.Count(s, "~~")%2 == 0 && strings.Count(s, "[") == strings.Count(s, "]") && strings.Count(s, "(") == strings.Count(s, ")")
}

var (
	headings = lazyregexp.New(`^ {0,3}(#{1,6})[ \t]+(.*)$`)
	fences   = lazyregexp.New("^( *)(`{3,}|~{3,})[ \t]*([^`]*)$")
	items    = lazyregexp.New(`^(\s*)([-*+]|\d{1,9}[.)])[ \t]+(.*)$`)
	tasks    = lazyregexp.New(`^\[([ xX])\][ \t]+(.*)$`)
	rules    = lazyregexp.New(`^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$`)
	quotes   = lazyregexp.New(`^ {0,3}> ?(.*)$`)
	cells    = lazyregexp.New(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)
)

// render styles a line. rest means that its beginning was rendered before, and done that it
// is finished, so that a fence may begin or end with it.
func (m *markdown) render(line string, rest, done bool) string {
	if m.fence != "" {
		return m.fenced(line, rest, done)
	}
	if rest {
		return m.inline(line, "")
	}
	if f := fences.FindStringSubmatch(line); f != nil {
		if done {
			m.in, m.fence, m.code = f[1], f[2], coder{language: languageOf(f[3])}
		}
		return m.styled(line, dim)
	}
	if h := headings.FindStringSubmatch(line); h != nil {
		text := unclosed(h[2])
		if !m.colour {
			return h[1] + " " + m.inline(text, "")
		}
		if len(h[1]) == 1 {
			return m.inline(text, bold+";"+under)
		}
		return m.inline(text, bold)
	}
	if rules.MatchString(line) {
		return m.styled("────────", dim)
	}
	if q := quotes.FindStringSubmatch(line); q != nil {
		return m.styled("│ ", dim) + m.render(q[1], true, false)
	}
	if i := items.FindStringSubmatch(line); i != nil {
		mark, text := i[2], i[3]
		if mark == "-" || mark == "*" || mark == "+" {
			mark = "•"
		}
		if task := tasks.FindStringSubmatch(text); task != nil {
			if mark, text = "☐", task[2]; task[1] != " " {
				mark = "☑"
			}
		}
		return i[1] + m.styled(mark, cyan) + " " + m.inline(text, "")
	}
	return m.inline(line, "")
}

// unclosed returns the text of a heading without the marks that close it, which are behind a blank.
func unclosed(text string) string {
	text = strings.TrimRight(text, " \t")
	bare := strings.TrimRight(text, "#")
	if inner := strings.TrimRight(bare, " \t"); inner != bare || bare == "" {
		return inner
	}
	return text
}

// fenced renders a line of a code block.
func (m *markdown) fenced(line string, rest, done bool) string {
	bare := strings.TrimRight(strings.TrimLeft(line, " "), " \t")
	if !rest && len(bare) >= len(m.fence) && strings.Trim(bare, m.fence[:1]) == "" {
		if done {
			m.fence = ""
		}
		return m.styled(line, dim)
	}
	if !m.colour {
		return line
	}
	code := m.code // a line that is not finished does not change the state
	text := code.highlight(line)
	if done {
		m.code = code
	}
	return text
}

func (m *markdown) styled(text, style string) string {
	if !m.colour || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + reset
}

// isRow reports whether a line is a row of a table.
func isRow(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) > 1 && strings.HasPrefix(line, "|")
}

// endTable ends the current table.
func (m *markdown) endTable() []string {
	lines := m.tableLines(m.table)
	m.table, m.wide, m.above = nil, nil, 0
	return lines
}

// someTable returns the rows of a table that is not finished. Their columns also hold for
// the rows that follow.
func (m *markdown) someTable() []string {
	m.wide = m.widths(m.table)
	lines := m.tableLines(m.table)
	m.table, m.above = nil, m.above+len(m.table)
	return lines
}

// ruled reports whether row n of those that were not returned yet is the rule below the head. Any other
// row of dashes says something.
func (m *markdown) ruled(n int, row string) bool {
	return m.above+n == 1 && cells.MatchString(row)
}

// widths returns the columns of a table, which are at least those of the rows before.
func (m *markdown) widths(rows []string) []int {
	wide := append([]int(nil), m.wide...)
	for n, row := range rows {
		if m.ruled(n, row) {
			continue
		}
		for i, cell := range cellsOf(row) {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], columns(m.inline(cell, "")))
		}
	}
	return wide
}

// tableLines aligns rows. A single row that no other follows may be any line with a bar.
func (m *markdown) tableLines(rows []string) (lines []string) {
	wide := m.widths(rows)
	for n, row := range rows {
		if m.ruled(n, row) {
			var b strings.Builder
			for i, w := range wide {
				if i > 0 {
					b.WriteString("─┼─")
				}
				b.WriteString(strings.Repeat("─", w))
			}
			lines = append(lines, m.styled(b.String(), dim))
			continue
		}
		style := ""
		if n == 0 && m.above == 0 && len(rows) > 1 && m.ruled(1, rows[1]) {
			style = bold
		}
		var b strings.Builder
		list := cellsOf(row)
		for i, cell := range list {
			if i > 0 {
				b.WriteString(m.styled(" │ ", dim))
			}
			text := m.inline(cell, style)
			b.WriteString(text)
			if i < len(list)-1 {
				b.WriteString(strings.Repeat(" ", max(0, wide[i]-columns(text))))
			}
		}
		lines = append(lines, b.String())
	}
	return lines
}

// cellsOf splits a row at the bars that are not escaped and not in code.
func cellsOf(row string) (list []string) {
	row = strings.TrimPrefix(strings.TrimSpace(row), "|")
	begin, code := 0, false
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++
		case '`':
			code = !code && strings.Contains(row[i+1:], "`")
		case '|':
			if !code {
				list = append(list, strings.TrimSpace(row[begin:i]))
				begin = i + 1
			}
		}
	}
	if last := strings.TrimSpace(row[begin:]); last != "" {
		list = append(list, last)
	}
	return list
}

// maxStyled is the number of bytes of the longest line whose emphasis is looked for: the
// work may grow with the square of the length.
const maxStyled = 16 << 10

// inline styles emphasis, code and links of a line, all of it in the given style too.
func (m *markdown) inline(s, style string) string {
	if len(s) > maxStyled {
		return m.styled(s, style)
	}
	var b strings.Builder
	plain := 0
	flush := func(to int) {
		b.WriteString(m.styled(s[plain:to], style))
	}
	for i := 0; i < len(s); {
		text, n := m.span(s, i, style)
		if n == 0 {
			i++
			continue
		}
		flush(i)
		b.WriteString(text)
		i += n
		plain = i
	}
	flush(len(s))
	return b.String()
}

// span renders the emphasis, code or link at a place of a line, and returns how long it
// is, or 0 if there is none.
func (m *markdown) span(s string, at int, style string) (text string, n int) {
	with := func(more string) string { return strings.TrimPrefix(style+";"+more, ";") }
	rest := s[at:]
	switch rest[0] {
	case '\\':
		if len(rest) > 1 && strings.ContainsRune("\\`*_{}[]()#+-.!|>~<", rune(rest[1])) {
			return m.styled(rest[1:2], style), 2
		}
	case '`':
		ticks := len(rest) - len(strings.TrimLeft(rest, "`"))
		mark := rest[:ticks]
		if end := closing(rest[ticks:], mark); end >= 0 {
			code := rest[ticks : ticks+end]
			if !m.colour {
				return rest[:2*ticks+end], 2*ticks + end
			}
			return m.styled(code, with(cyan)), 2*ticks + end
		}
		return m.styled(mark, style), ticks
	case '*', '_', '~':
		for _, e := range []struct{ mark, style string }{{"***", bold + ";" + italic}, {"**", bold}, {"__", bold}, {"~~", struck}, {"*", italic}, {"_", italic}} {
			if inner, ok := emphasis(s, at, e.mark); ok {
				if !m.colour {
					return e.mark + m.inline(inner, "") + e.mark, len(inner) + 2*len(e.mark)
				}
				return m.inline(inner, with(e.style)), len(inner) + 2*len(e.mark)
			}
		}
		run := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
		return m.styled(rest[:run], style), run
	case '[':
		if label, url, n := linked(rest); n > 0 {
			if label == url {
				return m.link(m.styled(url, with(under)), url), n
			}
			return m.link(m.inline(label, with(under)), url) + m.styled(" ("+url+")", with(dim)), n
		}
	case 'h', '<':
		bare := strings.TrimPrefix(rest, "<")
		if at > 0 && rest[0] == 'h' {
			if before, _ := utf8.DecodeLastRuneInString(s[:at]); unicode.IsLetter(before) || unicode.IsDigit(before) {
				return "", 0
			}
		}
		if url := urls.FindString(bare); url != "" {
			if rest[0] == '<' {
				if !strings.HasPrefix(bare[len(url):], ">") {
					return "", 0
				}
				return m.link(m.styled(url, with(under)), url), len(url) + 2
			}
			url = strings.TrimRight(url, ".,;:!?'\"*_)")
			return m.link(m.styled(url, with(under)), url), len(url)
		}
	}
	return "", 0
}

// urls fits an address. It has only characters that cannot end the sequence of a link.
var urls = lazyregexp.New(`^https?://[!#-;=?-_a-z~]+`)

// link makes a text a link of the terminal.
func (m *markdown) link(text, url string) string {
	if !m.colour || urls.FindString(url) != url {
		return text
	}
	return "\x1b]8;;" + url + "\x1b\\" + text + "\x1b]8;;\x1b\\"
}

// linked splits [label](url).
func linked(s string) (label, url string, n int) {
	end := strings.Index(s, "](")
	if end < 1 || strings.Contains(s[1:end], "[") {
		return "", "", 0
	}
	rest := s[end+2:]
	stop := strings.IndexByte(rest, ')')
	if stop < 1 || strings.ContainsAny(rest[:stop], " (") {
		return "", "", 0
	}
	return s[1:end], rest[:stop], end + 2 + stop + 1
}

// closing returns where exactly these ticks end a code span.
func closing(s, ticks string) int {
	for at := 0; ; {
		i := strings.Index(s[at:], ticks)
		if i < 0 {
			return -1
		}
		i += at
		end := i + len(ticks)
		if end == len(s) || s[end] != '`' {
			return i
		}
		at = end + len(s[end:]) - len(strings.TrimLeft(s[end:], "`"))
	}
}

// emphasis returns the text between two marks, if it is emphasis: it does not begin or end
// with a blank, and an underscore does not stand in a word.
func emphasis(s string, at int, mark string) (inner string, ok bool) {
	rest, found := strings.CutPrefix(s[at:], mark)
	if !found || rest == "" || rest[0] == ' ' || rest[0] == mark[0] {
		return "", false
	}
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	if mark[0] == '_' {
		if before, _ := utf8.DecodeLastRuneInString(s[:at]); at > 0 && inWord(before) {
			return "", false
		}
	}
	for from := 1; from < len(rest); {
		i := strings.Index(rest[from:], mark)
		if i < 0 {
			return "", false
		}
		end := from + i
		run := len(rest[end:]) - len(strings.TrimLeft(rest[end:], mark[:1]))
		after, _ := utf8.DecodeRuneInString(rest[end+run:])
		switch {
		case run != len(mark) && !(run == 3 && len(mark) < 3), rest[end-1] == ' ', rest[end-1] == '\\',
			mark[0] == '_' && end+run < len(rest) && inWord(after):
			from = end + run
			continue
		case run == 3: // the inner emphasis ends first
			end += 3 - len(mark)
		}
		return rest[:end], true
	}
	return "", false
}
