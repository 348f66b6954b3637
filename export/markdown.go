// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"html"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	gmtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Texts beyond these limits are shown verbatim, because the Markdown parser takes
// quadratic time for some texts.
const (
	maxMarkdown = 64 << 10 // bytes of a text
	maxNesting  = 100      // quotes and lists that one line opens
	maxMarks    = 3000     // marks of emphasis and links without a blank line between them
)

var markdownParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
})

// markdown returns a model's text as HTML. The result contains only the elements and
// attributes named in this file, whatever the text contains: HTML in the text
// becomes text, an image becomes a link, and only addresses of the web or of
// mailboxes become links. hide is applied again to each piece of text, because
// Markdown may join pieces to a secret. markdown returns false for text that should
// be shown verbatim.
func markdown(s string, hide func(string) string) (template.HTML, bool) {
	if len(s) > maxMarkdown || heavy(s) {
		return "", false
	}
	// The renderer shows hidden characters by name and checks decoded entities, so
	// neither can pass unseen.
	src := []byte(strings.ToValidUTF8(s, "\uFFFD"))
	m := &markdownWriter{src: src, hide: hide}
	m.children(markdownParser().Parse(gmtext.NewReader(src)))
	return template.HTML(m.out.String()), true
}

// heavy reports whether a text is too complex to have been written for readers.
func heavy(s string) bool {
	marks := 0
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			marks = 0
		case strings.Trim(line, line[:1]) == "" && strings.Contains("-*_=~.", line[:1]):
			// a horizontal rule
		case opens(line) > maxNesting:
			return true
		default:
			for _, c := range []byte(line) {
				if strings.IndexByte("*_[(<`", c) >= 0 {
					marks++
				}
			}
			if marks > maxMarks {
				return true
			}
		}
	}
	return false
}

// opens returns an upper bound for the quotes and lists that a line opens.
func opens(line string) (n int) {
	for _, c := range []byte(line) {
		switch {
		case c == ' ' || c == '\t' || c >= '0' && c <= '9':
		case strings.IndexByte(">-+*.)", c) >= 0:
			n++
		default:
			return n
		}
	}
	return n
}

type markdownWriter struct {
	src  []byte
	hide func(string) string
	out  strings.Builder
}

func (m *markdownWriter) children(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		m.node(c)
	}
}

// within writes the children of n inside an element.
func (m *markdownWriter) within(tag string, n ast.Node) {
	m.out.WriteString("<" + tag + ">")
	m.children(n)
	m.out.WriteString("</" + tag + ">")
}

func (m *markdownWriter) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Paragraph:
		m.within("p", n)
	case *ast.TextBlock:
		m.children(n)
	case *ast.Heading:
		m.within("h"+strconv.Itoa(min(n.Level+2, 6)), n)
	case *ast.Blockquote:
		m.within("blockquote", n)
	case *ast.List:
		m.list(n)
	case *ast.ListItem:
		m.within("li", n)
	case *ast.ThematicBreak:
		m.out.WriteString("<hr>")
	case *ast.CodeBlock:
		m.codeBlock(n.Lines())
	case *ast.FencedCodeBlock:
		m.codeBlock(n.Lines())
	case *ast.HTMLBlock:
		m.htmlBlock(n)
	default:
		m.inline(n)
	}
}

func (m *markdownWriter) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		m.run(n)
	case *ast.String:
		m.text(string(n.Value))
	case *ast.CodeSpan:
		m.out.WriteString("<code>")
		m.text(m.literal(n))
		m.out.WriteString("</code>")
	case *ast.Emphasis:
		m.within([]string{"em", "strong"}[min(n.Level, 2)-1], n)
	case *extast.Strikethrough:
		m.within("s", n)
	case *ast.Link:
		m.link(string(util.URLEscape(n.Destination, true)), func() { m.children(n) })
	case *ast.Image:
		m.link(string(util.URLEscape(n.Destination, true)), func() {
			m.out.WriteString("[image] ")
			m.children(n)
		})
	case *ast.AutoLink:
		m.autoLink(n)
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			s := n.Segments.At(i)
			m.text(string(s.Value(m.src)))
		}
	case *extast.TaskCheckBox:
		m.text(map[bool]string{true: "☑ ", false: "☐ "}[n.IsChecked])
	case *extast.Table:
		m.out.WriteString(`<div class="table"><table>`)
		m.children(n)
		m.out.WriteString("</table></div>")
	case *extast.TableHeader:
		m.out.WriteString("<thead><tr>")
		m.children(n)
		m.out.WriteString("</tr></thead>")
	case *extast.TableRow:
		m.within("tr", n)
	case *extast.TableCell:
		m.cell(n)
	default:
		m.children(n)
	}
}

func (m *markdownWriter) list(n *ast.List) {
	if !n.IsOrdered() {
		m.within("ul", n)
		return
	}
	m.out.WriteString("<ol")
	if n.Start != 1 {
		m.out.WriteString(` start="` + strconv.Itoa(n.Start) + `"`)
	}
	m.out.WriteString(">")
	m.children(n)
	m.out.WriteString("</ol>")
}

func (m *markdownWriter) cell(n *extast.TableCell) {
	tag := "td"
	if _, head := n.Parent().(*extast.TableHeader); head {
		tag = "th"
	}
	m.out.WriteString("<" + tag)
	switch n.Alignment {
	case extast.AlignRight:
		m.out.WriteString(` class="right"`)
	case extast.AlignCenter:
		m.out.WriteString(` class="center"`)
	}
	m.out.WriteString(">")
	m.children(n)
	m.out.WriteString("</" + tag + ">")
}

// codeBlock writes code, with diffs marked.
func (m *markdownWriter) codeBlock(lines *gmtext.Segments) {
	s := m.hide(string(lines.Value(m.src)))
	m.out.WriteString("<pre>\n") // the parser drops the first newline
	writeCode(&m.out, strings.TrimSuffix(s, "\n"))
	m.out.WriteString("</pre>")
}

// htmlBlock shows HTML as text.
func (m *markdownWriter) htmlBlock(n *ast.HTMLBlock) {
	s := string(n.Lines().Value(m.src))
	if n.HasClosure() {
		s += string(n.ClosureLine.Value(m.src))
	}
	m.out.WriteString("<pre>\n") // the parser drops the first newline
	m.text(strings.TrimSuffix(s, "\n"))
	m.out.WriteString("</pre>")
}

// run writes a text and the texts directly after it, because the parser splits texts
// at every character that could have a meaning.
func (m *markdownWriter) run(n *ast.Text) {
	if before, ok := n.PreviousSibling().(*ast.Text); ok && joins(before) {
		return // written with the previous text
	}
	var s strings.Builder
	for {
		value := n.Segment.Value(m.src)
		if !n.IsRaw() {
			value = resolve(value)
		}
		s.Write(value)
		if !joins(n) {
			break
		}
		next, ok := n.NextSibling().(*ast.Text)
		if !ok {
			break
		}
		n = next
	}
	m.text(s.String())
	switch {
	case n.HardLineBreak(), n.SoftLineBreak(): // models break lines deliberately
		m.out.WriteString("<br>\n")
	}
}

func joins(n *ast.Text) bool { return !n.HardLineBreak() && !n.SoftLineBreak() }

// resolve decodes escapes and entities in one pass, as Markdown requires: the result
// of an escape is not part of an entity.
func resolve(s []byte) []byte {
	var out []byte
	for len(s) > 0 {
		i := bytes.IndexAny(s, `\&`)
		if i < 0 {
			return append(out, s...)
		}
		out = append(out, s[:i]...)
		s = s[i:]
		if s[0] == '\\' {
			if len(s) > 1 && util.IsPunct(s[1]) {
				s = s[1:]
			}
			out, s = append(out, s[0]), s[1:]
			continue
		}
		end := bytes.IndexByte(s[:min(len(s), 40)], ';') + 1
		if end == 0 {
			end = 1
		}
		out = append(out, util.ResolveEntityNames(util.ResolveNumericReferences(s[:end]))...)
		s = s[end:]
	}
	return out
}

// literal returns the text in a code span.
func (m *markdownWriter) literal(n ast.Node) string {
	var s strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			s.WriteString(strings.ReplaceAll(string(t.Segment.Value(m.src)), "\n", " "))
		}
	}
	return s.String()
}

func (m *markdownWriter) text(s string) { writeText(&m.out, m.hide(s)) }

func (m *markdownWriter) autoLink(n *ast.AutoLink) {
	label := string(n.Label(m.src))
	to := string(util.URLEscape(n.URL(m.src), false))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(to), "mailto:") {
		to = "mailto:" + to
	}
	m.link(to, func() { m.text(label) })
}

// link writes label as a link. If the address is not allowed as a link, it writes
// the address after the label.
func (m *markdownWriter) link(to string, label func()) {
	to = m.hide(to)
	if !leadsOut(to) {
		label()
		if to != "" {
			m.out.WriteString(" (")
			m.text(shorten(to, 200))
			m.out.WriteString(")")
		}
		return
	}
	m.out.WriteString(`<a rel="noopener noreferrer" href="` + html.EscapeString(plain(to)) + `">`)
	label()
	m.out.WriteString("</a>")
}

// leadsOut reports whether an address belongs to the web or a mailbox.
func leadsOut(to string) bool {
	u, err := url.Parse(to)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "http", "https":
		return u.Host != ""
	case "mailto":
		return true
	}
	return false
}
