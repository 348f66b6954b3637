// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Policy says which calls may run. Patterns are tool names, or globs over them
// as path.Match reads them, such as "*". Patterns, Rules and what was remembered
// in the session are one set, together with what the tool's declaration says (see
// tool.Traits.Approval): deny wins over ask, ask over allow, whichever is more
// exact. Without one that fits, tools that only read run and all others
// ask. The zero Policy so lets reading tools run and refuses the rest. What it
// denies is denied to nested runs as well.
type Policy struct {
	Allow, Ask, Deny []string
	// Rules are rules about calls, by their arguments too.
	Rules []session.Rule
	// Approver decides the calls that ask. Without one they are refused, unless
	// Pause is set.
	Approver Approver
	// Pause lets the calls that ask wait if there is no Approver: the others
	// run, and then the run stops with [ApprovalWanted]. See [Decide]. In a nested
	// run whose session is not kept (see [session.Session.KeepsNested]) they are
	// refused, for nobody could answer them later.
	Pause bool
	// Hint is added to the reason of a refusal for want of an approver: what
	// the person who starts the run can do about calls of the tool. Nil adds nothing.
	Hint func(tool string) string
}

// ApprovalRequest is a call that somebody is asked about.
type ApprovalRequest struct {
	Call   tool.Call
	Traits tool.Traits
	// Reason says why it is asked about.
	Reason string
	// Rules are what an answer could leave behind, the narrowest first: those of the
	// tool if it is a [Suggester], else those of [Suggest]. The last one is about all
	// calls of the tool.
	Rules []session.Rule
	// Command is what would run if the call were allowed, nil if its tool is not a
	// [Commander]. An approver should show it: nobody can judge a call by half of its
	// command.
	Command []string

	tool tool.Tool
}

// Allows reports whether the rules alone would let the call run. It is for an
// approver that remembers what it was told, also where a rule of the file asks
// every time.
func (q *ApprovalRequest) Allows(rules ...session.Rule) bool {
	if len(rules) == 0 {
		return false
	}
	p := Policy{Rules: rules}
	return p.judge(q.tool, q.Call, tool.Traits{}, nil).verdict == session.Allow
}

// Approver is asked about one call at a time, those of nested runs included. An
// error refuses the call, and the model reads it; an error of ctx ends the run
// with it, and with [ErrNobody] it is as if there were no Approver.
type Approver func(ctx context.Context, q ApprovalRequest) (Verdict, error)

// ErrNobody is what an [Approver] returns, by itself or wrapped, when there is
// nobody to ask.
var ErrNobody = errors.New("there is nobody to ask")

// Commander is implemented by a tool whose calls run a command that their
// arguments do not show whole, such as one that puts its own words first.
type Commander interface {
	tool.Tool
	// Command returns the program and its arguments as the call would run them, nil
	// if the call cannot be read.
	Command(call tool.Call) []string
}

func commandOf(t tool.Tool, call tool.Call) []string {
	if c, ok := t.(Commander); ok {
		return c.Command(call)
	}
	return nil
}

// Verdict is an answer about a call.
type Verdict struct {
	Allowed bool
	// Reason tells the model why not.
	Reason string
	// By names who answers, and From says how, such as "terminal". Both are
	// recorded.
	By, From string
	// Arguments is what the tool gets in place of what the model sent, "" for
	// that. The model is told.
	Arguments string
	// Remember is a rule for later calls of the session, or nil. See [Suggest].
	Remember *session.Rule
	// Later lets the call wait, as Policy.Pause does.
	Later bool

	rule string // that decided, if no person was asked
}

// Judge is implemented by a tool that knows what a rule about its arguments
// covers, such as one that runs commands: a rule for the prefix `ls` does not
// cover a call that runs `env rm`. Approval gets the rules with a Prefix that
// name the tool, and returns what they and the tool itself say of a call:
// session.Deny, Ask or Allow, or "" for nothing. It counts as one more rule;
// where it is the one that counts, the reason is for the person who is asked and
// for the model.
type Judge interface {
	tool.Tool
	Approval(call tool.Call, rules []session.Rule) (verdict, reason string)
}

// judgement is what the rules say of a call.
type judgement struct {
	verdict string // session.Allow, Ask or Deny
	ruled   bool   // a rule spoke, and not the default
	rule    string // that rule in words, and where it comes from
	from    string
	reason  string // of the tool's own, if it says the same, or ""
}

// judge applies the rules, and those that the session remembers.
func (p *Policy) judge(t tool.Tool, call tool.Call, traits tool.Traits, remembered []session.Rule) judgement {
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
		if pattern, ok := match(patterns.list, call.Name); ok {
			add(session.Rule{Verdict: patterns.verdict, Tool: pattern, From: "the policy"})
		}
	}
	add(session.Rule{Verdict: traits.Approval, Tool: call.Name, From: "the tool's declaration"})
	judge, expert := t.(Judge)
	var handed []session.Rule
	for _, list := range [...][]session.Rule{p.Rules, remembered} {
		for _, r := range list {
			switch {
			case expert && len(r.Prefix) > 0:
				if matches([]string{r.Tool}, call.Name) {
					handed = append(handed, r)
				}
			case covers(r, call):
				add(r)
			}
		}
	}
	opinion, reason := "", ""
	if expert {
		opinion, reason = judge.Approval(call, handed)
	}
	j, r := judgement{ruled: true}, deny
	switch {
	case opinion == session.Deny || deny.Verdict != "":
		j.verdict = session.Deny
	case opinion == session.Ask || ask.Verdict != "":
		j.verdict, r = session.Ask, ask
	case opinion == session.Allow || allow.Verdict != "":
		j.verdict, r = session.Allow, allow
	case traits.ReadOnly:
		return judgement{verdict: session.Allow, rule: "allow what only reads", from: byDefault}
	default:
		return judgement{verdict: session.Ask, rule: "ask about all that does more than read", from: byDefault}
	}
	if opinion == j.verdict {
		j.reason = reason
		if r.Verdict == "" {
			r = ruleOf(judge, call, handed, opinion)
		}
	}
	j.rule, j.from = r.String(), cmp.Or(r.From, "the policy")
	return j
}

// byDefault is where a verdict comes from that no rule gave.
const byDefault = "default"

// ruleOf finds the rule by which a tool came to its opinion of a call: none but
// its own, one of those that it was handed, or several of them together.
func ruleOf(judge Judge, call tool.Call, handed []session.Rule, opinion string) session.Rule {
	own := session.Rule{Verdict: opinion, Tool: call.Name, From: "the tool itself"}
	if v, _ := judge.Approval(call, nil); v == opinion || len(handed) == 0 {
		return own
	}
	for _, r := range handed {
		if v, _ := judge.Approval(call, []session.Rule{r}); v == opinion && r.Verdict == opinion {
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

// whyAsk tells people why a call is asked about.
func (j judgement) whyAsk(name string) string {
	switch {
	case j.reason != "":
		return j.reason
	case j.ruled:
		return "a rule asks about " + name
	}
	return name + " does more than read, and no rule allows it"
}

// denied is what a model reads about a call that a rule denies.
func (j judgement) denied(name string) string {
	if j.reason != "" {
		return fmt.Sprintf("The call was refused: %s. Nothing was done.", strings.TrimSuffix(j.reason, "."))
	}
	return fmt.Sprintf("The call was refused: a rule denies %s. Nothing was done.", name)
}

// decide returns the verdict on a call, and whether it is a refusal for want of
// an approver.
func (p *Policy) decide(ctx context.Context, t tool.Tool, call tool.Call, traits tool.Traits, j judgement) (v Verdict, unasked bool) {
	switch j.verdict {
	case session.Deny:
		return Verdict{Reason: j.denied(call.Name), rule: j.rule, From: j.from}, false
	case session.Allow:
		return Verdict{Allowed: true, rule: j.rule, From: j.from}, false
	}
	err := ErrNobody
	if p.Approver != nil {
		v, err = p.Approver(ctx, ApprovalRequest{Call: call, Traits: traits, Reason: j.whyAsk(call.Name), Rules: suggest(t, call), Command: commandOf(t, call), tool: t})
	}
	switch {
	case errors.Is(err, ErrNobody) && p.Pause:
		return Verdict{Later: true}, false
	case errors.Is(err, ErrNobody):
		return p.unasked("The call was refused: %s needs an approval and there is nobody to give it. Nothing was done.", call.Name, j), true
	case err == nil && v.Remember != nil:
		err = CheckRules(*v.Remember)
	}
	if err != nil {
		return Verdict{Reason: fmt.Sprintf("The call was refused: no approval could be got: %v. Nothing was done.", err), rule: j.rule, From: j.from}, false
	}
	if v.By == "" && v.From == "" {
		v.From = "the approver"
	}
	if !v.Allowed && !v.Later && v.Reason == "" {
		v.Reason = refusedByPerson
	}
	return v, false
}

// unasked is a refusal for want of an approver, with the hint.
func (p *Policy) unasked(reason, name string, j judgement) Verdict {
	reason = fmt.Sprintf(reason, name)
	if p.Hint != nil {
		reason += " " + p.Hint(name)
	}
	return Verdict{Reason: reason, rule: j.rule, From: j.from}
}

const refusedByPerson = "The call was refused by the person in charge. Nothing was done."

func matches(patterns []string, name string) bool {
	_, ok := match(patterns, name)
	return ok
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

// CheckPatterns returns an error for the first invalid pattern.
func CheckPatterns(patterns ...string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	return nil
}

func (p *Policy) check() error {
	for _, patterns := range [][]string{p.Allow, p.Ask, p.Deny} {
		if err := CheckPatterns(patterns...); err != nil {
			return fmt.Errorf("agent: policy: %w", err)
		}
	}
	if err := CheckRules(p.Rules...); err != nil {
		return fmt.Errorf("agent: policy: %w", err)
	}
	return nil
}
