// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/publicip"
	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/item"
)

// This file is about URLs that a client gives, and that an upstream or the endpoint of an
// agent's model would fetch: it may stand in the operator's network. A3

const (
	mostHosts   = 64              // that one request may name
	resolveTime = 5 * time.Second // for all of them
)

// CheckURLs returns an error if the caller may not give the URLs that a part of a request has,
// in members such as image_url, file_url and server_url: a caller without [Caller].URLs may give
// none, and others only http and https URLs whose host has addresses of the public internet
// alone. If no handler around the server identifies callers, every client may give URLs. where
// names the part. It is for backends, about tools that they send on; the server checks items.
func CheckURLs(ctx context.Context, where string, part item.JSON) error {
	if wrong := checkURLs(ctx, new(hosts), where, string(part)); wrong != nil {
		return wrong
	}
	return nil
}

// mayName checks the URLs of items. where is the name of the list.
func mayName(ctx context.Context, items []item.Item, where string) *Error {
	known := new(hosts)
	for i, it := range items {
		if wrong := checkURLs(ctx, known, fmt.Sprintf("%s[%d]", where, i), it.JSON()); wrong != nil {
			return wrong
		}
	}
	return nil
}

func checkURLs(ctx context.Context, known *hosts, where, raw string) *Error {
	c, limited := CallerOf(ctx)
	if !limited {
		return nil
	}
	for _, u := range reach.URLs(raw) {
		if !c.URLs {
			return &Error{Status: http.StatusForbidden, Code: "missing_scope", Type: invalidRequest, Param: where,
				Message: c.Credential() + " may not give URLs that are fetched for it: it lacks the scope 'urls'. Send the content itself, as data or as a file."}
		}
		if why := known.refuse(ctx, u); why != "" {
			return Invalid("invalid_value", where, "Invalid URL in '%s': %s.", where, why)
		}
	}
	return nil
}

// hosts are the hosts of a request that were looked at.
type hosts struct {
	why map[string]string // by host: why not, or ""
}

// lookUp returns the addresses of a name. Tests replace it.
var lookUp = func(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// refuse returns why a URL may not be given, or "".
func (h *hosts) refuse(ctx context.Context, raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return "it is not an http or https URL"
	case u.User != nil:
		return "it names a user, which hides the host"
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	why, known := h.why[name]
	switch {
	case known:
		return why
	case len(h.why) >= mostHosts:
		return fmt.Sprintf("the request names more than %d hosts", mostHosts)
	case h.why == nil:
		h.why = map[string]string{}
	}
	why = refuseHost(ctx, name)
	h.why[name] = why
	return why
}

func refuseHost(ctx context.Context, name string) string {
	const notPublic = "its host is not on the public internet"
	addr, err := netip.ParseAddr(name)
	switch {
	case err == nil && publicip.Special(addr.WithZone("").Unmap()) != "":
		return notPublic
	case err == nil:
		return ""
	case name == "" || publicip.EndsInNumber(name[strings.LastIndexByte(name, '.')+1:]):
		return notPublic
	}
	ctx, stop := context.WithTimeout(ctx, resolveTime)
	defer stop()
	list, err := lookUp(ctx, name)
	if err != nil || len(list) == 0 {
		return "its host has no address"
	}
	for _, addr := range list {
		if publicip.Special(addr.WithZone("").Unmap()) != "" {
			return notPublic
		}
	}
	return ""
}
