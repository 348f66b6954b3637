// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"errors"
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
		return problemAt(f.doc().Name, decl.Element, fmt.Sprintf("<tool agent=%q>: %s", decl.Value("agent"), message), hint, nil)
	}
	if !decl.Flag("local") {
		return bad("agents from the network are not loaded", "name a file and add the flag local")
	}
	path, err := p.of(decl.Base).find(decl.Value("agent"))
	if err != nil {
		return bad(err.Error(), "")
	}
	if at := slices.Index(o.loading, path); at >= 0 {
		return bad("the agent is a tool of itself: "+strings.Join(append(o.loading[at:], path), " → "), "")
	}
	o.loading, o.named, o.Allow = append(slices.Clip(o.loading), path), f.at(decl.Element), elsewhere(o.Allow)
	file, err := Load(ctx, path, o)
	if errors.Is(err, ErrWithheld) {
		f.Partial = true
		return nil
	}
	if err != nil {
		return bad(err.Error(), "")
	}
	if decl.Description = cmp.Or(decl.Description, file.Description()); decl.Description == "" { // older programs allow this
		decl.Description = fmt.Sprintf("Gives a task to the agent %s and returns its answer.", decl.Name)
	}
	f.nested = append(f.nested, nested{decl, file})
	f.Warnings = append(f.Warnings, file.Warnings...)
	f.Partial = f.Partial || file.Partial
	return nil
}

// elsewhere returns the patterns of [Options.Allow] for another file than the one that the person
// named.
func elsewhere(allow []string) (patterns []string) {
	if slices.Contains(allow, "*") {
		return []string{"*"}
	}
	for _, name := range builtinNames() {
		if matches(allow, name) {
			patterns = append(patterns, name)
		}
	}
	return patterns
}

// Models selects the model for an agent's file: the file that was loaded, or one of
// its tools.
type Models func(*File) (model agent.Model, name string, err error)

// AgentBy is like [File.Agent], and includes the agents that the file declares as
// tools. Each agent, including the file's own, gets its model from models. adjust
// may change the agent of each file, to set what all have in common: rules, the approver,
// prices, the form of outputs. It may be nil.
func (f *File) AgentBy(models Models, adjust func(*File, *agent.Agent) error) (*agent.Agent, error) {
	if models == nil {
		return nil, errors.New("agentfile: AgentBy needs a function that selects the models")
	}
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
			return nil, problemAt(f.doc().Name, n.decl.Element, err.Error(), "", nil)
		}
		a.Tools = append(a.Tools, declaredAs(t, n.decl, ""))
	}
	if adjust != nil {
		err = adjust(f, a)
	}
	return a, err
}
