// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"path"

	"github.com/antiphon-go/antiphon/tool"
)

// Policy says which calls may run. Patterns are tool names, or globs over them
// as path.Match reads them, such as "*". Deny wins over Ask, Ask over Allow;
// without a pattern that fits, tools that only read run and all others ask. The
// zero Policy so lets reading tools run and refuses the rest.
type Policy struct {
	Allow, Ask, Deny []string
	// Approver decides the calls that ask. Without one they are refused.
	Approver Approver
	// Hint is added to the reason of such a refusal: what the person who starts
	// the run can do. %s in it stands for the tool's name.
	Hint string
}

// Approver is asked about one call at a time. An error refuses the call and is
// told to the model; one that comes of ctx ends the run with it.
type Approver func(ctx context.Context, call tool.Call, traits tool.Traits) (Verdict, error)

// Verdict is an answer about a call.
type Verdict struct {
	Allowed bool
	// Reason tells the model why not.
	Reason string
}

// decide returns the verdict on a call, and whether it is a refusal for want of
// an approver.
func (p *Policy) decide(ctx context.Context, call tool.Call, traits tool.Traits) (v Verdict, unasked bool) {
	switch {
	case matches(p.Deny, call.Name):
		return Verdict{Reason: fmt.Sprintf("The call was refused: a rule denies %s. Nothing was done.", call.Name)}, false
	case matches(p.Ask, call.Name):
	case matches(p.Allow, call.Name) || traits.ReadOnly:
		return Verdict{Allowed: true}, false
	}
	if p.Approver == nil {
		reason := fmt.Sprintf("The call was refused: %s needs an approval and there is nobody to give it. Nothing was done.", call.Name)
		if p.Hint != "" {
			reason += " " + fmt.Sprintf(p.Hint, call.Name)
		}
		return Verdict{Reason: reason}, true
	}
	v, err := p.Approver(ctx, call, traits)
	if err != nil {
		return Verdict{Reason: fmt.Sprintf("The call was refused: no approval could be got: %v. Nothing was done.", err)}, false
	}
	if !v.Allowed && v.Reason == "" {
		v.Reason = "The call was refused by the person in charge. Nothing was done."
	}
	return v, false
}

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
