// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// compiler interprets the parsed tree: it is the second layer. It checks everything
// that can be checked without fetching sources.
type compiler struct {
	file     *File
	errs     ErrorList
	warnings ErrorList
	where    locators
	top      Position // of the element of the main file that is being read

	// Calls by id, and responses that do not say which kind of call they answer.
	calls   map[string][]calledAs
	untyped []*untyped

	compared int // how many attribute names were compared, for a test
}

// entry is an element that becomes an item when its sources are available.
type entry struct {
	Position
	build builder
}

func (c *compiler) run() {
	c.where = locators{}
	c.comments(c.file.root)
	for _, n := range c.file.root.nodes {
		if n.kind == element {
			e := c.element(n)
			c.file.Elements = append(c.file.Elements, e)
			c.top = e.Position
			c.topLevel(n)
		}
	}
	c.giveKinds()
}

// topLevel reads an element of the top level, or the elements of the file that it
// imports.
func (c *compiler) topLevel(n *node) {
	if n.tag != "import" || !n.read {
		c.topElement(n)
		n.elements(c.common)
		return
	}
	c.common(n)
	for _, k := range n.nodes {
		if k.kind == element {
			c.topLevel(k)
		}
	}
}

func (c *compiler) element(n *node) Element { return n.element(c.where) }

func (c *compiler) fail(n *node, message, hint string) {
	c.errs = append(c.errs, &Error{src: n.src, offset: n.start, Text: n.excerpt(), Message: message, Hint: hint})
}

func (c *compiler) failAttr(n *node, a *Attr, message, hint string) {
	text := excerpt(n.src.text[a.start:max(a.to, a.start+len(a.Name))])
	c.errs = append(c.errs, &Error{src: n.src, offset: a.start, Text: text, Message: "<" + n.tag + ">: " + message, Hint: hint})
}

func (c *compiler) warn(n *node, offset int, text, message, hint string) {
	c.warnings = append(c.warnings, &Error{src: n.src, offset: offset, Text: text, Message: message, Hint: hint})
}

// notBuilt reports a feature that the file uses and this version does not support.
func (c *compiler) notBuilt(n *node, feature string) {
	c.errs = append(c.errs, &Error{
		src: n.src, offset: n.start, Text: n.excerpt(),
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
	case "import":
		build = unread(n)
	case "script", "shell_access", "moderator_runtime":
		c.notBuilt(n, "<"+n.tag+">")
	case RunTag, TurnTag, TurnEndTag, CallTag, DecisionTag, NoticeTag, NestedTag, OwnTag:
		c.mark(n)
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
		c.file.entries = append(c.file.entries, entry{c.top, build})
	}
}

// meaningful are the comments that are instructions to the original system.
const meaningful = "META_REFINE"

// comments reports the comments that are unsupported instructions, in the file and
// its imports. Other comments have no meaning.
func (c *compiler) comments(n *node) {
	if n.kind == comment {
		text := n.src.text[n.start:n.end]
		inner := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(text, "<!--"), "-->"), space)
		for word := range strings.FieldsSeq(meaningful) {
			if inner == word {
				c.notBuilt(n, "<!-- "+word+" -->")
			}
		}
	}
	for _, k := range n.nodes {
		c.comments(k)
	}
}

// unread is the builder of an import that was not followed: [Parse] reads a single
// file.
func unread(n *node) builder {
	return func(r *resolution) (item.Item, bool) {
		r.unread(n)
		return item.Item{}, false
	}
}

// common makes the checks that apply to every element, including nested ones.
func (c *compiler) common(n *node) {
	if tags[n.tag].mode != opaqueMode {
		c.attrs(n)
	}
	switch n.tag {
	case "doc":
		c.source(n)
		if a, ok := n.attr("sha256"); ok && !n.payload {
			c.warn(n, a.start, a.Name, "<doc>: sha256 is checked only in a call, a response or an item", "")
		}
	case "img", "file":
		if n.value("file_id") == "" {
			c.source(n)
		}
	case "agent":
		c.source(n)
	case "import":
		c.imported(n)
	}
}

// attrs warns about attributes that are given twice or that the tag does not have.
func (c *compiler) attrs(n *node) {
	isLast, unbuilt := c.lastOfName(n.attrs), c.unbuilt(n)
	for i := range n.attrs {
		a := &n.attrs[i]
		if !isLast(i) {
			c.warn(n, a.start, a.Name, fmt.Sprintf("<%s>: %s is given twice", n.tag, a.Name), "the last one counts")
		}
		if knows(n.tag, a.Name) || unbuilt {
			continue
		}
		hint := ""
		if s := suggest(a.Name, tags[n.tag].attrs); s != "" {
			hint = "did you mean " + s + "?"
		}
		c.warn(n, a.start, a.Name, fmt.Sprintf("<%s> has no attribute %s", n.tag, a.Name), hint)
	}
}

// unbuilt reports whether the element's attributes are not those of its tag, because
// it belongs to an unsupported feature or is a tool that the endpoint runs.
func (c *compiler) unbuilt(n *node) bool {
	c.compared += len(n.attrs)
	return n.tag == "tool" && (unbuiltTool(n) != "" || hosted(n)) // the compiler of hosted tools checks theirs
}

// manyAttrs is the number of attributes from which on a table of names is used.
const manyAttrs = 16

// lastOfName returns a function that reports whether attribute i is the last of its
// name. Its total time is linear in the number of attributes, because an untrusted
// file may have any number.
func (c *compiler) lastOfName(attrs []Attr) func(i int) bool {
	if len(attrs) < manyAttrs {
		return func(i int) bool {
			for k := i + 1; k < len(attrs); k++ {
				c.compared++
				if attrs[k].Name == attrs[i].Name {
					return false
				}
			}
			return true
		}
	}
	last := make(map[string]int, len(attrs))
	for i, a := range attrs {
		c.compared++
		last[a.Name] = i
	}
	return func(i int) bool { return last[attrs[i].Name] == i }
}

// source checks the src of a document, an image or a file.
func (c *compiler) source(n *node) {
	a, ok := n.attr("src")
	switch {
	case !ok || a.Value == "":
		n.refused = true
		c.fail(n, "<"+n.tag+"> needs a src", `write <`+n.tag+` src="…" local/>`)
	case n.flag("local"), isURL(a.Value):
	case (n.tag == "img" || n.tag == "file") && strings.HasPrefix(a.Value, "data:"):
	default:
		n.refused = true
		c.failAttr(n, a, "src is neither a URL nor marked as a file: "+excerpt(a.Value), "add the attribute local to read a file")
	}
}

func isURL(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// required returns the value of a mandatory attribute.
func (c *compiler) required(n *node, name string) string {
	a, ok := n.attr(name)
	if !ok || a.Value == "" {
		c.fail(n, "<"+n.tag+"> needs the attribute "+name, "")
		return ""
	}
	return a.Value
}

// oneOf returns the value of an attribute that must be one of the allowed words, or
// "" if it is not given.
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
