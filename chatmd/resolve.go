// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// Ref is what an element of a file refers to: a document, an image, a file, an
// agent, or in [Load] a file to import.
type Ref struct {
	// Tag is doc, img, file, agent or import.
	Tag string
	// Src is the source as written: with Local, a path relative to the file it
	// stands in; without, a URL. What is imported is always local.
	Src   string
	Local bool
	// Payload says that a document is what a call, an output or an item holds:
	// its bytes are taken as they are.
	Payload bool
	// Strip and Markdown ask for the text of a document that is HTML, or for
	// Markdown. Strip wins.
	Strip, Markdown bool
	// Input is what an agent is asked: texts, images and files.
	Input []item.Part
	// File is the name of the file that the element stands in, Base what tells
	// that file from others (see [Source]), "" for the one that is read, and
	// Position the element's place in it.
	File, Base string
	Position
}

// Resolver fetches what a file refers to. The media type may be "", it is found
// out from the data then. An error is reported at the element's place. Images
// and files with a URL are passed on as URLs and never fetched. For an agent
// the data are its answer.
type Resolver interface {
	Resolve(ctx context.Context, ref Ref) (data []byte, mediaType string, err error)
}

// ResolverFunc makes a function a [Resolver].
type ResolverFunc func(ctx context.Context, ref Ref) (data []byte, mediaType string, err error)

// Resolve calls f.
func (f ResolverFunc) Resolve(ctx context.Context, ref Ref) ([]byte, string, error) {
	return f(ctx, ref)
}

// Located is an item and the place of the element it was read from.
type Located struct {
	Item item.Item
	Position
}

// Items returns the items of the file's messages, calls, responses and other
// transcript elements in their order. The Resolver is asked for documents and
// local sources, one after the other, and may be nil when there are none. The
// error is that of ctx, or an [ErrorList] of what [Parse] returned and all
// sources that could not be used.
func (f *File) Items(ctx context.Context, resolver Resolver) ([]Located, error) {
	r := &resolution{ctx: ctx, file: f, resolver: resolver, where: locators{}}
	list := make([]Located, 0, len(f.entries))
	for _, e := range f.entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if it, ok := e.build(r); ok {
			list = append(list, Located{Item: it, Position: e.Position})
		}
	}
	r.errs.locate()
	return list, joined(f.err, r.errs)
}

// resolution is one pass over the entries of a file.
type resolution struct {
	ctx      context.Context
	file     *File
	resolver Resolver
	where    locators
	errs     ErrorList
}

func (r *resolution) fail(n *node, message, hint string, err error) {
	r.errs = append(r.errs, &Error{src: n.src, offset: n.start, Text: n.excerpt(), Message: message, Hint: hint, Err: err})
}

// item encodes v.
func (r *resolution) item(n *node, v item.Value, ok bool) (item.Item, bool) {
	if !ok {
		return item.Item{}, false
	}
	it, err := item.New(v)
	if err != nil {
		r.fail(n, "<"+n.tag+"> cannot be an item", "", err)
	}
	return it, err == nil
}

// text returns the text of a body that holds nothing else.
func (r *resolution) text(parts []part) (string, bool) {
	if len(parts) == 0 {
		return "", true
	}
	return r.pieces(parts[0].text)
}

func (r *resolution) pieces(pieces []piece) (string, bool) {
	if len(pieces) == 1 && pieces[0].doc == nil {
		return pieces[0].text, true
	}
	var b strings.Builder
	ok := true
	for _, p := range pieces {
		if p.doc == nil {
			b.WriteString(p.text)
			continue
		}
		s, got := r.document(p.doc)
		b.WriteString(s)
		ok = ok && got
	}
	return b.String(), ok
}

// parts returns the parts of a body; detail is that of images without one.
func (r *resolution) parts(parts []part, detail item.Detail) ([]item.Part, bool) {
	list := make([]item.Part, len(parts))
	all := true
	for i, p := range parts {
		var ok bool
		switch {
		case p.node == nil:
			var s string
			s, ok = r.pieces(p.text)
			list[i] = &item.InputText{Text: s}
		case p.node.tag == "img":
			list[i], ok = r.image(p.node, detail)
		default:
			list[i], ok = r.attachment(p.node)
		}
		all = all && ok
	}
	return list, all
}

// unread reports an import that was not followed.
func (r *resolution) unread(n *node) {
	if n.refused {
		return
	}
	r.fail(n, "<import> is not followed here: "+excerpt(n.value("src")), "", nil)
}

func (r *resolution) fetch(n *node) (data []byte, mediaType string, ok bool) {
	if n.refused {
		return nil, "", false
	}
	if r.resolver == nil {
		r.fail(n, "<"+n.tag+"> cannot be read here: "+excerpt(n.value("src")), "", nil)
		return nil, "", false
	}
	ref := refTo(n, r.where)
	ok = true
	switch n.tag {
	case "doc":
		ref.Payload, ref.Strip, ref.Markdown = n.payload, n.flag("strip"), n.flag("markdown")
	case "agent":
		ref.Input, ok = r.parts(body(n), item.DetailAuto)
	}
	if !ok {
		return nil, "", false
	}
	data, mediaType, err := r.resolver.Resolve(r.ctx, ref)
	if err != nil {
		r.fail(n, "<"+n.tag+"> cannot be read", "", err)
	}
	return data, mediaType, err == nil
}

func refTo(n *node, where locators) Ref {
	return Ref{Tag: n.tag, Src: n.value("src"), Local: n.flag("local"), File: n.src.name, Base: n.src.base, Position: where.at(n.src, n.start)}
}

// document returns the text that stands for a document or an agent.
func (r *resolution) document(n *node) (string, bool) {
	if n.tag == "import" {
		r.unread(n)
		return "", false
	}
	data, _, ok := r.fetch(n)
	if ok && !utf8.Valid(data) {
		r.fail(n, "<"+n.tag+"> is no text in UTF-8: "+excerpt(n.value("src")), "images go in <img/>, other files in <file/>", nil)
		return "", false
	}
	return string(data), ok
}

// image makes the part of an img element. A local image becomes a data URI.
func (r *resolution) image(n *node, detail item.Detail) (item.Part, bool) {
	p := &item.InputImage{ImageURL: n.value("src"), FileID: n.value("file_id"), Detail: detail}
	if a, ok := n.attr("detail"); ok {
		p.Detail = item.Detail(a.Value)
	}
	if !n.flag("local") || strings.HasPrefix(p.ImageURL, "data:") {
		return p, true
	}
	data, _, ok := r.fetch(n)
	if !ok {
		return p, false
	}
	typ := http.DetectContentType(data)
	if !strings.HasPrefix(typ, "image/") {
		r.fail(n, "<img> is no image: "+excerpt(n.value("src")), "models take PNG, JPEG, GIF and WebP", errors.New("its data is "+typ))
		return p, false
	}
	p.ImageURL = dataURI(typ, data)
	return p, true
}

// attachment makes the part of a file element. A local file becomes a data URI
// with a name.
func (r *resolution) attachment(n *node) (item.Part, bool) {
	src := n.value("src")
	p := &item.InputFile{FileID: n.value("file_id"), Filename: n.value("filename"), Detail: item.Detail(n.value("detail"))}
	switch {
	case strings.HasPrefix(src, "data:"):
		p.FileData = src
	case !n.flag("local"):
		p.FileURL = src
	default:
		data, typ, ok := r.fetch(n)
		if !ok {
			return p, false
		}
		if typ == "" {
			typ = http.DetectContentType(data)
		}
		typ, _, _ = strings.Cut(typ, ";")
		p.FileData = dataURI(strings.Trim(typ, space), data)
		if p.Filename == "" {
			p.Filename = path.Base(strings.ReplaceAll(src, `\`, "/"))
		}
	}
	return p, true
}

func dataURI(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}
