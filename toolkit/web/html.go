// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// maxPageTags limits the elements of a page that are read. The largest real pages
// have some tens of thousands.
const maxPageTags = 150_000

// errTooDeep reports that the parser gave up because of deeply nested elements.
var errTooDeep = errors.New("elements are nested too deeply")

// pageTree is a parsed page.
type pageTree struct {
	root    *html.Node
	title   string
	base    *url.URL // base of relative links
	refresh string   // target of an automatic redirect, "" if there is none
	partial bool     // the end of the page was not read
}

// parsePage parses a page. Memory and time are bounded by the size of the source;
// see [tame].
func parsePage(ctx context.Context, source string, base *url.URL) (*pageTree, error) {
	tamed, partial, err := tame(ctx, source)
	if err != nil {
		return nil, err
	}
	root, err := html.Parse(files.ReadWithin(ctx, bytes.NewReader(tamed)))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errTooDeep // the parser accepts everything else
	}
	t := &pageTree{root: root, base: base, partial: partial}
	t.readHead()
	return t, nil
}

// tame rewrites a page so that parsing it takes time linear in its size. The HTML
// standard requires a parser to reopen unclosed formatting elements in every
// following block, so a page of 4 MB could produce a billion elements. tame
// therefore keeps at most one open element of each kind, without attributes. It
// also leaves out what is not text: scripts, styles and comments.
func tame(ctx context.Context, source string) (tamed []byte, partial bool, err error) {
	z := html.NewTokenizer(strings.NewReader(source))
	open := map[atom.Atom]int{}
	b := make([]byte, 0, len(source)/2)
	b = append(b, "<!doctype html>"...)
	skipText := false
	for tags := 0; ; {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			return b, false, nil
		case html.TextToken:
			if !skipText {
				b = append(b, z.Raw()...)
			}
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			if tags++; tags > maxPageTags {
				return b, true, nil
			}
			if tags%1024 == 0 && ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			b, skipText = tameTag(b, z.Token(), open)
		}
	}
}

// tameTag writes a tag if it matters, and reports whether to skip the text after
// it.
func tameTag(b []byte, t html.Token, open map[atom.Atom]int) ([]byte, bool) {
	starts := t.Type != html.EndTagToken
	switch t.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Noembed, atom.Noframes, atom.Textarea:
		return b, starts
	case atom.Big, atom.Font, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Tt, atom.U,
		atom.Frameset, atom.Frame, atom.Plaintext:
		return b, false
	case atom.Xmp:
		t.DataAtom, t.Data = atom.Pre, "pre"
	case atom.B:
		t.DataAtom, t.Data = atom.Strong, "strong"
	case atom.I:
		t.DataAtom, t.Data = atom.Em, "em"
	}
	switch a := t.DataAtom; a {
	case atom.Strong, atom.Em, atom.Code:
		if starts {
			open[a]++
		} else if open[a] > 0 {
			open[a]--
		}
		if starts && open[a] > 1 || !starts && open[a] > 0 {
			return b, false
		}
		if a != atom.Code {
			t.Attr = nil
		}
	}
	if t.Type == html.SelfClosingTagToken {
		t.Type = html.StartTagToken // the difference matters only in drawings, which are left out
	}
	t.Attr = slices.DeleteFunc(t.Attr, func(a html.Attribute) bool { return !slices.Contains(keptAttributes, a.Key) })
	return append(b, t.String()...), false
}

var keptAttributes = []string{
	"alt", "alttext", "aria-hidden", "class", "content", "hidden", "href", "http-equiv",
	"role", "src", "start", "style", "title", "colspan",
}

// readHead finds the title, base and refresh of a page.
func (t *pageTree) readHead() {
	based := false
	for n := range t.root.Descendants() {
		switch n.DataAtom {
		case atom.Svg:
			continue
		case atom.Title:
			if t.title == "" && (n.Parent == nil || n.Parent.DataAtom != atom.Svg) {
				t.title = oneLine(textOf(n, maxTitle))
			}
		case atom.Base:
			if u, err := t.base.Parse(strings.TrimSpace(attr(n, "href"))); err == nil && !based && len(u.String()) <= maxURL {
				t.base, based = u, true
			}
		case atom.Meta:
			if strings.EqualFold(attr(n, "http-equiv"), "refresh") && t.refresh == "" {
				t.refresh = t.refreshURL(attr(n, "content"))
			}
		case atom.Body:
			return
		}
	}
}

const maxTitle = 300

// refreshURL parses a refresh such as "0; url=next.html".
func (t *pageTree) refreshURL(content string) string {
	_, to, found := strings.Cut(content, "=")
	if !found {
		return ""
	}
	u, err := t.base.Parse(strings.Trim(strings.TrimSpace(to), `'"`))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.String()
}

// main returns the content of the page: its main element, or its only article,
// if that holds a good part of the text. Otherwise it returns the whole page.
func (t *pageTree) main() *html.Node {
	var main, article *html.Node
	articles := 0
	for n := range t.root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if main == nil && (n.DataAtom == atom.Main || attr(n, "role") == "main") && !skipped(n) {
			main = n
		}
		if n.DataAtom == atom.Article {
			if articles++; article == nil {
				article = n
			}
		}
	}
	all := len(textOf(t.root, -1))
	if main != nil && enough(len(textOf(main, -1)), all) {
		return main
	}
	if articles == 1 && enough(len(textOf(article, -1)), all) {
		return article
	}
	return t.root
}

// enough reports whether a part of a page can stand for the whole.
func enough(part, all int) bool { return part >= 1000 || part*4 >= all }

// textOf returns the text within n without skipped elements, cut after limit
// bytes unless limit is negative.
func textOf(n *html.Node, limit int) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for c := n.FirstChild; c != nil && (limit < 0 || b.Len() < limit); c = c.NextSibling {
			if !skipped(c) {
				walk(c)
			}
		}
	}
	walk(n)
	s := b.String()
	if limit >= 0 && len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}

// skipped reports whether an element contains nothing to read: navigation and the
// like, forms, drawings, media, and hidden elements.
func skipped(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return n.Type == html.CommentNode || n.Type == html.DoctypeNode
	}
	switch n.DataAtom {
	case atom.Nav, atom.Dialog, atom.Template, atom.Svg, atom.Canvas, atom.Object, atom.Embed, atom.Audio, atom.Video,
		atom.Button, atom.Input, atom.Select, atom.Option, atom.Datalist, atom.Map, atom.Title:
		return true
	case atom.Footer:
		return !within(n, atom.Article, atom.Main, atom.Blockquote)
	}
	switch attr(n, "role") {
	case "navigation", "contentinfo", "search", "menu", "menubar", "dialog", "alertdialog":
		return true
	}
	if hasAttr(n, "hidden") || attr(n, "aria-hidden") == "true" {
		return true
	}
	style := attr(n, "style")
	if style == "" {
		return false
	}
	style = strings.ToLower(strings.ReplaceAll(style, " ", ""))
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

func within(n *html.Node, atoms ...atom.Atom) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if slices.Contains(atoms, p.DataAtom) {
			return true
		}
	}
	return false
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

// oneLine collapses white space and removes what cannot be shown.
func oneLine(s string) string { return strings.Join(strings.Fields(wording.Showable(s)), " ") }
