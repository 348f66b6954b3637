// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

const (
	maxMarkdown  = 8 << 20 // bytes of Markdown per page
	maxQuoting   = 8       // nested lists and quotes that are shown as such
	maxColumns   = 100     // columns of a table
	maxLinkBytes = 2 << 10 // bytes of a URL that is shown
	checkNodes   = 1 << 10 // nodes between two checks of the context
)

// markdown converts a page to Markdown in one pass. The result is meant for a
// model to read, not to be rendered, so text is not escaped. Each byte of the page
// is looked at a constant number of times, and the output is bounded.
type markdown struct {
	ctx   context.Context
	nodes int
	base  *url.URL

	b    strings.Builder
	full bool // maxMarkdown is reached

	breaks int      // line ends to write before the next text
	space  bool     // a space to write before the next text
	opened []string // marks to write before the next text
	nests  []nest   // the enclosing lists and quotes
	inline int      // > 0 inside an element that stays on one line
	link   bool     // inside a link
	broke  bool     // a block inside a link or a line did not get its own line
	cell   bool     // inside a table cell
}

// nest holds what the lines of a list item or a quote begin with.
type nest struct {
	first, rest string
	begun       bool // first was written
}

func newMarkdown(ctx context.Context, base *url.URL) *markdown {
	return &markdown{ctx: ctx, base: base}
}

// done returns the Markdown.
func (m *markdown) done() (string, error) {
	if err := m.ctx.Err(); err != nil {
		return "", err
	}
	return m.b.String(), nil
}

func (m *markdown) write(s string) {
	if m.b.Len()+len(s) > maxMarkdown {
		m.full = true
	}
	if !m.full {
		m.b.WriteString(s)
	}
}

// block makes the following text begin n line ends further on: 1 means a new
// line, 2 leaves an empty line between.
func (m *markdown) block(n int) {
	if m.inline > 0 || m.linking() {
		m.space = true
		m.broke = true
		return
	}
	if k := len(m.nests); k > 0 && !m.nests[k-1].begun {
		n = min(n, 1)
	}
	m.breaks = max(m.breaks, n)
	m.space = false
}

// linking reports whether the text of a link has begun. A link cannot contain a
// new line.
func (m *markdown) linking() bool { return m.link && len(m.opened) == 0 }

// begin writes whatever is pending before text.
func (m *markdown) begin() {
	if m.b.Len() == 0 || m.breaks > 0 {
		m.newLine()
	} else if m.space {
		m.write(" ")
	}
	m.space = false
	for _, o := range m.opened {
		m.write(o)
	}
	m.opened = m.opened[:0]
}

// newLine ends the line, leaves empty ones, and begins the next.
func (m *markdown) newLine() {
	if m.b.Len() > 0 {
		for i := range m.breaks {
			m.write("\n")
			if i < m.breaks-1 {
				m.write(strings.TrimRight(m.prefix(), " "))
			}
		}
	}
	m.breaks = 0
	for i := range m.nests {
		if n := &m.nests[i]; n.begun {
			m.write(n.rest)
		} else {
			m.write(n.first)
			n.begun = true
		}
	}
}

// prefix returns what an empty line begins with.
func (m *markdown) prefix() string {
	var b strings.Builder
	for _, n := range m.nests {
		if n.begun {
			b.WriteString(n.rest)
		}
	}
	return b.String()
}

// word writes text unchanged.
func (m *markdown) word(s string) {
	if s != "" {
		m.begin()
		m.write(s)
	}
}

// text writes text with its white space collapsed.
func (m *markdown) text(s string) {
	for s != "" && !m.full {
		i := strings.IndexFunc(s, isBlank)
		if i < 0 {
			i = len(s)
		}
		if i > 0 {
			m.word(m.plain(s[:i]))
		}
		if s = s[i:]; s != "" {
			m.space = m.b.Len() > 0 && m.breaks == 0
			s = strings.TrimLeftFunc(s, isBlank)
		}
	}
}

// isBlank reports whether r is white space to collapse. That includes the
// no-break space, which only matters for layout.
func isBlank(r rune) bool { return unicode.IsSpace(r) }

// plain removes invisible characters.
func (m *markdown) plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u00ad' || r == '\u200b' || r == '\ufeff' || wording.TurnsText(r) {
			return -1
		}
		return r
	}, s)
	if m.cell {
		s = strings.ReplaceAll(s, "|", `\|`)
	}
	return s
}

// around writes the output of inner between two marks, or nothing if that output
// is empty.
func (m *markdown) around(before, after string, inner func()) {
	waiting := len(m.opened)
	m.opened = append(m.opened, before)
	inner()
	if len(m.opened) > waiting {
		m.opened = m.opened[:waiting]
		return
	}
	m.write(after)
}

func (m *markdown) children(n *html.Node) {
	for c := n.FirstChild; c != nil && !m.stopped(); c = c.NextSibling {
		m.node(c)
	}
}

// stopped reports whether the conversion should stop, because the context has
// ended or the output is full.
func (m *markdown) stopped() bool {
	m.nodes++
	if m.nodes%checkNodes == 0 && m.ctx.Err() != nil {
		m.full = true
	}
	return m.full
}

func (m *markdown) node(n *html.Node) {
	if n.Type == html.TextNode {
		m.text(n.Data)
		return
	}
	if skipped(n) {
		return
	}
	switch n.DataAtom {
	case atom.Head:
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		m.heading(n)
	case atom.Br:
		m.lineBreak()
	case atom.Hr:
		m.block(2)
		if m.inline == 0 && !m.link {
			m.word("---")
		}
		m.block(2)
	case atom.Strong:
		m.around("**", "**", func() { m.children(n) })
	case atom.Em:
		m.around("*", "*", func() { m.children(n) })
	case atom.Code, atom.Kbd, atom.Samp:
		m.code(textOf(n, -1))
	case atom.Pre, atom.Listing:
		m.pre(n)
	case atom.A:
		m.anchor(n)
	case atom.Img:
		m.image(n)
	case atom.Math:
		m.math(n)
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		m.list(n)
	case atom.Li:
		m.nested(1, "- ", "  ", n)
	case atom.Blockquote:
		m.nested(2, "> ", "> ", n)
	case atom.Dd:
		m.nested(1, ": ", "  ", n)
	case atom.Table:
		m.table(n)
	default:
		m.other(n)
	}
}

// other writes an element that has no mark of its own.
func (m *markdown) other(n *html.Node) {
	switch n.DataAtom {
	case atom.P, atom.Section, atom.Article, atom.Figure, atom.Dl, atom.Details, atom.Fieldset:
		m.block(2)
		m.children(n)
		m.block(2)
	case atom.Div, atom.Main, atom.Header, atom.Footer, atom.Aside, atom.Address, atom.Figcaption, atom.Summary,
		atom.Form, atom.Hgroup, atom.Legend, atom.Caption, atom.Tr, atom.Center, atom.Body, atom.Html:
		m.block(1)
		m.children(n)
		m.block(1)
	case atom.Dt:
		m.block(2)
		m.children(n)
		m.block(1)
	case atom.Td, atom.Th:
		m.space = true
		m.children(n)
		m.space = true
	default:
		m.children(n)
	}
}

func (m *markdown) heading(n *html.Node) {
	m.block(2)
	mark := strings.Repeat("#", int(n.Data[1]-'0')) + " "
	if m.inline > 0 || m.linking() {
		mark = ""
	}
	// If a link begins before the heading, the mark of the heading comes first.
	waiting := len(m.opened)
	m.opened = slices.Insert(m.opened, 0, mark)
	m.inline++
	m.children(n)
	m.inline--
	if len(m.opened) > waiting {
		m.opened = m.opened[1:]
	}
	m.block(2)
}

func (m *markdown) lineBreak() {
	if m.inline > 0 || m.link {
		m.space = true
		return
	}
	m.block(min(m.breaks+1, 2))
}

// code writes text between as many backticks as necessary.
func (m *markdown) code(s string) {
	s = m.plain(oneLine(s))
	if s == "" {
		return
	}
	fence := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	m.word(fence + s + fence)
}

// longestRun returns the length of the longest run of backticks.
func longestRun(s string) (longest int) {
	run := 0
	for i := range len(s) {
		if s[i] == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}

// pre writes a block of code with its lines unchanged.
func (m *markdown) pre(n *html.Node) {
	code := strings.Trim(wording.Showable(preText(n)), "\n")
	if m.inline > 0 || m.link {
		m.code(code)
		return
	}
	if strings.TrimSpace(code) == "" {
		return
	}
	fence := strings.Repeat("`", max(longestRun(code)+1, 3))
	m.block(2)
	m.word(fence + language(n))
	for line := range strings.SplitSeq(code, "\n") {
		if m.full {
			return
		}
		m.breaks = 1
		m.newLine()
		m.write(strings.TrimRight(line, " \t"))
	}
	m.breaks = 1
	m.word(fence)
	m.block(2)
}

// preText returns the text of a node with its white space.
func preText(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode && !skipped(d.Parent):
			b.WriteString(d.Data)
		case d.DataAtom == atom.Br:
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// language finds the language of a code block in the class names around it.
func language(pre *html.Node) string {
	for _, n := range []*html.Node{pre, pre.FirstChild, pre.Parent} {
		if n == nil {
			continue
		}
		for class := range strings.FieldsSeq(attr(n, "class")) {
			for _, prefix := range []string{"language-", "lang-", "highlight-source-"} {
				if l, ok := strings.CutPrefix(class, prefix); ok && len(l) <= 20 {
					return languageName(l)
				}
			}
		}
	}
	return ""
}

// languageName keeps letters, digits and the characters used in language names.
func languageName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("+#-_.", r)) {
			return r
		}
		return -1
	}, s)
}

// anchor writes a link, or only its text if the link leads nowhere else.
func (m *markdown) anchor(n *html.Node) {
	href := strings.TrimSpace(attr(n, "href"))
	if strings.HasPrefix(href, "#") {
		switch strings.TrimSpace(textOf(n, 8)) {
		case "", "#", "¶", "§", "🔗":
			return // a link of a heading to itself
		}
	}
	to := m.absolute(href)
	if to == "" || m.link || strings.HasPrefix(href, "#") {
		m.children(n)
		return
	}
	m.broke = false
	m.around("[", "]("+to+")", func() {
		m.link = true
		m.children(n)
		m.link = false
	})
	if m.broke {
		m.block(1)
	}
}

// absolute returns the URL that a reference means, or "" if a tool could not read
// it.
func (m *markdown) absolute(ref string) string {
	ref = strings.TrimSpace(ref)
	if ref == "" || len(ref) > maxLinkBytes {
		return ""
	}
	u, err := m.base.Parse(ref)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto", "ftp", "tel":
	default:
		return ""
	}
	s := linkSafe.Replace(u.String())
	if len(s) > 2*maxLinkBytes {
		return ""
	}
	return s
}

// linkSafe escapes the characters that would end the link around a URL.
var linkSafe = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "|", "%7C", "\n", "", "\t", "")

func (m *markdown) image(n *html.Node) {
	alt := m.plain(oneLine(attr(n, "alt")))
	src := m.absolute(attr(n, "src"))
	switch {
	case src != "":
		m.word("![" + alt + "](" + src + ")")
	case alt != "":
		m.word(alt)
	}
}

// math writes the source of a formula, if the page contains it.
func (m *markdown) math(n *html.Node) {
	if alt := oneLine(attr(n, "alttext")); alt != "" {
		m.word("$" + m.plain(alt) + "$")
		return
	}
	m.children(n)
}

// nested writes an element whose lines begin with a mark.
func (m *markdown) nested(gap int, first, rest string, n *html.Node) {
	m.block(gap)
	if m.inline > 0 || m.link || len(m.nests) >= maxQuoting {
		m.children(n)
		m.block(gap)
		return
	}
	m.nests = append(m.nests, nest{first: first, rest: rest})
	m.children(n)
	m.nests = m.nests[:len(m.nests)-1]
	m.block(gap)
}

func (m *markdown) list(n *html.Node) {
	gap := 2
	if within(n, atom.Li) {
		gap = 1
	}
	m.block(gap)
	number, err := strconv.Atoi(attr(n, "start"))
	if err != nil || number < 0 || number > 1_000_000 {
		number = 1
	}
	for c := n.FirstChild; c != nil && !m.stopped(); c = c.NextSibling {
		if c.DataAtom != atom.Li || n.DataAtom != atom.Ol || skipped(c) {
			m.node(c)
			continue
		}
		mark := strconv.Itoa(number) + ". "
		m.nested(1, mark, strings.Repeat(" ", len(mark)), c)
		number++
	}
	m.block(gap)
}
