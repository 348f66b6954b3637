// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// Documents fetches documents that the user's files name. It follows the rules of
// [Tool]: it reaches only the public internet, and limits size, time and
// redirects. It is safe for concurrent use.
type Documents struct{ pages *webPages }

// NewDocuments returns a Documents. The options are those of [Tool].
func NewDocuments(options Options) (*Documents, error) {
	pages, err := newWebPages(options)
	if err != nil {
		return nil, err
	}
	return &Documents{pages}, nil
}

// Fetch returns the content of a URL and its declared media type. A status other
// than 2xx is an error.
func (d *Documents) Fetch(ctx context.Context, rawURL string) (data []byte, contentType string, err error) {
	if d.pages == nil {
		return nil, "", errors.New("web: the Documents was not made by NewDocuments")
	}
	u, err := d.pages.checkURL(rawURL)
	if err != nil {
		return nil, "", err
	}
	within, cancel := context.WithTimeoutCause(ctx, d.pages.options.Timeout, errPageTimeout)
	defer cancel()
	resp, data, err := d.pages.ask(within, u, "text/plain, text/markdown, text/html;q=0.9, */*;q=0.5") //nolint:bodyclose // ask closes it
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case within.Err() != nil:
		return nil, "", fmt.Errorf("it was not read within %v, the limit", d.pages.options.Timeout)
	case err != nil:
		return nil, "", err
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, "", fmt.Errorf("the server answered with status %s", resp.Status)
	}
	return data, resp.Header.Get("Content-Type"), nil
}

// errTooLong reports that a document is larger than the converter accepts.
var errTooLong = errors.New("it is too large to be converted")

// HTMLToMarkdown converts an HTML document to Markdown as [Tool] does: the main
// part of the page, without navigation and the like. Links are relative to base;
// if base is empty, relative links are left out. Time and memory are bounded by
// the size of the document.
func HTMLToMarkdown(ctx context.Context, data []byte, contentType, base string) (string, error) {
	doc, err := readHTML(ctx, data, contentType, base)
	if err != nil {
		return "", err
	}
	m := newMarkdown(ctx, doc.base)
	m.children(doc.main())
	s, err := m.done()
	if err == nil && (m.full || doc.partial) {
		err = errTooLong
	}
	return s, err
}

// HTMLToText converts an HTML document to plain text: the text of its main part,
// with white space collapsed and each block on its own lines.
func HTMLToText(ctx context.Context, data []byte, contentType string) (string, error) {
	doc, err := readHTML(ctx, data, contentType, "")
	if err != nil {
		return "", err
	}
	var w plainText
	w.children(doc.main())
	if doc.partial {
		return "", errTooLong
	}
	return w.b.String(), ctx.Err()
}

func readHTML(ctx context.Context, data []byte, contentType, base string) (*pageTree, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	return parsePage(ctx, decodeText(data, contentType, true), u)
}

// plainText writes the text of a page.
type plainText struct {
	b      strings.Builder
	breaks int  // line ends to write before the next text
	space  bool // a space to write before the next text
}

func (w *plainText) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && within(c, atom.Pre):
			w.exact(wording.Showable(c.Data))
		case c.Type == html.TextNode:
			w.text(wording.Showable(c.Data))
		case skipped(c):
		case c.DataAtom == atom.Br:
			w.breaks = max(w.breaks, 1)
		default:
			n := endsAround(c)
			w.breaks = max(w.breaks, n)
			w.space = w.space || c.DataAtom == atom.Td || c.DataAtom == atom.Th
			w.children(c)
			w.breaks = max(w.breaks, n)
		}
	}
}

// endsAround returns the number of line ends around an element.
func endsAround(n *html.Node) int {
	switch n.DataAtom {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Pre,
		atom.Blockquote, atom.Figure:
		return 2
	case atom.Div, atom.Li, atom.Dt, atom.Dd, atom.Tr, atom.Section, atom.Article, atom.Main, atom.Header, atom.Footer,
		atom.Aside, atom.Address, atom.Caption, atom.Figcaption, atom.Hr, atom.Details, atom.Summary, atom.Form, atom.Fieldset:
		return 1
	}
	return 0
}

func (w *plainText) text(s string) {
	for word := range strings.FieldsSeq(s) {
		w.space = w.space || strings.IndexAny(s[:1], " \t\r\n\f") == 0
		w.begin()
		w.b.WriteString(word)
		w.space = true
	}
	if s != "" {
		w.space = strings.IndexAny(s[len(s)-1:], " \t\r\n\f") == 0
	}
}

func (w *plainText) exact(s string) {
	w.begin()
	w.b.WriteString(strings.TrimSuffix(s, "\n"))
	w.space = false
}

// begin writes the pending line ends or space.
func (w *plainText) begin() {
	switch {
	case w.b.Len() == 0:
	case w.breaks > 0:
		w.b.WriteString("\n\n"[:min(w.breaks, 2)])
	case w.space:
		w.b.WriteByte(' ')
	}
	w.breaks, w.space = 0, false
}
