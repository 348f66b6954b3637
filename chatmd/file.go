// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"slices"
	"strings"
)

// File is a file that has been read. It does not change and may be used from
// several goroutines.
type File struct {
	// Name is the name that Parse was given.
	Name string
	// Config is the first config element, nil when there is none.
	Config *Config
	// Tools are the tool declarations, in their order.
	Tools []*Tool
	// Elements are all elements of the top level, in their order.
	Elements []Element
	// Warnings are remarks on what was read all the same.
	Warnings ErrorList

	src     string
	root    *node
	entries []entry
	err     error
}

// Element is an element as it stands in the file.
type Element struct {
	Tag   string
	Attrs []Attr
	Position
	// End is the offset behind the element.
	End int
}

// Value returns the value of the named attribute, or "".
func (e *Element) Value(name string) string { return (&node{attrs: e.Attrs}).value(name) }

// Flag reports whether the named attribute is there and not "false".
func (e *Element) Flag(name string) bool { return (&node{attrs: e.Attrs}).flag(name) }

// Parse reads a file. The error is an [ErrorList] with all that is wrong with
// it, mistakes and uses of features that are not built yet; [ErrNotBuilt] tells
// the two apart. The File is never nil: with an error it holds what could be
// read, and its Items returns that error. The name is used in messages only.
func Parse(name string, src []byte) (*File, error) {
	f := &File{Name: name, src: string(src)}
	root, p := parseTree(f.src)
	f.root = root
	c := &compiler{file: f, errs: p.errs, warnings: p.warnings}
	c.run()
	c.errs.locate(name, f.src)
	c.warnings.locate(name, f.src)
	f.Warnings = c.warnings
	f.err = c.errs.err()
	return f, f.err
}

// Source returns the text of the file.
func (f *File) Source() string { return f.src }

// Rewrite returns the file's text with attribute values replaced. It calls edit
// for every attribute of every element, nested ones included; edit returns the
// new value and whether there is one. Nothing else changes, so a file can be
// copied to another folder with its relative sources adjusted.
func (f *File) Rewrite(edit func(e Element, a Attr) (string, bool)) string {
	var b strings.Builder
	where := locator{src: f.src}
	done := 0
	f.root.elements(func(n *node) {
		e := n.element(&where)
		for _, a := range n.attrs {
			value, ok := edit(e, a)
			if !ok {
				continue
			}
			from, to := a.from, a.to
			if a.Bare {
				from, to = a.start, a.start+len(a.Name)
			}
			b.WriteString(f.src[done:from])
			if a.Bare {
				b.WriteString(a.Name + "=")
			}
			b.Write(appendQuoted(nil, value))
			done = to
		}
	})
	b.WriteString(f.src[done:])
	return b.String()
}

func (n *node) element(where *locator) Element {
	return Element{Tag: n.tag, Attrs: slices.Clone(n.attrs), Position: where.at(n.start), End: n.end}
}
