// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/publicip"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// maxURL is the longest URL, in bytes, that is requested.
const maxURL = 8 << 10

// refusedError reports an address that the tool may not connect to.
type refusedError struct {
	addr netip.Addr
	kind string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%v is %s, which this tool must not reach. Use a page of the public internet", e.addr, e.kind)
}

// checkURL parses and checks the URL of a page, whether it comes from the model
// or from a redirect.
func (w *webPages) checkURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if len(raw) > maxURL {
		return nil, fmt.Errorf("the URL has %d bytes; the limit is %d", len(raw), maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("not a URL: %s. Give the whole address, such as https://example.com/page", wording.Quoted(raw))
	}
	shown := wording.Quoted(raw)
	switch {
	case u.Scheme == "" || u.Scheme != "http" && u.Scheme != "https" && !strings.Contains(raw, "://"):
		return nil, fmt.Errorf("%s is not a whole URL. Begin it with https:// or http://", shown)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s: only http and https can be read, not %s", shown, u.Scheme)
	case u.User != nil:
		// The URL is not shown, because it may contain a password.
		return nil, errors.New("the URL holds a user name or password, which this tool does not send. Leave out what stands before @")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host", shown)
	case !utf8.ValidString(u.Host):
		return nil, fmt.Errorf("%s: the host is not valid text", shown)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%s: %s is not a port", shown, port)
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, w.checkHost(u.Hostname())
}

// checkHost rejects a host that is recognizable as private before its name is
// resolved. If a proxy resolves names, this is the only check.
func (w *webPages) checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return w.checkAddr(addr)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	if publicip.EndsInNumber(last) {
		return fmt.Errorf("the host %s is an unusual spelling of an address, which is refused. Write it as four plain numbers, or use its name", wording.Quoted(host))
	}
	if w.options.Proxy == nil {
		return nil
	}
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return fmt.Errorf("the host %s must be written in ASCII (xn--…) for the proxy", wording.Quoted(host))
	}
	if slices.Contains([]string{"localhost", "local", "localdomain", "internal", "lan", "home", "intranet"}, last) {
		return fmt.Errorf("the host %s is local, which this tool must not reach. Use a page of the public internet", wording.Quoted(host))
	}
	return nil
}

// checkAddr rejects an address that is neither public nor allowed.
func (w *webPages) checkAddr(addr netip.Addr) error {
	plain := addr.Unmap().WithZone("")
	for _, p := range w.options.Allow {
		if p.Contains(plain) {
			return nil
		}
	}
	if kind := publicip.Special(plain); kind != "" {
		return &refusedError{addr: plain, kind: kind}
	}
	if addr.Zone() != "" {
		return &refusedError{addr: addr, kind: "an address with a zone"}
	}
	return nil
}

const (
	maxProblemPage = 2 << 10 // bytes of a page that describes an error
	maxPageHeader  = 256 << 10
	dialTimeout    = 15 * time.Second // for each of a host's addresses
)

// newClient returns the HTTP client for all pages. It keeps no cookies or other
// state between requests.
func (w *webPages) newClient() *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, Resolver: w.options.resolver, Control: w.checkDial}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxPageHeader,
	}
	if proxy := w.options.Proxy; proxy != nil {
		// With a proxy only the proxy is dialed, and the program chose it.
		dialer.Control = nil
		transport.Proxy = http.ProxyURL(proxy)
	}
	return &http.Client{Transport: transport, CheckRedirect: w.checkRedirect}
}

// checkDial rejects a connection by the address that the name resolved to. A
// check before the lookup would not be enough, because a later lookup can give
// another address.
func (w *webPages) checkDial(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("cannot check the address %s: %w", address, err)
	}
	return w.checkAddr(to.Addr())
}

// redirectError explains why a redirect was not followed.
type redirectError struct{ text string }

func (e *redirectError) Error() string { return e.text }

func (w *webPages) checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	u, err := w.checkURL(req.URL.String())
	if err != nil {
		return &redirectError{fmt.Sprintf("%s redirects to where this tool cannot go: %v", via[0].URL, err)}
	}
	for _, before := range via {
		if sameURL(before.URL, u) {
			return &redirectError{fmt.Sprintf("%s redirects in a circle, through %s; it may want cookies, which this tool has not. Try another page", via[0].URL, u)}
		}
	}
	if len(via) > max(w.options.MaxRedirects, 0) {
		return &redirectError{fmt.Sprintf("%s redirects more than %d times, at last to %s. Try that URL", via[0].URL, max(w.options.MaxRedirects, 0), u)}
	}
	return nil
}

// sameURL reports whether two URLs request the same resource of the same server.
func sameURL(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Host == b.Host && a.EscapedPath() == b.EscapedPath() && a.RawQuery == b.RawQuery
}

// fetch gets a page and converts it.
func (w *webPages) fetch(ctx context.Context, u *url.URL) (*webPage, error) {
	resp, data, err := w.ask(ctx, u, "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, image/*;q=0.7, */*;q=0.1") //nolint:bodyclose // ask closes it
	if err != nil {
		return nil, err
	}
	p := &webPage{asked: u.String(), url: resp.Request.URL.String(), status: resp.StatusCode}
	if err := p.convert(ctx, data, resp.Header.Get("Content-Type")); err != nil {
		if p.status > 299 && ctx.Err() == nil {
			return p, nil // the page reports an error: its status matters, not its text
		}
		return nil, err
	}
	return p, nil
}

// ask sends a request and returns the response, with its body read and closed.
func (w *webPages) ask(ctx context.Context, u *url.URL, accept string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot ask for %s: %w", u, err)
	}
	req.Header.Set("User-Agent", w.options.UserAgent)
	req.Header.Set("Accept", accept)
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, nil, fetchProblem(u, err)
	}
	defer resp.Body.Close()
	data, err := w.readBody(resp)
	return resp, data, err
}

// readBody reads a response body within the size limit. The limit applies after
// decompression, which [http.Transport] does.
func (w *webPages) readBody(resp *http.Response) ([]byte, error) {
	u, limit := resp.Request.URL, w.options.MaxBytes
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("%s has %d bytes; the limit is %d. Look for a smaller page, or for parts of it", u, resp.ContentLength, limit)
	}
	switch e := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); e {
	case "", "identity":
	default:
		return nil, fmt.Errorf("%s came compressed as %s, which was not asked for and cannot be read", u, wording.Quoted(e))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes, the limit. Look for a smaller page, or for parts of it", u, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer of %s broke off after %d bytes: %w. Try once more", u, len(data), err)
	}
	return data, nil
}

// fetchProblem turns a network error into one that a model can act on.
func fetchProblem(u *url.URL, err error) error {
	var redirect *redirectError
	if errors.As(err, &redirect) {
		return redirect
	}
	host := wording.Quoted(u.Host)
	var outer *url.Error
	if errors.As(err, &outer) {
		if to, parseErr := url.Parse(outer.URL); parseErr == nil {
			host = wording.Quoted(to.Host) // the redirect that failed
		}
		err = outer.Err
	}
	var refused *refusedError
	var dns *net.DNSError
	var unknownCA x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s cannot be reached: %w", host, refused)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("there is no host %s. Check the URL", host)
	case errors.As(err, &certificate), errors.As(err, &unknownCA):
		return fmt.Errorf("%s does not prove who it is: %w. Use another page", host, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s refuses connections. Check the host and port of the URL", host)
	}
	return fmt.Errorf("%s cannot be read: %w", host, err)
}

// statusError returns the error for a status other than 2xx.
func (p *webPage) statusError() error {
	hint := "Try another page"
	switch {
	case p.status == http.StatusUnauthorized, p.status == http.StatusForbidden, p.status == http.StatusProxyAuthRequired:
		hint = "It wants a login or refuses programs; this tool has no login. Use another page"
	case p.status == http.StatusNotFound, p.status == http.StatusGone:
		hint = "Check the URL, or begin at the site's first page"
	case p.status == http.StatusTooManyRequests, p.status >= 500:
		hint = "The server may answer later"
	}
	return fmt.Errorf("%s answered with status %s. %s", p.url, strings.TrimSpace(fmt.Sprintf("%d %s", p.status, http.StatusText(p.status))), hint)
}
