// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// lineWidth is the maximum length of a tag on one line. In a longer tag the
// attributes keep their own lines.
const lineWidth = 100

// flags are the attributes that are written as bare names when they are on.
const flags = "local strip markdown strict show_tool_call collapse_reads"

// Format returns the main file's text in a uniform layout: top-level elements and
// comments start on their own lines with at most one empty line between them,
// attribute values are quoted, and tags without content are self-closing. The
// contents of messages, fences and comments do not change, so the items are the
// same. Formatting is idempotent.
//
// A file with mistakes is not formatted: Format returns the error of Parse.
func (f *File) Format() (string, error) {
	if list, ok := f.err.(ErrorList); ok {
		list = slices.DeleteFunc(slices.Clone(list), func(e *Error) bool { return errors.Is(e, ErrNotBuilt) })
		if err := list.err(); err != nil {
			return "", f.err
		}
	} else if f.err != nil {
		return "", f.err
	}
	w := &formatter{eol: "\n"}
	if i := strings.LastIndexByte(f.src, '\n'); i > 0 && f.src[i-1] == '\r' {
		w.eol = "\r\n" // the line end of the last line, so that a second pass gives the same result
	}
	root := f.tree()
	w.list(root.nodes, "")
	if w.b.Len() > 0 {
		w.b.WriteString(w.eol)
	}
	out := w.b.String()
	again, _ := parseTree(&source{text: out}, "")
	if !equalNodes(root, again) {
		return "", errors.New(f.Name + ": formatting would change the meaning of the file; the file is not changed")
	}
	return out, nil
}

// formatter writes a tree.
type formatter struct {
	b   strings.Builder
	eol string
}

// list writes the nodes of the top level, or of a tool, on their own lines.
func (w *formatter) list(nodes []*node, indent string) {
	lines := 2 // line ends since the previous node
	first := true
	for _, n := range nodes {
		if n.kind == text {
			lines += strings.Count(n.text, "\n")
			continue
		}
		switch {
		case first:
		case lines == 0 && n.kind == comment:
			w.b.WriteByte(' ')
		case lines > 1:
			w.b.WriteString(w.eol + w.eol + indent)
		default:
			w.b.WriteString(w.eol + indent)
		}
		w.node(n, indent)
		first, lines = false, 0
	}
}

func (w *formatter) node(n *node, indent string) {
	source := n.src.text[n.start:n.end]
	mode := n.mode()
	switch {
	case n.kind != element, mode == opaqueMode && !n.selfClosed:
		w.b.WriteString(source)
	case mode == emptyMode, n.selfClosed, mode == listMode && blank(n.nodes):
		w.open(n, "/>", indent)
	case mode == listMode && !strings.Contains(source, "\n") && utf8.RuneCountInString(w.row(n)) <= lineWidth:
		w.b.WriteString(w.row(n))
	case mode == listMode:
		w.open(n, ">", indent)
		w.b.WriteString(w.eol + indent + "  ")
		w.list(n.nodes, indent+"  ")
		w.b.WriteString(w.eol + indent + "</" + n.tag + ">")
	default:
		w.message(n)
	}
}

// row returns a tool with its content on one line.
func (w *formatter) row(n *node) string {
	row := formatter{eol: w.eol}
	row.open(n, ">", "")
	for _, k := range n.nodes {
		if k.kind != text {
			row.node(k, "")
		}
	}
	return row.b.String() + "</" + n.tag + ">"
}

// blank reports whether the nodes hold only white space.
func blank(nodes []*node) bool {
	return !slices.ContainsFunc(nodes, func(n *node) bool { return n.kind != text || strings.Trim(n.text, space) != "" })
}

// message writes an element that holds text. Surrounding white space is not part of
// the text.
func (w *formatter) message(n *node) {
	w.open(n, ">", "")
	var inner formatter
	inner.eol = w.eol
	inner.content(n.nodes)
	body := inner.b.String()
	head := len(body) - len(strings.TrimLeft(body, space))
	ownLines := strings.Contains(body[:head], "\n")
	body = strings.Trim(body, space)
	switch {
	case body == "" && ownLines:
		w.b.WriteString(w.eol)
	case ownLines || strings.Contains(body, "\n"):
		w.b.WriteString(w.eol + body + w.eol)
	default:
		w.b.WriteString(body)
	}
	w.b.WriteString("</" + n.tag + ">")
}

// content writes the content of a message. Only tags are formatted.
func (w *formatter) content(nodes []*node) {
	for _, n := range nodes {
		switch mode := n.mode(); {
		case n.kind != element:
			w.b.WriteString(n.src.text[n.start:n.end])
		case mode == emptyMode || n.selfClosed:
			w.open(n, "/>", "")
		default:
			w.open(n, ">", "")
			w.content(n.nodes)
			w.b.WriteString("</" + n.tag + ">")
		}
	}
}

// open writes an opening tag. In a tag that is too long for a line, attributes that
// were on their own lines stay there.
func (w *formatter) open(n *node, end, indent string) {
	list := make([]string, len(n.attrs))
	width := len(n.tag)
	for i := range n.attrs {
		list[i] = formatAttr(n.src.text, &n.attrs[i])
		width += 1 + utf8.RuneCountInString(list[i])
	}
	w.b.WriteString("<" + n.tag)
	at := n.start
	for i, a := range n.attrs {
		if width > lineWidth && strings.Contains(n.src.text[at:a.start], "\n") {
			w.b.WriteString(w.eol + indent + "  " + list[i])
		} else {
			w.b.WriteString(" " + list[i])
		}
		at = max(a.to, a.start+len(a.Name))
	}
	w.b.WriteString(end)
}

func formatAttr(src string, a *Attr) string {
	switch {
	case a.Bare, isFlag(a) && a.Value != "false":
		return a.Name
	case src[a.from] == '"' || src[a.from] == '\'':
		return a.Name + "=" + src[a.from:a.to]
	}
	return a.Name + "=" + string(appendQuoted(nil, a.Value))
}

// isFlag reports whether the attribute is a flag whose value only says that it is on
// or off.
func isFlag(a *Attr) bool {
	for name := range strings.FieldsSeq(flags) {
		if name == a.Name {
			return a.Value == "" || a.Value == "true" || a.Value == "false" || a.Value == name
		}
	}
	return false
}

// equalNodes reports whether two trees have the same meaning: the same elements with
// the same attributes, texts and comments in the same order.
func equalNodes(a, b *node) bool {
	if a.kind != b.kind || a.tag != b.tag || !slices.EqualFunc(a.attrs, b.attrs, equalAttrs) {
		return false
	}
	if !slices.EqualFunc(comments(a), comments(b), func(x, y *node) bool {
		return x.src.text[x.start:x.end] == y.src.text[y.start:y.end]
	}) {
		return false
	}
	switch mode := a.mode(); {
	case mode == opaqueMode:
		return a.src.text[a.start:a.end] == b.src.text[b.start:b.end] || a.selfClosed && b.selfClosed
	case a.tag == "" || mode == listMode:
		return slices.EqualFunc(elementsOf(a), elementsOf(b), equalNodes)
	}
	return slices.EqualFunc(body(a), body(b), equalParts)
}

func equalAttrs(a, b Attr) bool {
	on := func(a *Attr) bool { return a.Bare || isFlag(a) && a.Value != "false" }
	return a.Name == b.Name && (a.Value == b.Value || on(&a) && on(&b))
}

func equalParts(a, b part) bool {
	if (a.node == nil) != (b.node == nil) || a.node != nil && !equalNodes(a.node, b.node) {
		return false
	}
	return slices.EqualFunc(a.text, b.text, func(x, y piece) bool {
		return x.text == y.text && (x.doc == nil) == (y.doc == nil) && (x.doc == nil || equalNodes(x.doc, y.doc))
	})
}

func elementsOf(n *node) (list []*node) {
	for _, k := range n.nodes {
		if k.kind == element {
			list = append(list, k)
		}
	}
	return list
}

func comments(n *node) (list []*node) {
	for _, k := range n.nodes {
		if k.kind == comment {
			list = append(list, k)
		}
	}
	return list
}
