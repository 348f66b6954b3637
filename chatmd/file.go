// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"slices"
	"strings"
)

// File is a file that has been read, with what it imports. It does not change
// and may be used from several goroutines.
type File struct {
	// Name is the name that Parse or Load was given.
	Name string
	// Config is the first config element, nil when there is none.
	Config *Config
	// Tools are the tool declarations, in their order.
	Tools []*Tool
	// Elements are all elements of the file's own top level, in their order.
	// What an import element brings is not among them.
	Elements []Element
	// Imports are the files that were imported, in the order of reading.
	Imports []Source
	// Warnings are remarks on what was read all the same.
	Warnings ErrorList

	src     string
	source  *source
	root    *node
	entries []entry
	err     error
}

// Element is an element as it stands in its file.
type Element struct {
	Tag string
	// Attrs are the attributes as given. They are not to be changed.
	Attrs []Attr
	// File is the name of the file, Base what tells it from others: see
	// [Source]. Base is "" for the one that is read.
	File, Base string
	Position
	// End is the offset after the element.
	End int
}

// Value returns the value of the named attribute, or "".
func (e *Element) Value(name string) string { return (&node{attrs: e.Attrs}).value(name) }

// Flag reports whether the named attribute is there and not "false".
func (e *Element) Flag(name string) bool { return (&node{attrs: e.Attrs}).flag(name) }

// Parse reads a file, but not what it imports: its Items returns an error where
// there are imports; see [Load]. The error is an [ErrorList] with all that is
// wrong with the file, mistakes and uses of features that are not built yet;
// [ErrNotBuilt] tells the two apart. The File is never nil: with an error it
// holds what could be read, and its Items returns that error. The name is used
// in messages only.
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

// compile reads the meaning of the parsed text.
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

// Source returns the text of the file itself.
func (f *File) Source() string { return f.src }

// Rewrite returns the file's own text with attribute values replaced. It calls
// edit for every attribute of every element, nested ones included; edit returns
// the new value and whether there is one. Nothing else changes, so a file can
// be copied to another folder with its relative sources adjusted.
func (f *File) Rewrite(edit func(e Element, a Attr) (string, bool)) string {
	return f.root.rewritten(locators{}, edit)
}

// Declarations returns what the file and its imports declare, the first config
// and the tools, each on lines of its own, with attribute values replaced as by
// [File.Rewrite]. Messages, comments and imports are not in it.
func (f *File) Declarations(edit func(e Element, a Attr) (string, bool)) string {
	var b strings.Builder
	where := locators{}
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
	walk(f.root.nodes)
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

// attrsEnd is the place after the last attribute.
func (n *node) attrsEnd() int {
	last := n.attrs[len(n.attrs)-1]
	return max(last.to, last.start+len(last.Name))
}

// edited returns the beginning of an element, its tag at least, with attribute
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

// Copying says what is different in a copy of a file. All of its functions are
// there; they are asked about elements of imported files too.
type Copying struct {
	// Attr returns the new value of an attribute, and whether there is one.
	Attr func(e Element, a Attr) (string, bool)
	// Element returns what replaces an element, and whether something does.
	Element func(e Element) (string, bool)
	// Bound reports whether an element of an imported file means what it does
	// only because of the file that is read. What was imported stands in the
	// copy itself then.
	Bound func(e Element) bool
}

// Copy returns the file's own text with what c makes different. Imports stay,
// unless what they bring is bound to the file.
func (f *File) Copy(c Copying) string {
	w := copier{Copying: c, where: locators{}}
	w.list(f.root.nodes)
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

// bound reports whether something in an imported file is.
func (c *copier) bound(n *node) bool {
	return n.kind == element && (c.Bound(n.element(c.where)) || slices.ContainsFunc(n.nodes, c.bound))
}

func (n *node) element(where locators) Element {
	return Element{
		Tag: n.tag, Attrs: slices.Clip(n.attrs), File: n.src.name, Base: n.src.base,
		Position: where.at(n.src, n.start), End: n.end,
	}
}
