// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

// ToolSet returns the tools that a request would have now: the agent's Tools and
// Handoffs, followed by those of its ToolSource.
func (a *Agent) ToolSet(ctx context.Context) (*tool.Set, error) {
	set, _, err := a.toolSet(ctx, nil, nil)
	return set, err
}

// toolSet returns the current tools. If the source returns the same tools as before,
// it returns the same set.
func (a *Agent) toolSet(ctx context.Context, set *tool.Set, had []tool.Tool) (*tool.Set, []tool.Tool, error) {
	var found []tool.Tool
	if a.ToolSource != nil {
		var err error
		if found, err = a.ToolSource(ctx); err != nil {
			return nil, nil, fmt.Errorf("agent: cannot get the tools: %w", nils.Err(err))
		}
	}
	if set != nil && slices.EqualFunc(found, had, sameTool) {
		return set, had, nil
	}
	found = slices.Clone(found)
	handoffs, err := a.handoffTools()
	if err != nil {
		return nil, nil, err
	}
	if set, err = tool.NewSet(slices.Concat(a.Tools, handoffs, found)...); err != nil {
		return nil, nil, err
	}
	if err := a.checkChoice(set); err != nil {
		return nil, nil, err
	}
	return set, found, a.checkCallable(set)
}

// checkChoice returns an error if the model must call a tool that the agent does not have. A
// source may return it later.
func (a *Agent) checkChoice(set *tool.Set) error {
	c, err := api.ParseToolChoice(a.Request.ToolChoice)
	if err != nil || a.ToolSource != nil || c.Type != item.ToolFunction && c.Type != item.ToolCustom {
		return nil //nolint:nilerr // checkRequest reports it
	}
	if _, has := set.Lookup(c.Name); has {
		return nil
	}
	return fmt.Errorf("agent: Request.ToolChoice makes the model call %q, and the agent has no such tool. Available: %s", c.Name, cmp.Or(strings.Join(set.Names(), ", "), "none"))
}

// checkCallable returns an error for a tool that nobody could call, because the model would
// not find it, or because only a program of the endpoint may call it and there is none. A
// tool of a type that this module does not know may be the one that is missing.
func (a *Agent) checkCallable(set *tool.Set) error {
	all := slices.DeleteFunc(append(set.Definitions(), a.Request.Tools...), func(def item.Tool) bool { return nils.Is(def) })
	has := func(kind string) bool {
		return slices.ContainsFunc(all, func(def item.Tool) bool {
			_, unknown := def.(*item.UnknownTool)
			return unknown || def.ToolType() == kind
		})
	}
	for _, def := range all {
		list := []item.Tool{def}
		if group, ok := def.(*item.NamespaceTool); ok {
			list = group.Tools
		}
		for _, def := range list {
			if nils.Is(def) {
				continue
			}
			name, deferred, callers := callingOf(def)
			switch {
			case deferred && !has(item.ToolToolSearch):
				return fmt.Errorf("agent: the tool %s is deferred, and there is no tool search by which the model could find it: add &item.ToolSearchTool{} to Request.Tools or tool.Search to Tools, or leave out tool.Deferred", name)
			case len(callers) > 0 && !slices.Contains(callers, item.AllowDirect) && !has(item.ToolProgrammatic):
				return fmt.Errorf("agent: only programs of the endpoint may call the tool %s, and there are none: add &item.ProgrammaticTool{} to Request.Tools, or let the model call it too: tool.Callers(item.AllowDirect, item.AllowProgrammatic)", name)
			}
		}
	}
	return nil
}

// callingOf returns the name of a tool, whether the model has to search for it, and who may
// call it: nil is the endpoint's default.
func callingOf(def item.Tool) (name string, deferred bool, callers []string) {
	isTrue := func(b *bool) bool { return b != nil && *b }
	switch def := def.(type) {
	case *item.FunctionTool:
		return def.Name, isTrue(def.DeferLoading), def.AllowedCallers
	case *item.CustomTool:
		return def.Name, isTrue(def.DeferLoading), def.AllowedCallers
	case *item.MCPTool:
		return def.ServerLabel, isTrue(def.DeferLoading), def.AllowedCallers
	case *item.ShellTool:
		callers = def.AllowedCallers
	case *item.ApplyPatchTool:
		callers = def.AllowedCallers
	case *item.CodeInterpreterTool:
		callers = def.AllowedCallers
	}
	return def.ToolType(), false, callers
}

// sameTool reports whether two tools are the same value. Values that Go cannot
// compare count as different.
func sameTool(a, b tool.Tool) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// equip fetches the current tools. It must not be called while a call runs.
func (r *Run) equip(ctx context.Context) error {
	if r.tools == nil {
		r.marks = Shortened(r.session.Log())
	}
	if r.tools != nil && r.agent.ToolSource == nil && r.offers == r.marks {
		return nil
	}
	base, found, err := r.agent.toolSet(ctx, r.base, r.found)
	if err != nil {
		return err
	}
	if base == r.base && r.offers == r.marks && r.tools != nil {
		return nil
	}
	set, err := base.Keeping(r.outputStore(), r.marks)
	if err != nil {
		return err
	}
	r.base, r.found, r.offers = base, found, r.marks
	if set == r.tools {
		return nil // it already had the tool to read shortened outputs
	}
	r.state.Offer(set.Kinds(), r.tools != nil || r.swapped)
	r.tools, r.swapped = set, false
	r.measure()
	return nil
}
