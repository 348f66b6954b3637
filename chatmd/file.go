// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"slices"
	"strings"
)

// File is a parsed file with its imports. It is immutable and safe for concurrent
// use.
type File struct {
	// Name is the name passed to Parse or Load.
	Name string
	// Config is the first config element, or nil.
	Config *Config
	// Tools are the tool declarations, in order.
	Tools []*Tool
	// Elements are all elements of the file's own top level, in order. They do not
	// include the elements of imported files.
	Elements []Element
	// Imports are the files that were imported, in the order of reading.
	Imports []Source
	// Warnings are problems that did not prevent reading the file.
	Warnings ErrorList

	src     string
	source  *source
	root    *node
	entries []entry
	err     error
}

// Element is an element in the form that it has in its file.
type Element struct {
	Tag string
	// Attrs are the attributes as given. The caller must not change them.
	Attrs []Attr
	// File is the name of the file, and Base its identity: see [Source]. Base is ""
	// for the main file.
	File, Base string
	Position
	// End is the offset after the element.
	End int
}

// Value returns the value of the named attribute, or "".
func (e *Element) Value(name string) string { return (&node{attrs: e.Attrs}).value(name) }

// Flag reports whether the named attribute is present and not "false".
func (e *Element) Flag(name string) bool { return (&node{attrs: e.Attrs}).flag(name) }

// Parse reads a file, but not its imports: Items of a file with imports returns an
// error; see [Load]. The error is an [ErrorList] with all problems of the file, both
// mistakes and uses of unsupported features; [ErrNotBuilt] distinguishes the two.
// The File is never nil: if there is an error, it holds everything that could be
// read, and its Items returns that error. The name is only used in messages.
func Parse(name string, src []byte) (*File, error) {
	f, p := parseFile(name, src)
	return f, f.compile(p.errs, p.warnings)
}

func parseFile(name string, src []byte) (*File, *parser) {
	f := &File{Name: name, src: string(src)}
	f.source = &source{name: name, text: f.src}
	root, p := parseTree(f.source, "")
	f.root = root
	return f, p
}

// compile interprets the parsed text.
func (f *File) compile(errs, warnings ErrorList) error {
	c := &compiler{file: f, errs: errs, warnings: warnings}
	c.run()
	c.errs = c.errs.withoutEcho()
	c.errs.locate()
	c.warnings.locate()
	f.Warnings = c.warnings
	f.err = c.errs.err()
	return f.err
}

// tree returns the parsed text. A File that was not made by this package has none.
func (f *File) tree() *node {
	if f.root == nil {
		return &node{kind: element, src: new(source)}
	}
	return f.root
}

// unedited returns edit, or if it is nil a function that replaces nothing.
func unedited(edit func(e Element, a Attr) (string, bool)) func(e Element, a Attr) (string, bool) {
	if edit != nil {
		return edit
	}
	return func(Element, Attr) (string, bool) { return "", false }
}

// Source returns the text of the main file.
func (f *File) Source() string { return f.src }

// Rewrite returns the main file's text with attribute values replaced. It calls edit
// for every attribute of every element, including nested ones; edit returns the new
// value and whether to replace the old one; if edit is nil, nothing is replaced. Nothing else changes, so a file can be
// copied to another folder with its relative sources adjusted.
func (f *File) Rewrite(edit func(e Element, a Attr) (string, bool)) string {
	return f.tree().rewritten(locators{}, unedited(edit))
}

// Declarations returns the first config element and the tools of the file and its
// imports, each on its own lines, with attribute values replaced as by
// [File.Rewrite]. It does not include messages, comments and imports.
func (f *File) Declarations(edit func(e Element, a Attr) (string, bool)) string {
	var b strings.Builder
	where := locators{}
	edit = unedited(edit)
	configured := false
	var walk func(list []*node)
	walk = func(list []*node) {
		for _, n := range list {
			switch {
			case n.kind != element:
			case n.tag == "import":
				walk(n.nodes)
			case n.tag == "config" && !configured, n.tag == "tool":
				configured = configured || n.tag == "config"
				b.WriteString(n.rewritten(where, edit) + "\n")
			}
		}
	}
	walk(f.tree().nodes)
	return b.String()
}

// rewritten returns the text of a node with attribute values replaced.
func (n *node) rewritten(where locators, edit func(e Element, a Attr) (string, bool)) string {
	var b strings.Builder
	done := n.start
	n.elements(func(k *node) {
		if k.src != n.src {
			return // imported
		}
		b.WriteString(n.src.text[done:k.start])
		done = k.start
		if len(k.attrs) > 0 {
			done = k.attrsEnd()
			b.WriteString(k.edited(where, edit, done))
		}
	})
	b.WriteString(n.src.text[done:n.end])
	return b.String()
}

// attrsEnd returns the offset after the last attribute.
func (n *node) attrsEnd() int {
	last := n.attrs[len(n.attrs)-1]
	return max(last.to, last.start+len(last.Name))
}

// edited returns the beginning of an element, at least its tag, with attribute
// values replaced.
func (n *node) edited(where locators, edit func(e Element, a Attr) (string, bool), end int) string {
	var b strings.Builder
	src, done := n.src.text, n.start
	e := n.element(where)
	for _, a := range n.attrs {
		value, ok := edit(e, a)
		if !ok {
			continue
		}
		from, to := a.from, a.to
		if a.Bare {
			from, to = a.start, a.start+len(a.Name)
		}
		b.WriteString(src[done:from])
		if a.Bare {
			b.WriteString(a.Name + "=")
		}
		b.Write(appendQuoted(nil, value))
		done = to
	}
	b.WriteString(src[done:end])
	return b.String()
}

// Copying describes the changes in a copy of a file. Its functions are also called for
// elements of imported files. A function that is nil changes nothing.
type Copying struct {
	// Attr returns the new value of an attribute, and whether to replace the old one.
	Attr func(e Element, a Attr) (string, bool)
	// Element returns the replacement of an element, and whether to replace it.
	Element func(e Element) (string, bool)
	// Bound reports whether the meaning of an imported file's element depends on the
	// main file. Then the import is replaced in the copy by the imported content.
	Bound func(e Element) bool
}

// Copy returns the main file's text with the changes of c. Imports stay, unless
// their content is bound to the file.
func (f *File) Copy(c Copying) string {
	c.Attr = unedited(c.Attr)
	if c.Element == nil {
		c.Element = func(Element) (string, bool) { return "", false }
	}
	if c.Bound == nil {
		c.Bound = func(Element) bool { return false }
	}
	w := copier{Copying: c, where: locators{}}
	w.list(f.tree().nodes)
	return w.b.String()
}

// copier writes a copy.
type copier struct {
	Copying
	where locators
	b     strings.Builder
}

func (c *copier) list(nodes []*node) {
	for _, n := range nodes {
		c.node(n)
	}
}

func (c *copier) node(n *node) {
	if n.kind != element {
		c.b.WriteString(n.src.text[n.start:n.end])
		return
	}
	if text, ok := c.Element(n.element(c.where)); ok {
		c.b.WriteString(text)
		return
	}
	if n.tag == "import" && n.read && slices.ContainsFunc(n.nodes, c.bound) {
		for _, k := range n.nodes {
			if k.kind != text || k.text != byteOrderMark {
				c.node(k)
			}
		}
		return
	}
	if n.tag == "import" || len(n.nodes) == 0 {
		c.b.WriteString(n.edited(c.where, c.Attr, n.end))
		return
	}
	c.b.WriteString(n.edited(c.where, c.Attr, n.nodes[0].start))
	c.list(n.nodes)
	c.b.WriteString(n.src.text[n.nodes[len(n.nodes)-1].end:n.end])
}

// bound reports whether any element in n is bound.
func (c *copier) bound(n *node) bool {
	return n.kind == element && (c.Bound(n.element(c.where)) || slices.ContainsFunc(n.nodes, c.bound))
}

func (n *node) element(where locators) Element {
	return Element{
		Tag: n.tag, Attrs: slices.Clip(n.attrs), File: n.src.name, Base: n.src.base,
		Position: where.at(n.src, n.start), End: n.end,
	}
}
