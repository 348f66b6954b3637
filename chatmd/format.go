// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// lineWidth is how long a tag on one line may be before its attributes keep the
// lines that a person gave them.
const lineWidth = 100

// flags are the attributes that are written as bare names when they are on.
const flags = "local strip markdown strict show_tool_call collapse_reads"

// Format returns the file's own text in one layout: elements and comments of
// the top level on lines of their own with at most one empty line between them,
// attributes in quotes, tags without content closed at once. What a message
// says, its fences and comments stay as they are, so the items are the same.
// Formatting what was formatted changes nothing.
//
// A file with mistakes is not formatted: the error is what Parse returned.
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
		w.eol = "\r\n" // as the last line ends, so that it is the same the next time
	}
	w.list(f.root.nodes, "")
	if w.b.Len() > 0 {
		w.b.WriteString(w.eol)
	}
	out := w.b.String()
	again, _ := parseTree(&source{text: out}, "")
	if !equalNodes(f.root, again) {
		return "", errors.New(f.Name + ": formatting would change what the file says; it is left as it is")
	}
	return out, nil
}

// formatter writes a tree.
type formatter struct {
	b   strings.Builder
	eol string
}

// list writes nodes on lines of their own: those of the top level, or of a tool.
func (w *formatter) list(nodes []*node, indent string) {
	lines := 2 // line ends since the node before
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

// row returns a tool with what stands in it on one line.
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

// blank reports whether there is nothing but white space.
func blank(nodes []*node) bool {
	return !slices.ContainsFunc(nodes, func(n *node) bool { return n.kind != text || strings.Trim(n.text, space) != "" })
}

// message writes an element that holds text. White space around the whole is
// no part of it.
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

// content writes what stands in a message: all as it is, but for tags.
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

// open writes an opening tag. One that is too long for a line keeps its
// attributes on lines of their own, where they were.
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

// isFlag reports whether the attribute is a flag, and its value one that says no
// more than that it is on or off.
func isFlag(a *Attr) bool {
	for name := range strings.FieldsSeq(flags) {
		if name == a.Name {
			return a.Value == "" || a.Value == "true" || a.Value == "false" || a.Value == name
		}
	}
	return false
}

// equalNodes reports whether two trees say the same: the same elements with the
// same attributes, texts and comments in the same order.
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
