// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/antiphon-go/antiphon/internal/publicip"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

// loopback is the one address that tests allow; the rest of 127.0.0.0/8 stays
// refused.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// pageKit is the tool before a server of its own.
type pageKit struct {
	*httptest.Server
	t   *testing.T
	set *tool.Set
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPageKit(t *testing.T, o Options, h http.HandlerFunc) *pageKit {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if o.Allow == nil {
		o.Allow = loopback
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute // no page is too slow because the machine is busy
	}
	return &pageKit{Server: srv, t: t, set: pageSet(t, o)}
}

func pageSet(t *testing.T, o Options) *tool.Set {
	t.Helper()
	page, err := Tool("webpage_to_markdown", o)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(page)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func invokePage(t *testing.T, ctx context.Context, set *tool.Set, a kittest.Args) tool.Outcome {
	t.Helper()
	return set.Invoke(ctx, tool.Call{ID: "c1", Name: "webpage_to_markdown", Arguments: kittest.JSON(t, a)}, output.Policy{})
}

func (k *pageKit) get(a kittest.Args) tool.Outcome {
	k.t.Helper()
	if u, _ := a["url"].(string); strings.HasPrefix(u, "/") {
		a["url"] = k.URL + u
	}
	return invokePage(k.t, k.t.Context(), k.set, a)
}

// text returns the text of a page behind its head.
func (k *pageKit) text(path string) string {
	k.t.Helper()
	o := k.get(kittest.Args{"url": path})
	if o.Failed {
		k.t.Fatalf("%s: %s", path, o.Error)
	}
	_, text, _ := strings.Cut(o.Content.Text, "\n\n")
	return text
}

func serve(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	}
}

// A5: the tool asks; A3: its head tells what was read.
func TestPageHead(t *testing.T) {
	k := newPageKit(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new?x=1", http.StatusFound)
			return
		}
		serve("text/html; charset=utf-8", "<title>The\n title</title><p>Hello <a href=../up>up</a>")(w, r)
	})
	o := k.get(kittest.Args{"url": "/old#part"})
	want := "URL: " + k.URL + "/new?x=1\nTitle: The title\nStatus: 200 OK\n\nHello [up](" + k.URL + "/up)"
	if o.Failed || o.Content.Text != want {
		t.Errorf("got %q\nwant %q", o.Content.Text, want)
	}
	page, _ := k.set.Lookup("webpage_to_markdown")
	if tool.AnnotationsOf(page).ReadOnly {
		t.Error("the tool is read-only, so that it would run unasked")
	}
}

// A3: every spelling of an address that is not public is refused, before
// anything is sent.
func TestPageRefusedURLs(t *testing.T) {
	set := pageSet(t, Options{})
	for _, c := range []struct{ url, want string }{
		{"", "not a whole URL"},
		{"example.com/page", "not a whole URL"},
		{"/etc/passwd", "not a whole URL"},
		{"localhost:80/x", "not a whole URL"},
		{"file:///etc/passwd", "only http and https"},
		{"gopher://example.com/", "only http and https"},
		{"javascript:alert(1)", "not a whole URL"},
		{"http://", "names no host"},
		{"http:opaque", "names no host"},
		{"http://user:secret@example.com/", "user name or password"},
		{"http://example.com@127.0.0.1/", "user name or password"},
		{"http://example.com:0/", "not a port"},
		{"http://example.com:99999/", "not a port"},
		{"http://%31%32%37.0.0.1/", "not a URL"},
		{"http://127.0.0.1/", "a loopback address"},
		{"http://127.255.3.4:8080/", "a loopback address"},
		{"http://[::1]/", "a loopback address"},
		{"http://[::ffff:127.0.0.1]/", "a loopback address"},
		{"http://[::ffff:7f00:1]/", "a loopback address"},
		{"http://[::127.0.0.1]/", "a reserved address"},
		{"http://[64:ff9b::7f00:1]/", "a loopback address"},
		{"http://[64:ff9b::a9fe:a9fe]/", "a metadata address"},
		{"http://[2002:7f00:1::]/", "a reserved address"},
		{"http://[fe80::1%25eth0]/", "a link-local address"},
		{"http://0.0.0.0/", "an unspecified address"},
		{"http://[::]/", "an unspecified address"},
		{"http://0/", "unusual spelling"},
		{"http://127.1/", "unusual spelling"},
		{"http://2130706433/", "unusual spelling"},
		{"http://0x7f000001/", "unusual spelling"},
		{"http://0x7f.0.0.0x1/", "unusual spelling"},
		{"http://0177.0.0.1/", "unusual spelling"},
		{"http://127.0.0.01/", "unusual spelling"},
		{"http://127.0.0.1./", "unusual spelling"},
		{"http://10.1.2.3/", "a private address"},
		{"http://172.31.0.1/", "a private address"},
		{"http://192.168.1.1/", "a private address"},
		{"http://[fc00::1]/", "a private address"},
		{"http://100.64.0.1/", "inside a provider's network"},
		{"http://169.254.1.1/", "a link-local address"},
		{"http://169.254.169.254/latest/meta-data/", "a metadata address"},
		{"http://[fd00:ec2::254]/", "a metadata address"},
		{"http://[::ffff:169.254.169.254]/", "a metadata address"},
		{"http://168.63.129.16/", "a metadata address"},
		{"http://100.100.100.200/", "a metadata address"},
		{"http://224.0.0.1/", "a multicast address"},
		{"http://[ff02::1]/", "a multicast address"},
		{"http://255.255.255.255/", "a reserved address"},
		{"http://[4000::1]/", "not a public address"},
		{"http://" + strings.Repeat("a", 9000) + "/", "the limit is"},
	} {
		o := invokePage(t, t.Context(), set, kittest.Args{"url": c.url})
		if strings.Contains(o.Error, "secret") {
			t.Errorf("%s: the error holds the password", c.url)
		}
		kittest.WantError(t, o, c.want)
	}
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808"} {
		if kind := publicip.Special(netip.MustParseAddr(a)); kind != "" {
			t.Errorf("%s is refused as %s", a, kind)
		}
	}
}

// A3: a redirect is checked like a URL of the model's; circles and long ways end.
func TestPageRedirects(t *testing.T) {
	var refused atomic.Int64
	inside := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { refused.Add(1) }))
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("this system has no 127.0.0.2:", err)
	}
	inside.Listener.Close()
	inside.Listener = l
	inside.Start()
	t.Cleanup(inside.Close)
	k := newPageKit(t, Options{MaxRedirects: 3}, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("to")
		switch r.URL.Path {
		case "/count":
			var n int
			fmt.Sscan(to, &n)
			if n == 0 {
				serve("text/plain", "arrived")(w, r)
				return
			}
			to = fmt.Sprintf("/count?to=%d", n-1)
		case "/circle":
			to = "/circle2"
		case "/circle2":
			to = "/circle"
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	})
	for _, c := range []struct{ path, want string }{
		{"/?to=" + url.QueryEscape(inside.URL), "127.0.0.2 is a loopback address"},
		{"/?to=http://169.254.169.254/latest/", "a metadata address"},
		{"/?to=http://[::1]:1/", "a loopback address"},
		{"/?to=http://2130706433/", "unusual spelling"},
		{"/?to=file:///etc/passwd", "only http and https"},
		{"/?to=" + url.QueryEscape("http://u:p@example.com/"), "user name or password"},
		{"/circle", "in a circle"},
		{"/count?to=4", "more than 3 times"},
		{"/", "status 302"},
	} {
		kittest.WantError(t, k.get(kittest.Args{"url": c.path}), c.want)
	}
	if got := k.text("/count?to=3"); got != "arrived" {
		t.Errorf("after three redirects: %q", got)
	}
	if n := refused.Load(); n != 0 {
		t.Errorf("the refused server got %d requests", n)
	}
	none := newPageKit(t, Options{MaxRedirects: -1}, http.RedirectHandler("/x", http.StatusFound).ServeHTTP)
	kittest.WantError(t, none.get(kittest.Args{"url": "/"}), "more than 0 times")
}

// lyingResolver answers every name with the addresses given, one lookup after
// the other, the last for ever.
func lyingResolver(t *testing.T, addrs ...string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	var asked atomic.Int64
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				i := min(int(asked.Add(1)), len(addrs)) - 1
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addrs[i]).As4()},
				}}
			}
			if b, err := m.Pack(); err == nil {
				conn.WriteTo(b, from)
			}
		}
	}()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}
	return &net.Resolver{PreferGo: true, Dial: dial}
}

// A3: what counts is the address that is dialled: a name that is public in one
// moment and local in the next does not get in.
func TestPageRebinding(t *testing.T) {
	var asked atomic.Int64
	h := func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/again" {
			w.Header().Set("Location", "/secret")
			w.WriteHeader(http.StatusFound)
			return
		}
		serve("text/plain", "fine")(w, r)
	}
	k := newPageKit(t, Options{resolver: lyingResolver(t, "127.0.0.1", "127.0.0.1", "127.0.0.2")}, h)
	_, port, _ := net.SplitHostPort(k.Listener.Addr().String())
	if o := k.get(kittest.Args{"url": "http://rebind.example:" + port + "/"}); o.Failed {
		t.Fatal(o.Error)
	}
	kittest.WantError(t, k.get(kittest.Args{"url": "http://rebind.example:" + port + "/again"}), "127.0.0.2 is a loopback address")
	if n := asked.Load(); n != 2 {
		t.Errorf("the server got %d requests, want 2", n)
	}
	private := newPageKit(t, Options{resolver: lyingResolver(t, "169.254.169.254")}, h)
	kittest.WantError(t, private.get(kittest.Args{"url": "http://metadata.example/"}), "a metadata address")
}

// A3: with a proxy, what a URL itself says is still refused.
func TestPageProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve("text/plain", "by proxy: "+r.URL.String())(w, r)
	}))
	t.Cleanup(proxy.Close)
	u, _ := url.Parse(proxy.URL)
	set := pageSet(t, Options{Proxy: u})
	o := invokePage(t, t.Context(), set, kittest.Args{"url": "http://example.com/x"})
	if o.Failed || !strings.HasSuffix(o.Content.Text, "by proxy: http://example.com/x") {
		t.Errorf("got %q", o.Content.Text)
	}
	for _, refused := range []string{"http://localhost/", "http://a.localhost./", "http://db.internal/", "http://10.0.0.1/", "http://１２７.0.0.1/"} {
		if o := invokePage(t, t.Context(), set, kittest.Args{"url": refused}); !o.Failed {
			t.Errorf("%s: got %q", refused, o.Content.Text)
		}
	}
}

// A3: requests say who asks and nothing else; the environment's proxy is not
// used.
func TestPageRequest(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	var headers []http.Header
	k := newPageKit(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		headers = append(headers, r.Header.Clone())
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/second?token=x", http.StatusFound)
			return
		}
		serve("text/plain", "ok")(w, r)
	})
	k.text("/")
	k.text("/second")
	if len(headers) != 3 {
		t.Fatalf("%d requests", len(headers))
	}
	for _, h := range headers {
		for _, name := range []string{"Cookie", "Authorization", "Referer"} {
			if v := h.Get(name); v != "" {
				t.Errorf("%s: %s", name, v)
			}
		}
		if got := h.Get("User-Agent"); got != DefaultUserAgent {
			t.Errorf("User-Agent: %s", got)
		}
	}
}

// T10, T11: each type becomes what the model can read, or an error that names
// it.
func TestPageTypes(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, contentType, body, want, fails string }{
		{name: "text", contentType: "text/plain", body: " a\n\tb ", want: " a\n\tb "},
		{name: "Markdown", contentType: "text/markdown; charset=utf-8", body: "# ä", want: "# ä"},
		{name: "JSON", contentType: "application/json", body: `{"a": 1}`, want: `{"a": 1}`},
		{name: "JSON of a kind", contentType: "application/problem+json", body: `{"a": 1}`, want: `{"a": 1}`},
		{name: "text is not HTML", contentType: "text/plain", body: "<b>x</b>", want: "<b>x</b>"},
		{name: "nothing declared", contentType: "", body: "<html><b>x</b></html>", want: "**x**"},
		{name: "bytes declared", contentType: "application/octet-stream", body: "plain words", want: "plain words"},
		{name: "PDF", contentType: "application/pdf", body: "%PDF-1.7 …", fails: "application/pdf"},
		{name: "PDF, not declared", contentType: "application/octet-stream", body: "%PDF-1.7 …", fails: "application/pdf"},
		{name: "zip", contentType: "application/zip", body: "PK\x03\x04", fails: "application/zip"},
		{name: "binary as text", contentType: "text/plain", body: "a\x00b", fails: "is not text"},
		{name: "HTML as image", contentType: "image/png", body: "<html>", fails: "image/png"},
		{name: "image cut off", contentType: "image/png", body: picture.String()[:20], fails: "incomplete or damaged"},
		{name: "Latin-1", contentType: "text/html; charset=iso-8859-1", body: "<p>caf\xe9", want: "café"},
		{name: "Windows by meta", contentType: "text/html", body: "<meta charset=windows-1252><p>\x93q\x94", want: "“q”"},
		{name: "Shift JIS by meta", contentType: "text/html", body: "<meta http-equiv=content-type content='text/html; charset=shift_jis'><p>\x93\xfa\x96\x7b", want: "日本"},
		{name: "GBK by header", contentType: "text/html; charset=gbk", body: "<p>\xd6\xd0", want: "中"},
		{name: "UTF-16 by mark", contentType: "text/html", body: "\xff\xfe<\x00p\x00>\x00\xe9\x00", want: "é"},
		{name: "UTF-8 mark in JSON", contentType: "application/json", body: "\xef\xbb\xbf{}", want: "{}"},
		{name: "UTF-8, not declared, late", contentType: "text/html", body: "<p>" + strings.Repeat("x ", 1000) + "é", want: strings.Repeat("x ", 1000) + "é"},
		{name: "UTF-8, damaged", contentType: "text/plain; charset=utf-8", body: "a\xff\xfeb", want: "a\ufffdb"},
		{name: "unknown charset", contentType: "text/plain; charset=klingon", body: "é", want: "é"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newPageKit(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = []string{c.contentType}
				io.WriteString(w, c.body)
			})
			if c.fails != "" {
				kittest.WantError(t, k.get(kittest.Args{"url": "/"}), c.fails)
			} else if got := k.text("/"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	k := newPageKit(t, Options{}, serve("text/html", picture.String()))
	o := k.get(kittest.Args{"url": "/"})
	if o.Failed || len(o.Content.Parts) != 2 {
		t.Fatalf("got %+v", o)
	}
	if img, ok := o.Content.Parts[1].(*item.InputImage); !ok || !strings.HasPrefix(img.ImageURL, "data:image/png;base64,") {
		t.Errorf("got %+v", o.Content.Parts[1])
	}
	if text := o.Content.Parts[0].(*item.InputText).Text; !strings.Contains(text, "image/png, 3x2 pixels") {
		t.Errorf("got %q", text)
	}
}

// A3: sizes are bounded, also behind compression, and errors say so.
func TestPageLimits(t *testing.T) {
	const limit = 64 << 10
	k := newPageKit(t, Options{MaxBytes: limit}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/declared":
			w.Header().Set("Content-Length", fmt.Sprint(limit+1))
			w.WriteHeader(200)
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 1 << 10 {
				if _, err := z.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
			z.Close()
		case "/fits":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, strings.Repeat("x", limit))
			z.Close()
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "xxxx")
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
		case "/404":
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "no such page")
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/503":
			w.Header().Set("Content-Type", "application/pdf")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "%PDF")
		}
	})
	for _, c := range []struct{ path, want string }{
		{"/declared", "the limit is 65536"},
		{"/endless", "more than 65536 bytes"},
		{"/bomb", "more than 65536 bytes"},
		{"/br", "compressed as br"},
		{"/cut", "broke off after 5 bytes"},
		{"/404", "status 404 Not Found"},
		{"/503", "status 503 Service Unavailable"},
	} {
		kittest.WantError(t, k.get(kittest.Args{"url": c.path}), c.want)
	}
	if o := k.get(kittest.Args{"url": "/404"}); !strings.HasSuffix(o.Content.Text, "output:\nno such page") {
		t.Errorf("the text of the error page is gone: %q", o.Content.Text)
	}
	if o := k.get(kittest.Args{"url": "/204"}); o.Failed || !strings.Contains(o.Content.Text, "Note: the answer is empty") {
		t.Errorf("got %q", o.Content.Text)
	}
	if o := k.get(kittest.Args{"url": "/fits"}); o.Failed {
		t.Error(o.Error)
	}
	kittest.WantError(t, k.get(kittest.Args{"url": "/fits", "offset": -1}), "cannot be negative")
	kittest.WantError(t, k.get(kittest.Args{"url": "/fits", "max_length": 1 << 30}), "at most")
}

// A3, T15: a server that stalls costs no more than the time limit, and a call
// that is cancelled ends.
func TestPageSlow(t *testing.T) {
	started := make(chan struct{}, 4)
	stall := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/head" {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<p>a")
			w.(http.Flusher).Flush()
		}
		started <- struct{}{}
		<-r.Context().Done()
	}
	for _, path := range []string{"/head", "/body"} {
		for limit := 100 * time.Millisecond; len(started) == 0; limit *= 2 { // until the machine lets the server begin
			k := newPageKit(t, Options{Timeout: limit}, stall)
			kittest.WantError(t, k.get(kittest.Args{"url": path}), fmt.Sprintf("was not read within %v", limit))
		}
		for len(started) > 0 {
			<-started
		}
	}
	k := newPageKit(t, Options{}, stall)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	o := invokePage(t, ctx, k.set, kittest.Args{"url": k.URL + "/body"})
	if o.Failure != tool.Cancelled || o.Abandoned {
		t.Errorf("got %q, abandoned %v: %s", o.Failure, o.Abandoned, o.Error)
	}
}

// T6: pieces join to the whole text, each valid, without asking the server
// again.
func TestPageReadOn(t *testing.T) {
	var whole strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&whole, "line %d äöü 日本\n", i)
	}
	whole.WriteString(strings.Repeat("日", 5000))
	var asked atomic.Int64
	k := newPageKit(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		serve("text/plain; charset=utf-8", whole.String())(w, r)
	})
	var got strings.Builder
	for offset := 0; ; {
		o := k.get(kittest.Args{"url": "/", "offset": offset, "max_length": 5000})
		if o.Failed || o.Repairs != 0 {
			t.Fatal(o.Error, o.Repairs)
		}
		_, text, _ := strings.Cut(o.Content.Text, "\n\n")
		piece, mark, more := strings.Cut(text, "[stopped here")
		if !more {
			got.WriteString(piece)
			break
		}
		var from, of, next int
		if _, err := fmt.Sscanf(mark, " at byte %d of %d. Read on with offset=%d]", &from, &of, &next); err != nil || next <= offset || of != whole.Len() {
			t.Fatalf("mark %q: %v", mark, err)
		}
		got.WriteString(piece[:next-offset])
		offset = next
	}
	if got.String() != whole.String() {
		t.Error("the pieces are not the whole")
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
	kittest.WantError(t, k.get(kittest.Args{"url": "/", "offset": whole.Len()}), "past its end")
	if k.get(kittest.Args{"url": "/", "max_length": 1, "offset": 1}); asked.Load() != 1 {
		t.Error("reading on asked again")
	}
}

// A3: what goes wrong on the way is told in words that say what to do.
func TestPageProblems(t *testing.T) {
	set := pageSet(t, Options{Allow: loopback, resolver: lyingResolver(t, "127.0.0.1")})
	gone := httptest.NewServer(nil)
	gone.Close()
	kittest.WantError(t, invokePage(t, t.Context(), set, kittest.Args{"url": gone.URL}), "refuses connections")
	secure := httptest.NewUnstartedServer(serve("text/plain", "x"))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	kittest.WantError(t, invokePage(t, t.Context(), set, kittest.Args{"url": secure.URL}), "does not prove who it is")

	k := newPageKit(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/damaged":
			io.WriteString(w, "\xff\xd8\xff\xff\xd9")
		case "/login":
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, strings.Repeat("é", maxProblemPage))
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	kittest.WantError(t, k.get(kittest.Args{"url": "/damaged"}), "its header is damaged")
	kittest.WantError(t, k.get(kittest.Args{"url": "/busy"}), "may answer later")
	o := k.get(kittest.Args{"url": "/login"})
	kittest.WantError(t, o, "no login")
	if o.Repairs != 0 || len(o.Content.Text) > 2*maxProblemPage {
		t.Errorf("%d repairs, %d bytes", o.Repairs, len(o.Content.Text))
	}
}

func TestPageOptionsRefused(t *testing.T) {
	for _, o := range []Options{
		{Timeout: -1},
		{MaxBytes: -1},
		{Allow: []netip.Prefix{{}}},
		{Allow: []netip.Prefix{netip.MustParsePrefix("::ffff:127.0.0.0/104")}},
	} {
		if _, err := Tool("page", o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
