// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/web"
	"github.com/antiphon-go/antiphon/trust"
)

// maxSource limits a document, an image or a file that a prompt includes, and
// maxPayload a file that a transcript keeps beside it. All that a file and its agents include may together be no
// larger than maxSources, and all payloads than maxPayload: a small file can name a large one many times.
const (
	maxSource  = 64 << 20
	maxPayload = 1 << 30
)

var maxSources int64 = 256 << 20

// sources reads the sources that a file refers to, as far as the gate lets it. With
// [Options.Check] agents and the network are not asked.
type sources struct {
	places places
	o      Options

	deferred bool                    // an agent or the network was not asked
	said     map[elementPlace]string // answers and documents
	warnings []error
	left     chatmd.ErrorList // what stays a reference, with [Options.Salvage]
	used     []agent.Usage    // by the agents that were asked

	references map[string]bool // the sources of those that stay a reference in this pass

	toldUnread bool // see sayUnread
}

func newSources(p places, o Options) *sources {
	return &sources{places: p, o: o, said: map[elementPlace]string{}, references: map[string]bool{}}
}

// Import implements [chatmd.Importer].
func (s *sources) Import(_ context.Context, ref chatmd.Ref) (chatmd.Source, error) {
	path, err := s.places.of(ref.Base).find(ref.Src)
	if err != nil {
		return chatmd.Source{}, err
	}
	text, err := s.o.gate.read(path, maxSource, placeIn(ref))
	if errors.Is(err, ErrWithheld) && !s.o.Salvage {
		s.deferred, err = true, nil // as if it were empty
	}
	id, linkErr := filepath.EvalSymlinks(path)
	if linkErr != nil {
		id = path
	}
	name := ref.Src
	if !filepath.IsAbs(name) && !strings.HasPrefix(name, "${") {
		name = filepath.Join(filepath.Dir(ref.File), filepath.FromSlash(name))
	}
	return chatmd.Source{Name: name, Base: path, ID: id, Text: text}, err
}

// Resolve implements [chatmd.Resolver].
func (s *sources) Resolve(ctx context.Context, ref chatmd.Ref) ([]byte, string, error) {
	data, mediaType, err := s.get(ctx, ref)
	switch {
	case errors.Is(err, ErrWithheld) && !s.o.Salvage:
		s.deferred, err = true, chatmd.ErrLeft
	case err != nil && ctx.Err() == nil:
		err = s.leave(ref, err)
	}
	if errors.Is(err, chatmd.ErrLeft) && ref.Local && (ref.Tag == "img" || ref.Tag == "file") {
		s.references[ref.Src] = true
	}
	return data, mediaType, err
}

// isReference reports whether an address in an item is the path of a local file that stays a reference: it is not
// sent before the file was read.
func (s *sources) isReference(address string) bool { return s.references[address] }

// leave records an unreadable source that should stay a reference.
func (s *sources) leave(ref chatmd.Ref, err error) error {
	if !s.o.Salvage {
		return err
	}
	src, _, inline := strings.Cut(ref.Src, ",")
	if inline && strings.HasPrefix(src, "data:") {
		src += ",…"
	} else {
		src = ref.Src
	}
	s.left = append(s.left, &chatmd.Error{
		File: ref.File, Line: ref.Line, Column: ref.Column,
		Message: fmt.Sprintf("<%s src=%q> cannot be read and stays a reference", ref.Tag, src), Err: err,
	})
	return chatmd.ErrLeft
}

// FitImage implements [chatmd.ImageFitter]: it converts BMP and TIFF, which models
// do not accept, to a PNG of the same pixels.
func (s *sources) FitImage(_ context.Context, ref chatmd.Ref, data []byte, problem error) ([]byte, error) {
	mediaType := output.SniffPicture(data)
	declared, _, _ := item.CutDataURI(ref.Src)
	known := declared == "" || declared == mediaType || declared == "image/x-ms-bmp" && mediaType == "image/bmp"
	if mediaType == "" || output.SniffImage(data) != "" || !known {
		return nil, s.leave(ref, problem)
	}
	fit, note, err := decode.Images{Bytes: output.MaxImageBytes, Side: math.MaxInt32}.Fit(data)
	if err != nil {
		return nil, s.leave(ref, err)
	}
	s.warnings = append(s.warnings, fmt.Errorf("%s:%d:%d: <img>: %s; the original stays where it is [warning]", ref.File, ref.Line, ref.Column, strings.Trim(note, "[]")))
	return fit, nil
}

// placeIn returns the place of an element that refers to a source.
func placeIn(ref chatmd.Ref) place { return place{ref.File, ref.Line, ref.Column} }

// salvaging reads the sources with [Options.Salvage]: an unusable source stays a
// reference.
type salvaging struct{ *sources }

// Leave implements [chatmd.Leaver].
func (s salvaging) Leave(e *chatmd.Error) {
	e.Message += ", and stays as written"
	s.left = append(s.left, e)
}

func (s *sources) get(ctx context.Context, ref chatmd.Ref) ([]byte, string, error) {
	switch {
	case ref.Tag == "agent":
		return s.ask(ctx, ref)
	case !ref.Local:
		return s.fetch(ctx, ref)
	}
	find, limit := s.places.of(ref.Base).find, int64(maxSource)
	if ref.Payload { // a payload in another folder belongs to another transcript
		find, limit = s.places.of(ref.Base).expand, maxPayload
	}
	path, err := find(ref.Src)
	if err != nil {
		return nil, "", err
	}
	s.o.gate.reads = true
	data, err := s.o.gate.content(path, limit, placeIn(ref))
	if err == nil {
		err = s.o.gate.includes(len(data), ref.Payload)
	}
	if err != nil {
		return nil, "", err
	}
	if ref.Tag == "img" && output.SniffPicture(data) != "" {
		if _, err := output.CheckImage(data); err != nil {
			return nil, "", err // it begins like an image, but is not valid
		}
	}
	if ref.Tag != "doc" {
		return data, "", nil
	}
	text, err := document(ctx, ref, data, "", "")
	return text, "", err
}

func isPDF(data []byte) bool { return bytes.HasPrefix(data, []byte("%PDF-")) }

// document converts a document to text if necessary.
func document(ctx context.Context, ref chatmd.Ref, data []byte, contentType, base string) ([]byte, error) {
	var text string
	var err error
	switch {
	case ref.Payload:
		return data, nil
	case isPDF(data):
		text, err = decode.PDF(ctx, data)
	case !ref.Strip && !ref.Markdown || !isHTML(data, contentType):
		return data, nil
	case ref.Strip:
		text, err = web.HTMLToText(ctx, data, contentType)
	default:
		text, err = web.HTMLToMarkdown(ctx, data, contentType, base)
	}
	return []byte(text), err
}

// isHTML distinguishes HTML from text that needs no conversion, by its declared type
// or its beginning.
func isHTML(data []byte, contentType string) bool {
	typ, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	switch strings.TrimSpace(typ) {
	case "text/html", "application/xhtml+xml":
		return true
	case "", "text/plain", "application/octet-stream", "text/xml", "application/xml":
	default:
		return false
	}
	sniffed := http.DetectContentType(data)
	return strings.HasPrefix(sniffed, "text/html") || strings.HasPrefix(sniffed, "text/xml") && strings.Contains(string(data[:min(len(data), 1024)]), "<html")
}

// fetch reads a document from the network.
func (s *sources) fetch(ctx context.Context, ref chatmd.Ref) ([]byte, string, error) {
	agreed := s.o.gate.wants(trust.Power{Kind: trust.Fetches, What: ref.Src}, placeIn(ref))
	if s.o.Check {
		s.deferred = true
		return nil, "", nil
	}
	if !agreed {
		return nil, "", ErrWithheld
	}
	docs, err := web.NewDocuments(s.o.Web)
	if err != nil {
		return nil, "", err
	}
	data, contentType, err := docs.Fetch(ctx, ref.Src)
	if err != nil {
		return nil, "", err
	}
	text, err := document(ctx, ref, data, contentType, ref.Src)
	if err == nil {
		s.keep(ref, string(text))
	}
	return text, "", err
}

// elementPlace identifies an element by the base of its file, see [chatmd.Source],
// and its offset.
type elementPlace struct {
	base   string
	offset int
}

func placeOf(base string, offset int) elementPlace { return elementPlace{base, offset} }

// keep records the text that replaces an element.
func (s *sources) keep(ref chatmd.Ref, text string) {
	if !ref.Payload {
		s.said[placeOf(ref.Base, ref.Offset)] = text
	}
}
