// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"strings"
)

// part is one part of a body: a text, or an element such as an image.
type part struct {
	text []piece
	node *node // nil for a text
}

// piece is a stretch of a text: literal text, or a document.
type piece struct {
	text string
	doc  *node // a document, or an agent whose answer becomes the text
}

// body reads the content of an element as parts. White space at the edges of a text
// is dropped unless it is in a fence or a document, and a text of white space only
// is not a part. Comments are dropped.
func body(n *node) []part {
	var b bodyReader
	b.nodes(n.nodes)
	b.flush()
	return b.parts
}

// bodyReader collects the pieces of the current text.
type bodyReader struct {
	parts     []part
	pieces    []piece
	lastPlain bool
}

func (b *bodyReader) nodes(list []*node) {
	for _, k := range list {
		switch {
		case k.kind == comment:
		case k.kind == text:
			b.plain(k.text)
		case k.kind == fence:
			b.exact(piece{text: k.text})
		case k.tag == "import" && k.read:
			b.nodes(k.nodes)
		case k.tag == "doc" || k.tag == "agent" || k.tag == "import":
			b.exact(piece{doc: k})
		default:
			b.flush()
			b.parts = append(b.parts, part{node: k})
		}
	}
}

func (b *bodyReader) plain(s string) {
	if len(b.pieces) == 0 {
		s = strings.TrimLeft(s, space)
	}
	if s == "" {
		return
	}
	if b.lastPlain {
		last := &b.pieces[len(b.pieces)-1]
		last.text += s
		return
	}
	b.pieces = append(b.pieces, piece{text: s})
	b.lastPlain = true
}

func (b *bodyReader) exact(p piece) {
	b.pieces = append(b.pieces, p)
	b.lastPlain = false
}

func (b *bodyReader) flush() {
	if b.lastPlain {
		last := &b.pieces[len(b.pieces)-1]
		last.text = strings.TrimRight(last.text, space)
		if last.text == "" { // after text in a fence or a document
			b.pieces = b.pieces[:len(b.pieces)-1]
		}
	}
	if len(b.pieces) > 0 {
		b.parts = append(b.parts, part{text: b.pieces})
	}
	b.pieces, b.lastPlain = nil, false
}

// payloads marks the documents of a body as payloads.
func payloads(parts []part) []part {
	for _, p := range parts {
		for _, piece := range p.text {
			if piece.doc != nil {
				piece.doc.payload = true
			}
		}
	}
	return parts
}

// static returns the text of the parts if it needs no document. It returns false
// unless there is no part or a single text.
func static(parts []part) (string, bool) {
	switch {
	case len(parts) == 0:
		return "", true
	case len(parts) > 1 || parts[0].node != nil:
		return "", false
	}
	for _, p := range parts[0].text {
		if p.doc != nil {
			return "", false
		}
	}
	return join(parts[0].text), true
}

func join(pieces []piece) string {
	if len(pieces) == 1 {
		return pieces[0].text
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// media returns the first part that is not text, or nil.
func media(parts []part) *node {
	for _, p := range parts {
		if p.node != nil {
			return p.node
		}
	}
	return nil
}
