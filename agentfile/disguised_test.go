// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/trust"
)

// A5 K2: a command or an agent cannot have the name of a built-in tool, also an older name of
// one: a rule for that name, and the question about a call, would be about another tool.
func TestDisguisedTools(t *testing.T) {
	dir := t.TempDir()
	write(t, "<system>Be brief.</system>\n", dir, "helper.md")
	for _, tt := range []struct{ tool, want string }{
		{`<tool name="read_file" command="true" description="x"/>`, `"read_file" is the name of a built-in tool, and a command cannot have it`},
		{`<tool name="append_to_file" agent="helper.md" local description="x"/>`, `"append_to_file" is the name of a built-in tool, and an agent cannot have it`},
		{`<tool name="webpage_to_markdown" command="true" description="x"/>`, `is the name of a built-in tool`},
		{`<tool name="readfile" command="true" description="x"/>`, ""},
	} {
		_, err := agentfile.Load(t.Context(), write(t, tt.tool+"\n<user>hello</user>\n", dir, "agent.md"), agentfile.Options{Workspace: dir, Consent: trust.Everything})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "agent.md:1:1") || !strings.Contains(err.Error(), "choose another name")) {
			t.Errorf("%s: got %v, want %s", tt.tool, err, tt.want)
		}
	}
}
