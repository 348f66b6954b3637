// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/person"
)

// This file is about the approval mode of a chat. It belongs to the person in this conversation:
// no file and no log holds it, and it begins anew with the next chat.

// The approval modes.
const (
	modeAsk   = "ask"   // as the rules say
	modeEdits = "edits" // edits of files in the workspace run without a question
	modePlan  = "plan"  // nothing runs that does more than read
)

// modes are the approval modes in the order in which Shift-Tab goes through them.
var modes = []string{modeAsk, modeEdits, modePlan}

var aboutMode = map[string]string{
	modeAsk:   "calls are asked about as the rules say",
	modeEdits: "edits of files in the workspace run without a question; other calls are asked about as the rules say",
	modePlan:  "only calls that read run; all others are refused, whatever allows them",
}

const (
	onlyPlans = "the person wants a plan only: nothing runs now that does more than read"
	plansOnly = "plan"
)

// chooseMode sets the mode, or shows it.
func (t *dialogue) chooseMode(name string) error {
	switch {
	case name == "":
	case !slices.Contains(modes, name):
		return fmt.Errorf("%q is not an approval mode; modes are %s", name, strings.Join(modes, ", "))
	default:
		t.face.setMode(name)
	}
	now := t.face.mode()
	fmt.Fprintf(t.std.Err, "  %s: %s\n", now, aboutMode[now])
	return nil
}

// approve decides by the mode, or asks the person.
func (t *dialogue) approve(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
	switch mode := t.face.mode(); {
	case mode == modePlan && !q.Annotations.ReadOnly:
		return person.ByPerson(agent.Decision{Reason: onlyPlans}, "terminal, in the mode plan"), nil
	case mode == modeEdits && t.edits(ctx, &q):
		const how = "terminal, in the mode edits"
		if q.Rules[0].Under != "" { // a link that is put there now must not lead the call elsewhere
			return person.ByRule(q.Rules[0], how), nil
		}
		return person.ByPerson(agent.Decision{Allow: true}, how), nil
	}
	d, err := t.who.Approve(ctx, q)
	if errors.Is(err, agent.ErrNobody) && (t.handed(ctx) || t.lost() && ctx.Err() == nil) {
		if t.host != nil && q.Session != t.host.Session.ID() {
			t.waiting.postponed(q.Session)
		}
		return agent.Decision{Later: true}, nil // workers ask, or whoever opens the session next
	}
	return d, err
}

// edits reports whether a call does nothing but write to files in the workspace, and to none that a
// person is asked about whatever they allowed.
func (t *dialogue) edits(ctx context.Context, q *agent.ApprovalRequest) bool {
	if len(q.Rules) == 0 || !q.Allows(q.Rules[len(q.Rules)-1]) || q.Session != t.host.Session.ID() || q.Command != nil || q.Sandbox != "" {
		return false // a subagent's tool may be another one of the same name
	}
	a, err := t.host.Agent(ctx)
	if err != nil {
		return false
	}
	set, err := a.ToolSet(ctx)
	if err != nil {
		return false
	}
	one, _ := set.Lookup(q.Call.Name)
	paths := writtenBy(one, q.Call)
	workspace, err := filepath.Abs(t.cfg.Workspace)
	if err != nil {
		return false
	}
	outside := func(path string) bool {
		for _, folder := range []string{workspace, resolved(workspace)} {
			if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
				return false
			}
		}
		return true
	}
	return len(paths) > 0 && !slices.ContainsFunc(paths, outside)
}

// resolved returns a path with its links followed.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// plans refuses calls that rules allow while the mode is plan.
func (t *dialogue) plans(a *agent.Agent) {
	a.Hooks = slices.DeleteFunc(slices.Clone(a.Hooks), func(h agent.Hooks) bool { return h.Name == plansOnly })
	a.Hooks = append(a.Hooks, agent.Hooks{Name: plansOnly, BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
		if t.face.mode() == modePlan && !c.Annotations.ReadOnly {
			return ctx, errors.New(onlyPlans)
		}
		return ctx, nil
	}})
}
