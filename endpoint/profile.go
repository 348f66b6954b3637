// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/url"
	"slices"
	"strings"
)

// DefaultBaseURL is where requests go when nothing else is said.
const DefaultBaseURL = "https://api.openai.com/v1"

// Profile says how one kind of endpoint differs from the others. It is data: a
// new kind of endpoint is a new value, not new code.
type Profile struct {
	// Name is for people.
	Name string
	// Hosts are the hosts the profile is for, compared as a whole. One that
	// begins with a dot stands for all hosts below it.
	Hosts []string
	// BasePath is the path of a base URL that is given as a bare host.
	BasePath string
	// ResponsesPath is where responses are created, below the base URL.
	ResponsesPath string
	// Omit names the members of a request that the endpoint refuses; they are
	// left out of the body.
	Omit []string
	// KeyHint says where a key comes from, for error messages.
	KeyHint string
}

// Generic is an endpoint of which nothing special is known, such as a local
// server or a gateway.
var Generic = Profile{
	Name:          "generic",
	BasePath:      "/v1",
	ResponsesPath: "/responses",
	KeyHint:       "set OPENAI_API_KEY to the key of this server",
}

// profiles are the known kinds of endpoint.
var profiles = []Profile{
	{
		Name:          "openai",
		Hosts:         []string{"api.openai.com", ".api.openai.com"},
		BasePath:      "/v1",
		ResponsesPath: "/responses",
		KeyHint:       "set OPENAI_API_KEY to a key from https://platform.openai.com/api-keys",
	},
	{
		Name:          "azure",
		Hosts:         []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"},
		BasePath:      "/openai/v1",
		ResponsesPath: "/responses",
		KeyHint:       "set OPENAI_API_KEY to a key of this Azure resource",
	},
}

// Detect returns the profile for a base URL, by its host: compared label by
// label, never as a substring. Unknown hosts are [Generic].
func Detect(base *url.URL) Profile {
	host := strings.ToLower(strings.TrimSuffix(base.Hostname(), "."))
	for _, p := range profiles {
		if slices.ContainsFunc(p.Hosts, func(h string) bool { return matchHost(h, host) }) {
			return p
		}
	}
	return Generic
}

func matchHost(pattern, host string) bool {
	if strings.HasPrefix(pattern, ".") {
		return strings.HasSuffix(host, pattern) && len(host) > len(pattern)
	}
	return host == pattern
}
