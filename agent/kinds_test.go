// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// patchCall, shellCall and localCall are calls of the API's own tools.
func patchCall(id, path string) item.Item {
	op := &item.PatchOperation{Type: item.PatchCreate, Path: path, Diff: "+x"}
	return item.Must(&item.ApplyPatchCall{ID: "apc_" + id, CallID: id, Operation: op, Status: item.StatusCompleted})
}

func shellCall(id string, commands ...string) item.Item {
	a := &item.ShellAction{Commands: commands, MaxOutputLength: new(int64(4096))}
	return item.Must(&item.ShellCall{ID: "sh_" + id, CallID: id, Action: a, Status: item.StatusCompleted})
}

func localCall(id string, command ...string) item.Item {
	a := &item.LocalShellAction{Command: command, Env: map[string]string{}}
	return item.Must(&item.LocalShellCall{ID: "lsh_" + id, CallID: id, Action: a, Status: item.StatusCompleted})
}

// hosted makes a tool of the API's own.
func hosted(t *testing.T, def item.Tool, run func(tool.Call) (tool.Result, error)) tool.Tool {
	t.Helper()
	made, err := tool.Raw(def, func(_ context.Context, c tool.Call) (tool.Result, error) { return run(c) })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// answers are the outputs of calls of the API's own tools, by call id.
func answers(t *testing.T, items []item.Item) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, it := range items {
		switch it.Type() {
		case item.TypeApplyPatchCallOutput:
			o, err := item.As[item.ApplyPatchCallOutput](it)
			if err != nil {
				t.Fatal(err)
			}
			m[o.CallID] = o.Status + ": " + o.Output
		case item.TypeShellCallOutput:
			o, err := item.As[item.ShellCallOutput](it)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range o.Output {
				code := c.Outcome.Type
				if c.Outcome.ExitCode != nil && *c.Outcome.ExitCode != 0 {
					code = "failed"
				}
				m[o.CallID] += code + ": " + c.Stdout + "|" + c.Stderr + "\n"
			}
		case item.TypeLocalShellCallOutput:
			o, err := item.As[item.LocalShellCallOutput](it)
			if err != nil {
				t.Fatal(err)
			}
			m[o.ID] = o.Output
		}
	}
	return m
}

// P1 P2 L2: calls of the API's own tools are run where the agent has these, and
// answered in their own form; others get an honest output.
func TestHostedCalls(t *testing.T) {
	r := newRig(t, agenttest.Completed(patchCall("p1", "a"), patchCall("p2", "bad"), shellCall("s1", "one", "two"), localCall("l1", "ls")),
		agenttest.Completed(item.Call("f1", "shell", `{"commands":["x"]}`)), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{
		hosted(t, new(item.ApplyPatchTool), func(c tool.Call) (tool.Result, error) {
			if strings.Contains(c.Arguments, `"bad"`) {
				return tool.Result{Text: "half"}, errors.New("it does not fit")
			}
			return tool.Result{Text: "applied " + c.Name + " " + string(c.Kind)}, nil
		}),
		hosted(t, new(item.ShellTool), func(c tool.Call) (tool.Result, error) {
			return tool.Result{Text: "in words", Commands: []item.ShellOutput{
				{Stdout: "1\x1b[0m", Outcome: item.ShellExit(0)}, {Stderr: "2", Outcome: item.ShellExit(3)},
			}}, nil
		}),
	}
	res := r.run(item.User("go"))
	if res.Text != "done" || res.FailedCalls != 2 {
		t.Errorf("%+v", res)
	}
	got := answers(t, r.last())
	contains(t, got["p1"], "completed: applied apply_patch apply_patch_call")
	contains(t, got["p2"], "failed: status:\nerror\n\ntoolName:\napply_patch\n\nerror:\nit does not fit\n\noutput:\nhalf")
	contains(t, got["s1"], "exit: 1|\nfailed: |2\n")
	contains(t, got["l1"]+got["lsh_l1"], "This client does not run calls of type local_shell_call.")
	contains(t, outputs(r.last())["f1"], "tool not found: shell")
}

// T7: a limit holds for these too: what it shortens is told in words.
func TestHostedCallsKeepLimits(t *testing.T) {
	r := newRig(t, agenttest.Completed(shellCall("s1", "one")), agenttest.Completed(item.Assistant("done")))
	long := strings.Repeat("line\n", 2000)
	r.agent.Tools = []tool.Tool{hosted(t, new(item.ShellTool), func(tool.Call) (tool.Result, error) {
		return tool.Result{Text: long, Commands: []item.ShellOutput{{Stdout: long, Outcome: item.ShellExit(0)}}}, nil
	})}
	r.agent.Output.Limit = &output.Limit{Bytes: 2000}
	r.run(item.User("go"))
	if got := answers(t, r.last())["s1"]; len(got) > 2100 || !strings.Contains(got, "left out here") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}

// A5 L7: rules, pauses and changed arguments hold for them as for other calls.
func TestHostedCallsAsk(t *testing.T) {
	r := newRig(t, agenttest.Completed(patchCall("p1", "src/a"), patchCall("p2", "src/b")), agenttest.Completed(item.Assistant("done")))
	var ran []string
	r.agent.Tools = []tool.Tool{hosted(t, new(item.ApplyPatchTool), func(c tool.Call) (tool.Result, error) {
		ran = append(ran, c.Arguments)
		return tool.Result{Text: "fine"}, nil
	})}
	r.agent.Policy = agent.Policy{Pause: true, Rules: []session.Rule{{Verdict: session.Allow, Tool: "apply_patch", Member: "path", Under: "doc"}}}
	res := r.run(item.User("go"))
	if res.Why != agent.StopApprovalPending || len(res.Pending) != 2 || res.Pending[0].Tool != "apply_patch" || !strings.Contains(res.Pending[0].Arguments, `"path":"src/a"`) {
		t.Fatalf("%+v", res)
	}
	r.reopen()
	edited := `{"type":"create_file","path":"doc/a","diff":"+y"}`
	if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "p1", Allow: true, Arguments: edited}, agent.Decision{CallID: "p2", Reason: "no."}); err != nil {
		t.Fatal(err)
	}
	r.run()
	if len(ran) != 1 || ran[0] != edited {
		t.Error(ran)
	}
	got := answers(t, r.last())
	contains(t, got["p1"], "completed: ", "were changed before it ran")
	contains(t, got["p2"], "failed: ", "no.")
}

// L4: calls with different operations are not the same call repeated.
func TestHostedCallsRepeat(t *testing.T) {
	r := newRig(t, agenttest.Completed(patchCall("p1", "a")), agenttest.Completed(patchCall("p2", "b")), agenttest.Completed(patchCall("p3", "b")))
	r.agent.Tools = []tool.Tool{hosted(t, new(item.ApplyPatchTool), func(tool.Call) (tool.Result, error) { return tool.Result{}, nil })}
	r.agent.Limits.MaxRepeats = 2
	if res := r.run(item.User("go")); res.Why != agent.StopRepeatedCall || res.Turns != 3 || !strings.Contains(res.Detail, "apply_patch was called 2 times") {
		t.Errorf("%+v", res)
	}
}

// Two tools of one name are one too many, also if one is the API's own.
func TestHostedClash(t *testing.T) {
	own := hosted(t, new(item.ApplyPatchTool), nil2)
	if _, err := tool.NewSet(own, textTool("apply_patch", nil3)); err == nil || !strings.Contains(err.Error(), "apply_patch is declared twice") {
		t.Error(err)
	}
	if _, err := tool.Raw(new(item.WebSearchTool), func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }); err == nil {
		t.Error("a tool of the API that is not run here was taken")
	}
}

func nil2(tool.Call) (tool.Result, error)          { return tool.Result{}, nil }
func nil3(context.Context, string) (string, error) { return "", nil }

// P5 T14: a call of every kind that a tool can run, or whose yes is asked for, is
// read with its id and its input. A new kind is read as the others are.
func TestCallOfEveryKind(t *testing.T) {
	for _, kind := range item.CallKinds() {
		input := `"x"`
		if kind.Tool != "" {
			input = `{"type":"exec"}`
		}
		it, err := item.ParseString(`{"type":"` + string(kind.Call) + `","id":"c1","call_id":"c1","name":"f","server_label":"s","execution":"client","` + kind.Input + `":` + input + `}`)
		if err != nil {
			t.Fatal(err)
		}
		call, err := agent.CallOf(it)
		if err != nil || call.ID != "c1" || call.Arguments == "" || call.Name == "" || kind.Tool != "" && call.Name != kind.Tool {
			t.Errorf("%s is read as %+v, %v", kind.Call, call, err)
		}
	}
}
