// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/session"
)

// Policy is a set of rules about calls. Patterns are tool names, or globs in the
// syntax of path.Match, such as "*".
type Policy struct {
	Allow, Ask, Deny []string
	// Rules can also match the arguments of calls.
	Rules []session.Rule
}

// Question describes a call to the rules.
type Question struct {
	// Tool is the tool's name. Arguments is the call's JSON text or, if Custom is
	// set, free text.
	Tool, Arguments string
	Custom          bool
	// Definition returns the fingerprint of the tool: what it runs, where, and for which
	// agent. See [session.Rule]. It is called only for rules that are bound to a tool, and to
	// suggest rules. If it is nil, the fingerprint is "".
	Definition func() string
	// Declared is the verdict in the tool's declaration, or "". ReadOnly reports
	// whether the tool only reads.
	Declared session.Verdict
	ReadOnly bool
	// Opinion returns the tool's own verdict on the call and the reason, given the
	// rules with a Prefix that name the tool. The verdict is "" if the tool has no
	// opinion. Opinion is nil for tools without opinions. It must be pure.
	Opinion func(rules []session.Rule) (verdict session.Verdict, reason string)
	// Within reports whether a path of the call is in a folder for the tool, with links
	// followed, and whether the tool knows. If it is nil, or the tool does not know, rules
	// with Under compare texts. It may look at files, but must change nothing.
	Within func(folder, path string) (within, known bool)
	// Warning is why a person must be asked although the rules allow the call, or "".
	Warning string
}

// Judge applies the rules, including those that the session remembers, to a call. A
// remembered rule that allows covers exactly its words, and only the tool that it was
// remembered for; see [session.Rule].
// Deny takes precedence over ask, and ask over allow, regardless of which rule is
// more specific. If no rule matches, tools that only read run, and all others ask. No
// rule acknowledges a Warning.
func (p *Policy) Judge(q Question, remembered []session.Rule) Ruling {
	j := p.rule(q, remembered)
	if q.Warning == "" || j.Verdict == session.Deny {
		return j
	}
	own := session.Rule{Verdict: session.Ask, Tool: q.Tool}
	return Ruling{Verdict: session.Ask, Ruled: true, Rule: own.String(), From: ByTool, Reason: q.Warning}
}

// firstRules are the rules that cover a call: the first of each verdict.
type firstRules struct{ deny, ask, allow session.Rule }

func (f *firstRules) add(r session.Rule) {
	first := &f.allow
	switch r.Verdict {
	case "":
		return
	case session.Deny:
		first = &f.deny
	case session.Ask:
		first = &f.ask
	}
	if first.Verdict == "" {
		*first = r
	}
}

// rulesFor returns the rules that cover a call, and those that only the tool's Opinion can apply.
func (p *Policy) rulesFor(q *Question, remembered []session.Rule) (first firstRules, handed []session.Rule) {
	for _, patterns := range [...]struct {
		verdict session.Verdict
		list    []string
	}{{session.Deny, p.Deny}, {session.Ask, p.Ask}, {session.Allow, p.Allow}} {
		if pattern, ok := match(patterns.list, q.Tool); ok {
			first.add(session.Rule{Verdict: patterns.verdict, Tool: pattern, From: "the policy"})
		}
	}
	first.add(session.Rule{Verdict: q.Declared, Tool: q.Tool, From: "the tool's declaration"})
	for i, r := range slices.Concat(p.Rules, remembered) {
		switch answered := i >= len(p.Rules); {
		case r.Verdict == session.Allow && !bound(r, q, answered):
		case q.Opinion != nil && len(r.Prefix) > 0:
			if matches([]string{r.Tool}, q.Tool) {
				handed = append(handed, r)
			}
		case covers(r, q, answered):
			first.add(r)
		}
	}
	return first, handed
}

// rule is Judge without a Warning.
func (p *Policy) rule(q Question, remembered []session.Rule) Ruling {
	first, handed := p.rulesFor(&q, remembered)
	opinion, reason := session.Verdict(""), ""
	if q.Opinion != nil {
		opinion, reason = q.Opinion(handed)
	}
	j, r := Ruling{Ruled: true}, first.deny
	switch { // the order matters: the strictest verdict wins, and the default comes last
	case opinion == session.Deny || first.deny.Verdict != "":
		j.Verdict = session.Deny
	case opinion == session.Ask || first.ask.Verdict != "":
		j.Verdict, r = session.Ask, first.ask
	case opinion == session.Allow || first.allow.Verdict != "":
		j.Verdict, r = session.Allow, first.allow
	case q.ReadOnly:
		return Ruling{Verdict: session.Allow, Rule: "allow what only reads", From: ByDefault}
	default:
		return Ruling{Verdict: session.Ask, Rule: "ask about all that does more than read", From: ByDefault}
	}
	if opinion == j.Verdict {
		j.Reason = reason
		if r.Verdict == "" {
			r = ruleOf(&q, handed, opinion)
		}
	}
	j.Rule, j.From = r.String(), cmp.Or(r.From, "the policy")
	return j
}

// Ruling is the outcome of the rules for a call.
type Ruling struct {
	Verdict session.Verdict
	Ruled   bool   // a rule decided, not the default
	Rule    string // the rule as text
	From    string // the origin of the rule
	Reason  string // the tool's reason, if its verdict is the same; or ""
}

// The origins of verdicts that no rule of a policy or a session gave. No rule that
// allows the tool overrides ByTool.
const (
	ByDefault = "default"
	ByTool    = "the tool itself"
)

// ruleOf returns the rule behind a tool's opinion of a call: the tool's own, one of
// the rules that it was given, or several of them combined.
func ruleOf(q *Question, handed []session.Rule, opinion session.Verdict) session.Rule {
	own := session.Rule{Verdict: opinion, Tool: q.Tool, From: ByTool}
	if v, _ := q.Opinion(nil); v == opinion || len(handed) == 0 {
		return own
	}
	for _, r := range handed {
		if v, _ := q.Opinion([]session.Rule{r}); v == opinion && r.Verdict == opinion {
			return r
		}
	}
	var words, from []string
	for _, r := range handed {
		if r.Verdict == opinion {
			words = append(words, r.String())
			if r.From != "" && !slices.Contains(from, r.From) {
				from = append(from, r.From)
			}
		}
	}
	if len(words) == 0 {
		return own
	}
	own.Tool = strings.TrimPrefix(strings.Join(words, "; "), string(opinion)+" ")
	own.From = strings.Join(from, ", ")
	return own
}

// WhyAsk returns the reason for asking about a call, for people.
func (j Ruling) WhyAsk(name string) string {
	switch {
	case j.Reason != "":
		return j.Reason
	case j.Ruled:
		return "a rule asks about " + name
	}
	return name + " does more than read, and no rule allows it"
}

// Denied returns the text that the model reads about a call that a rule denies.
func (j Ruling) Denied(name string) string {
	if j.Reason != "" {
		return fmt.Sprintf("The call was refused: %s. Nothing was done.", strings.TrimSuffix(j.Reason, "."))
	}
	return fmt.Sprintf("The call was refused: a rule denies %s. Nothing was done.", name)
}

// CheckRules returns an error for the first invalid rule.
func CheckRules(rules ...session.Rule) error {
	for _, r := range rules {
		problem := ""
		switch {
		case r.Verdict != session.Allow && r.Verdict != session.Ask && r.Verdict != session.Deny:
			problem = fmt.Sprintf("verdict %q: want allow, ask or deny", r.Verdict)
		case r.Tool == "":
			problem = "it names no tool"
		case len(r.Prefix) > 0 && r.Under != "":
			problem = "it has both prefix and under"
		case r.Arguments != "" && r.Member != "":
			problem = "it has both arguments and a member"
		case r.Member == "" && (len(r.Prefix) > 0 || r.Under != ""):
			problem = "it has a prefix or under, but no member"
		case r.Member != "" && len(r.Prefix) == 0 && r.Under == "":
			problem = fmt.Sprintf("it names member %q, but has neither prefix nor under", r.Member)
		}
		if _, err := path.Match(r.Tool, ""); err != nil {
			problem = fmt.Sprintf("tool %q: %v", r.Tool, err)
		}
		if problem != "" {
			return fmt.Errorf("rule %q for tool %q: %s", r.Verdict, r.Tool, problem)
		}
	}
	return nil
}

// CheckPatterns returns an error for the first invalid pattern.
func CheckPatterns(patterns ...string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	return nil
}

// match returns the first pattern that matches a name.
func match(patterns []string, name string) (string, bool) {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return p, true
		}
	}
	return "", false
}

func matches(patterns []string, name string) bool {
	_, ok := match(patterns, name)
	return ok
}

// bound reports whether a rule that allows is about the tool of a call: an answer about a
// tool says nothing about another one that took its name. A person may mean a pattern of
// names for all tools, those of later files included.
func bound(r session.Rule, q *Question, answered bool) bool {
	if r.Definition == "" && (!answered || strings.ContainsAny(r.Tool, `*?[\`)) {
		return true
	}
	return r.Definition == q.definition()
}

// definition returns the fingerprint of the question's tool, which is computed once for all
// rules.
func (q *Question) definition() string {
	if q.Definition == nil {
		return ""
	}
	text := q.Definition()
	q.Definition = func() string { return text }
	return text
}

// covers reports whether a rule matches a call. Arguments can be read in several
// ways: a member may occur twice, have another type than the rule expects, or name a
// folder in another way. A rule that allows does not match such a call; a rule that
// denies or asks does, because nothing else may check the arguments: an endpoint may
// run the call. A rule that was answered and allows covers the words that were
// shown, and no others after them.
func covers(r session.Rule, q *Question, answered bool) bool {
	if !matches([]string{r.Tool}, q.Tool) {
		return false
	}
	if r.Arguments != "" {
		all, clear := exactly(q)
		return all == r.Arguments || !clear && r.Verdict != session.Allow
	}
	if r.Member == "" {
		return true
	}
	value, found, clear := argument(q, r.Member)
	if !clear {
		return r.Verdict != session.Allow
	}
	if !found {
		return false
	}
	if r.Under != "" {
		var p string
		if json.Unmarshal(value, &p) != nil {
			return r.Verdict != session.Allow
		}
		return q.under(p, r.Under, r.Verdict == session.Allow)
	}
	var words []string
	if json.Unmarshal(value, &words) != nil {
		return r.Verdict != session.Allow
	}
	if answered && r.Verdict == session.Allow {
		return slices.Equal(words, r.Prefix)
	}
	return len(words) >= len(r.Prefix) && slices.Equal(words[:len(r.Prefix)], r.Prefix)
}

// argument returns a member of a call's arguments, and whether it is there. clear
// reports that there is one way to read the arguments: they are an object, and no
// other member's name differs only in case, because some tools do not distinguish
// them. Free text has no members, and arguments that are missing have none.
func argument(q *Question, name string) (value jsontext.Value, found, clear bool) {
	if q.Custom || strings.Trim(q.Arguments, " \t\r\n") == "" {
		return nil, false, true
	}
	var members map[string]jsontext.Value
	if json.Unmarshal([]byte(q.Arguments), &members) != nil || members == nil {
		return nil, false, false
	}
	for other := range members {
		if other != name && strings.EqualFold(other, name) {
			return nil, false, false
		}
	}
	value, found = members[name]
	return value, found, true
}

// exactly returns all arguments of a call in the form of [session.Rule].Arguments, and
// whether there is one way to read them. Arguments that are missing are those of {}.
func exactly(q *Question) (all string, clear bool) {
	if q.Custom {
		return q.Arguments, true
	}
	v := jsontext.Value(cmp.Or(strings.Trim(q.Arguments, " \t\r\n"), "{}")).Clone()
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil || v.Kind() != '{' {
		return "", false
	}
	return string(v), true
}

// under reports whether a path is in a folder: certainly, or possibly.
func (q *Question) under(p, folder string, certainly bool) bool {
	text := under(p, folder)
	within, known := false, false
	if q.Within != nil {
		within, known = q.Within(folder, p)
	}
	switch {
	case !certainly:
		return text || within || mayBeUnder(p, folder)
	case known:
		return within
	}
	return text
}

// under reports whether a path is the folder or below it, compared by segments. A
// path that begins with ".." is not below any folder.
func under(p, folder string) bool {
	p, folder = path.Clean(strings.ReplaceAll(p, `\`, "/")), path.Clean(folder)
	if p == ".." || strings.HasPrefix(p, "../") {
		return false
	}
	switch folder {
	case ".":
		return !path.IsAbs(p)
	case "/":
		return path.IsAbs(p)
	}
	return p == folder || strings.HasPrefix(p, folder+"/")
}

// mayBeUnder reports whether a path may be in the folder although its text does not
// begin with it: an absolute name of a relative folder, a way around through "..", or
// other letter case, which some file systems ignore.
func mayBeUnder(p, folder string) bool {
	p, folder = path.Clean(strings.ReplaceAll(p, `\`, "/")), path.Clean(folder)
	outside := p == ".." || strings.HasPrefix(p, "../")
	if folder == "." || folder == "/" {
		return outside || path.IsAbs(p) != path.IsAbs(folder)
	}
	segments := func(s string) string { return "/" + strings.Trim(strings.ToLower(s), "/") + "/" }
	return strings.Contains(segments(p), segments(folder))
}

// Suggest returns the rules that an answer about a call could add, the narrowest
// first: calls whose path is in the same folder if the tool knows folders, or else calls
// with the same arguments; and all calls of the tool. Their verdict is allow, and they
// are bound to the tool.
//
// What other members of the arguments mean is only known to the tool: see
// agent.RuleSuggester.
func Suggest(q Question) (list []session.Rule) {
	rule := session.Rule{Verdict: session.Allow, Tool: q.Tool, Definition: q.definition()}
	if r := rule; q.Within != nil {
		if r.Under = q.folder(); r.Under != "" {
			r.Member = "path"
			return append(list, r, rule)
		}
	}
	if all, clear := exactly(&q); clear && all != "{}" && all != "" && len(all) <= mostExactly {
		r := rule
		r.Arguments = all
		list = append(list, r)
	}
	return append(list, rule)
}

// folder returns the folder of the call's path, or "" if the tool does not find the path there.
func (q *Question) folder() string {
	var p string
	if v, ok, clear := argument(q, "path"); !ok || !clear || json.Unmarshal(v, &p) != nil || p == "" {
		return ""
	}
	folder := path.Dir(path.Clean(strings.ReplaceAll(p, `\`, "/")))
	if root, _, named := strings.Cut(p, ":"); named && folder == "." {
		folder = root + ":."
	}
	if within, known := q.Within(folder, p); !within || !known {
		return ""
	}
	return folder
}

// mostExactly is the length of arguments from which on no rule about exactly these is
// suggested: nobody reads them in a list of rules.
const mostExactly = 1000
