// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
)

// nested is an agent that a file declares as a tool.
type nested struct {
	decl *chatmd.Tool
	file *File
}

// addAgent loads the file of an agent that is a tool of this one.
func (f *File) addAgent(ctx context.Context, decl *chatmd.Tool, p places, o Options) *chatmd.Error {
	bad := func(message, hint string) *chatmd.Error {
		return problemAt(f.Doc.Name, decl.Element, fmt.Sprintf("<tool agent=%q>: %s", decl.Value("agent"), message), hint, nil)
	}
	if !decl.Flag("local") {
		return bad("agents from the network are not loaded", "name a file and add the flag local")
	}
	path, err := p.of(decl.Base).find(decl.Value("agent"))
	if err != nil {
		return bad(err.Error(), "")
	}
	if at := slices.Index(o.loading, path); at >= 0 {
		return bad("it is a tool of itself: "+strings.Join(append(o.loading[at:], path), " → "), "")
	}
	o.loading = append(slices.Clip(o.loading), path)
	file, err := Load(ctx, path, o)
	if err != nil {
		return bad(err.Error(), "")
	}
	if decl.Description == "" { // as older programs allow
		decl.Description = fmt.Sprintf("Gives a task to the agent %s and returns its answer.", decl.Name)
	}
	f.nested = append(f.nested, nested{decl, file})
	f.Warnings = append(f.Warnings, file.Warnings...)
	f.Partial = f.Partial || file.Partial
	return nil
}

// Models says which model answers an agent's file: the one that was loaded, or
// that of one of its tools.
type Models func(*File) (model agent.Model, name string, err error)

// AgentBy is [File.Agent] with the agents that the file declares as tools: each
// gets its model from models, and so does the file itself. Adjust, which may be
// nil, may change each of them, for what holds for all: rules, who approves,
// prices, how outputs are written.
func (f *File) AgentBy(models Models, adjust func(*agent.Agent) error) (*agent.Agent, error) {
	model, name, err := models(f)
	if err != nil {
		return nil, err
	}
	a := f.Agent(model)
	a.Request.Model = name
	for _, n := range f.nested {
		inner, err := n.file.AgentBy(models, adjust)
		if err != nil {
			return nil, err
		}
		inner.Preamble = n.file.Items
		t, err := agent.AsTool(n.decl.Name, n.decl.Description, inner)
		if err != nil {
			return nil, problemAt(f.Doc.Name, n.decl.Element, err.Error(), "", nil)
		}
		a.Tools = append(a.Tools, declaredAs(t, n.decl))
	}
	if adjust != nil {
		err = adjust(a)
	}
	return a, err
}
