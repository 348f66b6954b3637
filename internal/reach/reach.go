// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package reach finds what an item makes an endpoint do: use tools, and fetch from addresses. The endpoint may
// run on the person's machine, and then it reaches what only this machine reaches. Files of agents, imports
// and transcripts need one rule.
package reach

import (
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// Tools returns the tools that an item gives to the model and that are not run by the client, such
// as an MCP server to which the endpoint connects. Most items give none.
func Tools(it item.Item) []item.Tool {
	value, _ := it.Decode() // what cannot be read gives no tools
	switch v := value.(type) {
	case *item.AdditionalTools:
		return toolsOf(v.Tools)
	case *item.ToolSearchOutput:
		return toolsOf(v.Tools)
	}
	return nil
}

func toolsOf(defs []item.Tool) (list []item.Tool) {
	for _, def := range defs {
		if space, ok := def.(*item.NamespaceTool); ok {
			list = append(list, toolsOf(space.Tools)...)
		} else if ByEndpoint(def) {
			list = append(list, def)
		}
	}
	return list
}

// ByEndpoint reports whether the client runs no calls of a tool. A namespace counts if this is so of one of
// its tools.
func ByEndpoint(def item.Tool) bool {
	switch d := def.(type) {
	case *item.FunctionTool, *item.CustomTool:
		return false
	case *item.NamespaceTool:
		return len(toolsOf(d.Tools)) > 0
	}
	return true
}

// Of returns a definition of a tool as an item, so that one rule is for both.
func Of(def item.Tool) item.Item {
	it, _ := item.New(&item.AdditionalTools{Role: item.RoleDeveloper, Tools: []item.Tool{def}}) // one that cannot be encoded is not sent
	return it
}

// Unasked reports whether an item gives a tool to the model whose calls an endpoint makes without asking for
// approval, or with other words than the API has for it.
func Unasked(it item.Item) bool {
	d := jsontext.NewDecoder(strings.NewReader(it.JSON()), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		kind, n := d.StackIndex(d.StackDepth())
		t, err := d.ReadToken()
		if err != nil {
			return false
		}
		if kind != '{' || n%2 != 0 || t.Kind() != '"' {
			continue
		}
		switch name := t.String(); strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name)) {
		case "requireapproval":
			value, err := d.ReadValue()
			if err != nil || name != "require_approval" || string(value) != string(item.ApprovalAlways) {
				return true
			}
		case "parameters", "outputschema": // schemas of functions may name anything
			if d.SkipValue() != nil {
				return true
			}
		}
	}
}

// Sites returns the sites from which an item makes an endpoint fetch, each once: the scheme and the host
// of members such as image_url and file_url, however deep they are, as texts or as the url of an object. An
// address without a host is returned as it is. Data is not fetched.
func Sites(it item.Item) (sites []string) {
	d := jsontext.NewDecoder(strings.NewReader(it.JSON()), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var fetched []bool // for each object or array, whether its member url is fetched
	member := ""
	for {
		isName := false
		if kind, n := d.StackIndex(d.StackDepth()); kind == '{' {
			isName = n%2 == 0
		} else {
			member = ""
		}
		t, err := d.ReadToken()
		if err != nil {
			return sites
		}
		switch t.Kind() {
		case '{', '[':
			fetched = append(fetched, isAddress(member))
		case '}', ']':
			fetched = fetched[:len(fetched)-1]
		case '"':
			s := t.String()
			if isName {
				member = strings.ToLower(s)
				continue
			}
			in := len(fetched) > 0 && fetched[len(fetched)-1] && member == "url"
			if (in || isAddress(member)) && isFetched(s) {
				if s = SiteOf(s); !slices.Contains(sites, s) {
					sites = append(sites, s)
				}
			}
		}
		member = ""
	}
}

// isAddress reports whether the value of a member is fetched. Servers may ignore letter case.
func isAddress(member string) bool { return strings.HasSuffix(member, "_url") }

// isFetched reports whether an address has a scheme, and is not data. A name without one is that of a local
// file that was not read yet.
func isFetched(address string) bool {
	scheme, _, ok := strings.Cut(strings.TrimSpace(address), ":")
	return (ok && len(scheme) > 1 && !strings.ContainsAny(scheme, "/\\") || strings.HasPrefix(scheme, "//")) && !strings.EqualFold(scheme, "data")
}

// SiteOf returns the scheme and the host of an address, or all of one without a host.
func SiteOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return address
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}
