// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"
	"strings"
)

// compiler reads the meaning of a tree: the second layer. It checks everything
// that can be checked without fetching anything.
type compiler struct {
	file     *File
	errs     ErrorList
	warnings ErrorList
	where    locator
}

// entry is an element that becomes an item once its sources are there.
type entry struct {
	Position
	build builder
}

func (c *compiler) run() {
	c.where = locator{src: c.file.src}
	for _, n := range c.file.root.nodes {
		if n.kind == element {
			c.file.Elements = append(c.file.Elements, n.element(&c.where))
			c.topElement(n)
			n.elements(func(k *node) { c.common(k, k != n) })
		}
	}
}

func (c *compiler) fail(n *node, message, hint string) {
	c.errs = append(c.errs, &Error{offset: n.start, Text: c.openTag(n), Message: message, Hint: hint})
}

func (c *compiler) failAttr(n *node, a *Attr, message, hint string) {
	text := excerpt(c.file.src[a.start:max(a.to, a.start+len(a.Name))])
	c.errs = append(c.errs, &Error{offset: a.start, Text: text, Message: "<" + n.tag + ">: " + message, Hint: hint})
}

func (c *compiler) warn(offset int, text, message, hint string) {
	c.warnings = append(c.warnings, &Error{offset: offset, Text: text, Message: message, Hint: hint})
}

// openTag returns the beginning of the element for a message.
func (c *compiler) openTag(n *node) string { return excerpt(c.file.src[n.start:n.end]) }

// notBuilt reports a feature that the file uses and this version lacks.
func (c *compiler) notBuilt(n *node, feature string) {
	c.errs = append(c.errs, &Error{
		offset: n.start, Text: c.openTag(n),
		Message: feature + " is not built yet", Err: ErrNotBuilt,
	})
}

func (c *compiler) topElement(n *node) {
	var build builder
	switch n.tag {
	case "config":
		c.config(n)
	case "tool":
		c.tool(n)
	case "import", "script", "shell_access", "moderator_runtime":
		c.notBuilt(n, "<"+n.tag+">")
	case "tool_call":
		build = c.call(n)
	case "tool_response":
		build = c.response(n)
	case "reasoning":
		build = c.reasoning(n)
	case "item":
		build = c.item(n)
	case "msg":
		build = c.msg(n)
	default:
		build = c.message(n, n.tag)
	}
	if build != nil {
		c.file.entries = append(c.file.entries, entry{c.where.at(n.start), build})
	}
}

// common checks what holds for every element, nested ones included.
func (c *compiler) common(n *node, nested bool) {
	if tags[n.tag].mode != opaqueMode {
		c.attrs(n)
	}
	switch n.tag {
	case "doc":
		c.source(n)
		for _, name := range []string{"strip", "markdown"} {
			if n.flag(name) {
				c.notBuilt(n, "<doc "+name+"/>, the conversion of HTML,")
			}
		}
	case "img", "file":
		if n.value("file_id") == "" {
			c.source(n)
		}
	case "agent":
		c.notBuilt(n, "<agent> inside a message")
	case "import":
		if nested {
			c.notBuilt(n, "<import> inside a message")
		}
	}
}

// attrs remarks on attributes that are given twice or that the tag does not
// know.
func (c *compiler) attrs(n *node) {
	for i := range n.attrs {
		a := &n.attrs[i]
		if last, _ := n.attr(a.Name); last != a {
			c.warn(a.start, a.Name, fmt.Sprintf("<%s>: %s is given twice", n.tag, a.Name), "the last one counts")
		}
		if knows(n.tag, a.Name) || unbuiltTool(n) != "" && n.tag == "tool" {
			continue
		}
		hint := ""
		if s := suggest(a.Name, tags[n.tag].attrs); s != "" {
			hint = "did you mean " + s + "?"
		}
		c.warn(a.start, a.Name, fmt.Sprintf("<%s> has no attribute %s", n.tag, a.Name), hint)
	}
}

// source checks the src of a document, an image or a file.
func (c *compiler) source(n *node) {
	a, ok := n.attr("src")
	switch {
	case !ok || a.Value == "":
		c.fail(n, "<"+n.tag+"> needs a src", `write <`+n.tag+` src="…" local/>`)
	case n.flag("local"), isURL(a.Value):
	case n.tag != "doc" && strings.HasPrefix(a.Value, "data:"):
	default:
		c.failAttr(n, a, "src is neither a URL nor marked as a file: "+excerpt(a.Value), "add the attribute local to read a file")
	}
}

func isURL(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// required returns the value of an attribute that must be there.
func (c *compiler) required(n *node, name string) string {
	a, ok := n.attr(name)
	if !ok || a.Value == "" {
		c.fail(n, "<"+n.tag+"> needs the attribute "+name, "")
		return ""
	}
	return a.Value
}

// oneOf returns the value of an attribute that has to be one of the words of
// allowed, or "" where it is not given.
func (c *compiler) oneOf(n *node, name, allowed string) string {
	a, ok := n.attr(name)
	if !ok {
		return ""
	}
	for w := range strings.FieldsSeq(allowed) {
		if a.Value == w {
			return w
		}
	}
	hint := "one of: " + strings.ReplaceAll(allowed, " ", ", ")
	c.failAttr(n, a, fmt.Sprintf("%s cannot be %q", name, excerpt(a.Value)), hint)
	return ""
}
