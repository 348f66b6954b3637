// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/item"
)

// Deferred holds the tool's definition back until the model finds the tool by a search,
// which saves tokens if there are many tools. It needs an endpoint that has tool search, and
// an [item.ToolSearchTool] among the request's tools or [Search]; without either, a run is an
// error.
func Deferred() Option { return func(c *config) { c.deferred = true } }

// Callers says who may call the tool: the model ([item.AllowDirect]), a program that it
// writes ([item.AllowProgrammatic]; see [item.ProgrammaticTool]), or both. Without it the
// endpoint's default applies, which is the model. A run with a tool for programs alone and
// without an [item.ProgrammaticTool] is an error.
func Callers(callers ...string) Option {
	callers = slices.Clone(callers)
	return func(c *config) { c.callers, c.noCallers = callers, len(callers) == 0 }
}

// Namespace puts the tool into a group, which has a name and a description for the model.
// Tools with an equal group are sent together, where the first of them is. The Tools of
// group must be empty. Names of tools stay unique in a [Set]; rules and [Call.Name] do not
// have the group's name. In a run, a call that names another group is a call of an unknown
// tool.
func Namespace(group *item.NamespaceTool) Option {
	if group == nil {
		return func(c *config) { c.noNamespace = true }
	}
	own := *group
	own.Extra = slices.Clone(group.Extra)
	return func(c *config) { c.annotations.Namespace, c.noNamespace = &own, false }
}

// checkDefinition reports options about a definition that cannot be meant.
func (c *config) checkDefinition() error {
	if c.noNamespace {
		return errors.New("namespace: the option Namespace has a nil group: leave it out, or give it one with a Name")
	}
	if c.noCallers {
		return errors.New("callers: nobody could call the tool: leave the option Callers out, or name them")
	}
	for _, name := range c.callers {
		if name != item.AllowDirect && name != item.AllowProgrammatic {
			return fmt.Errorf("callers: there is no caller %q: want %s or %s", name, item.AllowDirect, item.AllowProgrammatic)
		}
	}
	return nil
}

// define adds what the options say to the members of a definition.
func (c *config) define(deferLoading **bool, allowedCallers *[]string) {
	if c.deferred {
		*deferLoading = new(true)
	}
	if len(c.callers) > 0 {
		*allowedCallers = slices.Clone(c.callers)
	}
}

// checkNamespace reports a group that cannot be sent with a definition.
func (a *Annotations) checkNamespace(def item.Tool) error {
	group := a.Namespace
	if group == nil {
		return nil
	}
	switch def.(type) {
	case *item.FunctionTool, *item.CustomTool:
	default:
		return fmt.Errorf("namespace: a group has functions and custom tools, not %s", def.ToolType())
	}
	if len(group.Tools) > 0 {
		return errors.New("namespace: the group has Tools of its own: leave them empty, because those with the option are its tools")
	}
	if err := CheckName(group.Name); err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	if group.Description == "" {
		return fmt.Errorf("namespace %s: the group has no Description, by which the model chooses it: the API requires one", group.Name)
	}
	return nil
}

// grouped appends a definition to a list, inside its group if it has one.
func grouped(list []item.Tool, e *entry) []item.Tool {
	group := e.annotations.Namespace
	if group == nil {
		return append(list, e.def)
	}
	for _, def := range list {
		if n, ok := def.(*item.NamespaceTool); ok && n.Name == group.Name {
			n.Tools = append(n.Tools, e.def)
			return list
		}
	}
	n := *group
	n.Tools = []item.Tool{e.def}
	return append(list, &n)
}
