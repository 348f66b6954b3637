// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// mayI is the question whether the endpoint may call search of the server maps.
func mayI(id string) item.Item {
	return item.Must(&item.MCPApprovalRequest{ID: id, ServerLabel: "maps", Name: "search", Arguments: `{"q":"bars"}`})
}

// hostedRig is asked twice at most: whether it may, and what it says then.
func hostedRig(t *testing.T) *rig {
	r := newRig(t, agenttest.Completed(mayI("mcpr_1")), agenttest.Completed(item.Assistant("done")))
	r.agent.Policy = agent.Policy{}
	r.agent.Request.Tools = []item.Tool{&item.MCPTool{ServerLabel: "maps", ServerURL: "https://maps.example"}}
	return r
}

// answerSent returns the answer to the question in the last request.
func answerSent(t *testing.T, r *rig) item.MCPApprovalResponse {
	t.Helper()
	for _, it := range r.last() {
		if it.Type() == item.TypeMCPApprovalResponse {
			a, err := item.As[item.MCPApprovalResponse](it)
			if err != nil {
				t.Fatal(err)
			}
			return *a
		}
	}
	t.Fatalf("no answer was sent: %v", outline(r.last()))
	return item.MCPApprovalResponse{}
}

// A call that the endpoint wants to make on an MCP server goes through the same
// rules, questions and hooks as any call, by the name LABEL.TOOL. G1 A4
func TestHostedApproval(t *testing.T) {
	veto := agent.Hooks{BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
		return ctx, errors.New("not to " + c.Call.Name)
	}}
	for _, c := range []struct {
		name   string
		policy agent.Policy
		hooks  []agent.Hooks
		yes    bool
		reason string
	}{
		{name: "allowed", policy: agent.Policy{Allow: []string{"maps.*"}}, yes: true},
		{name: "by a rule", policy: agent.Policy{Rules: []session.Rule{{Verdict: session.Allow, Tool: "maps.search"}}}, yes: true},
		{name: "denied", policy: agent.Policy{Allow: []string{"*"}, Deny: []string{"maps.search"}}, reason: "a rule denies maps.search"},
		{name: "nobody to ask", policy: agent.Policy{Allow: []string{"search"}, Hint: useAllow}, reason: "maps.search needs an approval and there is nobody to give it. Nothing was done. Use --allow maps.search."},
		{name: "asked, yes", policy: agent.Policy{Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
			call := q.Call
			return agent.Decision{Allow: call.Name == "maps.search" && call.Arguments == `{"q":"bars"}`, By: "ann"}, nil
		}}, yes: true},
		{name: "asked, no", policy: agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
			return agent.Decision{Reason: "Not today."}, nil
		}}, reason: "Not today."},
		{name: "asked, changed", policy: agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
			return agent.Decision{Allow: true, Arguments: `{"q":"inns"}`}, nil
		}}, reason: "its arguments were changed"},
		{name: "a hook", policy: agent.Policy{Allow: []string{"*"}}, hooks: []agent.Hooks{veto}, reason: "not to maps.search"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := hostedRig(t)
			r.agent.Policy, r.agent.Hooks = c.policy, c.hooks
			if res := r.run(item.User("go")); res.Why != agent.StopEndTurn || res.Calls != 0 {
				t.Errorf("%+v", res)
			}
			got := answerSent(t, r)
			if got.Approve != c.yes || got.ApprovalRequestID != "mcpr_1" || c.yes && got.Reason != "" {
				t.Errorf("%+v", got)
			}
			contains(t, got.Reason, c.reason)
		})
	}
}

// Where nobody answers now, the question waits, is shown, and is answered later:
// by a decision, or by an item that the caller gives. G1 L7
func TestHostedApprovalWaits(t *testing.T) {
	for _, how := range []string{"decide", "deny", "given", "given no"} {
		r := hostedRig(t)
		r.agent.Policy.Pause = true
		events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
		if err != nil {
			t.Fatal(err)
		}
		asked, stopped := told[session.ApprovalAsked](events), stopOf(t, events)
		if len(asked) != 1 || asked[0].Tool != "maps.search" || asked[0].Arguments != `{"q":"bars"}` || stopped.Why != string(agent.StopApprovalPending) || len(progressOf(events, agent.ProgressWaiting)) != 1 {
			t.Fatalf("%s: %+v, %+v", how, asked, stopped)
		}
		r.reopen()
		wanted, err := agent.PendingApprovals(t.Context(), r.session)
		if err != nil || len(wanted) != 1 {
			t.Fatalf("%s: %+v, %v", how, wanted, err)
		}
		edited := agent.Decision{CallID: wanted[0].CallID, Allow: true, Arguments: "{}"}
		if err := agent.Decide(t.Context(), r.session, edited); !errors.Is(err, agent.ErrMeaningless) {
			t.Errorf("%s: %v", how, err)
		}
		var input []item.Item
		switch how {
		case "decide", "deny":
			err = agent.Decide(t.Context(), r.session, agent.Decision{CallID: wanted[0].CallID, Allow: how == "decide", Reason: "No."})
		case "given", "given no":
			input = append(input, item.Must(&item.MCPApprovalResponse{ApprovalRequestID: "mcpr_1", Approve: how == "given", Reason: "Mine."}))
		}
		if err != nil {
			t.Fatal(err)
		}
		if res := r.run(input...); res.Text != "done" {
			t.Errorf("%s: %+v", how, res)
		}
		got := answerSent(t, r)
		if got.Approve != (how == "decide" || how == "given") || (got.Reason == "Mine.") != (len(input) > 0) {
			t.Errorf("%s: %+v", how, got)
		}
	}
}

// A label that patterns cannot match does not get around a rule.
func TestHostedApprovalName(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Must(&item.MCPApprovalRequest{ID: "m", ServerLabel: "a/b", Name: "c/../d", Arguments: "{}"})), agenttest.Completed(item.Assistant("done")))
	r.agent.Policy = agent.Policy{Deny: []string{"*"}, Pause: true}
	r.run(item.User("go"))
	contains(t, answerSent(t, r).Reason, "a rule denies a_b.c_.._d")

	// A rule for one server is not a rule for another whose label begins alike. G1 L7
	r = newRig(t, agenttest.Completed(item.Must(&item.MCPApprovalRequest{ID: "m", ServerLabel: "maps.evil", Name: "find", Arguments: "{}"})), agenttest.Completed(item.Assistant("done")))
	r.agent.Policy = agent.Policy{Allow: []string{"maps.*"}}
	r.run(item.User("go"))
	if answerSent(t, r).Approve {
		t.Error("a rule for maps allowed a call of maps.evil")
	}
}

// Calls that the endpoint makes itself are counted by tool, those on its MCP servers by
// LABEL.TOOL; its approvals are not counted twice. G1 U5
func TestHostedCallsAreCounted(t *testing.T) {
	parse := func(text string) item.Item {
		it, err := item.ParseString(text)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	r := newRig(t, agenttest.Completed(mayI("mcpr_1")), agenttest.Completed(
		parse(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go"}}`),
		parse(`{"type":"web_search_call","id":"ws_2","status":"failed","action":{"type":"search","query":"go"}}`),
		parse(`{"type":"mcp_call","id":"mcp_1","server_label":"maps","name":"search","arguments":"{}","output":"a bar","error":null}`),
		parse(`{"type":"shell_call","id":"sh_1","call_id":"c1","action":{"commands":["ls"]},"status":"completed","environment":{"type":"container_reference","container_id":"x"}}`),
		parse(`{"type":"shell_call_output","id":"so_1","call_id":"c1","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}],"status":"completed"}`),
		parse(`{"type":"mind_reading_call","id":"m_1"}`), item.Assistant("done")))
	r.agent.Policy = agent.Policy{Allow: []string{"maps.*"}}
	r.agent.Request.Tools = []item.Tool{&item.MCPTool{ServerLabel: "maps", ServerURL: "https://maps.example"}, &item.WebSearchTool{}}
	r.run(item.User("go"))
	a, err := agent.AccountOf(t.Context(), r.session)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][3]int{}
	for _, u := range a.Tools {
		got[u.Tool] = [3]int{u.Calls, u.Failed, u.Refused}
	}
	if diff := cmp.Diff(map[string][3]int{"web_search": {2, 1, 0}, "maps.search": {1, 0, 0}, "shell": {1, 0, 0}, "mind_reading": {1, 0, 0}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A function that is sent in a namespace, and that the model searched for, runs like any. G1
func TestNamespace(t *testing.T) {
	call, err := item.ParseString(`{"type":"function_call","id":"fc_1","call_id":"c1","namespace":"crm","name":"get","arguments":"{\"id\":\"7\"}","status":"completed"}`)
	if err != nil {
		t.Fatal(err)
	}
	type key struct {
		ID string `json:"id"`
	}
	get := func(_ context.Context, k key) (string, error) { return "customer " + k.ID, nil }
	crm := &item.NamespaceTool{Name: "crm", Description: "Customers."}
	r := newRig(t, agenttest.Completed(call), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{tool.Must("get", "Gets a customer.", get, tool.ReadOnly(), tool.Namespace(crm), tool.Deferred())}
	r.agent.Request.Tools = []item.Tool{&item.ToolSearchTool{}}
	if res := r.run(item.User("go")); res.Text != "done" || res.Calls != 1 || res.FailedCalls != 0 {
		t.Errorf("%+v", res)
	}
	requests := r.server.Requests()
	for _, text := range []string{`{"type":"namespace","name":"crm","description":"Customers.","tools":[{"type":"function","name":"get",`, `"defer_loading":true}]},{"type":"tool_search"}]`, `"output":"customer 7"`} {
		if body := string(requests[len(requests)-1].Body); !strings.Contains(body, text) {
			t.Errorf("the last request lacks %s\n%s", text, body)
		}
	}
}

// A search that the client performs is answered with the definitions that a function finds, and
// what was found runs like any tool. After an error, and without a result, the answer has
// no tools, and the run goes on. G1
func TestClientToolSearch(t *testing.T) {
	search := func(id, arguments string) item.Item {
		it, err := item.ParseString(`{"type":"tool_search_call","id":"tsc_1","call_id":"` + id + `","execution":"client","arguments":` + arguments + `,"status":"completed"}`)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	rate := tool.Must("get_rate", "Looks up an exchange rate.", func(context.Context, struct{}) (string, error) { return "0.92", nil }, tool.ReadOnly(), tool.Deferred())
	var asked []string
	finds, err := tool.Search(&item.ToolSearchTool{Execution: item.ExecutionClient, Description: "Searches.", Parameters: `{"type":"object"}`}, func(_ context.Context, arguments string) ([]tool.Tool, error) {
		asked = append(asked, arguments)
		switch {
		case strings.Contains(arguments, "rate"):
			return []tool.Tool{rate}, nil
		case strings.Contains(arguments, "fail"):
			return nil, errors.New("the index is gone")
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	call, err := item.ParseString(`{"type":"function_call","id":"fc_1","call_id":"c9","namespace":"get_rate","name":"get_rate","arguments":"{}","status":"completed"}`)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, agenttest.Completed(search("c1", `{"queries":["rate"]}`)), agenttest.Completed(search("c2", `{"queries":["fail"]}`)), agenttest.Completed(search("c3", `{"queries":["none"]}`)), agenttest.Completed(call), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{finds, rate}
	if res := r.run(item.User("go")); res.Text != "done" || res.Calls != 4 || res.FailedCalls != 1 {
		t.Errorf("%+v", res)
	}
	if want := []string{`{"queries":["rate"]}`, `{"queries":["fail"]}`, `{"queries":["none"]}`}; !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
	requests := r.server.Requests()
	body := string(requests[len(requests)-1].Body)
	for _, text := range []string{
		`{"type":"tool_search","description":"Searches.","execution":"client","parameters":{"type":"object"}}`, `"output":"0.92"`,
		`{"type":"tool_search_output","status":"completed","call_id":"c1","execution":"client","tools":[{"type":"function","name":"get_rate",`, `"defer_loading":true}]}`,
		`{"type":"tool_search_output","call_id":"c2","execution":"client","tools":[]`, `{"type":"tool_search_output","status":"completed","call_id":"c3","execution":"client","tools":[]`,
	} {
		if !strings.Contains(body, text) {
			t.Errorf("the last request lacks %s\n%s", text, body)
		}
	}
	if notes := strings.Count(body, "The arguments of your call of the tool tool_search, and its result"); notes != 1 || !strings.Contains(body, "the index is gone") {
		t.Errorf("%d messages about searches, want one that says why it failed\n%s", notes, body)
	}
	for _, def := range []*item.ToolSearchTool{nil, {}, {Execution: item.ExecutionServer}} {
		if _, err := tool.Search(def, func(context.Context, string) ([]tool.Tool, error) { return nil, nil }); err == nil {
			t.Errorf("%+v is taken", def)
		}
	}
	r = newRig(t)
	r.agent.Request.Tools = []item.Tool{&item.ToolSearchTool{Execution: item.ExecutionClient}}
	if _, err := r.agent.Run(t.Context(), r.session, item.User("go")); err == nil || !strings.Contains(err.Error(), "tool.Search") {
		t.Errorf("a search that nothing performs is sent: %v", err)
	}
}

// A tool that nobody could call is an error before anything is recorded, also of an agent to
// which the conversation may be handed. G1 G8
func TestToolThatNobodyCalls(t *testing.T) {
	named := func(opts ...tool.Option) tool.Tool {
		return tool.Must("get", "Gets.", func(context.Context, struct{}) (string, error) { return "ok", nil }, append(opts, tool.ReadOnly())...)
	}
	deferred, programs := named(tool.Deferred()), named(tool.Callers(item.AllowProgrammatic))
	search, err := tool.Search(&item.ToolSearchTool{Execution: item.ExecutionClient}, func(context.Context, string) ([]tool.Tool, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	hosted := func(def item.Tool) func(*agent.Agent) {
		return func(a *agent.Agent) { a.Request.Tools = append(a.Request.Tools, def) }
	}
	raw := func(text string) item.Tool { return &item.UnknownTool{Raw: item.JSON(text)} }
	const noSearch, noPrograms = "deferred, and there is no tool search", "only programs of the endpoint may call the tool get"
	for name, c := range map[string]struct {
		has  tool.Tool
		with func(*agent.Agent)
		want string
	}{
		"deferred":                            {deferred, nil, noSearch},
		"deferred in a namespace":             {named(tool.Deferred(), tool.Namespace(&item.NamespaceTool{Name: "crm", Description: "Customers."})), nil, noSearch},
		"deferred, with programs":             {deferred, hosted(&item.ProgrammaticTool{}), noSearch},
		"deferred, with a search":             {deferred, hosted(&item.ToolSearchTool{}), ""},
		"deferred, with a search of its own":  {deferred, func(a *agent.Agent) { a.Tools = append(a.Tools, search) }, ""},
		"deferred, with a raw search":         {deferred, hosted(raw(`{"type":"tool_search"}`)), ""},
		"deferred, with a search of tomorrow": {deferred, hosted(raw(`{"type":"tool_search_2027"}`)), ""},
		"deferred, with a search from a source": {deferred, func(a *agent.Agent) {
			a.ToolSource = func(context.Context) ([]tool.Tool, error) { return []tool.Tool{search}, nil }
		}, ""},
		"deferred server":               {named(), hosted(&item.MCPTool{ServerLabel: "maps", ServerURL: "https://a.example", DeferLoading: new(true)}), "the tool maps is " + noSearch},
		"for programs":                  {programs, nil, noPrograms},
		"for programs, with a search":   {programs, hosted(&item.ToolSearchTool{}), noPrograms},
		"for programs, which there are": {programs, hosted(&item.ProgrammaticTool{}), ""},
		"for programs, raw":             {programs, hosted(raw(`{"type":"programmatic_tool_calling"}`)), ""},
		"for both":                      {named(tool.Callers(item.AllowProgrammatic, item.AllowDirect)), nil, ""},
	} {
		for _, handed := range []bool{false, true} {
			other := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("done")}}}, Tools: []tool.Tool{c.has}}
			if c.with != nil {
				c.with(other)
			}
			a := other
			if handed {
				a = &agent.Agent{Model: other.Model, Handoffs: []agent.Handoff{{Name: "to_other", Description: "Hands over.", Agent: other}}}
			}
			s := session.New()
			_, err := a.Run(t.Context(), s, item.User("go"))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(s.Log()) > 0) {
				t.Errorf("%s, handed over %v: %v, %d entries", name, handed, err, len(s.Log()))
			}
		}
	}
}

// A search answers only with tools of the agent, and with no more than an output may be long. The
// model and the caller read what was wrong. G1 T6
func TestClientToolSearchBounds(t *testing.T) {
	named := func(name, does string, opts ...tool.Option) tool.Tool {
		return tool.Must(name, does, func(context.Context, struct{}) (string, error) { return "ok", nil }, append(opts, tool.ReadOnly(), tool.Deferred())...)
	}
	var many []tool.Tool
	for i := range 2000 {
		many = append(many, named(fmt.Sprintf("tool_%d", i), "Does something that takes some words to say."))
	}
	crm := &item.NamespaceTool{Name: "crm", Description: "Customers."}
	for _, c := range []struct {
		name         string
		found, known []tool.Tool
		opts         []tool.Option
		sent         int
		note         string
	}{
		{"unknown", []tool.Tool{named("get", "Gets.")}, nil, nil, 0, "the search found the tool get, which is not among the tools of the agent"},
		{"another definition", []tool.Tool{named("get", "Gets.")}, []tool.Tool{named("get", "Deletes.")}, nil, 0, "another definition of the tool get"},
		{"another namespace", []tool.Tool{named("get", "Gets.")}, []tool.Tool{named("get", "Gets.", tool.Namespace(crm))}, nil, 0, "another definition of the tool get"},
		{"equal", []tool.Tool{named("get", "Gets.", tool.Namespace(crm))}, []tool.Tool{named("get", "Gets.", tool.Namespace(crm)), named("put", "Puts.", tool.Namespace(crm))}, nil, 1, ""},
		{"twice", []tool.Tool{many[0], many[1], many[0]}, many, nil, 2, ""},
		{"too many", many, many, nil, -1, "of the 2000 definitions are sent"},
		{"too long", many[:1], many, []tool.Option{tool.MaxOutput(output.Limit{Bytes: output.MinBytes})}, 1, ""},
		{"one that is too long", []tool.Tool{named("get", strings.Repeat("Gets. ", 400))}, []tool.Tool{named("get", strings.Repeat("Gets. ", 400))}, []tool.Option{tool.MaxOutput(output.Limit{Bytes: output.MinBytes})}, 0, "None of the 1 definitions are sent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			finds, err := tool.Search(&item.ToolSearchTool{Execution: item.ExecutionClient}, func(context.Context, string) ([]tool.Tool, error) { return c.found, nil }, c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			call := item.Must(&item.ToolSearchCall{ID: "ts_1", CallID: "c1", Execution: item.ExecutionClient, Arguments: `{}`})
			r := newRig(t, agenttest.Completed(call), agenttest.Completed(item.Assistant("done")))
			r.agent.Tools = append([]tool.Tool{finds}, c.known...)
			if res := r.run(item.User("go")); res.Text != "done" || (res.FailedCalls == 1) != (c.sent == 0) {
				t.Errorf("%+v", res)
			}
			out := foundIn(t, r.last())
			size := 0
			if out.Tools != nil {
				size = len(item.Must(out).JSON())
			}
			if c.sent >= 0 && len(out.Tools) != c.sent || c.sent < 0 && (len(out.Tools) == 0 || size > output.DefaultBytes+200 || size < output.DefaultBytes/2) {
				t.Errorf("%d definitions of %d bytes", len(out.Tools), size)
			}
			got := outline(r.last())
			if last := got[len(got)-1]; c.note == "" && len(got) != 3 || !strings.Contains(last, c.note) {
				t.Errorf("%q", got[1:])
			}
		})
	}
}

// What the model was told about a call is withdrawn with the reply that the call is in. G2
func TestSearchWithdrawn(t *testing.T) {
	finds, err := tool.Search(&item.ToolSearchTool{Execution: item.ExecutionClient}, func(context.Context, string) ([]tool.Tool, error) {
		return nil, errors.New("a bomb is not found")
	}, tool.ReadOnly(), tool.EarlyStart())
	if err != nil {
		t.Fatal(err)
	}
	s := session.New()
	search, reply := item.Must(&item.ToolSearchCall{ID: "ts_1", CallID: "c1", Execution: item.ExecutionClient, Arguments: `{}`}), item.Assistant("a bomb")
	m := &memory{replies: []any{[]item.Item{search, reply}}}
	a := &agent.Agent{Model: m, Tools: []tool.Tool{finds}, Guards: []agent.Guard{{Name: "out", Output: func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) {
		return &agent.Tripwire{Reason: "a bomb"}, nil
	}}}}
	if res, err := a.Run(t.Context(), s, item.User("go")); res.Tripwire == nil {
		t.Errorf("%+v, %v", res, err)
	}
	if got := outline(history(s)); !slices.Equal(got, []string{"user: go"}) {
		t.Errorf("the next request has %q", got)
	}
}

// foundIn returns the answer to a search.
func foundIn(t *testing.T, items []item.Item) *item.ToolSearchOutput {
	t.Helper()
	for _, it := range items {
		if it.Type() == item.TypeToolSearchOutput {
			out, err := item.As[item.ToolSearchOutput](it)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	t.Fatal("no answer")
	return nil
}

// Items of the endpoint's own tools, of programs that call tools, of several agents at
// the endpoint and of types that nobody knows are kept and sent again byte for byte;
// calls of a program run like any, and their outputs name the program. G1 I1
func TestEndpointItems(t *testing.T) {
	texts := []string{
		`{"id":"rs_1","type":"reasoning","summary":[]}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go"}}`,
		`{"type":"file_search_call","id":"fs_1","status":"completed","queries":["go"],"results":null}`,
		`{"type":"code_interpreter_call","id":"ci_1","status":"completed","container_id":"cntr_1","code":"1+1","outputs":[{"type":"logs","logs":"2"}]}`,
		`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk="}`,
		`{"type":"mcp_list_tools","id":"ml_1","server_label":"maps","tools":[]}`,
		`{"type":"mcp_call","id":"mc_1","server_label":"maps","name":"search","arguments":"{}","output":"a bar"}`,
		`{"type":"tool_search_call","id":"ts_1","call_id":null,"execution":"server","arguments":{"query":"get"},"status":"completed"}`,
		`{"type":"tool_search_output","id":"to_1","call_id":null,"execution":"server","tools":[],"status":"completed"}`,
		`{"type":"program","id":"pr_1","call_id":"call_p","code":"get()","fingerprint":"f"}`,
		`{"type":"multi_agent_call","id":"mac_1","action":"spawn_agent","arguments":"{\"agent_name\":\"reader\"}","call_id":"call_m","agent":{"agent_name":"/root"}}`,
		`{"type":"multi_agent_call_output","id":"maco_1","action":"spawn_agent","call_id":"call_m","output":[{"type":"output_text","text":"started","annotations":[]}]}`,
		`{"type":"agent_message","id":"am_1","author":"/root/reader","recipient":"/root","content":[{"type":"encrypted_content","encrypted_content":"eA=="}]}`,
		`{"type":"agent_handoff_of_tomorrow","id":"ah_1","to":{"agent":"b"},"n":1e2}`,
	}
	var reply []item.Item
	for _, text := range texts {
		it, err := item.ParseString(text)
		if err != nil {
			t.Fatal(err)
		}
		reply = append(reply, it)
	}
	call, err := item.ParseString(`{"type":"function_call","id":"fc_1","call_id":"c1","name":"echo","arguments":"{\"text\":\"hi\"}","caller":{"type":"program","caller_id":"call_p"},"status":"completed"}`)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, agenttest.Completed(append(reply, call)...), agenttest.Completed(
		item.Must(&item.ProgramOutput{ID: "po_1", CallID: "call_p", Result: "hi"}), item.Assistant("done")), agenttest.Completed(item.Assistant("bye")))
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Request.Tools = []item.Tool{&item.ProgrammaticTool{}, &item.ToolSearchTool{}, &item.UnknownTool{Raw: `{"type":"mind_reading","depth":1}`}}
	r.agent.Request.Extra = item.Extra{{Name: "multi_agent", Value: `{"enabled":true}`}}
	if res := r.run(item.User("go")); res.Text != "done" || res.Calls != 1 {
		t.Errorf("%+v", res)
	}
	r.reopen()
	r.run(item.User("more"))
	requests := r.server.Requests()
	body := string(requests[len(requests)-1].Body)
	if n := strings.Count(body, `"call_id":"call_m"`); n != 2 {
		t.Errorf("%d items have the id of a call that the endpoint answered itself", n)
	}
	for _, text := range append(texts, `"call_id":"c1","output":"hi","caller":{"type":"program","caller_id":"call_p"}`, `"type":"program_output"`, `{"type":"mind_reading","depth":1}`, `"multi_agent":{"enabled":true}`) {
		if !strings.Contains(body, text) {
			t.Errorf("the last request lacks %s\n%s", text, body)
		}
	}
}

// A call of a group that the tool is not in is a call of another tool. A group with the
// name of the tool is what endpoints make of a tool without one. G1
func TestOtherNamespace(t *testing.T) {
	crm := &item.NamespaceTool{Name: "crm", Description: "Customers."}
	ran := 0
	get := func(context.Context, struct{}) (string, error) { ran++; return "got", nil }
	in := tool.Namespace(crm)
	for _, c := range []struct {
		namespace string
		opts      []tool.Option
		runs      int
	}{{"crm", []tool.Option{in}, 1}, {"", []tool.Option{in}, 1}, {"get", []tool.Option{in}, 1}, {"shop", []tool.Option{in}, 0}, {"shop", nil, 1}} {
		ran = 0
		call := item.Must(&item.FunctionCall{ID: "fc_1", CallID: "c1", Name: "get", Namespace: c.namespace, Arguments: "{}"})
		r := newRig(t, agenttest.Completed(call), agenttest.Completed(item.Assistant("done")))
		r.agent.Tools = []tool.Tool{tool.Must("get", "Gets.", get, append(c.opts, tool.RateLimit(&tool.Rate{Calls: 1, Per: time.Hour}))...)}
		if res := r.run(item.User("go")); ran != c.runs || res.FailedCalls != 1-c.runs {
			t.Errorf("%q: it ran %d times, %+v", c.namespace, ran, res.Totals)
		}
		if account, err := agent.AccountOf(t.Context(), r.session); err != nil || account.FailedCalls != 1-c.runs || account.RefusedCalls != 0 {
			t.Errorf("%q: the account has %+v, %v", c.namespace, account.Totals, err)
		}
		if c.runs == 0 {
			contains(t, strings.Join(outline(r.last()), " "), "tool not found: shop.get")
		}
	}
}

// A call of a group that the tool is not in runs nothing, so nobody is asked about it, and no
// session of a subagent is named. G1
func TestOtherNamespaceUnasked(t *testing.T) {
	asked := 0
	for _, opts := range [][]tool.Option{{tool.Approval("ask")}, {tool.Subagent()}} {
		call := item.Must(&item.FunctionCall{ID: "fc_1", CallID: "c1", Name: "get", Namespace: "shop", Arguments: "{}"})
		r := newRig(t, agenttest.Completed(call), agenttest.Completed(item.Assistant("done")))
		opts = append(opts, tool.Namespace(&item.NamespaceTool{Name: "crm", Description: "Customers."}))
		get := func(context.Context, struct{}) (string, error) { t.Error("it ran"); return "", nil }
		r.agent.Tools = []tool.Tool{tool.Must("get", "Gets.", get, opts...)}
		r.agent.Policy = agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
			asked++
			return agent.Decision{}, nil
		}}
		res := r.run(item.User("go"))
		contains(t, strings.Join(outline(r.last()), " "), "tool not found: shop.get")
		if asked > 0 || res.FailedCalls != 1 || res.RefusedCalls != 0 {
			t.Errorf("%d questions, %+v", asked, res.Totals)
		}
		for _, e := range r.session.Log() {
			if b, ok := e.Body.(session.CallStarted); ok && b.Session != "" {
				t.Errorf("%+v", b)
			}
		}
	}
}

// A server of MCP is known to people and rules by its label, so two servers cannot have
// the same one: a person would agree to calls of the first, and the endpoint could
// call the other. G1 A4
func TestHostedLabelTwice(t *testing.T) {
	r := hostedRig(t)
	r.agent.Request.Tools = append(r.agent.Request.Tools, &item.MCPTool{ServerLabel: "maps", ServerURL: "https://other.example"})
	_, err := r.agent.Run(t.Context(), r.session, item.User("go"))
	if err == nil || len(r.server.Requests()) != 0 {
		t.Fatalf("%d requests, %v", len(r.server.Requests()), err)
	}
	contains(t, err.Error(), "Request.Tools[1]", `"maps"`, "Request.Tools[0]")
}

// A refusal counts in the run as it counts in the account. G1 G12
func TestHostedRefusalIsCounted(t *testing.T) {
	r := hostedRig(t)
	r.agent.Policy.Approver = func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
		return agent.Decision{Allow: true, Arguments: `{"q":"pubs"}`}, nil
	}
	res := r.run(item.User("go"))
	account, err := agent.AccountOf(t.Context(), r.session)
	if err != nil || res.RefusedCalls != 1 || account.RefusedCalls != 1 {
		t.Errorf("the run counts %d, the account %d, %v", res.RefusedCalls, account.RefusedCalls, err)
	}
}

// What agents at the endpoint say to each other is not an answer to the person: only the
// first one speaks to the person. G1 W7
func TestHostedAgentsSpeak(t *testing.T) {
	says := func(id, who, text string) item.Item {
		it, err := item.ParseString(`{"type":"message","id":"` + id + `","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"` +
			text + `","annotations":[],"logprobs":[]}],"agent":{"agent_name":"` + who + `"}}`)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	for _, c := range []struct {
		name  string
		reply []item.Item
		text  string
		why   agent.StopReason
	}{
		{"first", []item.Item{says("m1", "/root/reader", "evidence"), says("m2", "/root", "answer")}, "answer", agent.StopEndTurn},
		{"last", []item.Item{says("m1", "/root", "answer"), says("m2", "/root/reader", "evidence")}, "answer", agent.StopEndTurn},
		{"alone", []item.Item{says("m1", "/root/reader", "evidence")}, "", agent.StopEmptyReply},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(c.reply...), agenttest.Completed(item.Assistant("bye")))
			run, shown := r.agent.Start(r.session, item.User("go")), ""
			for ev, err := range run.Events(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := ev.(agent.Delta); ok && d.Kind == agent.DeltaText {
					shown += d.Text
				}
			}
			if res := run.Result(); res.Text != c.text || res.Why != c.why || shown != c.text {
				t.Errorf("%s with %q, and %q was shown", res.Why, res.Text, shown)
			}
			r.reopen()
			r.run(item.User("more"))
			body := string(r.server.Requests()[1].Body)
			if n := strings.Count(body, `"agent":{"agent_name":"/root`); n != len(c.reply) {
				t.Errorf("%d messages are sent again\n%s", n, body)
			}
		})
	}
	typed := newRig(t, agenttest.Completed(says("m1", "/root/reader", `[1,2]`), says("m2", "/root", `{\"answer\":[3]}`), says("m3", "/root/reader", `{\"answer\":[4]}`)))
	for ev, err := range agent.StreamAs[[]int](t.Context(), typed.agent, typed.session, item.User("go")) {
		if err != nil || ev.Partial != nil && !slices.Equal(*ev.Partial, []int{3}) && len(*ev.Partial) != 0 {
			t.Error(ev.Partial, err)
		}
		if ev.Final != nil && (!slices.Equal(ev.Final.Value, []int{3}) || ev.Final.Item.ID() != "m2") {
			t.Error(ev.Final.Value, ev.Final.Item.ID())
		}
	}
}
