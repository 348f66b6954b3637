// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// requestMembers are the members of a request that a profile can name. Members that only gateways
// know are not listed. A name that is almost the same as one of these is taken for a typing error.
var requestMembers = []string{
	"model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "store", "background",
	"include", "max_output_tokens", "max_tool_calls", "temperature", "top_p", "top_logprobs", "reasoning", "text",
	"previous_response_id", "conversation", "context_management", "prompt", "prompt_cache_key", "prompt_cache_options",
	"prompt_cache_retention", "moderation", "safety_identifier", "service_tier", "truncation", "user", "metadata", "stop",
}

// flaw returns the problem with a member of a profile that the kind of its value does not show, and
// what to write instead. It returns "" if there is no problem.
func (p *Profile) flaw(member string, t *Table) (problem, hint string) {
	switch member {
	case "hosts":
		for _, h := range p.Hosts {
			if problem, hint = hostFlaw(h); problem != "" {
				return problem, hint
			}
			for other := range t.all {
				if other.Name != p.Name && slices.Contains(other.Hosts, h) && t.own(other.Name) {
					return fmt.Sprintf("%q is also a host of profile %q", h, other.Name), ""
				}
			}
		}
	case "fallback":
		if p.Fallback == p.Name {
			return "a profile cannot be its own fallback", ""
		}
		if _, err := t.ByName(p.Fallback); p.Fallback != "" && err != nil {
			return err.Error(), "define a fallback before the profiles that name it"
		}
	case "roles":
		for from, to := range p.Roles {
			for _, role := range []string{from, to} {
				if !slices.Contains([]string{"user", "assistant", "system", "developer"}, role) {
					return fmt.Sprintf("unknown role %q", role), "write user, assistant, system or developer"
				}
			}
		}
	case "efforts":
		for _, e := range p.Efforts {
			if !slices.Contains(efforts, e) {
				return fmt.Sprintf("unknown effort %q", e), "write one of " + strings.Join(efforts, ", ")
			}
		}
	case "omit", "refuse", "set":
		return p.memberFlaw(member)
	}
	return "", ""
}

// own reports whether the table's file defines the profile.
func (t *Table) own(name string) bool { return t.replaced(name) }

func hostFlaw(h string) (problem, hint string) {
	const example = `write a host such as "llm.example.com", ".example.com" or ":8080"`
	if strings.Contains(h, "://") || strings.ContainsAny(h, "@?# *") || h == "" || h == "." {
		return fmt.Sprintf("%q is not a host", show(h)), example
	}
	host, _, _ := strings.Cut(h, "/")
	if _, port, ok := cutPort(host); ok {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Sprintf("%q has no valid port", show(h)), example
		}
	}
	return "", ""
}

// memberFlaw checks the names of request members in a list of the profile.
func (p *Profile) memberFlaw(list string) (problem, hint string) {
	names := map[string][]string{"omit": p.Omit, "refuse": p.Refuse}[list]
	if list == "set" {
		for name := range p.Set {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	for _, name := range names {
		if hint := suggest(name, requestMembers); strings.HasPrefix(hint, "did you") && !slices.Contains(requestMembers, name) {
			return fmt.Sprintf("unknown member %q", name), hint
		}
		if list != "set" && (name == "model" || name == "input") {
			return fmt.Sprintf("every request needs %q", name), ""
		}
		if _, set := p.Set[name]; set && slices.Contains(p.Omit, name) {
			return fmt.Sprintf("%q is in both set and omit", name), ""
		}
	}
	if v := p.Set["stream"]; list == "set" && v != "" && v != "true" && v != "false" {
		return fmt.Sprintf("stream is %s", v), "write true or false"
	}
	return "", ""
}
