// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/server"
)

// CheckOrigin returns an error unless origin is what a browser sends for the pages of one
// site, such as https://app.example or http://localhost:5173. There is no form for several.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Contains(u.Host, "*") ||
		u.Scheme+"://"+strings.ToLower(u.Host) != origin || strings.HasSuffix(u.Host, ":") {
		return fmt.Errorf("%.80q is not an origin, such as https://app.example or http://localhost:5173: a scheme and a host in small letters, and the port if it is not the usual one", origin)
	}
	if usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]; u.Port() == usual {
		return fmt.Errorf("%.80q: browsers leave out the usual port: %s://%s", origin, u.Scheme, u.Hostname())
	}
	return nil
}

// CheckBase returns an error unless base is "" or a path such as /antiphon.
func CheckBase(base string) error {
	if base != "" && (base[0] != '/' || base == "/" || path.Clean(base) != base || strings.ContainsFunc(base, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("%?#\"'<>\\", r)
	})) {
		return fmt.Errorf("%.80q is not a path such as /antiphon: it begins with a slash, and has none at its end", base)
	}
	return nil
}

// checkPages returns an error for fields that say nothing about pages and paths.
func (g *Guard) checkPages() error {
	errs := []error{CheckBase(g.Base)}
	for _, origin := range g.Origins {
		errs = append(errs, CheckOrigin(origin))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("access: %w", err)
	}
	return nil
}

// below returns a request as if the base were the root, or nil if its path is elsewhere.
func (g *Guard) below(r *http.Request) *http.Request {
	if g.Base == "" {
		return r
	}
	rest, ok := strings.CutPrefix(r.URL.Path, g.Base)
	if !ok || rest != "" && rest[0] != '/' {
		return nil
	}
	inner, at := new(http.Request), *r.URL
	*inner = *r
	raw, _ := strings.CutPrefix(at.RawPath, g.Base) // what else it is does not fit Path, and is ignored
	at.Path, at.RawPath = rest, raw
	inner.URL = &at
	return inner
}

// errElsewhere is for a path that is not below the base.
func (g *Guard) errElsewhere(r *http.Request) *server.Error {
	return &server.Error{Status: http.StatusNotFound, Code: "unknown_url", Message: fmt.Sprintf("Unknown request URL: %s %s. This server serves paths below %s/.", r.Method, r.URL.Path, g.Base)}
}

// page is what a server says to a page of another origin.
const (
	pageMethods = "GET, POST, DELETE"
	pageReads   = "X-Request-Id, Retry-After, X-Ratelimit-Limit-Requests, X-Ratelimit-Limit-Tokens, X-Ratelimit-Remaining-Requests, X-Ratelimit-Remaining-Tokens, X-Ratelimit-Reset-Requests, X-Ratelimit-Reset-Tokens"
	pageSeconds = "600" // for which a browser need not ask again
)

// admitPage lets a page of one of the Origins in: the server, which refuses pages, does not
// see where the request comes from. Other requests are as they were. asked says that the
// request was only the browser's question whether the page may send one; it is answered
// without a key, because browsers send none. Cookies are never asked for. V7
func (g *Guard) admitPage(w http.ResponseWriter, r *http.Request) (inner *http.Request, asked bool) {
	if len(g.Origins) == 0 {
		return r, false
	}
	w.Header().Add("Vary", "Origin")
	origins := r.Header["Origin"]
	if len(origins) != 1 || origins[0] == "null" || !slices.Contains(g.Origins, origins[0]) {
		return r, false
	}
	w.Header().Set("Access-Control-Allow-Origin", origins[0])
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		w.Header().Set("Access-Control-Allow-Methods", pageMethods)
		if names := r.Header.Get("Access-Control-Request-Headers"); names != "" {
			w.Header().Set("Access-Control-Allow-Headers", names)
		}
		w.Header().Set("Access-Control-Max-Age", pageSeconds)
		w.WriteHeader(http.StatusNoContent)
		return r, true
	}
	w.Header().Set("Access-Control-Expose-Headers", pageReads)
	inner = r.Clone(r.Context())
	inner.Header.Del("Origin")
	inner.Header.Del("Sec-Fetch-Site")
	return inner, false
}
