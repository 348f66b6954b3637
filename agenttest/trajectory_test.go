// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// varied is a session with calls of every outcome.
func varied(t *testing.T) *session.Session {
	t.Helper()
	fails := tool.Must("fails", "Fails.", func(context.Context, echoed) (string, error) { return "half\n", errors.New("no such city") }, tool.ReadOnly())
	write := tool.Must("write", "Writes.", func(_ context.Context, in echoed) (string, error) { return "wrote\n" + in.Text, nil })
	a := &agent.Agent{
		Model: agenttest.Script(t,
			agenttest.Completed(item.Assistant("I look."), item.Call("c1", "echo", `{"text":"a"}`), item.Call("c1", "fails", `{"text":"b"}`)),
			agenttest.Completed(item.Call("c3", "write", `{"text":"c"}`), item.Call("c4", "rm", `{}`)),
			agenttest.Completed(item.Call("c5", "ask", `{"text":"d"}`)),
		),
		Tools: []tool.Tool{echo, fails, write, tool.Must("ask", "Asks.", func(_ context.Context, in echoed) (string, error) { return in.Text, nil })},
		Hooks: []agent.Hooks{{Name: "spelling", BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			c.Call.Arguments = strings.ReplaceAll(c.Call.Arguments, `"a"`, `"A"`)
			return ctx, nil
		}}},
		Policy: agent.Policy{Allow: []string{"write"}, Ask: []string{"ask"}, Pause: true},
	}
	a.Request.Model = "test-model"
	s := session.New()
	if res, err := a.Run(t.Context(), s, item.User("go")); err != nil || res.Why != agent.StopApprovalPending {
		t.Fatalf("%+v, %v", res, err)
	}
	return s
}

func TestTrajectory(t *testing.T) {
	s := varied(t)
	want := `turn 1
  > I look.
  echo {"text":"a"} as {"text":"A"} = "Note: the arguments of this call were changed before it ran, to: {\"text\":\"A\"}\n\nA"
  fails {"text":"b"} ! "no such city\nhalf"
turn 2
  write {"text":"c"} = "wrote\nc"
  rm {} ! tool not found: rm. Available: echo, fails, write, ask
turn 3
  ask {"text":"d"} ?
stopped: approval_wanted
`
	got := agenttest.Trajectory(s.Log())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckTrajectory(t *testing.T) {
	log := varied(t).Log()
	for _, c := range []struct{ name, want, diff string }{
		{"in another order within a turn, with any text", `
			turn 1
			  fails … ! …
			  echo {"text":"a"} as … = …A"
			  > I look.
			turn 2
			  write … = …
			  rm {} ! …
			turn 3
			  ask … ?
			stopped: approval_wanted
		`, ""},
		{"a line that fits several, and one that fits only one", `
			turn 1
			  …
			  …
			  > I look.
			turn 2
			  …
			  write {"text":"c"} = …
			turn 3
			  …
			stopped: …
		`, ""},
		{"a call in another turn, another output and another end", `
			turn 1
			  > I look.
			  fails … ! …
			turn 2
			  echo … = A
			  write {"text":"c"} = "wrote\nC"
			  rm {} ! …
			turn 3
			  ask … ?
			stopped: answered
		`, `  turn 1
    > I look.
    fails {"text":"b"} ! "no such city\nhalf"
+   echo {"text":"a"} as {"text":"A"} = "Note: the arguments of this call were changed before it ran, to: {\"text\":\"A\"}\n\nA"
  turn 2
-   echo … = A
-   write {"text":"c"} = "wrote\nC"
+   write {"text":"c"} = "wrote\nc"
    rm {} ! tool not found: rm. Available: echo, fails, write, ask
  turn 3
    ask {"text":"d"} ?
- stopped: answered
+ stopped: approval_wanted
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := &spyTB{TB: t}
			agenttest.CheckTrajectory(tb, log, c.want)
			got := strings.Join(tb.failures, "")
			if c.diff == "" && got == "" {
				return
			}
			if diff := cmp.Diff("the trajectory differs (- is expected and did not happen, + happened and is not expected):\n"+c.diff, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A reply that broke off, items that a guard withdrew, and a hosted call.
func TestTrajectoryOddities(t *testing.T) {
	search, err := item.ParseString(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`)
	if err != nil {
		t.Fatal(err)
	}
	s := session.New()
	if _, err := s.Append(t.Context(),
		session.RunStarted{}, session.InputItem{Item: item.User("go")},
		session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: search}, session.OutputItem{Turn: 1, Item: item.Assistant("bad")},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted}, session.ItemsWithdrawn{Seqs: []int64{5}, Reason: "no", By: "guard"},
		session.TurnStarted{Turn: 2}, session.OutputItem{Turn: 2, Item: item.Assistant("half"), Partial: true},
		session.TurnEnded{Turn: 2, Status: item.StatusFailed, Class: "truncated"}, session.Stopped{Why: "provider_error"},
	); err != nil {
		t.Fatal(err)
	}
	want := `turn 1
  web_search_call…
  > bad (withdrawn)
turn 2, broke off: truncated
  > half (broke off)
stopped: provider_error
`
	agenttest.CheckTrajectory(t, s.Log(), want)
}

// Calls that the endpoint runs and answers say what was asked, and what came of it where the
// log has it.
func TestTrajectoryHosted(t *testing.T) {
	s := session.New()
	bodies := []session.Body{session.RunStarted{}, session.TurnStarted{Turn: 1}}
	for _, text := range []string{
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"umbrella"}}`,
		`{"type":"file_search_call","id":"fs_1","status":"completed","queries":["boats"],"results":null}`,
		`{"type":"code_interpreter_call","id":"ci_1","status":"completed","container_id":"c","code":"print(1)\nprint(2)","outputs":null}`,
		`{"type":"mcp_call","id":"mcp_1","server_label":"maps","name":"find","arguments":"{\"q\":\"x\"}","output":"here","status":"completed"}`,
		`{"type":"mcp_call","id":"mcp_2","server_label":"maps","name":"find","arguments":"{}","error":"gone","status":"failed"}`,
		`{"type":"shell_call","id":"sh_1","call_id":"c1","action":{"commands":["ls"]},"status":"completed","environment":{"type":"container_reference","container_id":"c"}}`,
		`{"type":"shell_call_output","id":"sho_1","call_id":"c1","output":[{"stdout":"a.txt","stderr":"","outcome":{"type":"exit","exit_code":0}}],"status":"completed"}`,
		`{"type":"invented","id":"x"}`,
	} {
		it, err := item.ParseString(text)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, session.OutputItem{Turn: 1, Item: it})
	}
	if _, err := s.Append(t.Context(), append(bodies, session.TurnEnded{Turn: 1, Status: item.StatusCompleted})...); err != nil {
		t.Fatal(err)
	}
	agenttest.CheckTrajectory(t, s.Log(), `turn 1
  web_search_call {"type":"search","query":"umbrella"}
  file_search_call ["boats"]
  code_interpreter_call "print(1)\nprint(2)"
  mcp_call maps.find {"q":"x"} = here
  mcp_call maps.find {} ! gone
  shell {"commands":["ls"]} = …a.txt…
  invented
`)
}

// A search for tools says what it found, and what the model was told if it failed.
func TestTrajectorySearch(t *testing.T) {
	rate := tool.Must("get_rate", "Looks up a rate.", func(context.Context, struct{}) (string, error) { return "1", nil }, tool.ReadOnly(), tool.Deferred())
	finds, err := tool.Search(&item.ToolSearchTool{Execution: item.ExecutionClient}, func(_ context.Context, arguments string) ([]tool.Tool, error) {
		if strings.Contains(arguments, "rate") {
			return []tool.Tool{rate}, nil
		}
		return nil, errors.New("the index is gone:\n\n> away")
	})
	if err != nil {
		t.Fatal(err)
	}
	search := func(id, arguments string) item.Item {
		return item.Must(&item.ToolSearchCall{CallID: id, Execution: item.ExecutionClient, Arguments: item.JSON(arguments)})
	}
	a := &agent.Agent{Tools: []tool.Tool{finds, rate}, Model: agenttest.Script(t,
		agenttest.Completed(search("c1", `{"q":"rate"}`), search("c2", "{\"q\":\n\n\"other\"}")), agenttest.Completed(item.Assistant("done")))}
	a.Request.Model = "test-model"
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
		t.Fatal(err)
	}
	agenttest.CheckTrajectory(t, s.Log(), `turn 1
  tool_search {"q":"rate"} = get_rate
  tool_search {"q":"other"} ! "the index is gone:\n\n> away"
turn 2
  > done
stopped: answered
`)
}

// cancelled is a model that fails.
type cancelled func() error

func (c cancelled) Stream(context.Context, *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) { yield(api.Event{}, c()) }
}

// A reply that the caller broke off is called so by one word, whatever error the model returned.
func TestTrajectoryOfCancelled(t *testing.T) {
	for name, failure := range map[string]error{"class": &endpoint.Error{Class: endpoint.Canceled, Err: context.Canceled}, "bare": context.Canceled} {
		ctx, cancel := context.WithCancel(t.Context())
		a := &agent.Agent{Model: cancelled(func() error { cancel(); return failure })}
		a.Request.Model = "test-model"
		s := session.New()
		if _, err := a.Run(ctx, s, item.User("go")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		agenttest.CheckTrajectory(t, s.Log(), "turn 1, broke off: canceled\nstopped: cancelled\n")
	}
}

// Arguments that a model wrote over several lines are one line, in the form that other
// models write.
func TestTrajectoryArgumentsOnOneLine(t *testing.T) {
	s := session.New()
	if _, err := s.Append(t.Context(), session.RunStarted{}, session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: item.Call("c1", "echo", "{\n  \"text\": \"one\\ntwo\",\n  \"n\": 1e2\n}")},
		session.OutputItem{Turn: 1, Item: item.Call("c2", "echo", "{\n  \"text\": \"bro")},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted}); err != nil {
		t.Fatal(err)
	}
	want := "turn 1\n  echo {\"text\":\"one\\ntwo\",\"n\":1e2} ?\n  echo \"{\\n  \\\"text\\\": \\\"bro\" ?\n"
	if diff := cmp.Diff(want, agenttest.Trajectory(s.Log())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
