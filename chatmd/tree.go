// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

// node is one piece of a file. The nodes of one parent follow each other without
// gaps and hold their place in the source, including comments, so that a file can be
// written again with only the intended changes.
type node struct {
	kind       kind
	tag        string  // of an element
	attrs      []Attr  // of an element, as given
	nodes      []*node // of an element, its content
	text       string  // of text, as in the file; of a fence, its payload
	start, end int     // place in the source, tags and fence marks included
	selfClosed bool    // <tag/>
	read       bool    // of an import: its nodes are those of the file it names
	fenced     bool    // it contains a fence
	refused    bool    // its source is wrong, and this was reported
	left       bool    // of an import: it could not be followed and stays a reference
	payload    bool    // of a document: it is the payload of a call, an output or an item
	src        *source // the file that contains it
}

// source is the text of the main file or of an imported file.
type source struct {
	name string // for messages
	base string // the base of relative paths; "" for the main file
	id   string // identifies the file; "" for the main file
	text string
	// For an import: the file that names it, the offset in the main file that led
	// here, and a number that rises in the order of reading.
	from  *source
	at    int
	order int
}

// excerpt returns the beginning of the node for a message.
func (n *node) excerpt() string { return excerpt(n.src.text[n.start:n.end]) }

type kind int

const (
	element kind = iota
	text
	fence
	comment
)

// Attr is an attribute with its value decoded.
type Attr struct {
	Name  string
	Value string
	// Bare marks a name without a value, as flags are written.
	Bare bool

	start    int // of the name
	from, to int // of the value, quotes included; from is 0 when bare
}

// attr returns the named attribute. If it is repeated, the last one is used.
func (n *node) attr(name string) (*Attr, bool) {
	for i := len(n.attrs) - 1; i >= 0; i-- {
		if n.attrs[i].Name == name {
			return &n.attrs[i], true
		}
	}
	return nil, false
}

// value returns the value of the named attribute, or "".
func (n *node) value(name string) string {
	if a, ok := n.attr(name); ok {
		return a.Value
	}
	return ""
}

// has reports whether the attribute is present.
func (n *node) has(name string) bool {
	_, ok := n.attr(name)
	return ok
}

// flag reports whether the attribute is present and not "false".
func (n *node) flag(name string) bool {
	a, ok := n.attr(name)
	return ok && a.Value != "false"
}

// mode returns how the element's content is read. The content of unsupported
// features is kept unchanged.
func (n *node) mode() mode {
	if n.tag == "tool" && (unbuiltTool(n) != "" || hosted(n)) {
		return opaqueMode
	}
	return tags[n.tag].mode
}

// elements calls visit for the element and all elements inside it, in order.
func (n *node) elements(visit func(*node)) {
	if n.kind != element {
		return
	}
	if n.tag != "" {
		visit(n)
	}
	for _, k := range n.nodes {
		k.elements(visit)
	}
}
