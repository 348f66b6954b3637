// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// Ref is a reference in a file: to a document, an image, a file, an agent, or, in
// [Load], a file to import.
type Ref struct {
	// Tag is doc, img, file, agent or import.
	Tag string
	// Src is the source as written: with Local a path relative to the file that
	// contains the element, otherwise a URL. Imports are always local.
	Src   string
	Local bool
	// Payload means that a document is the content of a call, an output or an item:
	// its bytes are used unchanged, and checked against the element's digest if it has
	// one. A payload is searched only beside the file.
	Payload bool
	// Strip and Markdown ask for the plain text or the Markdown form of an HTML
	// document. If both are set, Strip is used.
	Strip, Markdown bool
	// Input is the input for an agent: texts, images and files.
	Input []item.Part
	// File is the name of the file that contains the element, and Base that file's
	// identity (see [Source]), which is "" for the main file. Position is the
	// element's place in it.
	File, Base string
	Position
}

// Resolver fetches the sources that a file refers to. If the media type is "", it is
// detected from the data. Errors are reported at the place of the element. Images
// and files with a URL are passed on as URLs and never fetched. For an agent, the
// data are its answer.
type Resolver interface {
	Resolve(ctx context.Context, ref Ref) (data []byte, mediaType string, err error)
}

// ImageFitter is a [Resolver] that can replace an image in a message that models do
// not accept, for example by a PNG made from a BMP. The data is nil if the image
// cannot be read, and problem describes the problem. An error is reported at the
// place of the element; with [ErrLeft] the element stays unchanged.
type ImageFitter interface {
	Resolver
	FitImage(ctx context.Context, ref Ref, data []byte, problem error) (fit []byte, err error)
}

// ErrLeft is returned by a [Resolver] for an element that should stay a reference,
// because its source is not available: an image or a file then has its source as the
// URL, and a document or an agent becomes the text of its element.
var ErrLeft = errors.New("left as a reference")

// Leaver is implemented by a [Resolver] or an [Importer] that accepts unusable
// elements without an error: an element whose source is missing, differs from its
// digest, is not an image or not text, or imports itself. The element stays a
// reference, as with [ErrLeft]; an import outside messages adds nothing. Leave
// receives the problem and its place.
type Leaver interface{ Leave(e *Error) }

// leave reports whether who wants the element left as a reference, and if so passes
// the problem to it.
func leave(who any, n *node, where locators, message, hint string, cause error) bool {
	l, ok := who.(Leaver)
	if ok {
		at := refTo(n, where)
		l.Leave(&Error{File: at.File, Line: at.Line, Column: at.Column, Text: n.excerpt(), Message: message, Hint: hint, Err: cause})
	}
	return ok
}

// ResolverFunc is a function that implements [Resolver].
type ResolverFunc func(ctx context.Context, ref Ref) (data []byte, mediaType string, err error)

// Resolve calls f. If f is nil, it returns an error.
func (f ResolverFunc) Resolve(ctx context.Context, ref Ref) ([]byte, string, error) {
	if f == nil {
		return nil, "", errors.New("the ResolverFunc is nil")
	}
	return f(ctx, ref)
}

// Located is an item and the place of the element it was read from.
type Located struct {
	Item item.Item
	Position
}

// Items returns the items of the file's messages, calls, responses and other
// transcript elements in order. It asks the resolver for documents and local sources
// one after the other; the resolver may be nil if there are none. The error is that
// of ctx, or an [ErrorList] with the errors of [Parse] and all sources that could
// not be used.
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
		if utf8.ValidString(n.src.text[n.start:n.end]) { // otherwise it was reported
			r.fail(n, "<"+n.tag+"> cannot be an item", "", err)
		}
		return it, false
	}
	if order := n.value("members"); order != "" { // ignored if it does not fit any more
		if text, ok := reorder(it.JSON(), order); ok {
			if ordered, err := item.ParseString(text); err == nil {
				return ordered, true
			}
		}
	}
	return it, true
}

// text returns the text of a body that contains nothing else.
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

// parts returns the parts of a body. detail is the default for images.
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
	if n.refused || n.left {
		return
	}
	r.fail(n, "<import> is not followed here: "+excerpt(n.value("src")), "", nil)
}

// fetch asks the resolver. left means that the element stays a reference.
func (r *resolution) fetch(n *node) (data []byte, mediaType string, left, ok bool) {
	if n.refused {
		return nil, "", false, false
	}
	if r.resolver == nil {
		r.fail(n, "<"+n.tag+"> cannot be read here: "+excerpt(n.value("src")), "", nil)
		return nil, "", false, false
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
		return nil, "", false, false
	}
	data, mediaType, err := r.resolver.Resolve(r.ctx, ref)
	if errors.Is(err, ErrLeft) {
		return nil, "", true, true
	}
	if err != nil {
		r.fail(n, "<"+n.tag+"> cannot be read", "", err)
		return nil, "", false, false
	}
	if want := n.value("sha256"); n.payload && n.has("sha256") && digest(string(data)) != strings.ToLower(want) {
		message := "<doc> does not have the content that the transcript recorded: " + excerpt(n.value("src"))
		if leave(r.resolver, n, r.where, message, "", nil) {
			return nil, "", true, true
		}
		r.fail(n, message, "its SHA-256 differs; restore the file that was written with the transcript, or remove the element", nil)
		return nil, "", false, false
	}
	return data, mediaType, false, true
}

func refTo(n *node, where locators) Ref {
	return Ref{Tag: n.tag, Src: n.value("src"), Local: n.flag("local"), File: n.src.name, Base: n.src.base, Position: where.at(n.src, n.start)}
}

// document returns the text of a document or an agent.
func (r *resolution) document(n *node) (string, bool) {
	if n.tag == "import" && !n.left {
		r.unread(n)
		return "", false
	}
	if n.left {
		return n.src.text[n.start:n.end], true
	}
	data, _, left, ok := r.fetch(n)
	if left {
		return n.src.text[n.start:n.end], true
	}
	if ok && !utf8.Valid(data) {
		message := "<" + n.tag + "> is not text in UTF-8: " + excerpt(n.value("src"))
		if leave(r.resolver, n, r.where, message, "", nil) {
			return n.src.text[n.start:n.end], true
		}
		r.fail(n, message, "images go in <img/>, other files in <file/>", nil)
		return "", false
	}
	return string(data), ok
}

// image makes the part of an img element. A local image becomes a data URI. Image
// data in a message must have a format that models accept; images in tool outputs
// are not checked.
func (r *resolution) image(n *node, detail item.Detail) (item.Part, bool) {
	p := &item.InputImage{ImageURL: n.value("src"), FileID: n.value("file_id"), Detail: detail}
	if a, ok := n.attr("detail"); ok {
		p.Detail = item.Detail(a.Value)
	}
	inline := strings.HasPrefix(p.ImageURL, "data:")
	switch {
	case inline && detail == "", !inline && !n.flag("local"):
		return p, true
	case inline:
		data, err := imageData(p.ImageURL)
		if err == nil {
			return p, true
		}
		return p, r.fitted(n, p, data, err)
	}
	data, _, left, ok := r.fetch(n)
	if !ok || left {
		return p, ok
	}
	if err := checkImage(data, ""); err != nil {
		return p, r.fitted(n, p, data, err)
	}
	p.ImageURL = dataURI(http.DetectContentType(data), data)
	return p, true
}

// fitted asks the resolver for a replacement of an image that models do not accept.
func (r *resolution) fitted(n *node, p *item.InputImage, data []byte, problem error) bool {
	if n.refused {
		return false
	}
	err := problem
	if f, ok := r.resolver.(ImageFitter); ok {
		if data, err = f.FitImage(r.ctx, refTo(n, r.where), data, problem); errors.Is(err, ErrLeft) {
			return true
		}
	}
	if err == nil && checkImage(data, "") == nil {
		p.ImageURL = dataURI(http.DetectContentType(data), data)
		return true
	}
	message := "<img> is not an image: " + excerpt(n.value("src"))
	if leave(r.resolver, n, r.where, message, "", cmp.Or(err, problem)) {
		return true
	}
	r.fail(n, message, "models take PNG, JPEG, GIF and WebP", cmp.Or(err, problem))
	return false
}

// imageData returns the bytes of a data URI, or an error if it is not an image that
// models accept.
func imageData(uri string) ([]byte, error) {
	mediaType, payload, ok := item.CutDataURI(uri)
	if !ok {
		return nil, errors.New("its data is not base64: write data:image/png;base64,…")
	}
	if at := strings.IndexAny(payload, "\r\n"); at >= 0 {
		return nil, fmt.Errorf("its base64 is broken by a line end after %d letters", at)
	}
	data, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		return nil, fmt.Errorf("its data is not base64: %w", err)
	}
	return data, checkImage(data, mediaType)
}

// checkImage returns an error if the data is not an image that models accept, or not
// of the declared type.
func checkImage(data []byte, declared string) error {
	is := http.DetectContentType(data)
	switch is {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return errors.New("its data is " + is)
	}
	if declared = strings.ToLower(declared); declared != "" && declared != is && (declared != "image/jpg" || is != "image/jpeg") {
		return fmt.Errorf("it is declared as %s and its data is %s", excerpt(declared), is)
	}
	return nil
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
		data, typ, left, ok := r.fetch(n)
		if left {
			p.FileURL = src
		}
		if !ok || left {
			return p, ok
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
