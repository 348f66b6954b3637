// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// put writes files into a folder.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A2, A5: a declared command runs with its words first, is read by no shell, and
// is decided about by what it would run.
func TestDeclaredCommand(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"agent.md": `<tool name="say" command="echo%20-n one" description="Says it."/><user>hi</user>`})
	f, err := Load(t.Context(), filepath.Join(dir, "agent.md"), Options{Consent: trust.Everything})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	say := f.Tools[0]
	if tool.AnnotationsOf(say).ReadOnly {
		t.Error("a command is taken for a tool that only reads")
	}
	call := tool.Call{ID: "c", Name: "say", Arguments: `{"arguments":["$HOME; rm -rf /","two"]}`}
	if got := say.(agent.Commander).Command(call); !slices.Equal(got, []string{"echo", "-n", "one", "$HOME; rm -rf /", "two"}) {
		t.Errorf("the question shows %q", got)
	}
	if got := say.(agent.Commander).Command(tool.Call{Name: "say", Arguments: `{"arguments":5}`}); got != nil {
		t.Errorf("of a call that cannot be read: %q", got)
	}
	res, err := say.Run(t.Context(), call)
	if err != nil || !strings.Contains(res.Text, "one $HOME; rm -rf / two") {
		t.Errorf("%q, %v", res.Text, err)
	}
	rule := func(words ...string) []session.Rule {
		return []session.Rule{{Verdict: session.Deny, Tool: "say", Member: "command", Prefix: words}}
	}
	opinion := say.(advisor)
	if verdict, _ := opinion.Approval(call, rule("echo")); verdict != session.Deny {
		t.Errorf("echo is denied, but the verdict is %q", verdict)
	}
	if verdict, _ := opinion.Approval(call, rule("rm")); verdict == session.Deny {
		t.Error("an argument was taken for a program")
	}
	for _, wrong := range []string{`<tool name="x" command="ls | wc"/>`, `<tool name="x" command="ls" agent="a.md" local/>`, `<tool name="x" command=" "/>`} {
		put(t, dir, map[string]string{"wrong.md": wrong})
		if _, err := Load(t.Context(), filepath.Join(dir, "wrong.md"), Options{Consent: trust.Everything}); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
}

// F2, L8: an agent as a tool has its own messages and history; its answer is the
// output of the call.
func TestDeclaredAgent(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"agent.md":  `<tool name="critic" agent="critic.md" local description="Criticises."/><user>Ask the critic.</user>`,
		"critic.md": `<system>You are severe.</system>`,
		"loop.md":   `<tool name="self" agent="loop.md" local description="x"/><user>hi</user>`,
		"far.md":    `<tool name="critic" agent="https://example.com/a.md" description="x"/><user>hi</user>`,
	})
	f, err := Load(t.Context(), filepath.Join(dir, "agent.md"), Options{Consent: trust.Everything})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	srv := agenttest.NewServer(t,
		agenttest.Completed(item.Call("call_1", "critic", `{"task":"Look at this."}`)),
		agenttest.Completed(item.Assistant("It is bad.")),
		agenttest.Completed(item.Assistant("The critic says: bad.")))
	a, err := f.AgentBy(func(sub *File) (agent.Model, string, error) { return srv.Client(), filepath.Base(sub.Path), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Run(t.Context(), s)
	if err != nil || res.Text != "The critic says: bad." {
		t.Fatalf("%+v, %v", res, err)
	}
	inner := srv.Requests()[1].Parse(t)
	if inner.Model != "critic.md" || inner.Input.Len() != 2 || inner.Input.At(0).Role() != item.RoleSystem || !strings.Contains(inner.Input.At(1).JSON(), "Look at this.") {
		t.Errorf("the critic was asked %s", srv.Requests()[1].Body)
	}
	if last := srv.Requests()[2]; !strings.Contains(string(last.Body), "It is bad.") || strings.Contains(string(last.Body), "severe") {
		t.Errorf("the agent was asked %s", last.Body)
	}
	for name, says := range map[string]string{"loop.md": "a tool of itself", "far.md": "flag local"} {
		if _, err := Load(t.Context(), filepath.Join(dir, name), Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// X1, A5: the tools of a declared MCP server are there after Connect, and not
// before: a file can be checked without running anything.
func TestDeclaredServer(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"agent.md": `<tool mcp_server="stdio:no-such-program-anywhere"/><user>hi</user>`,
		"wrong.md": `<tool mcp_server="gopher://x"/><user>hi</user>`,
	})
	f, err := Load(t.Context(), filepath.Join(dir, "agent.md"), Options{Consent: trust.Everything})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Connect(t.Context(), Environment{Lookup: os.LookupEnv}, nil); err == nil || !strings.Contains(err.Error(), "agent.md:1:1: <tool mcp_server>") || !strings.Contains(err.Error(), "no-such-program-anywhere") {
		t.Errorf("%v", err)
	}
	if _, err := Load(t.Context(), filepath.Join(dir, "wrong.md"), Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), "<tool mcp_server>") {
		t.Errorf("%v", err)
	}
}

// M9: what a transcript in another folder refers to is the same.
func TestRebaseAgents(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{
		"agent.md":  `<tool name="critic" agent="critic.md" local description="x"/><user>hi</user>`,
		"critic.md": `<system>You are severe.</system>`,
	})
	file, transcript, err := OpenTranscript(t.Context(), filepath.Join(dir, "agent.md"), filepath.Join(dir, "out", "talk.md"), Options{Consent: trust.Everything})
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	s, err := session.Open(t.Context(), transcript, "talk")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(context.Background(), session.RunStarted{}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Assistant("ok")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted}); err != nil {
		t.Fatal(err)
	}
	again, err := Load(t.Context(), filepath.Join(dir, "out", "talk.md"), Options{Consent: trust.Everything})
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "out", "talk.md"))
		t.Fatalf("%v\n%s", err, text)
	}
	again.Close()
}

// The schema of a declared command is JSON.
func TestFixedSchema(t *testing.T) {
	if !json.Valid([]byte(fixedSchema)) {
		t.Error(fixedSchema)
	}
}
