// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Set is the tools that a model may call, by name, in the order they were
// given. It is immutable and safe for concurrent use. A nil Set has no tools.
type Set struct {
	entries []*entry
	byName  map[string]*entry
	spill   Spill // of the set's ReadOutput
}

type entry struct {
	name        string
	tool        Tool
	def         item.Tool
	kind        item.Type // of the calls of one of the API's own tools, or ""
	annotations Annotations
	// schema checks the arguments of a function tool that does not do so
	// itself, but for patterns; nil otherwise.
	schema *schema
}

// selfChecking marks the tools of this package, whose Run checks arguments.
type selfChecking interface{ checksArguments() }

// keeper is a tool that reads what was left out of outputs.
type keeper interface{ keeps() Spill }

// NewSet makes a set. It fails on a name that the API would refuse, on a name
// that occurs twice, and on a definition that is neither a function nor a
// custom tool nor one of the API's own that can be run here. Arguments of a tool that another package implements are checked
// against its schema, but for patterns; those of [New] and [Raw] are checked
// whole.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{byName: make(map[string]*entry, len(tools))}
	for i, t := range tools {
		if t == nil {
			return nil, fmt.Errorf("tool %d is nil", i+1)
		}
		e, err := newEntry(t)
		if err != nil {
			return nil, err
		}
		if s.byName[e.name] != nil {
			return nil, fmt.Errorf("tool %s is declared twice", e.name)
		}
		if k, ok := t.(keeper); ok {
			s.spill = k.keeps()
		}
		s.byName[e.name] = e
		s.entries = append(s.entries, e)
	}
	return s, nil
}

func newEntry(t Tool) (*entry, error) {
	def := t.Definition()
	name, err := nameOf(def)
	if err != nil {
		return nil, err
	}
	kind, _ := item.CallKindOf(def)
	e := &entry{name: name, tool: t, def: def, kind: kind.Call, annotations: AnnotationsOf(t)}
	f, isFunction := def.(*item.FunctionTool)
	if !isFunction {
		return e, nil
	}
	f = complete(f, nil)
	e.def = f
	if _, ok := t.(selfChecking); !ok {
		if e.schema, err = schemaOf(f, nil); err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
	}
	return e, nil
}

func (s *Set) lookup(name string) *entry {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// kept is where outputs are kept that are too long, or nil.
func (s *Set) kept() Spill {
	if s == nil {
		return nil
	}
	return s.spill
}

// Keeping returns a set whose outputs are kept in spill where they are shortened.
// With offer it also has the tool of [ReadOutput] for them. Without it the marks
// name a tool that is not there: whoever made the set offers it with the next
// request. A set is returned as it is if it has no tools, a ReadOutput of its
// own, or another tool of that name.
func (s *Set) Keeping(spill Spill, offer bool) (*Set, error) {
	if s.Len() == 0 || s.spill != nil || s.lookup(ReadOutputName) != nil {
		return s, nil
	}
	kept := &Set{entries: slices.Clone(s.entries), byName: maps.Clone(s.byName), spill: spill}
	if offer {
		e, err := newEntry(ReadOutput(spill))
		if err != nil {
			return nil, err
		}
		kept.entries, kept.byName[e.name] = append(kept.entries, e), e
	}
	return kept, nil
}

func (s *Set) list() []*entry {
	if s == nil {
		return nil
	}
	return s.entries
}

// Len returns the number of tools.
func (s *Set) Len() int { return len(s.list()) }

// Lookup returns the tool of that name, and whether there is one.
func (s *Set) Lookup(name string) (Tool, bool) {
	if e := s.lookup(name); e != nil {
		return e.tool, true
	}
	return nil, false
}

// Names returns the names in the order of the set.
func (s *Set) Names() []string {
	names := make([]string, 0, s.Len())
	for _, e := range s.list() {
		names = append(names, e.name)
	}
	return names
}

// Definitions returns what a request's tools are, in the order of the set. The
// definitions are shared and must not be changed.
func (s *Set) Definitions() []item.Tool {
	defs := make([]item.Tool, 0, s.Len())
	for _, e := range s.list() {
		defs = append(defs, e.def)
	}
	return defs
}

// All ranges over names and tools in the order of the set.
func (s *Set) All() iter.Seq2[string, Tool] {
	entries := slices.Clone(s.list())
	return func(yield func(string, Tool) bool) {
		for _, e := range entries {
			if !yield(e.name, e.tool) {
				return
			}
		}
	}
}

// notFound is what a model reads that calls a tool which does not exist, or not
// for calls of that type.
func (s *Set) notFound(call Call) string {
	text := "tool not found: " + plainName(call.Name)
	switch e := s.lookup(call.Name); {
	case s.Len() == 0:
		return text + ". No tools are available."
	case e != nil && e.kind != "":
		text += fmt.Sprintf(" is not a function here; it takes items of type %s", e.kind)
	case e != nil:
		text += fmt.Sprintf(" does not take items of type %s here, but is called like any function", call.Kind)
	}
	return text + ". Available: " + strings.Join(s.Names(), ", ")
}

// Kinds returns the types of the calls of the API's own tools that are in the
// set.
func (s *Set) Kinds() (kinds []item.Type) {
	for _, e := range s.list() {
		if e.kind != "" {
			kinds = append(kinds, e.kind)
		}
	}
	return kinds
}
