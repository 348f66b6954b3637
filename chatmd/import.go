// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Limits on the imports of one file in total. The last two stop files that import
// each other repeatedly.
const (
	maxImportDepth = 32
	maxImports     = 1000
	maxImported    = 64 << 20
)

// Source is the text of a file.
type Source struct {
	// Name is the name in messages.
	Name string
	// Base identifies the file, for example by its absolute path: a file that imports
	// itself appears with the same Base again. The Refs of a file carry its Base.
	Base string
	// ID identifies the file if Base does not, because links give it several names. ""
	// means that Base does.
	ID   string
	Text []byte
}

// Importer reads the files that import elements name. Errors are reported at the
// place of the element.
type Importer interface {
	Import(ctx context.Context, ref Ref) (Source, error)
}

// ImporterFunc is a function that implements [Importer].
type ImporterFunc func(ctx context.Context, ref Ref) (Source, error)

// Import calls f. If f is nil, it returns an error.
func (f ImporterFunc) Import(ctx context.Context, ref Ref) (Source, error) {
	if f == nil {
		return Source{}, errors.New("the ImporterFunc is nil")
	}
	return f(ctx, ref)
}

// Load is like [Parse] but also reads all files that the file imports. Inside a
// message, an imported file is text of the message, including any message tags in
// it; at the top level it holds elements. Mistakes in imported files are reported
// with the files' names. If ctx is done, Load returns its error.
func Load(ctx context.Context, file Source, importer Importer) (*File, error) {
	f, p := parseFile(file.Name, file.Text)
	x := &expansion{ctx: ctx, file: f, importer: importer, id: cmp.Or(file.ID, file.Base), where: locators{}, errs: p.errs, warnings: p.warnings}
	if err := x.nodes(f.root); err != nil {
		f.err = err
		return f, err
	}
	return f, f.compile(x.errs, x.warnings)
}

// expansion is one pass over the imports of a file.
type expansion struct {
	ctx      context.Context
	file     *File
	importer Importer
	id       string // of the main file
	where    locators
	top      int // offset of the current element of the main file
	size     int
	full     bool // a limit was reached and reported

	errs     ErrorList
	warnings ErrorList
}

// nodes follows the imports of an element. It returns only the error of the context.
func (x *expansion) nodes(parent *node) error {
	seen := map[string]bool{}
	for _, n := range parent.nodes {
		if n.kind != element {
			continue
		}
		if n.src == x.file.source && parent == x.file.root {
			x.top = n.start
		}
		if n.tag == "import" && !x.namespace(n, seen) {
			continue
		}
		var err error
		if n.tag == "import" {
			err = x.follow(n, parent.tag)
		} else {
			err = x.nodes(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namespace reports a second import with the same namespace.
func (x *expansion) namespace(n *node, seen map[string]bool) bool {
	name := n.value("namespace")
	if name == "" || !seen[name] {
		seen[name] = true
		return true
	}
	x.fail(n, "a second <import> has the namespace "+excerpt(name), "", nil)
	return false
}

func (x *expansion) fail(n *node, message, hint string, cause error) {
	n.read = true // already reported
	x.errs = append(x.errs, &Error{src: n.src, offset: n.start, Text: n.excerpt(), Message: message, Hint: hint, Err: cause})
}

// leaveOrFail reports an import that is not followed. See [Leaver].
func (x *expansion) leaveOrFail(n *node, message string, cause error) {
	if n.left = leave(x.importer, n, x.where, message, "", cause); !n.left {
		x.fail(n, message, "", cause)
	}
}

// follow reads the file that an import names. tag is the tag of the enclosing
// element.
func (x *expansion) follow(n *node, tag string) error {
	if src := n.value("src"); src == "" || isURL(src) {
		return nil // reported elsewhere
	}
	if err := x.ctx.Err(); err != nil || x.full {
		n.read = true
		return err
	}
	got, err := x.importer.Import(x.ctx, refTo(n, x.where))
	switch {
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	case err != nil:
		x.leaveOrFail(n, "<import> cannot be read", err)
		return nil
	}
	src := &source{name: got.Name, base: got.Base, id: cmp.Or(got.ID, got.Base), text: string(got.Text), from: n.src, at: x.top, order: len(x.file.Imports) + 1}
	if problem := x.refuse(src); problem != nil {
		x.leaveOrFail(n, "<import> is not followed", problem)
		return nil
	}
	x.size += len(src.text)
	x.file.Imports = append(x.file.Imports, got)
	root, p := parseTree(src, tag)
	x.errs, x.warnings = append(x.errs, p.errs...), append(x.warnings, p.warnings...)
	n.nodes, n.read = root.nodes, true
	return x.nodes(root)
}

// refuse returns an error for a circular import or an exceeded limit.
func (x *expansion) refuse(src *source) error {
	names, depth := []string{src.name}, 0
	for at := src.from; at != nil; at = at.from {
		id := at.id
		if at.from == nil {
			id = x.id
		}
		names = append(names, at.name)
		if id == src.id && id != "" {
			return errors.New("the file imports itself: " + trail(names))
		}
		depth++
	}
	x.full = depth > maxImportDepth || len(x.file.Imports) >= maxImports || x.size+len(src.text) > maxImported
	switch {
	case depth > maxImportDepth:
		return fmt.Errorf("imports are nested more than %d deep: %s", maxImportDepth, trail(names))
	case len(x.file.Imports) >= maxImports:
		return fmt.Errorf("there are more than %d imports", maxImports)
	case x.size+len(src.text) > maxImported:
		return fmt.Errorf("the imported files have more than %d MiB together", maxImported>>20)
	}
	return nil
}

// trail returns the path of imports from the main file to the last one; names is in
// reverse order. It leaves out the middle of a long path.
func trail(names []string) string {
	const shown = 4 // at each end
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		if len(names) > 2*shown+1 && i == len(names)-1-shown {
			b.WriteString("… → ")
			i = shown - 1
		}
		b.WriteString(excerpt(names[i]))
		if i > 0 {
			b.WriteString(" → ")
		}
	}
	return b.String()
}

// imported checks an import element.
func (c *compiler) imported(n *node) {
	a, ok := n.attr("src")
	switch {
	case !ok || a.Value == "":
		n.refused = true
		c.fail(n, "<import> needs a src", `write <import src="…"/>`)
	case isURL(a.Value):
		n.refused = true
		c.failAttr(n, a, "files are not imported from the network", "download it")
	}
	if a, ok := n.attr("namespace"); ok && !isNamespace(a.Value) {
		c.failAttr(n, a, fmt.Sprintf("namespace cannot be %q", excerpt(a.Value)), "a letter or _, then letters, digits, _ . -")
	}
}

func isNamespace(s string) bool {
	if s == "" || !isLetter(s[0]) {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) || s[i] == ':' {
			return false
		}
	}
	return true
}
