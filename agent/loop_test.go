// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// L1
func TestAnswer(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("Hello, you.")))
	res := r.run(item.User("Hello?"))
	if res.Why != agent.StopEndTurn || res.Text != "Hello, you." || res.Turns != 1 || len(res.Items) != 1 {
		t.Errorf("result: %+v", res)
	}
	if n := len(r.server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	want := []string{"user: Hello?", "assistant: Hello, you."}
	if diff := cmp.Diff(want, outline(history(r.session))); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	r.inputs()
}

// rounds is a conversation with calls side by side, one after the other, and
// such that fail.
func rounds() []agenttest.Reply {
	return []agenttest.Reply{
		agenttest.Completed(item.Assistant("Let me see, "), call("c1", "echo", "one"), call("c2", "fail", "two"), call("c3", "echo", "three")),
		agenttest.Completed(call("c4", "echo", "four")),
		agenttest.Completed(item.Assistant("All, done.")),
	}
}

func failTool() tool.Tool {
	return textTool("fail", func(context.Context, string) (string, error) { return "", errors.New("it broke") })
}

// L2 I12 S4: outputs follow their calls in call order, under the same ids; a
// later request begins with the bytes of the earlier one; the blocking run and
// the range over events end with equal histories.
func TestRounds(t *testing.T) {
	blocking, streaming := newRig(t, rounds()...), newRig(t, rounds()...)
	for _, r := range []*rig{blocking, streaming} {
		r.agent.Tools = []tool.Tool{echo(), failTool()}
	}
	res := blocking.run(item.User("go"))
	if res.Why != agent.StopEndTurn || res.Text != "All, done." || res.Turns != 3 || res.Calls != 4 || res.FailedCalls != 1 || res.TotalTokens == 0 {
		t.Errorf("result: %+v", res)
	}
	want := []string{
		"user: go", "assistant: Let me see, ",
		`c1: echo({"text":"one"})`, `c2: fail({"text":"two"})`, `c3: echo({"text":"three"})`,
		"c1 = one", "c2 = error: it broke", "c3 = three",
		`c4: echo({"text":"four"})`, "c4 = four",
		"assistant: All, done.",
	}
	if diff := cmp.Diff(want, outline(history(blocking.session))); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	events, err := drain(streaming.agent.Stream(t.Context(), streaming.session, item.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(jsonOf(history(blocking.session)), jsonOf(history(streaming.session))); diff != "" {
		t.Errorf("histories (-blocking +streaming):\n%s", diff)
	}
	var text strings.Builder
	for _, d := range texts(events) {
		text.WriteString(d.Text)
	}
	if text.String() != "Let me see, All, done." {
		t.Errorf("deltas, kept until the end: %q", text.String())
	}
	before := ""
	for i, req := range blocking.server.Requests() {
		now := strings.TrimSuffix(req.Parse(t).Input.JSON(), "]")
		if !strings.HasPrefix(now, before) {
			t.Errorf("request %d does not begin with the one before", i)
		}
		before = now
	}
	blocking.inputs()
	streaming.inputs()
}

func jsonOf(items []item.Item) (list []string) {
	for _, it := range items {
		list = append(list, it.JSON())
	}
	return list
}

// The events of a run, in their order.
func TestEventOrder(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "one")), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ev := range events {
		if n := nameOf(ev); n != "progress model" {
			names = append(names, n)
		}
	}
	want := []string{
		"run_started", "given",
		"turn_started", "delta arguments", "received", "turn_ended", "approval", "call_started", "progress returned", "answered",
		"turn_started", "delta text", "received", "turn_ended", "progress cache",
		"progress totals", "stopped",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// R1 R2 W8 P5 I12: a reply goes back as it came, in its order, with its
// reasoning, ids and bytes; outputs take the call id, not the item's id.
func TestReplayOfReasoning(t *testing.T) {
	rs := func(id, summary string) item.Item {
		return item.Must(&item.Reasoning{ID: id, Summary: []item.Part{&item.SummaryText{Text: summary}}, EncryptedContent: "gAAA"})
	}
	fc := func(id, callID string) item.Item {
		return item.Must(&item.FunctionCall{ID: id, CallID: callID, Name: "echo", Arguments: `{"text":"x"}`})
	}
	reply := []item.Item{
		item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{}, EncryptedContent: "gBBB"}), fc("fc_1", "call_1"),
		rs("rs_2", "same"), rs("rs_3", "same"),
		item.Must(&item.Message{ID: "msg_1", Role: item.RoleAssistant, Phase: "commentary", Content: item.Parts(&item.OutputText{Text: "hm", Annotations: "[]"})}),
		fc("fc_2", "call_2"),
	}
	r := newRig(t, agenttest.Completed(reply...), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	var said []item.Item
	events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range told[session.OutputItem](events) {
		if ev.Turn == 1 {
			said = append(said, ev.Item)
		}
	}
	for _, ev := range told[session.CallStarted](events) {
		if !strings.HasPrefix(ev.CallID, "call_") {
			t.Errorf("call started under the id %s", ev.CallID)
		}
	}
	sent := r.last()
	if diff := cmp.Diff(jsonOf(said), jsonOf(sent[1:7])); diff != "" {
		t.Errorf("(-said +sent):\n%s", diff)
	}
	for i, it := range said {
		if it.ID() != reply[i].ID() {
			t.Errorf("item %d: id %s, want %s", i, it.ID(), reply[i].ID())
		}
	}
	if got := outputs(sent); got["call_1"] != "x" || got["call_2"] != "x" {
		t.Errorf("outputs: %v", got)
	}
}

// T13 T14 T15: what goes wrong with one call is that call's output; the others
// finish and the run goes on.
func TestCallsThatGoWrong(t *testing.T) {
	ran := 0
	tools := []tool.Tool{
		echo(),
		textTool("panics", func(context.Context, string) (string, error) { panic("boom") }),
		textTool("slow", func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }, tool.Timeout(1)),
		textTool("typed", func(context.Context, string) (string, error) { ran++; return "", nil }),
	}
	r := newRig(t, agenttest.Completed(
		item.Call("c1", "typed", `{"text": nonsense`),
		item.Call("c2", "typed", `{"text": 5}`),
		call("c3", "nobody", "x"),
		call("c4", "panics", "x"),
		call("c5", "slow", "x"),
		call("c6", "echo", "fine"),
	), agenttest.Completed(item.Assistant("I see")))
	r.agent.Tools = tools
	res := r.run(item.User("go"))
	if res.Why != agent.StopEndTurn || res.Calls != 6 || res.FailedCalls != 5 || ran != 0 {
		t.Errorf("result %+v, tool ran %d times", res, ran)
	}
	sent := r.last()
	got := outputs(sent)
	contains(t, got["c1"], "error: ", "JSON")
	contains(t, got["c2"], "error: ", "text")
	contains(t, got["c3"], "tool not found: nobody", "echo, panics, slow, typed")
	contains(t, got["c4"], "panicked: boom")
	contains(t, got["c5"], "time limit")
	if got["c6"] != "fine" {
		t.Errorf("the sibling's output: %q", got["c6"])
	}
	first, err := item.As[item.FunctionCall](sent[1])
	if err != nil || first.Arguments != `{"text": nonsense` {
		t.Errorf("replayed as %s, %v", sent[1].JSON(), err)
	}
}

// members returns the names in a request body.
func members(t *testing.T, body []byte) []string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(m))
}

// B7 I9: what is not given is not sent.
func TestNothingHidden(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	r.agent.Request.ToolChoice = api.ChoiceRequired
	r.agent.Request.ParallelToolCalls = new(bool)
	r.run(item.User("go"))
	want := []string{"input", "model", "stream"} // no tools, then no tool choice
	if diff := cmp.Diff(want, members(t, r.server.Requests()[0].Body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.inputs()
}

// B7 I9: what is given is sent as it is.
func TestEverythingGiven(t *testing.T) {
	temperature, limit, store, parallel := 0.25, int64(1000), false, false
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	r.agent.Request = api.Request{
		Model: "m", Instructions: "Be short.", Temperature: &temperature, MaxOutputTokens: &limit, Store: &store,
		ParallelToolCalls: &parallel, Include: []string{"reasoning.encrypted_content"},
		Reasoning: &api.ReasoningConfig{Effort: "low"},
	}
	schema := item.JSON(`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/x"},{"type":["string","null"],"pattern":"^a+$"}]}},"$defs":{"x":{"type":"integer"}},"required":[]}`)
	raw, err := tool.Raw(&item.FunctionTool{Name: "raw", Description: "Raw.", Parameters: schema},
		func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	r.agent.Tools = []tool.Tool{raw, echo(tool.Strict(true))}
	r.run(item.User("go"))
	body := r.server.Requests()[0].Body
	want := []string{"include", "input", "instructions", "max_output_tokens", "model", "parallel_tool_calls", "reasoning", "store", "stream", "temperature", "tool_choice", "tools"}
	if diff := cmp.Diff(want, members(t, body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got struct {
		Temperature float64          `json:"temperature"`
		Limit       int64            `json:"max_output_tokens"`
		Choice      string           `json:"tool_choice"`
		Parallel    bool             `json:"parallel_tool_calls"`
		Tools       []map[string]any `json:"tools"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Temperature != 0.25 || got.Limit != 1000 || got.Choice != "auto" || got.Parallel || len(got.Tools) != 2 {
		t.Errorf("got %+v", got)
	}
	contains(t, string(body), `"parameters":`+string(schema))
	for i, strict := range []bool{false, true} {
		if d := got.Tools[i]; d["strict"] != strict || d["type"] != "function" || d["name"] == "" || d["function"] != nil {
			t.Errorf("tool %d: %v", i, d)
		}
	}
	if diff := cmp.Diff([]string{"user: go"}, outline(r.last())); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}

// I9: a tool choice that is given stays.
func TestToolChoice(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Request.ToolChoice = `{"type":"function","name":"echo"}`
	r.run(item.User("go"))
	contains(t, string(r.server.Requests()[0].Body), `"tool_choice":{"type":"function","name":"echo"}`)
	r.inputs()
}

// I8 I13: with nothing to send there is no request.
func TestNothingToSend(t *testing.T) {
	for name, input := range map[string][]item.Item{
		"nothing": nil,
		"blank":   {item.User(" \n"), item.User("")},
		"orphan":  {item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Text("x")})},
		"reply":   {item.Assistant("I said so.")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			res, err := r.agent.Run(t.Context(), r.session, input...)
			if !errors.Is(err, agent.ErrNothingToSend) || res.Why != agent.StopNothingToSend {
				t.Errorf("got %+v, %v", res, err)
			}
			if n := len(r.server.Requests()); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	r.run(item.User("go"))
	if _, err := r.agent.Run(t.Context(), r.session); !errors.Is(err, agent.ErrNothingToSend) {
		t.Errorf("when all is answered: %v", err)
	}
}

// U6: a reply without a word is not an answer.
func TestEmptyReply(t *testing.T) {
	for name, reply := range map[string]agenttest.Reply{
		"no items":    agenttest.Completed(),
		"no content":  agenttest.Completed(item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Parts()})),
		"white space": agenttest.Completed(item.Assistant("\n ")),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, reply)
			if res := r.run(item.User("go")); res.Why != agent.StopEmptyReply || res.Turns != 1 {
				t.Errorf("got %+v", res)
			}
		})
	}
}

// TestRepliesOfStepsAlone: a reply whose calls the endpoint answered itself, and that
// has no word for anybody, is not an answer; it is kept, and a prompt goes on with it. U6
func TestRepliesOfStepsAlone(t *testing.T) {
	call := item.Must(&item.FunctionCall{CallID: "c1", Name: "lookup", Arguments: "{}"})
	output := item.Must(&item.FunctionCallOutput{CallID: "c1", Output: item.Text("42")})
	search, err := item.ParseString(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := item.ParseString(`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk="}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reply []item.Item
		why   agent.StopReason
	}{
		"a call with its output": {[]item.Item{call, output}, agent.StopEmptyReply},
		"a search":               {[]item.Item{search}, agent.StopEmptyReply},
		"a call and words":       {[]item.Item{call, output, item.Assistant("It is 42.")}, agent.StopEndTurn},
		"a picture":              {[]item.Item{picture}, agent.StopEndTurn},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(c.reply...), agenttest.Completed(item.Assistant("done")))
			res := r.run(item.User("go"))
			if res.Why != c.why || res.Turns != 1 || len(res.Items) != len(c.reply) {
				t.Errorf("got %+v", res)
			}
			if c.why == agent.StopEmptyReply && !strings.Contains(res.Detail, "the endpoint") {
				t.Errorf("detail %q", res.Detail)
			}
			if res := r.run(item.User("and?")); res.Text != "done" {
				t.Errorf("went on with %+v", res)
			}
		})
	}
}

// I8: a message in an unknown role is refused before anything happens.
func TestUnknownRole(t *testing.T) {
	r := newRig(t)
	odd, err := item.ParseString(`{"role":"tool","content":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.agent.Run(t.Context(), r.session, item.User("go"), odd)
	var bad *agent.InputError
	if !errors.As(err, &bad) || bad.Index != 1 || !strings.Contains(err.Error(), `"tool"`) {
		t.Errorf("got %v", err)
	}
	if _, err = r.agent.Run(t.Context(), r.session, item.Item{}); !errors.As(err, &bad) {
		t.Errorf("the zero item: %v", err)
	}
	if err := r.agent.Start(r.session).Say(odd); !errors.As(err, &bad) {
		t.Errorf("say: %v", err)
	}
	if n := len(r.server.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	for range r.session.Entries() {
		t.Fatal("something was recorded")
	}
}

// I13 I1: notes and blanks add nothing; system and developer messages stay in
// their place.
func TestOddInput(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	if _, err := r.session.Append(t.Context(), session.Note{Item: item.User("debug")}); err != nil {
		t.Fatal(err)
	}
	r.run(item.System("be kind"), item.User(""), item.User("hello"), item.Developer("be short"), item.User("go"))
	want := []string{"system: be kind", "user: hello", "developer: be short", "user: go"}
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// P4: servers that count their call ids anew in each reply, or give none, or
// the same to several calls. Each call runs, and each gets its own output.
func TestCallIDsOfSloppyServers(t *testing.T) {
	r := newRig(t,
		agenttest.Completed(call("call_0", "echo", "one")),
		agenttest.Completed(call("call_0", "echo", "two"), call("call_0", "echo", "three")),
		agenttest.Completed(call("", "echo", "four"), call("", "echo", "five"), call(strings.Repeat("long", 20), "echo", "six")),
		agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	if res := r.run(item.User("go")); res.Calls != 6 || res.FailedCalls != 0 {
		t.Errorf("result: %+v", res)
	}
	arguments := map[string]string{}
	for _, it := range r.last() {
		switch it.Type() {
		case item.TypeFunctionCall:
			c, err := item.As[item.FunctionCall](it)
			if err != nil {
				t.Fatal(err)
			}
			arguments[c.CallID] = c.Arguments
		case item.TypeFunctionCallOutput:
			if want := fmt.Sprintf(`{"text":%q}`, outputText(it)); arguments[it.CallID()] != want {
				t.Errorf("%s: the output of %s stands for %s", it.CallID(), want, arguments[it.CallID()])
			}
		}
	}
	if len(arguments) != 6 {
		t.Errorf("%d calls were sent", len(arguments))
	}
}

// P2: calls that this client cannot run, and the approvals of MCP servers, which
// the rig's policy gives.
func TestForeignCalls(t *testing.T) {
	parse := func(s string) item.Item {
		it, err := item.ParseString(s)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	r := newRig(t, agenttest.Completed(
		parse(`{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"drop","arguments":"{}"}`),
		parse(`{"type":"computer_call","id":"cu_1","call_id":"call_9","status":"completed","pending_safety_checks":[],"action":{"type":"screenshot"}}`),
		call("c1", "echo", "one"),
	), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	r.run(item.User("go"))
	var got []string
	for _, it := range r.last() {
		got = append(got, string(it.Type()))
		if it.Type() == item.TypeMCPApprovalResponse {
			contains(t, it.JSON(), `"approve":true`, `"approval_request_id":"mcpr_1"`)
		}
	}
	want := []string{"message", "mcp_approval_request", "function_call", "mcp_approval_response", "function_call_output", "message"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// S4: the texts of deltas may be kept: they are not views of a buffer that the
// next event overwrites.
func TestDeltasMayBeKept(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "word%d ", i)
	}
	sizes := make([]int, 400)
	for i := range sizes {
		sizes[i] = 997
	}
	r := newRig(t, agenttest.Completed(item.Assistant(text.String())).InPieces(sizes...))
	events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	ids := map[string]bool{}
	for _, d := range texts(events) {
		got.WriteString(d.Text)
		ids[d.ItemID] = true
	}
	if got.String() != text.String() {
		t.Error("the deltas that were kept do not add up to the text")
	}
	if len(ids) != 1 {
		t.Errorf("item ids: %v", slices.Collect(maps.Keys(ids)))
	}
}
