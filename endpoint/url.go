// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
)

// URLError reports an unusable base URL.
type URLError struct {
	Base    string // as given, without userinfo and query
	Problem string
	Hint    string // what to write instead; may be empty
}

func (e *URLError) Error() string {
	msg := fmt.Sprintf("base URL %q %s", e.Base, e.Problem)
	if e.Hint != "" {
		msg += ": " + e.Hint
	}
	return msg
}

// URL returns the URL of path, such as "/responses", relative to a base URL. The base may end with
// a slash. A base without a path gets its profile's base path, usually /v1. Any other path is used
// unchanged, since it may belong to a gateway. A base that already ends with path is returned
// without joining. A query, such as Azure's api-version, is kept. The error is a [*URLError].
func URL(base, path string) (*url.URL, error) {
	return joinBase(base, path, func(u *url.URL) string { return Detect(u).BasePath })
}

// URL is like the function [URL], with p's base path for a base URL without a path, whatever the
// host. The path is relative to the base URL; empty means ResponsesPath.
func (p Profile) URL(base, path string) (*url.URL, error) {
	return joinBase(base, cmp.Or(path, p.ResponsesPath, "/responses"), func(*url.URL) string { return cmp.Or(p.BasePath, "/v1") })
}

func joinBase(base, path string, basePath func(*url.URL) string) (*url.URL, error) {
	base = strings.TrimSpace(base)
	u, err := parseBase(base)
	if err != nil {
		return nil, err
	}
	path = "/" + strings.Trim(path, "/")
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	if strings.HasSuffix(u.Path, "/chat/completions") {
		return nil, &URLError{show(base), "is the address of Chat Completions", "give the part before /chat/completions"}
	}
	if u.Path == "" {
		u.Path = basePath(u)
	}
	if strings.HasSuffix(u.Path, path) {
		return u, nil
	}
	return u.JoinPath(path), nil
}

func parseBase(base string) (*url.URL, error) {
	shown := show(base)
	if base == "" {
		return nil, &URLError{shown, "is empty", "for example " + DefaultBaseURL}
	}
	scheme, rest, ok := strings.Cut(base, "://")
	if !ok {
		return nil, &URLError{shown, "has no scheme", "write http://" + shown + " or https://" + shown}
	}
	if s := strings.ToLower(scheme); s != "http" && s != "https" {
		return nil, &URLError{shown, "has the scheme " + scheme, "use http or https"}
	}
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, &URLError{shown, "cannot be parsed", "look for spaces, a bad port or a stray %"}
	case u.Hostname() == "":
		return nil, &URLError{shown, "has no host", "for example " + scheme + "://localhost" + strings.TrimPrefix(rest, u.Host)}
	case u.Fragment != "":
		return nil, &URLError{shown, "has a fragment", "leave out the # and what follows"}
	}
	u.Host = strings.TrimSuffix(u.Host, ":") // like net/http with an empty port
	return u, nil
}

// show returns a URL for messages: without userinfo, query and fragment, even if the URL cannot be
// parsed.
func show(s string) string {
	s, _, _ = strings.Cut(s, "#")
	s, _, _ = strings.Cut(s, "?")
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "", s
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	if !ok {
		return rest
	}
	return scheme + "://" + rest
}

// ShowURL returns u for messages: without userinfo, query and fragment, since all of these may hold
// secrets.
func ShowURL(u *url.URL) string {
	if u == nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
