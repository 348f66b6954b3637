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
	"strings"
	"syscall"
	"time"

	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

const (
	maxProblemPage = 2 << 10 // of a page that tells an error
	maxPageHeader  = 256 << 10
	dialTimeout    = 15 * time.Second // of one address of several
)

// newClient makes the client of all pages: nothing is remembered between two
// requests.
func (w *webPages) newClient() *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, Resolver: w.options.resolver, Control: w.checkDial}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxPageHeader,
	}
	if proxy := w.options.Proxy; proxy != nil {
		// Only the proxy is dialled then, and the program chose it.
		dialer.Control = nil
		transport.Proxy = http.ProxyURL(proxy)
	}
	return &http.Client{Transport: transport, CheckRedirect: w.checkRedirect}
}

// checkDial refuses a connection by the address that a name was found to have.
func (w *webPages) checkDial(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("cannot check the address %s: %w", address, err)
	}
	return w.checkAddr(to.Addr())
}

// redirectError says why a redirect was not followed.
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

// sameURL compares what is asked of a server.
func sameURL(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Host == b.Host && a.EscapedPath() == b.EscapedPath() && a.RawQuery == b.RawQuery
}

// fetch gets a page and converts it.
func (w *webPages) fetch(ctx context.Context, u *url.URL) (*webPage, error) {
	resp, data, err := w.ask(ctx, u, "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, image/*;q=0.7, */*;q=0.1")
	if err != nil {
		return nil, err
	}
	p := &webPage{asked: u.String(), url: resp.Request.URL.String(), status: resp.StatusCode}
	if err := p.convert(ctx, data, resp.Header.Get("Content-Type")); err != nil {
		if p.status > 299 && ctx.Err() == nil {
			return p, nil // its status is what counts
		}
		return nil, err
	}
	return p, nil
}

// ask gets the answer to a request, its body read and closed.
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

// readBody reads an answer within the size limit. [http.Transport] has
// decompressed what it asked for.
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

// fetchProblem words an error of the network for the model.
func fetchProblem(u *url.URL, err error) error {
	var redirect *redirectError
	if errors.As(err, &redirect) {
		return redirect
	}
	host := wording.Quoted(u.Host)
	var outer *url.Error
	if errors.As(err, &outer) {
		if to, parseErr := url.Parse(outer.URL); parseErr == nil {
			host = wording.Quoted(to.Host) // of the redirect that failed
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

// statusError reports a status other than 2xx.
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
