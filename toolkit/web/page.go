// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package web holds the tool that reads web pages, and the conversion of other
// HTML documents to text. It checks and fetches URLs (fetch.go), interprets the
// responses (content.go), and converts HTML to Markdown (html.go, markdown.go,
// table.go).
package web

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// Defaults of [Options], and limits on the part of a page that one call returns.
const (
	DefaultTimeout      = 30 * time.Second
	DefaultMaxBytes     = 8 << 20
	DefaultMaxRedirects = 5
	DefaultLength       = 32 << 10 // unless the model asks for another
	MaxLength           = 1 << 20
	DefaultUserAgent    = "Antiphon (webpage_to_markdown; +https://github.com/antiphon-go/antiphon)"
)

// maxPageImage is the largest image, in bytes, that is passed to the model.
const maxPageImage = 20 << 20

// keptPages is the number of pages kept for reading on.
const keptPages = 4

// Options configure [Tool]. The zero value is usable and reaches only the public
// internet.
type Options struct {
	// Allow lists addresses that may be reached although they are not public, such
	// as those of this machine, of local networks, or of a cloud's metadata service.
	Allow []netip.Prefix
	// Proxy fetches the pages. It also resolves the names, so the tool can only
	// reject what is visible in a URL. The environment's proxy settings are ignored.
	Proxy *url.URL
	// Timeout limits one call, including all redirects and the conversion.
	Timeout time.Duration
	// MaxBytes is the largest response that is read, counted after decompression.
	MaxBytes int64
	// MaxRedirects is the number of redirects to follow; a negative number means
	// none.
	MaxRedirects int
	// UserAgent is the User-Agent header of the requests.
	UserAgent string

	// resolver resolves names; nil means the system's. Tests set it.
	resolver *net.Resolver
}

//go:embed page.md
var webPageText string

type webPageInput struct {
	URL       string `json:"url" jsonschema:"the whole address, beginning with http:// or https://"`
	Offset    int    `json:"offset,omitzero" jsonschema:"the byte of the converted text to read on from, as the last line of an earlier result says; default 0"`
	MaxLength int    `json:"max_length,omitzero" jsonschema:"how many bytes of the text to return, at most 1048576; default 32768"`
}

// Tool returns the tool that reads web pages. It is not read-only:
// what is asked of a server goes out of this machine, so that an agent asks
// before it runs.
//
// Addresses are checked when a connection is made, after the name was looked
// up, so that neither redirects nor a name that changes its address lead into
// a network that the options do not allow. Requests carry no cookies, no
// credentials and no referrer. The tool keeps the last few pages, to read on
// in the same text, and no connections.
func Tool(name string, options Options) (tool.Tool, error) {
	w, err := newWebPages(options)
	if err != nil {
		return nil, err
	}
	return tool.New(name, strings.TrimSpace(webPageText), w.read, tool.Idempotent())
}

// newWebPages sets the defaults of the options and checks them.
func newWebPages(options Options) (*webPages, error) {
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.MaxBytes = cmp.Or(options.MaxBytes, DefaultMaxBytes)
	options.MaxRedirects = cmp.Or(options.MaxRedirects, DefaultMaxRedirects)
	options.UserAgent = cmp.Or(options.UserAgent, DefaultUserAgent)
	if options.Timeout < 0 || options.MaxBytes < 0 {
		return nil, errors.New("web: a limit of web pages is negative")
	}
	for _, p := range options.Allow {
		if !p.IsValid() || p.Addr().Is4In6() {
			return nil, fmt.Errorf("web: %v is not a range of addresses; write IPv4 as such", p)
		}
	}
	w := &webPages{options: options}
	w.client = w.newClient()
	return w, nil
}

// webPages reads pages and keeps the last few.
type webPages struct {
	options Options
	client  *http.Client

	mu   sync.Mutex
	kept []*webPage // the newest is last
}

// webPage is a page that was read.
type webPage struct {
	asked  string // the URL in the call
	url    string // the URL after redirects
	title  string
	status int
	note   string // what was left out, or ""
	text   string
	image  *item.InputImage // text then describes its size
	unsent []tool.Unsent    // an image that cannot be sent
}

func (w *webPages) read(ctx context.Context, in webPageInput) (tool.Result, error) {
	length := cmp.Or(in.MaxLength, DefaultLength)
	if in.Offset < 0 || length < 0 || length > MaxLength {
		return tool.Result{}, fmt.Errorf("offset and max_length cannot be negative, and max_length is at most %d", MaxLength)
	}
	u, err := w.checkURL(in.URL)
	if err != nil {
		return tool.Result{}, err
	}
	p := w.recall(u.String())
	if p == nil || in.Offset == 0 {
		if p, err = w.get(ctx, u); err != nil {
			return tool.Result{}, err
		}
		if p.status < 200 || p.status > 299 {
			return tool.Result{Text: p.excerpt()}, p.statusError()
		}
		w.keep(p)
	}
	text, err := p.piece(in.Offset, length)
	if err != nil {
		return tool.Result{}, err
	}
	res := tool.Result{Text: p.head() + text}
	res.Unsent = p.unsent
	if p.image != nil {
		res.Parts = []item.Part{p.image}
	}
	return res, nil
}

// get fetches and converts a page within the time limit.
func (w *webPages) get(ctx context.Context, u *url.URL) (*webPage, error) {
	within, cancel := context.WithTimeoutCause(ctx, w.options.Timeout, errPageTimeout)
	defer cancel()
	p, err := w.fetch(within, u)
	switch {
	case err == nil:
		return p, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case within.Err() != nil:
		return nil, fmt.Errorf("%s was not read within %v, the limit. Try another page", u, w.options.Timeout)
	}
	return nil, err
}

var errPageTimeout = errors.New("the time for a web page has passed")

// recall returns the kept page for a URL, or nil.
func (w *webPages) recall(asked string) *webPage {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.kept {
		if p.asked == asked {
			return p
		}
	}
	return nil
}

func (w *webPages) keep(p *webPage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = slices.DeleteFunc(w.kept, func(old *webPage) bool { return old.asked == p.asked })
	w.kept = append(w.kept, p)
	if len(w.kept) > keptPages {
		w.kept = slices.Delete(w.kept, 0, 1)
	}
}

// head describes the page: three lines and an empty one.
func (p *webPage) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "URL: %s\n", p.url)
	if p.title != "" {
		fmt.Fprintf(&b, "Title: %s\n", p.title)
	}
	fmt.Fprintf(&b, "Status: %d %s\n", p.status, http.StatusText(p.status))
	if p.note != "" {
		fmt.Fprintf(&b, "Note: %s\n", p.note)
	}
	b.WriteByte('\n')
	return b.String()
}

// excerpt returns the beginning of a page that describes an error.
func (p *webPage) excerpt() string { return wording.Shorten(p.text, maxProblemPage) }

// piece returns up to n bytes of the text, beginning at offset. It ends after a
// line if at least half of n remains, and never inside a rune. A last line says
// where the text continues.
func (p *webPage) piece(offset, n int) (string, error) {
	text := p.text
	if offset > 0 && offset >= len(text) {
		return "", fmt.Errorf("the text of %s has %d bytes; offset %d is past its end", p.url, len(text), offset)
	}
	for offset < len(text) && text[offset]&0xc0 == 0x80 {
		offset++
	}
	if text = text[offset:]; len(text) <= n {
		return text, nil
	}
	end := max(n-wording.PartialRune([]byte(text[:n])), 1)
	if i := strings.LastIndexByte(text[:end], '\n') + 1; i > end/2 {
		end = i
	} else {
		for end < len(text) && text[end]&0xc0 == 0x80 {
			end++ // a rune longer than n
		}
	}
	piece := text[:end]
	if !strings.HasSuffix(piece, "\n") {
		piece += "\n"
	}
	return piece + fmt.Sprintf("[stopped here at byte %d of %d. Read on with offset=%d]", offset+end, len(p.text), offset+end), nil
}
