// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Content is the union of one text and a list of parts, as messages and tool
// outputs carry it. Parts == nil is the Text branch, even when Text is empty;
// otherwise the list counts, [] included, and Text does not.
//
// Schemas: EasyInputMessage.content, InputMessageContentList,
// FunctionCallOutputItemParam.output.
type Content struct {
	Text  string
	Parts []Part
}

// Text returns the Text branch.
func Text(s string) Content { return Content{Text: s} }

// Parts returns the list branch; without arguments, the empty list.
func Parts(parts ...Part) Content {
	if parts == nil {
		parts = []Part{}
	}
	return Content{Parts: parts}
}

// IsText reports which branch it is.
func (c Content) IsText() bool { return c.Parts == nil }

// JSON returns the content as it stands on the wire: a string or an array.
func (c Content) JSON() (JSON, error) {
	b, err := appendContent(nil, c)
	return JSON(b), err
}

func appendContent(dst []byte, c Content) ([]byte, error) {
	if c.IsText() {
		return jsonx.AppendQuoted(dst, c.Text)
	}
	return appendParts(dst, c.Parts)
}

func parseContent(s string) (Content, error) {
	switch s[0] {
	case '"':
		return Text(jsonx.Unquote(s)), nil
	case '[':
		parts, err := parseParts(s)
		return Content{Parts: parts}, err
	}
	return Content{}, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want a string or a list of parts"}
}

// content is the union, always written. Another kind of value is an error.
func (c *codec) content(name string, v *Content, x *Extra) {
	if !c.decoding {
		if v.IsText() && v.Text == "" && x.has(name) {
			return
		}
		c.name(name)
		out, err := appendContent(c.out, *v)
		c.fail(name, err)
		c.out = out
		return
	}
	m := c.find(name)
	if m == nil {
		x.mark(name)
		return
	}
	got, err := parseContent(m.Value)
	c.fail(name, err)
	*v, m.Taken = got, true
}

// Branch names which half of the union a persisted output is.
type Branch string

// The two branches.
const (
	BranchText    Branch = "text"
	BranchContent Branch = "content"
)

// Persist returns a text form that [Restore] reads back to an equal value: the
// text as it is, or the list as its JSON array, and which of the two it is. It
// fails on parts that cannot be encoded.
func (c Content) Persist() (Branch, string, error) {
	if c.IsText() {
		b, err := wholeFrom(nil, jsonx.Bytes(c.Text), nil)
		return BranchText, jsonx.String(b), err
	}
	b, err := appendParts(nil, c.Parts)
	b, err = wholeFrom(nil, b, err)
	return BranchContent, jsonx.String(b), err
}

// Restore reads what [Content.Persist] wrote. A text that merely looks like a
// list stays a text.
func Restore(b Branch, s string) (Content, error) {
	switch b {
	case BranchText:
		return Text(s), nil
	case BranchContent:
		value, err := trimValue(s)
		if err != nil {
			return Content{}, err
		}
		if value[0] != '[' {
			return Content{}, &ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a list of parts"}
		}
		parts, err := parseParts(value)
		return Content{Parts: parts}, err
	}
	return Content{}, fmt.Errorf("unknown branch %q: want %q or %q", b, BranchText, BranchContent)
}

// Display returns the content for people: the text as it is, or the parts
// joined by newlines, images and files as short markers that never hold their
// data.
func (c Content) Display() string {
	if c.IsText() {
		return c.Text
	}
	lines := make([]string, len(c.Parts))
	for i, p := range c.Parts {
		if !isNil(p) {
			lines[i] = p.display()
		}
	}
	return strings.Join(lines, "\n")
}
