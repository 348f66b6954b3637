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
// An answer that is remembered covers what was shown: a rule that allows and was
// added by an answer requires all elements of the list to be those of Prefix. A tool
// that runs commands reads such rules itself; see the Approval method of
// shell.Command. With Arguments it covers the calls with exactly these arguments. Such an
// answer is also bound to the tool that it is about, by Definition: a tool of
// the same name with another command, in another folder or of another agent is another
// tool, of which nobody has said anything.
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
	// Arguments are all arguments of a call: canonical JSON with numbers as they were
	// written, or the text of a custom tool call.
	Arguments string `json:"arguments,omitempty"`
	// Definition is the fingerprint of the tool that an answer was about. A rule that
	// allows and has a Definition covers only the tool with that fingerprint. A rule
	// that denies or asks covers the calls of every tool of the name.
	Definition string `json:"definition,omitempty"`
	// From says where the rule comes from, for people and logs: a flag, a place in a
	// file, or the entry of an answer. It does not affect decisions.
	From string `json:"from,omitempty"`
}

// KnownOptions as the last element of a Prefix allows further words of a
// command that are known to be harmless. Tools that run commands define which
// words these are; other tools compare it as plain text.
const KnownOptions = "…"

// String returns the rule in words, such as "deny run_command where argv begins with
// go test". A rule that allows says "is like", because it may cover less than every
// list that begins so.
func (r Rule) String() string {
	s := string(r.Verdict) + " " + r.Tool
	switch {
	case len(r.Prefix) > 0 && r.Verdict == Allow:
		s += " where " + r.Member + " is like " + strings.Join(r.Prefix, " ")
	case len(r.Prefix) > 0:
		s += " where " + r.Member + " begins with " + strings.Join(r.Prefix, " ")
	case r.Under != "":
		s += " where " + r.Member + " is under " + r.Under
	case r.Arguments != "":
		s += " where the arguments are " + r.Arguments
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

// Decider is who or what decided about a call, a file or a start. Code that decides sets
// it; nobody derives it from other texts. The zero value means that it is not known, as in
// older logs.
type Decider string

// The deciders.
const (
	DeciderPerson Decider = "person" // somebody, at a terminal or by an answer that was written down
	DeciderRule   Decider = "rule"   // of a file, a flag, the session or a tool, or the default
	DeciderFlag   Decider = "flag"   // an argument of the program agrees to a file
	DeciderNobody Decider = "nobody" // somebody had to be asked, and nobody could be
	// DeciderUnanswered means that somebody was asked, and nobody answered in time: the call was
	// neither allowed nor refused.
	DeciderUnanswered Decider = "unanswered"
	DeciderProgram    Decider = "program" // a hook, another function of the program, or the program itself
)

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
