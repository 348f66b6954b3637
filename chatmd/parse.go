// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth is the maximum nesting depth of elements.
const maxDepth = 64

// parser reads a file into a tree. It does not stop at a mistake: it reports the
// mistake, assumes the likeliest reading and continues. Every byte is visited a
// bounded number of times.
type parser struct {
	source *source
	src    string // its text
	pos    int
	marks  marks
	where  locator
	open   []*node // the elements that are open, the root first

	slab []node // a pool for the next nodes: one allocation for many

	errs     ErrorList
	warnings ErrorList
	// tail is the offset of the top-level element that the end of the file cuts off,
	// or -1.
	tail  int
	ended bool // the end of the file has been reported
	deep  bool // the depth has been reported
}

// parseTree reads a file. The root is an element without a tag, or with the tag of
// the message that imports the file.
func parseTree(source *source, tag string) (*node, *parser) {
	src := source.text
	root := &node{tag: tag, end: len(src), src: source}
	p := &parser{source: source, src: src, marks: marks{src: src, angle: -1, fence: -1}, where: locator{src: src}, open: []*node{root}, tail: -1}
	p.checkUTF8()
	if strings.HasPrefix(src, byteOrderMark) {
		p.pos = len(byteOrderMark)
		if tag == "" {
			p.add(p.node(node{kind: text, text: byteOrderMark, end: p.pos}))
		}
	}
	for p.pos < len(src) {
		if cur := p.current(); cur.tag == "" {
			p.topLevel()
		} else {
			p.content(cur)
		}
	}
	p.finish()
	return root, p
}

func (p *parser) current() *node { return p.open[len(p.open)-1] }

func (p *parser) add(n *node) {
	cur := p.current()
	cur.nodes = append(cur.nodes, n)
}

// slabSize is the number of nodes that are allocated together.
const slabSize = 64

// node returns a new node of the source.
func (p *parser) node(n node) *node {
	if len(p.slab) == 0 {
		p.slab = make([]node, slabSize)
	}
	place := &p.slab[0]
	p.slab = p.slab[1:]
	*place = n
	place.src = p.source
	return place
}

func (p *parser) fail(offset int, text, message, hint string) {
	p.errs = append(p.errs, &Error{src: p.source, offset: offset, Text: excerpt(text), Message: message, Hint: hint})
}

func (p *parser) warn(offset int, text, message, hint string) {
	p.warnings = append(p.warnings, &Error{src: p.source, offset: offset, Text: excerpt(text), Message: message, Hint: hint})
}

// endsInside records that the file ends within the element that starts at offset.
func (p *parser) endsInside(offset int) {
	p.ended = true
	if len(p.open) > 1 {
		offset = p.open[1].start
	}
	if p.tail < 0 {
		p.tail = offset
	}
}

func (p *parser) checkUTF8() {
	if utf8.ValidString(p.src) {
		return
	}
	first, count := -1, 0
	for i := 0; i < len(p.src); {
		r, size := utf8.DecodeRuneInString(p.src[i:])
		if r == utf8.RuneError && size == 1 {
			if first < 0 {
				first = i
			}
			count++
		}
		i += size
	}
	message := fmt.Sprintf(notUTF8+"byte 0x%02x", p.src[first])
	if count > 1 {
		message += fmt.Sprintf(" and %d more in this file", count-1)
	}
	p.fail(first, "", message, "save the file as UTF-8")
}

// addText appends src[from:to] as text, joined to the text before it.
func (p *parser) addText(from, to int) {
	p.pos = to
	if from == to {
		return
	}
	cur := p.current()
	if n := len(cur.nodes); n > 0 && cur.nodes[n-1].kind == text {
		last := cur.nodes[n-1]
		last.end = to
		last.text = p.src[last.start:to]
		return
	}
	p.add(p.node(node{kind: text, text: p.src[from:to], start: from, end: to}))
}

// content reads the next piece of an element's content.
func (p *parser) content(cur *node) {
	i := p.marks.next(p.pos)
	p.strayCloser(cur, i)
	p.addText(p.pos, i)
	switch {
	case i == len(p.src):
	case p.src[i] == 'R':
		p.fence()
	case strings.HasPrefix(p.src[i:], "<!--"):
		p.comment()
	default:
		name, closing := tagName(p.src, i)
		if _, known := tags[name]; !known {
			p.addText(i, i+1)
		} else if closing {
			p.closingTag(cur, name)
		} else {
			p.openingTag(cur, name)
		}
	}
}

// strayCloser warns about a closing mark without an opening mark after a fence in
// the same element: the fence's text contained the mark, and the fence ended too
// early.
func (p *parser) strayCloser(cur *node, to int) {
	at := strings.Index(p.src[p.pos:to], "|RAW")
	if at < 0 || !cur.fenced {
		return
	}
	at += p.pos
	p.warn(at, "|RAW", "|RAW closes nothing: the fence before it ended at the first |RAW", "write text that contains |RAW in a labelled fence, RAW:x| … |RAW:x")
}

func (p *parser) openingTag(cur *node, name string) {
	switch placeIn(cur, name) {
	case literal:
		p.addText(p.pos, p.pos+1)
	case child:
		p.element(name)
	case misplaced:
		p.warn(p.pos, "<"+name, home(name)+"; inside <"+cur.tag+"> it is text", "write text in RAW| … |RAW")
		p.addText(p.pos, p.pos+1)
	case nextTop:
		if top := p.open[0].tag; top != "" {
			p.fail(p.pos, "<"+name, home(name)+", not in a file that is imported inside <"+top+">", rawHint)
			p.addText(p.pos, p.pos+1)
			return
		}
		p.leave(0, "is not closed before <"+name+">")
		p.element(name)
	}
}

const rawHint = "write text that is not a tag in RAW| … |RAW"

// leave closes the open elements above the given depth, each with an error.
func (p *parser) leave(depth int, problem string) {
	for i := len(p.open) - 1; i > depth; i-- {
		n := p.open[i]
		n.end = p.pos
		p.fail(n.start, p.src[n.start:], "<"+n.tag+"> "+problem, "end it with </"+n.tag+">; "+rawHint)
	}
	p.open = p.open[:depth+1]
}

// closingTag reads the closing tag of name in the content of cur.
func (p *parser) closingTag(cur *node, name string) {
	depth := len(p.open) - 1
	for depth > 0 && p.open[depth].tag != name {
		depth--
	}
	where := placeIn(cur, name)
	switch {
	case depth > 0:
		p.leave(depth, "is not closed before </"+name+">")
		p.close(name)
	case where == literal || where == misplaced || name == "file":
		p.addText(p.pos, p.pos+1)
	case where == nextTop && len(p.open) > 1:
		at := p.where.at(p.open[1].start)
		p.fail(p.pos, "</"+name+">", fmt.Sprintf("</%s> does not match <%s> of line %d", name, cur.tag, at.Line), "end it with </"+cur.tag+">; "+rawHint)
		p.open = p.open[:2]
		p.close(name)
	default:
		p.strayClosing(name)
	}
}

// close reads the closing tag at pos and closes the current element with it.
func (p *parser) close(name string) {
	n := p.current()
	n.end = p.closingEnd(name)
	p.pos = n.end
	p.open = p.open[:len(p.open)-1]
}

// closingEnd returns the index after the closing tag at pos.
func (p *parser) closingEnd(name string) int {
	i := skipSpace(p.src, p.pos+len("</")+len(name))
	if i < len(p.src) && p.src[i] == '>' {
		return i + 1
	}
	p.fail(p.pos, p.src[p.pos:i], "</"+name+" is not ended by >", "")
	if i == len(p.src) {
		p.endsInside(p.pos)
	}
	return i
}

func (p *parser) strayClosing(name string) {
	p.fail(p.pos, "</"+name+">", "</"+name+"> closes nothing", "")
	p.addText(p.pos, p.closingEnd(name))
}

// element reads the opening tag of name at pos and the element's content.
func (p *parser) element(name string) {
	if len(p.open) > maxDepth {
		if !p.deep {
			p.fail(p.pos, "<"+name, fmt.Sprintf("elements are nested more than %d deep", maxDepth), "")
			p.deep = true
		}
		p.addText(p.pos, p.pos+1)
		return
	}
	t := readTag(p.src, p.pos, name)
	n := p.node(node{tag: name, attrs: t.attrs, start: p.pos, end: t.end, selfClosed: t.selfClosed})
	if name == "file" && !isFileTag(n) {
		p.addText(p.pos, p.pos+1)
		return
	}
	for _, e := range t.problems {
		e.src = p.source
	}
	p.errs = append(p.errs, t.problems...)
	if t.unfinished {
		p.endsInside(p.pos)
	}
	p.add(n)
	p.pos = t.end
	switch mode := n.mode(); {
	case t.selfClosed:
	case mode == emptyMode:
		p.void(n, t.unfinished)
	case mode == opaqueMode:
		p.opaque(n)
	default:
		p.open = append(p.open, n)
	}
}

// isFileTag distinguishes the element <file src="…"/> from tags of that name that
// prompts put around the text of a file.
func isFileTag(n *node) bool {
	named := n.has("src") || n.has("file_id")
	return named && (n.selfClosed || n.has("local") || n.has("filename"))
}

// void ends an element that has no content and is not self-closing. Inside text this
// is accepted, because older programs wrote it.
func (p *parser) void(n *node, unfinished bool) {
	i := skipSpace(p.src, p.pos)
	if strings.HasPrefix(p.src[i:], "</") {
		if name, _ := tagName(p.src, i); name == n.tag {
			p.pos = i
			n.end = p.closingEnd(name)
			p.pos = n.end
			return
		}
	}
	switch hint := "write <" + n.tag + " …/>"; {
	case unfinished:
	case n.tag == "doc" || n.tag == "img" || n.tag == "file":
		p.warn(n.start, p.src[n.start:n.end], "<"+n.tag+"> is not closed", hint)
	default:
		p.fail(n.start, p.src[n.start:n.end], "<"+n.tag+"> is not closed", hint)
	}
}

// opaque reads content that is kept unchanged, up to the closing tag.
func (p *parser) opaque(n *node) {
	from := p.pos
	for i := from; ; {
		i = find(p.src, i, "</"+n.tag)
		if i == len(p.src) {
			p.fail(n.start, p.src[n.start:], "<"+n.tag+"> is never closed", "end it with </"+n.tag+">")
			p.endsInside(n.start)
			break
		}
		if name, _ := tagName(p.src, i); name == n.tag {
			p.pos = i
			n.nodes = []*node{p.node(node{kind: text, text: p.src[from:i], start: from, end: i})}
			n.end = p.closingEnd(name)
			p.pos = n.end
			return
		}
		i += len("</")
	}
	n.nodes = []*node{p.node(node{kind: text, text: p.src[from:], start: from, end: len(p.src)})}
	n.end, p.pos = len(p.src), len(p.src)
}

func (p *parser) comment() {
	n := p.node(node{kind: comment, start: p.pos, end: len(p.src)})
	if i := strings.Index(p.src[p.pos+len("<!--"):], "-->"); i >= 0 {
		n.end = p.pos + len("<!--") + i + len("-->")
	} else {
		p.fail(p.pos, p.src[p.pos:], "the comment is never closed", "end it with -->")
		p.endsInside(p.pos)
	}
	p.add(n)
	p.pos = n.end
}

func (p *parser) fence() {
	size, closer := fenceAt(p.src, p.pos)
	n := p.node(node{kind: fence, start: p.pos, end: len(p.src)})
	body := p.src[p.pos+size:]
	if i := strings.Index(body, closer); i >= 0 {
		body = body[:i]
		n.end = p.pos + size + i + len(closer)
	} else {
		p.fail(p.pos, p.src[p.pos:p.pos+size], p.src[p.pos:p.pos+size]+" is never closed by "+closer, "")
		p.endsInside(p.pos)
	}
	n.text = payload(body)
	p.current().fenced = true
	p.add(n)
	p.pos = n.end
}

// finish reports the elements that are open at the end of the file.
func (p *parser) finish() {
	if len(p.open) == 1 {
		return
	}
	reported := p.ended
	p.endsInside(p.pos)
	if !reported {
		p.leave(0, "is never closed")
	}
}
