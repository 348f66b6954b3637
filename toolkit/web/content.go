// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/pixels"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// convert makes text or an image of the body of an answer, by its declared
// type; bytes that are an image are one, whatever they are declared as.
func (p *webPage) convert(ctx context.Context, data []byte, contentType string) error {
	mediaType := mediaTypeOf(contentType, data)
	switch {
	case len(data) == 0:
		p.note = "the answer is empty"
		return nil
	case output.SniffPicture(data) != "":
		return p.convertImage(data)
	case mediaType == "text/html", mediaType == "application/xhtml+xml":
		return p.convertHTML(ctx, decodeText(data, contentType, true))
	case isTextType(mediaType):
		p.text = decodeText(data, contentType, false)
		if strings.IndexByte(p.text, 0) >= 0 {
			return fmt.Errorf("%s says it is %s but is not text", p.url, wording.Quoted(mediaType))
		}
		return nil
	}
	return fmt.Errorf("%s is %s (%d bytes). This tool reads web pages, text, JSON and images only; look for the same as a page", p.url, wording.Quoted(mediaType), len(data))
}

// mediaTypeOf returns the declared type in lower case, or what the bytes look
// like where nothing useful is declared.
func mediaTypeOf(contentType string, data []byte) string {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType, _, _ = strings.Cut(contentType, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	}
	switch mediaType {
	case "", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown", "*/*":
		mediaType, _, _ = strings.Cut(http.DetectContentType(data), ";")
	}
	return mediaType
}

func isTextType(t string) bool {
	switch t {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonl",
		"application/sql", "application/graphql", "application/x-sh", "application/typescript":
		return true
	}
	return strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "+yaml")
}

// decodeText makes UTF-8 of text: by its byte order mark, what is declared, or,
// in HTML, by its meta element. What declares nothing is UTF-8 if it can be.
// Bytes that mean nothing become U+FFFD.
func decodeText(data []byte, contentType string, isHTML bool) string {
	look := data
	if !isHTML {
		look = data[:min(len(data), 3)] // no meta elements, only a mark
	}
	encoding, name, certain := charset.DetermineEncoding(look, contentType)
	if name == "utf-8" || !certain && name == "windows-1252" && utf8.Valid(data) {
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
		return string(bytes.ToValidUTF8(data, []byte("\ufffd")))
	}
	text, err := encoding.NewDecoder().Bytes(data)
	if err != nil {
		text = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	return string(bytes.TrimPrefix(text, []byte("\ufeff")))
}

func (p *webPage) convertImage(data []byte) error {
	if len(data) > maxPageImage {
		return fmt.Errorf("the image %s has %d bytes; the limit is %d", p.url, len(data), maxPageImage)
	}
	part, err := output.Image(data)
	if err != nil {
		p.refuse(data, "the image %s cannot be used: %v", p.url, err)
		return nil
	}
	mediaType := output.SniffPicture(data)
	width, height, err := pixels.Size(mediaType, data)
	if err != nil {
		p.refuse(data, "the image %s cannot be used: it begins as %s but its header is damaged (%v)", p.url, mediaType, err)
		return nil
	}
	p.image = part
	p.text = fmt.Sprintf("%s, %dx%d pixels, %d bytes", mediaType, width, height, len(data))
	return nil
}

// refuse takes an invalid image: it is kept, and the model is told why.
func (p *webPage) refuse(data []byte, format string, args ...any) {
	p.unsent = []tool.Unsent{{Problem: fmt.Sprintf(format, args...), Data: data}}
}

// convertHTML makes Markdown of a page.
func (p *webPage) convertHTML(ctx context.Context, source string) error {
	base, err := url.Parse(p.url)
	if err != nil {
		return err
	}
	doc, err := parsePage(ctx, source, base)
	if errors.Is(err, errTooDeep) {
		return fmt.Errorf("%s cannot be converted: its elements are nested too deeply", p.url)
	}
	if err != nil {
		return err
	}
	p.title = doc.title
	m := newMarkdown(ctx, doc.base)
	m.children(doc.main())
	if p.text, err = m.done(); err != nil {
		return err
	}
	switch {
	case m.full || doc.partial:
		p.note = "the page is too large; its end is missing"
	case p.text == "" && doc.refresh != "":
		p.note = "the page only leads on to " + doc.refresh
	case p.text == "":
		p.note = "no text was found; the page may need JavaScript, which this tool does not run"
	}
	return nil
}
