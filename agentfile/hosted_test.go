// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
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
	if _, err := agentfile.Load(t.Context(), bad, agentfile.Options{}); err == nil || !strings.Contains(err.Error(), `want "custom", "function" or "api"`) {
		t.Error(err)
	}
}

// T15 A2: the time that a file gives a command is the command's own, which ends
// with all that it started and hands over what it put out.
func TestCommandTimeout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell: this test is skipped")
	}
	f := load(t, write(t, `<tool name="run_command" timeout="1"/><tool name="say" command="echo" timeout="1"/><user>x</user>`, t.TempDir(), "agent.md"), agentfile.Options{})
	o := invoke(t, f, "run_command", `{"command":["sh","-c","echo begun; sleep 60"]}`)
	if want := "the command was stopped after 1s, its time limit, with all its processes"; !o.Failed || o.Error != want || !strings.HasSuffix(o.Content.Text, "output:\nbegun\n") {
		t.Errorf("%+v", o)
	}
	if o := invoke(t, f, "say", `{"arguments":["a b"]}`); o.Content.Text != "a b\n" {
		t.Errorf("%+v", o)
	}
}
