// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// A5: the files of agents that are tools, in folders below, are protected from each other
// and from the file that has them, and so are further paths that the program names.
func TestProtectedNestedAgents(t *testing.T) {
	dir := t.TempDir()
	const writes = "<tool name=\"append_to_file\" approval=\"allow\"/>\n"
	for name, text := range map[string]string{
		"agent.md":         writes + "<tool name=\"helper\" agent=\"sub/helper.md\" local description=\"x\"/>\n<user>hello</user>\n",
		"sub/helper.md":    "<import src=\"part.md\"/>\n" + writes + "<tool name=\"deep\" agent=\"deep/deep.md\" local description=\"x\"/>\n",
		"sub/part.md":      "<system>Be brief.</system>\n",
		"sub/deep/deep.md": "<system>Be deep.</system>\n",
		"notes.txt":        "", "store/here.db": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := agentfile.Load(t.Context(), filepath.Join(dir, "agent.md"), agentfile.Options{
		Workspace: dir, Consent: trust.Everything, Protected: []string{filepath.Join(dir, "store", "here.db"), filepath.Join(dir, "store", "later")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	tools := []tool.Tool{f.Tools[0]}
	a, err := f.AgentBy(func(*agentfile.File) (agent.Model, string, error) { return new(responses.Client), "m", nil }, func(_ *agentfile.File, a *agent.Agent) error {
		for _, t := range a.Tools {
			if def, ok := t.Definition().(*item.FunctionTool); ok && def.Name == "append_to_file" {
				tools = append(tools, t)
			}
		}
		return nil
	})
	if err != nil || a == nil || len(tools) < 3 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	for name, want := range map[string]session.Verdict{
		"agent.md": session.Ask, "sub/helper.md": session.Ask, "sub/part.md": session.Ask, "sub/deep/deep.md": session.Ask, "store/here.db": session.Ask, "store/later/x": session.Ask,
		"notes.txt": "", "store/other": "", "sub/deep/deep.md.txt": "",
	} {
		call := tool.Call{Name: "append_to_file", Arguments: `{"path":"` + filepath.ToSlash(filepath.Join(dir, name)) + `","content":"x"}`}
		for i, one := range tools {
			if got, why := one.(agent.ApprovalAdvisor).Approval(call, nil); got != want {
				t.Errorf("tool %d, %s: %q (%s), want %q", i, name, got, why, want)
			}
		}
	}
}

// A5: a tool that a file allows itself does not change the file, or what it imports,
// without a question.
func TestProtectedAgentFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agent.md":  "<import src=\"part.md\"/>\n<tool name=\"append_to_file\" approval=\"allow\"/>\n<user>hello</user>\n",
		"part.md":   "<system>Be brief.</system>\n",
		"notes.txt": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := agentfile.Load(t.Context(), filepath.Join(dir, "agent.md"), agentfile.Options{Workspace: dir, Consent: trust.Everything})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for name, want := range map[string]session.Verdict{"agent.md": session.Ask, "part.md": session.Ask, "notes.txt": ""} {
		call := tool.Call{Name: "append_to_file", Arguments: `{"path":"` + name + `","content":"x"}`}
		if got, why := f.Tools[0].(agent.ApprovalAdvisor).Approval(call, nil); got != want {
			t.Errorf("%s: %q (%s), want %q", name, got, why, want)
		}
	}
}
