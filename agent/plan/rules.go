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

// Policy is a set of rules about calls. Patterns are tool names, or globs over them
// as path.Match reads them, such as "*".
type Policy struct {
	Allow, Ask, Deny []string
	// Rules are rules about calls, by their arguments too.
	Rules []session.Rule
}

// Question is a call as rules see it.
type Question struct {
	// Tool is its name. Arguments is the JSON text or, if Custom is set, free text.
	Tool, Arguments string
	Custom          bool
	// Declared is the verdict of the tool's declaration, "" for none. ReadOnly says
	// that the tool only reads.
	Declared string
	ReadOnly bool
	// Opinion is what the tool itself says of the call and of the rules with a Prefix
	// that name it: a verdict, or "" for nothing, and why. It is nil for a tool that
	// says nothing. It must be pure.
	Opinion func(rules []session.Rule) (verdict, reason string)
}

// Judge says what the rules say of a call, with those that the session remembers:
// deny wins over ask, and ask over allow, whichever is more exact. Where none fits,
// tools that only read run and all others ask.
func (p *Policy) Judge(q Question, remembered []session.Rule) Judgement {
	var deny, ask, allow session.Rule // the first of each verdict
	add := func(r session.Rule) {
		first := &allow
		switch r.Verdict {
		case "":
			return
		case session.Deny:
			first = &deny
		case session.Ask:
			first = &ask
		}
		if first.Verdict == "" {
			*first = r
		}
	}
	for _, patterns := range [...]struct {
		verdict string
		list    []string
	}{{session.Deny, p.Deny}, {session.Ask, p.Ask}, {session.Allow, p.Allow}} {
		if pattern, ok := match(patterns.list, q.Tool); ok {
			add(session.Rule{Verdict: patterns.verdict, Tool: pattern, From: "the policy"})
		}
	}
	add(session.Rule{Verdict: q.Declared, Tool: q.Tool, From: "the tool's declaration"})
	expert := q.Opinion != nil
	var handed []session.Rule
	for _, list := range [...][]session.Rule{p.Rules, remembered} {
		for _, r := range list {
			switch {
			case expert && len(r.Prefix) > 0:
				if matches([]string{r.Tool}, q.Tool) {
					handed = append(handed, r)
				}
			case covers(r, &q):
				add(r)
			}
		}
	}
	opinion, reason := "", ""
	if expert {
		opinion, reason = q.Opinion(handed)
	}
	j, r := Judgement{Ruled: true}, deny
	switch {
	case opinion == session.Deny || deny.Verdict != "":
		j.Verdict = session.Deny
	case opinion == session.Ask || ask.Verdict != "":
		j.Verdict, r = session.Ask, ask
	case opinion == session.Allow || allow.Verdict != "":
		j.Verdict, r = session.Allow, allow
	case q.ReadOnly:
		return Judgement{Verdict: session.Allow, Rule: "allow what only reads", From: ByDefault}
	default:
		return Judgement{Verdict: session.Ask, Rule: "ask about all that does more than read", From: ByDefault}
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

// Judgement is what the rules say of a call.
type Judgement struct {
	Verdict string // session.Allow, Ask or Deny
	Ruled   bool   // a rule spoke, and not the default
	Rule    string // that rule in words
	From    string // where it comes from
	Reason  string // of the tool's own, if it says the same, or ""
}

// ByDefault is where a verdict comes from that no rule gave.
const ByDefault = "default"

// ruleOf finds the rule by which a tool came to its opinion of a call: none but
// its own, one of those that it was handed, or several of them together.
func ruleOf(q *Question, handed []session.Rule, opinion string) session.Rule {
	own := session.Rule{Verdict: opinion, Tool: q.Tool, From: "the tool itself"}
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
	own.Tool = strings.TrimPrefix(strings.Join(words, "; "), opinion+" ")
	own.From = strings.Join(from, ", ")
	return own
}

// WhyAsk tells people why a call is asked about.
func (j Judgement) WhyAsk(name string) string {
	switch {
	case j.Reason != "":
		return j.Reason
	case j.Ruled:
		return "a rule asks about " + name
	}
	return name + " does more than read, and no rule allows it"
}

// Denied is what a model reads about a call that a rule denies.
func (j Judgement) Denied(name string) string {
	if j.Reason != "" {
		return fmt.Sprintf("The call was refused: %s. Nothing was done.", strings.TrimSuffix(j.Reason, "."))
	}
	return fmt.Sprintf("The call was refused: a rule denies %s. Nothing was done.", name)
}

// CheckRules returns an error for the first rule that means nothing.
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
		case r.Member == "" && (len(r.Prefix) > 0 || r.Under != ""):
			problem = "it does not name the member that its prefix is of"
		case r.Member != "" && len(r.Prefix) == 0 && r.Under == "":
			problem = fmt.Sprintf("it does not say how member %q begins", r.Member)
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

// match returns the first pattern that a name fits.
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

// covers reports whether a rule is about a call. What cannot be read of the
// arguments is not covered by a rule about them; a call with such arguments is
// not run by any tool that checks them.
func covers(r session.Rule, q *Question) bool {
	if !matches([]string{r.Tool}, q.Tool) {
		return false
	}
	if r.Member == "" {
		return true
	}
	value, ok := argument(q, r.Member)
	if !ok {
		return false
	}
	if r.Under != "" {
		var p string
		return json.Unmarshal(value, &p) == nil && under(p, r.Under)
	}
	var words []string
	return json.Unmarshal(value, &words) == nil && len(words) >= len(r.Prefix) && slices.Equal(words[:len(r.Prefix)], r.Prefix)
}

// argument returns a member of a call's arguments. One whose name differs from
// another's in the case of letters only is not told apart by every tool, so
// then there is none.
func argument(q *Question, name string) (jsontext.Value, bool) {
	var members map[string]jsontext.Value
	if q.Custom || json.Unmarshal([]byte(q.Arguments), &members) != nil {
		return nil, false
	}
	for other := range members {
		if other != name && strings.EqualFold(other, name) {
			return nil, false
		}
	}
	value, ok := members[name]
	return value, ok
}

// under reports whether a path is the folder or below it, segment by segment.
// A path that climbs is below nothing.
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

// Suggest returns rules that an answer about a call could leave behind, the
// narrowest first: calls whose command begins alike or whose path is in the same
// folder, and all calls of the tool. Their verdict is allow.
//
// A tool can know better: see [Suggester].
func Suggest(q Question) []session.Rule {
	rule := session.Rule{Verdict: session.Allow, Tool: q.Tool}
	var list []session.Rule
	for _, name := range []string{"argv", "command"} {
		var words []string
		if v, ok := argument(&q, name); ok && json.Unmarshal(v, &words) == nil && len(words) > 0 {
			n := 1
			if len(words) > 1 && !strings.HasPrefix(words[1], "-") {
				n = 2
			}
			r := rule
			r.Member, r.Prefix = name, words[:n]
			list = append(list, r)
		}
	}
	var p string
	if v, ok := argument(&q, "path"); ok && json.Unmarshal(v, &p) == nil && p != "" {
		r := rule
		r.Member, r.Under = "path", path.Dir(path.Clean(p))
		if under(p, r.Under) {
			list = append(list, r)
		}
	}
	return append(list, rule)
}
