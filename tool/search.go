// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// Search makes the API's own tool search from a function that finds tools, for searches that
// the client performs. The model gets the definitions of the tools that find returns, and may
// call them from then on. They must be among the tools of the agent too, with [Deferred], so
// that the model does not know them before; a search that finds another one fails. If find
// returns no tools, the answer has none. If the definitions are longer than an output may be
// (see [MaxOutput]), the model gets the first ones, so return the best first.
//
// The Execution of def is [item.ExecutionClient]. Its Parameters are the JSON Schema of the
// arguments, which find gets as the model sent them, unchecked, and its Description says what
// to search for.
//
// A search only reads, so it runs without an approval unless a rule asks about it. The
// answer has no place for a text: after an error of find, after a refusal, and if only a part
// is sent, the model reads about it in a message behind the answer.
func Search(def *item.ToolSearchTool, find func(ctx context.Context, arguments string) ([]Tool, error), opts ...Option) (Tool, error) {
	switch {
	case def == nil:
		return nil, fmt.Errorf("tool %s: definition is nil", item.ToolToolSearch)
	case def.Execution != item.ExecutionClient:
		return nil, fmt.Errorf("tool %s: Execution is %q: want %q; a search that the endpoint performs belongs into the Request.Tools of the agent", item.ToolToolSearch, def.Execution, item.ExecutionClient)
	case find == nil:
		return nil, fmt.Errorf("tool %s: function is nil", item.ToolToolSearch)
	}
	return Raw(def, func(ctx context.Context, call Call) (Result, error) {
		found, err := find(ctx, call.Arguments)
		if err != nil {
			return Result{}, err
		}
		set, err := NewSet(distinct(found)...)
		if err != nil {
			return Result{}, err
		}
		defs := set.Definitions()
		for _, def := range defs {
			switch def.(type) {
			case *item.FunctionTool, *item.CustomTool, *item.NamespaceTool:
			default:
				return Result{}, fmt.Errorf("a search finds functions and custom tools, not %s", def.ToolType())
			}
		}
		text := "no tools were found"
		if len(defs) > 0 {
			text = "found: " + strings.Join(set.Names(), ", ")
		}
		return Result{Text: text, Found: defs}, nil
	}, append([]Option{ReadOnly(), Idempotent()}, opts...)...)
}

// distinct leaves out what a search found before: the same tool fits more than one word.
func distinct(found []Tool) []Tool {
	type known struct {
		def   item.Tool
		group *item.NamespaceTool
	}
	before := map[string]known{}
	return slices.DeleteFunc(slices.Clone(found), func(t Tool) bool {
		if nils.Is(t) {
			return false // NewSet reports it
		}
		now := known{t.Definition(), AnnotationsOf(t).Namespace}
		name, err := nameOf(now.def)
		if err != nil {
			return false
		}
		if was, twice := before[name]; twice && reflect.DeepEqual(was, now) {
			return true
		}
		before[name] = now
		return false
	})
}

// undeclared returns an error for definitions that a search found and that are not those of
// tools in the set: the model could not call them, or would call another tool.
func (s *Set) undeclared(found []item.Tool) error {
	for _, def := range found {
		list, group := []item.Tool{def}, (*item.NamespaceTool)(nil)
		if n, ok := def.(*item.NamespaceTool); ok {
			list, group = n.Tools, n
		}
		for _, def := range list {
			name, err := nameOf(def)
			if err != nil {
				return err
			}
			e := s.lookup(name)
			if e == nil {
				return fmt.Errorf("the search found the tool %s, which is not among the tools of the agent: add it to them, with tool.Deferred", name)
			}
			if own := e.annotations.Namespace; (own == nil) != (group == nil) || own != nil && own.Name != group.Name || !reflect.DeepEqual(def, e.def) {
				return fmt.Errorf("the search found another definition of the tool %s than the agent has: both must come from the same tool", name)
			}
		}
	}
	return nil
}
