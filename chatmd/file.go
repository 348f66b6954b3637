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
	// End is the offset behind the element.
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
	src, done := n.src.text, n.start
	n.elements(func(k *node) {
		if k.src != n.src {
			return // imported
		}
		e := k.element(where)
		for _, a := range k.attrs {
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
	})
	b.WriteString(src[done:n.end])
	return b.String()
}

// Replace returns the file's own text with whole elements replaced: those of
// messages, and of the top level, for which edit returns a text.
func (f *File) Replace(edit func(e Element) (string, bool)) string {
	var b strings.Builder
	where := locators{}
	done := 0
	f.root.elements(func(n *node) {
		if n.src != f.source || n.start < done {
			return
		}
		if text, ok := edit(n.element(where)); ok {
			b.WriteString(f.src[done:n.start])
			b.WriteString(text)
			done = n.end
		}
	})
	b.WriteString(f.src[done:])
	return b.String()
}

func (n *node) element(where locators) Element {
	return Element{
		Tag: n.tag, Attrs: slices.Clip(n.attrs), File: n.src.name, Base: n.src.base,
		Position: where.at(n.src, n.start), End: n.end,
	}
}
