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

// Documents fetches the documents that people's files name. It keeps the rules
// of [Tool]: what is not the public internet is out of reach, and
// size, time and redirects are limited. It is safe for concurrent use.
type Documents struct{ pages *webPages }

// NewDocuments returns a fetcher; the options are those of web pages.
func NewDocuments(options Options) (*Documents, error) {
	pages, err := newWebPages(options)
	if err != nil {
		return nil, err
	}
	return &Documents{pages}, nil
}

// Fetch returns what a URL holds, and its declared media type. A status that is
// none of success is an error.
func (d *Documents) Fetch(ctx context.Context, rawURL string) (data []byte, contentType string, err error) {
	u, err := d.pages.checkURL(rawURL)
	if err != nil {
		return nil, "", err
	}
	within, cancel := context.WithTimeoutCause(ctx, d.pages.options.Timeout, errPageTimeout)
	defer cancel()
	resp, data, err := d.pages.ask(within, u, "text/plain, text/markdown, text/html;q=0.9, */*;q=0.5")
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

// errTooLong says that a document is longer than what is made of one.
var errTooLong = errors.New("it is too large to be converted")

// HTMLToMarkdown makes Markdown of an HTML document, as [Tool]
// does: of its main part, without what surrounds it. Base is what its links are
// relative to; without one, links that are not whole URLs are left out. Time and
// memory are bounded by its size.
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

// HTMLToText makes plain text of an HTML document: the text of its main part,
// white space collapsed, blocks on lines of their own.
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
	breaks int  // line ends due before the next text
	space  bool // a space is due
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

// endsAround is how many line ends stand around an element.
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

// begin writes what is due before text.
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
