// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
)

const maxRedirects = 5

// guarded is the guard for a client without a policy of its own, as most are.
var guarded = guardRedirects(nil)

// guardRedirects follows a redirect only where it is the same request to the
// same host: net/http would turn a POST into a GET without its body, and would
// take headers that hold keys along to hosts below the first one. Next is the
// policy of the caller's own client, asked afterwards.
func guardRedirects(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		from := via[len(via)-1]
		refuse := func(hint string) error {
			return &endpoint.Error{
				Method: from.Method, URL: endpoint.ShowURL(from.URL), Class: endpoint.Protocol,
				Status:  r.Response.StatusCode,
				Message: fmt.Sprintf("the server redirects to %s, which was not followed", endpoint.ShowURL(r.URL)),
				Hint:    hint,
			}
		}
		upgrade := from.URL.Scheme == "http" && r.URL.Scheme == "https"
		sameHost := strings.EqualFold(r.URL.Host, from.URL.Host) && (r.URL.Scheme == from.URL.Scheme || upgrade)
		switch {
		case !sameHost:
			return refuse("the key is not sent to another host; if that is where the API is, make it the base URL")
		case r.Method != from.Method:
			return refuse("it would lose the request's body; make that address the base URL")
		case len(via) >= maxRedirects:
			return refuse("there were too many redirects; check the base URL")
		case next != nil:
			return next(r, via)
		}
		return nil
	}
}
