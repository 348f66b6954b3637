// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// L7 M1 M9 A1: calls of the API's own tools that a file declares wait in the
// transcript, are answered from another reading of it, run, and are sent on as
// what they are.
func TestHostedToolsInTranscript(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell: this test is skipped")
	}
	dir := t.TempDir()
	path := write(t, `<tool name="apply_patch" form="api"/><tool name="shell"/><tool name="local_shell"/>
<user>go</user>`, dir, "agent.md")
	out := filepath.Join(dir, "talk.md")
	op := &item.PatchOperation{Type: item.PatchCreate, Path: "made.txt", Diff: "+hello\n"}
	srv := agenttest.NewServer(t, agenttest.Completed(
		item.Must(&item.ApplyPatchCall{ID: "a1", CallID: "p1", Operation: op, Status: item.StatusCompleted}),
		item.Must(&item.ShellCall{ID: "s1", CallID: "s1", Action: &item.ShellAction{Commands: []string{"cat made.txt", "exit 4"}}, Status: item.StatusCompleted}),
		item.Must(&item.LocalShellCall{ID: "l1", CallID: "l1", Action: &item.LocalShellAction{Command: []string{"cat", "made.txt"}, Env: map[string]string{}}, Status: item.StatusCompleted}),
	), agenttest.Completed(item.Assistant("done")))
	f, s := open(t, path, out)
	a := f.Agent(srv.Client())
	a.Request.Model, a.Policy.Pause = "m", true
	res, err := a.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if res.Why != agent.StopApprovalPending || len(res.Pending) != 3 {
		t.Fatalf("%+v", res)
	}

	f, s = open(t, path, out)
	wanted, err := agent.PendingApprovals(t.Context(), s)
	if err != nil || len(wanted) != 3 || wanted[0].Tool != "apply_patch" || wanted[1].Tool != "shell" || wanted[2].Tool != "local_shell" ||
		!strings.Contains(wanted[0].Arguments, "made.txt") {
		t.Fatalf("%+v, %v", wanted, err)
	}
	for _, w := range wanted {
		if err := agent.Decide(t.Context(), s, agent.Decision{CallID: w.CallID, Allow: true}); err != nil {
			t.Fatal(err)
		}
	}
	a = f.Agent(srv.Client())
	a.Request.Model = "m"
	if res, err = a.Run(t.Context(), s); err != nil || res.Text != "done" || res.FailedCalls != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if read(t, filepath.Join(dir, "made.txt")) != "hello\n" {
		t.Error("the patch was not applied")
	}
	body := string(srv.Requests()[1].Body)
	for _, want := range []string{`"type":"apply_patch_call_output"`, `"status":"completed"`, `"stdout":"hello\n"`, `"exit_code":4`, `"type":"local_shell_call_output"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the request lacks %s\n%s", want, body)
		}
	}
	again, _ := open(t, path, out)
	if err := agenttest.CheckPairing(again.Items...); err != nil {
		t.Error(err)
	}
	bad := write(t, `<tool name="apply_patch" form="magic"/><user>x</user>`, dir, "bad.md")
	if _, err := agentfile.Load(t.Context(), bad, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), `want "custom", "function" or "api"`) {
		t.Error(err)
	}
}

// T15 A2: the time that a file gives a command is the command's own, which ends
// with all that it started and hands over what it put out.
func TestCommandTimeout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell: this test is skipped")
	}
	f := load(t, write(t, `<tool name="run_command" timeout="1"/><tool name="say" command="echo" timeout="1"/><user>x</user>`, t.TempDir(), "agent.md"), agentfile.Options{Consent: trust.Everything})
	o := invoke(t, f, "run_command", `{"command":["sh","-c","echo begun; sleep 60"]}`)
	if want := "the command was stopped after 1s, its time limit, with all its processes"; !o.Failed || o.Error != want || !strings.HasSuffix(o.Content.Text, "output:\nbegun\n") {
		t.Errorf("%+v", o)
	}
	if o := invoke(t, f, "say", `{"arguments":["a b"]}`); o.Content.Text != "a b\n" {
		t.Errorf("%+v", o)
	}
}

// Tools that the endpoint runs are declared in a file, sent beside the file's own, and
// described by check; the endpoint's questions go by the names of the server's tools,
// and a transcript keeps the declarations. G1 A4
func TestHostedByEndpoint(t *testing.T) {
	dir := t.TempDir()
	path := write(t, `<config model="m" tool_choice="web_search"/>
<tool name="ask_user"/>
<tool type="web_search" search_context_size="low">{"filters": {"allowed_domains": ["go.dev"]}}</tool>
<tool type="mcp" server_label="maps" server_url="https://maps.example/secret-path" approval="allow"/>
<tool type="mind_reading">{"depth": 1}</tool>
<user>go</user>`, dir, "agent.md")
	out := filepath.Join(dir, "talk.md")
	search, err := item.ParseString(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go"}}`)
	if err != nil {
		t.Fatal(err)
	}
	srv := agenttest.NewServer(t, agenttest.Completed(search, item.Must(&item.MCPApprovalRequest{ID: "r1", ServerLabel: "maps", Name: "find", Arguments: "{}"})), agenttest.Completed(item.Assistant("done")))
	f, s := open(t, path, out)
	res, err := f.Agent(srv.Client()).Run(t.Context(), s)
	if err != nil || res.Text != "done" {
		t.Fatalf("%+v, %v", res, err)
	}
	first, second := string(srv.Requests()[0].Body), string(srv.Requests()[1].Body)
	for _, want := range []string{
		`{"type":"web_search","filters":{"allowed_domains":["go.dev"]},"search_context_size":"low"}`, `"server_url":"https://maps.example/secret-path"`,
		`{"type":"mind_reading","depth": 1}`, `"name":"ask_user"`, `"tool_choice":{"type":"web_search"}`,
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the request lacks %s\n%s", want, first)
		}
	}
	if !strings.Contains(second, `"type":"mcp_approval_response"`) || !strings.Contains(second, `"approve":true`) || !strings.Contains(second, `"type":"web_search_call"`) {
		t.Errorf("%s", second)
	}
	again, _ := open(t, out, out)
	if len(again.Hosted) != 3 {
		t.Errorf("the transcript declares %d", len(again.Hosted))
	}
	var notes []string
	for _, n := range again.Notes() {
		notes = append(notes, n.Error())
	}
	text := strings.Join(notes, "\n")
	for _, want := range []string{"web_search", "queries go to the web", "asks before each call, as maps.*; calls go to maps.example, and the file allows them all", "does not know the type"} {
		if !strings.Contains(text, want) {
			t.Errorf("the notes lack %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret-path") {
		t.Error("the notes show the whole address")
	}
	twice := write(t, `<tool type="web_search"/><tool type="web_search"/><user>x</user>`, dir, "twice.md")
	if _, err := agentfile.Load(t.Context(), twice, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), `a second tool "web_search"`) {
		t.Error(err)
	}
}

// K1: a file answers no question about a call of an MCP server for the person. The answer of a finished call is
// history.
func TestFileAnswersNoQuestion(t *testing.T) {
	const request = `<item type="mcp_approval_request">{"type":"mcp_approval_request","id":"r","server_label":"mail","name":"send","arguments":"{}"}</item>`
	const yes = `<item type="mcp_approval_response">{"type":"mcp_approval_response","approval_request_id":"r","approve":true}</item>`
	const call = `<item type="mcp_call">{"type":"mcp_call","id":"c","approval_request_id":"r","server_label":"mail","name":"send","arguments":"{}","output":"sent"}</item>`
	for text, counts := range map[string]bool{
		request + yes:        false,
		request + yes + call: true,
		request + `<item type="mcp_approval_response">{"type":"mcp_approval_response","approval_request_id":"r","approve":false,"approve":true}</item>`: false,
		request + `<item type="mcp_approval_response">{"type":"mcp_approval_response","approval_request_id":"r","approve":false}</item>`:                true,
	} {
		f, err := agentfile.Parse(t.Context(), filepath.Join(t.TempDir(), "a.md"), []byte("<user>x</user>"+text+"<user>go on</user>"), agentfile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		answers := 0
		for _, b := range f.Log() {
			if in, ok := b.(session.InputItem); ok && in.Item.Type() == item.TypeMCPApprovalResponse {
				answers++
			}
		}
		warned := strings.Contains(fmt.Sprint(f.Warnings), "a file answers no question for you")
		if (answers == 1) != counts || warned == counts {
			t.Errorf("%s: %d answers, warnings %v", text, answers, f.Warnings)
		}
	}
}
