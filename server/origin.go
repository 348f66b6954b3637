// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"strings"
)

// Any page that a person opens can make the browser send requests to a server on
// loopback. The checks in this file refuse them; clients that are not browsers do not
// notice them.

var foreign http.CrossOriginProtection

// sameOrigin refuses a request that a page of another origin makes. The library of
// WebSockets does the same for theirs.
func sameOrigin(r *http.Request) *Error {
	if foreign.Check(r) == nil {
		return nil
	}
	return &Error{Status: http.StatusForbidden, Type: invalidRequest, Code: "origin_not_allowed",
		Message: fmt.Sprintf("A page of another origin (%q) may not send requests to this server.", r.Header.Get("Origin"))}
}

// isJSON refuses a body that is declared to be something other than JSON. A browser
// sends such a body to another origin without asking the server first.
func isJSON(r *http.Request) *Error {
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(given)
	if err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		return nil
	}
	return &Error{Status: http.StatusUnsupportedMediaType, Type: invalidRequest, Code: "unsupported_content_type",
		Message: fmt.Sprintf("Unsupported content type %q: send JSON with the header 'Content-Type: application/json'.", given)}
}

// isPlain refuses a body that is compressed.
func isPlain(r *http.Request) *Error {
	given := r.Header.Get("Content-Encoding")
	if given == "" || strings.EqualFold(given, "identity") {
		return nil
	}
	return &Error{Status: http.StatusUnsupportedMediaType, Type: invalidRequest, Code: "unsupported_content_encoding",
		Message: fmt.Sprintf("Unsupported content encoding %q: send the body as it is, without 'Content-Encoding'.", given)}
}

// LoopbackOnly returns a handler that answers to the names of loopback only. A server
// without keys needs it: a page of another site could otherwise reach the server through
// a name of its own (rule V7 in docs/rules.md).
func LoopbackOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wrong := onLoopback(r); wrong != nil {
			wrong.answer(w)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// onLoopback refuses a request to a host that is not loopback: the name of another
// site that was pointed to this address, so that its pages have the server's origin.
func onLoopback(r *http.Request) *Error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback() {
		return nil
	}
	return &Error{Status: http.StatusForbidden, Type: invalidRequest, Code: "host_not_allowed",
		Message: fmt.Sprintf("This server is not %q: it serves on loopback only, as http://127.0.0.1 or http://localhost with its port.", r.Host)}
}
