// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"path"
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
	// the person who starts the run can do. %s in it stands for the tool's name.
	Hint string
}

// Approver is asked about one call at a time, those of nested runs included. An
// error refuses the call and is told to the model; one that comes of ctx ends
// the run with it, and with [ErrNobody] it is as if there were no Approver.
// [SuggestedRules] has the rules that the answer could leave behind.
type Approver func(ctx context.Context, call tool.Call, traits tool.Traits) (Verdict, error)

// ErrNobody is what an [Approver] returns, by itself or wrapped, when there is
// nobody to ask.
var ErrNobody = errors.New("there is nobody to ask")

// SuggestedRules returns the rules that an answer about a call could leave
// behind, the narrowest first: those of the tool if it is a [Suggester], else
// those of [Suggest]. The last one is about all calls of the tool. It is for an
// [Approver] and takes the context that this one got; any other has none.
func SuggestedRules(ctx context.Context) []session.Rule {
	q, ok := ctx.Value(questionKey{}).(question)
	if !ok {
		return nil
	}
	return suggest(q.tool, q.call)
}

// Allowed reports whether the rules alone would let the call run that an
// [Approver] is asked about. It is for an approver that remembers what it was
// told, also where a rule of the file asks every time, and takes the context that
// this one got.
func Allowed(ctx context.Context, rules ...session.Rule) bool {
	q, ok := ctx.Value(questionKey{}).(question)
	if !ok || len(rules) == 0 {
		return false
	}
	p := Policy{Rules: rules}
	return p.judge(q.tool, q.call, tool.Traits{}, nil).verdict == session.Allow
}

type questionKey struct{}

// question is what an approver is asked about.
type question struct {
	tool tool.Tool
	call tool.Call
}

// Verdict is an answer about a call.
type Verdict struct {
	Allowed bool
	// Reason tells the model why not.
	Reason string
	// By names who answers. It is recorded.
	By string
	// Arguments is what the tool gets in place of what the model sent, "" for
	// that. The model is told.
	Arguments string
	// Remember is a rule for later calls of the session, or nil. See [Suggest].
	Remember *session.Rule
	// Later lets the call wait, as Policy.Pause does.
	Later bool
}

// Judge is implemented by a tool that knows what a rule about its arguments
// covers, such as one that runs commands: of the prefix `ls` that `env rm` is none
// of its calls. Approval gets the rules with a Prefix that name the tool, and
// returns what they and the tool itself say of a call: session.Deny, Ask or Allow,
// or "" for nothing. It counts as one more rule; where it is the one that counts,
// the reason is for the person who is asked and for the model.
type Judge interface {
	tool.Tool
	Approval(call tool.Call, rules []session.Rule) (verdict, reason string)
}

// judgement is what the rules say of a call.
type judgement struct {
	verdict string // session.Allow, Ask or Deny
	ruled   bool   // a rule spoke, and not the default
	reason  string // of the tool's own, if it says the same, or ""
}

// judge applies the rules, and those that the session remembers.
func (p *Policy) judge(t tool.Tool, call tool.Call, traits tool.Traits, remembered []session.Rule) judgement {
	deny, ask, allow := matches(p.Deny, call.Name), matches(p.Ask, call.Name), matches(p.Allow, call.Name)
	add := func(verdict string) {
		deny = deny || verdict == session.Deny
		ask = ask || verdict == session.Ask
		allow = allow || verdict == session.Allow
	}
	add(traits.Approval)
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
				add(r.Verdict)
			}
		}
	}
	opinion, reason := "", ""
	if expert {
		opinion, reason = judge.Approval(call, handed)
		add(opinion)
	}
	j := judgement{verdict: session.Ask, ruled: true}
	switch {
	case deny:
		j.verdict = session.Deny
	case ask:
	case allow:
		j.verdict = session.Allow
	case traits.ReadOnly:
		j = judgement{verdict: session.Allow}
	default:
		j.ruled = false
	}
	if j.ruled && opinion == j.verdict {
		j.reason = reason
	}
	return j
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

// denied is what a model is told of a call that a rule denies.
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
		return Verdict{Reason: j.denied(call.Name)}, false
	case session.Allow:
		return Verdict{Allowed: true}, false
	}
	err := ErrNobody
	if p.Approver != nil {
		v, err = p.Approver(context.WithValue(ctx, questionKey{}, question{t, call}), call, traits)
	}
	switch {
	case errors.Is(err, ErrNobody) && p.Pause:
		return Verdict{Later: true}, false
	case errors.Is(err, ErrNobody):
		return p.unasked("The call was refused: %s needs an approval and there is nobody to give it. Nothing was done.", call.Name), true
	case err == nil && v.Remember != nil:
		err = CheckRules(*v.Remember)
	}
	if err != nil {
		return Verdict{Reason: fmt.Sprintf("The call was refused: no approval could be got: %v. Nothing was done.", err)}, false
	}
	if !v.Allowed && !v.Later && v.Reason == "" {
		v.Reason = refusedByPerson
	}
	return v, false
}

// unasked is a refusal for want of an approver, with the hint.
func (p *Policy) unasked(reason, name string) Verdict {
	reason = fmt.Sprintf(reason, name)
	if p.Hint != "" {
		reason += " " + fmt.Sprintf(p.Hint, name)
	}
	return Verdict{Reason: reason}
}

const refusedByPerson = "The call was refused by the person in charge. Nothing was done."

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}

// CheckPatterns returns an error for the first pattern that is none.
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
