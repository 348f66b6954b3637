// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "strings"

// Rule says of later calls what was said of one, or what a file or a flag says
// of all. It is a plain value, for logs and files; package agent evaluates it.
//
// With Tool alone it covers every call of the tools. With Member it covers
// those whose argument of that name begins as given: a list of texts with the
// elements of Prefix, such as the words of a command, or a path that is Under
// or below it.
type Rule struct {
	// Verdict is [Allow], [Ask] or [Deny].
	Verdict string `json:"verdict"`
	// Tool is a tool's name, or a glob over names.
	Tool   string   `json:"tool"`
	Member string   `json:"member,omitempty"`
	Prefix []string `json:"prefix,omitempty"`
	Under  string   `json:"under,omitempty"`
	// From says where the rule comes from, for people and logs: a flag, a place in
	// a file, the entry of an answer. Nothing is decided by it.
	From string `json:"from,omitempty"`
}

// String returns the rule in words, such as "allow run_command where argv begins
// with go test".
func (r Rule) String() string {
	s := r.Verdict + " " + r.Tool
	switch {
	case len(r.Prefix) > 0:
		s += " where " + r.Member + " begins with " + strings.Join(r.Prefix, " ")
	case r.Under != "":
		s += " where " + r.Member + " is under " + r.Under
	}
	return s
}

// DecidedBy says in words, with a space before them, who or which rule decided
// about a call, as [Approval] has it; "" if that is not known.
func DecidedBy(by, from, rule string) string {
	s := ""
	switch {
	case by != "":
		s = " by " + by
	case rule != "":
		s = " by the rule: " + rule
	}
	if from != "" {
		s += " (" + from + ")"
	}
	return s
}

// The verdicts of rules.
const (
	Allow = "allow"
	Ask   = "ask"
	Deny  = "deny"
)
