// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "strings"

// Rule is an approval rule for later calls, which a person, a file or a flag has
// set. It is a plain value, for logs and files; package agent evaluates it.
//
// With Tool alone it covers every call of the tools. With Member it covers calls
// whose argument of that name matches: a list of texts that begins with the elements
// of Prefix, such as the words of a command, or a path that is equal to Under or
// below it.
//
// A rule that denies or asks also holds for arguments that can be read in several
// ways: text that is not an object, a member that occurs twice or has another type, a
// path that may be in the folder. A rule that allows does not hold for them.
type Rule struct {
	// Verdict is [Allow], [Ask] or [Deny].
	Verdict Verdict `json:"verdict"`
	// Tool is a tool's name, or a glob over names.
	Tool   string   `json:"tool"`
	Member string   `json:"member,omitempty"`
	Prefix []string `json:"prefix,omitempty"`
	Under  string   `json:"under,omitempty"`
	// From says where the rule comes from, for people and logs: a flag, a place in a
	// file, or the entry of an answer. It does not affect decisions.
	From string `json:"from,omitempty"`
}

// String returns the rule in words, such as "allow run_command where argv begins
// with go test".
func (r Rule) String() string {
	s := string(r.Verdict) + " " + r.Tool
	switch {
	case len(r.Prefix) > 0:
		s += " where " + r.Member + " begins with " + strings.Join(r.Prefix, " ")
	case r.Under != "":
		s += " where " + r.Member + " is under " + r.Under
	}
	return s
}

// DecidedBy returns the person or rule that decided about a call, in words and with
// a leading space. It takes the members of [Approval], and returns "" if the decider
// is not known.
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

// Verdict is the decision of a rule, a tool or a tool's declaration whether a call
// may run. The zero Verdict expresses no opinion. Logs and files hold the text
// itself.
type Verdict string

// The verdicts. Deny wins over Ask, and Ask over Allow.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// Stricter reports whether v wins over o: see the constants.
func (v Verdict) Stricter(o Verdict) bool { return v.rank() > o.rank() }

func (v Verdict) rank() int {
	switch v {
	case Allow:
		return 1
	case Ask:
		return 2
	case Deny:
		return 3
	}
	return 0
}
