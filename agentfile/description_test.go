// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// A file says what its agent does, and that is the description of the agent as a tool
// unless the tool has its own.
func TestDescription(t *testing.T) {
	dir := t.TempDir()
	write(t, "<config model=\"m\" description=\"Finds bugs.\"/>\n", dir, "finder.md")
	write(t, "<config model=\"m\"/>\n", dir, "plain.md")
	f := load(t, write(t, "<config model=\"m\"/>\n"+
		"<tool name=\"a\" agent=\"finder.md\" local/>\n<tool name=\"b\" agent=\"finder.md\" description=\"Its own.\" local/>\n"+
		"<tool name=\"c\" agent=\"plain.md\" local/>\n", dir, "it.md"), agentfile.Options{})
	if f.Description() != "" {
		t.Error(f.Description())
	}
	a, err := f.AgentBy(func(*agentfile.File) (agent.Model, string, error) { return new(responses.Client), "m", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Finds bugs.", "Its own.", "Gives a task to the agent c and returns its answer."}
	for i, tool := range a.Tools {
		if def, ok := tool.Definition().(*item.FunctionTool); !ok || def.Description != want[i] {
			t.Errorf("%+v, want %q", tool.Definition(), want[i])
		}
	}
}
