// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

const samplePage = `<!doctype html><title>T</title><nav>Menu</nav><main><h1>One  two</h1>
<p>Some <b>bold</b>text,<br>a line. <script>no()</script></p><ul><li>a</li><li>b <a href="x.html">c</a></li></ul>
<table><tr><td>1</td><td>2</td></tr></table><pre>  x
 y
</pre></main>`

// CHATMD, <doc strip/>: markup goes, white space is collapsed, blocks stay apart.
func TestHTMLToText(t *testing.T) {
	got, err := HTMLToText(t.Context(), []byte(samplePage), "")
	want := "One two\n\nSome boldtext,\na line.\n\na\nb c\n\n1 2\n\n  x\n y"
	if err != nil || got != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
	latin, err := HTMLToText(t.Context(), []byte("<meta charset=iso-8859-1><p>caf\xe9</p>"), "")
	if err != nil || latin != "café" {
		t.Errorf("got %q, %v", latin, err)
	}
	if _, err := HTMLToText(t.Context(), []byte(strings.Repeat("<div>", 100_000)), ""); err == nil {
		t.Error("no error for elements nested without end")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := HTMLToText(ctx, []byte(samplePage), ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// CHATMD, <doc markdown/>.
func TestHTMLToMarkdown(t *testing.T) {
	got, err := HTMLToMarkdown(t.Context(), []byte(samplePage), "text/html", "https://a/b/")
	if err != nil || !strings.HasPrefix(got, "# One two\n\nSome **bold**text") || !strings.Contains(got, "[c](https://a/b/x.html)") {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err = HTMLToMarkdown(t.Context(), []byte(samplePage), "", ""); err != nil || !strings.Contains(got, "- b c\n") {
		t.Errorf("got %q, %v", got, err)
	}
}

// A3: documents are fetched by the rules of web pages.
func TestDocuments(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/far":
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		case "/gone":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Write([]byte("hello " + r.URL.Path))
		}
	}))
	defer srv.Close()
	closed, err := NewDocuments(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := closed.Fetch(t.Context(), srv.URL); err == nil {
		t.Error("an address of this machine was reached")
	}
	open, err := NewDocuments(Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxBytes: 12})
	if err != nil {
		t.Fatal(err)
	}
	data, typ, err := open.Fetch(t.Context(), srv.URL+"/a")
	if err != nil || string(data) != "hello /a" || typ != "text/plain; charset=utf-8" {
		t.Errorf("%q %q %v", data, typ, err)
	}
	for _, path := range []string{"/far", "/gone", "/longer-than-12-bytes"} {
		if _, _, err := open.Fetch(t.Context(), srv.URL+path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
	if _, err := NewDocuments(Options{MaxBytes: -1}); err == nil {
		t.Error("a negative limit")
	}
}
