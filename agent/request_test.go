// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A tool choice that forces a call is auto once a reply to the present input has
// made one, in a later run too that goes on with it; new input forces again. G6
func TestToolChoiceReset(t *testing.T) {
	const required, auto = string(api.ChoiceRequired), string(api.ChoiceAuto)
	named := string(api.ChooseFunction("echo"))
	for _, c := range []struct {
		name   string
		choice item.JSON
		keep   bool
		want   []string
	}{
		{"required", api.ChoiceRequired, false, []string{required, auto, auto, required, auto}},
		{"named", item.JSON(named), false, []string{named, auto, auto, named, auto}},
		{"kept", api.ChoiceRequired, true, []string{required, required, required, required, required}},
		{"auto", "", false, []string{auto, auto, auto, auto, auto}},
	} {
		model := &memory{replies: []any{
			[]item.Item{call("a", "echo", "1")}, []item.Item{call("b", "echo", "2")}, // the first run stops behind this
			[]item.Item{item.Assistant("x")},                                      // the second goes on
			[]item.Item{call("c", "echo", "3")}, []item.Item{item.Assistant("y")}, // the third has new input
		}}
		a := &agent.Agent{Model: model, Tools: []tool.Tool{echo()}, KeepToolChoice: c.keep, Policy: agent.Policy{Allow: []string{"*"}}}
		a.Request.ToolChoice = c.choice
		a.Limits.MaxTurns = 2
		store := new(session.Memory)
		run := func(input ...item.Item) {
			s, err := session.Open(t.Context(), store, "s")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Run(t.Context(), s, input...); err != nil {
				t.Fatal(err)
			}
		}
		run(item.User("one"))
		run()
		run(item.User("two"))
		var got []string
		for _, req := range model.asked {
			got = append(got, string(req.ToolChoice))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Tools that the endpoint runs are sent behind those that run here.
func TestHostedToolsAreSent(t *testing.T) {
	model := &memory{replies: []any{[]item.Item{item.Assistant("x")}}}
	a := &agent.Agent{Model: model, Tools: []tool.Tool{echo()}}
	a.Request.Tools = []item.Tool{
		&item.WebSearchTool{}, &item.FileSearchTool{VectorStoreIDs: []string{"vs_1"}}, &item.CodeInterpreterTool{Container: `{"type":"auto"}`},
		&item.ImageGenerationTool{}, &item.MCPTool{ServerLabel: "maps", ServerURL: "https://maps.example"}, &item.ToolSearchTool{},
		&item.ProgrammaticTool{}, &item.UnknownTool{Raw: `{"type":"time_travel","to":1984}`},
	}
	for range 2 {
		if _, err := a.Run(t.Context(), session.New(), item.User("hi")); err != nil {
			t.Fatal(err)
		}
	}
	for _, req := range model.asked {
		var got []string
		for _, def := range req.Tools {
			got = append(got, def.ToolType())
		}
		want := []string{"function", "web_search", "file_search", "code_interpreter", "image_generation", "mcp", "tool_search", "programmatic_tool_calling", "time_travel"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// What a run cannot do as asked, it refuses by name before anything is recorded
// or sent. G5 G8
func TestRequestRefused(t *testing.T) {
	var none *item.WebSearchTool
	for want, edit := range map[string]func(*api.Request){
		"Request.Conversation is {}":   func(r *api.Request) { r.Conversation = "{}" },
		"a conversation needs storage": func(r *api.Request) { r.Conversation, r.Store = api.ConversationByID("conv_1"), new(bool) },
		"are both set": func(r *api.Request) {
			r.Conversation, r.PreviousResponseID = api.ConversationByID("conv_1"), "resp_1"
		},
		"Request.Input":                                                                   func(r *api.Request) { r.Input = item.NewList(item.User("x")) },
		`Request.Tools[1] is the function "f"`:                                            func(r *api.Request) { r.Tools = []item.Tool{&item.WebSearchTool{}, &item.FunctionTool{Name: "f"}} },
		`Request.Tools[0] is the custom tool`:                                             func(r *api.Request) { r.Tools = []item.Tool{&item.CustomTool{Name: "f"}} },
		"Request.Tools[0] is an *item.MCPTool without ServerLabel":                        func(r *api.Request) { r.Tools = []item.Tool{&item.MCPTool{}} },
		"Request.Tools[0] is an *item.MCPTool without ServerURL, ConnectorID or TunnelID": func(r *api.Request) { r.Tools = []item.Tool{&item.MCPTool{ServerLabel: "m"}} },
		"Request.Tools[0] is an *item.FileSearchTool without VectorStoreIDs":              func(r *api.Request) { r.Tools = []item.Tool{&item.FileSearchTool{}} },
		"Request.Tools[0] is an *item.CodeInterpreterTool without a Container":            func(r *api.Request) { r.Tools = []item.Tool{&item.CodeInterpreterTool{Container: `{}`}} },
		"Request.Tools[0] is an *item.ComputerPreviewTool without Environment":            func(r *api.Request) { r.Tools = []item.Tool{&item.ComputerPreviewTool{}} },
		"Request.Tools[0] is an *item.NamespaceTool without Name":                         func(r *api.Request) { r.Tools = []item.Tool{&item.NamespaceTool{}} },
		`Request.Tools[0] is the namespace x with the function "f"`: func(r *api.Request) {
			r.Tools = []item.Tool{&item.NamespaceTool{Name: "x", Description: "d", Tools: []item.Tool{&item.FunctionTool{Name: "f"}}}}
		},
		`Request.Tools[1] is an MCP server with the label "maps", as Request.Tools[0]`: func(r *api.Request) {
			r.Tools = []item.Tool{&item.MCPTool{ServerLabel: "maps", ServerURL: "https://a.example"}, &item.UnknownTool{Raw: `{"type":"mcp","server_label":"maps","server_url":"https://b.example"}`}}
		},
		"Request.Tools[0] is an *item.UnknownTool whose Raw has no type":                                        func(r *api.Request) { r.Tools = []item.Tool{&item.UnknownTool{}} },
		"is the tool computer, which nothing runs: make a tool of it (tool.Computer)":                           func(r *api.Request) { r.Tools = []item.Tool{&item.ComputerTool{}} },
		"is the tool apply_patch, which nothing runs: make a tool of it (tool.Raw) and put it":                  func(r *api.Request) { r.Tools = []item.Tool{&item.ApplyPatchTool{}} },
		`Request.ToolChoice: required is not JSON: write api.ChoiceRequired`:                                    func(r *api.Request) { r.ToolChoice = "required" },
		`Request.ToolChoice: search is not JSON: a word needs quotes, as in "\"auto\"", and api.ChooseFunction`: func(r *api.Request) { r.ToolChoice = "search" },
		`Request.ToolChoice: found a list, want a tool choice`:                                                  func(r *api.Request) { r.ToolChoice = `[1]` },
		`Request.ToolChoice makes the model call "nope", and the agent has no such tool. Available: none`:       func(r *api.Request) { r.ToolChoice = api.ChooseFunction("nope") },
		"Request.Tools[0] is nil": func(r *api.Request) { r.Tools = []item.Tool{none} },
	} {
		a := &agent.Agent{Model: &memory{}}
		edit(&a.Request)
		s := session.New()
		if _, err := a.Run(context.Background(), s, item.User("hi")); err == nil || !strings.Contains(err.Error(), want) || len(s.Log()) > 0 {
			t.Errorf("%s: %v, %d entries", want, err, len(s.Log()))
		}
	}
}

// Each request of an agent asks the endpoint to compact by itself. The compaction that comes with
// a reply is kept byte for byte and sent again in its place, in a later run of another process
// too, and the log has all that it stands for. W8
func TestContextManagement(t *testing.T) {
	const compaction = `{"type":"compaction", "id":"cmp_1","encrypted_content":"gAAA\u002f1"}`
	compacted, err := item.ParseString(compaction)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, agenttest.Completed(compacted, call("c1", "echo", "one")), agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("more")))
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Request.ContextManagement = []api.ContextManagement{{Type: "compaction", CompactThreshold: new(int64(200_000))}}
	r.run(item.User("go"))
	r.reopen()
	r.run(item.User("on"))
	requests := r.server.Requests()
	if len(requests) != 3 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, req := range requests {
		contains(t, string(req.Body), `"context_management":[{"type":"compaction","compact_threshold":200000}]`)
		if n := strings.Count(string(req.Body), compaction); n != min(i, 1) {
			t.Errorf("request %d has the compaction %d times\n%s", i+1, n, req.Body)
		}
	}
	want := []string{"user: go", "compaction", `c1: echo({"text":"one"})`, "c1 = one", "assistant: done", "user: on"}
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each request of an agent has the settings of the prompt cache, and the breakpoints where the
// program put them: in instructions, in a message and in the output of a tool. Nothing before a
// breakpoint changes from request to request, which is what makes it useful. I12
func TestPromptCache(t *testing.T) {
	const mark = `"prompt_cache_breakpoint":{"mode":"explicit"}`
	here := func(text string) *item.InputText {
		return &item.InputText{Text: text, CacheBreakpoint: &item.CacheBreakpoint{Mode: "explicit"}}
	}
	instructions, err := item.New(&item.Message{Role: item.RoleDeveloper, Content: item.Parts(here("Be brief."))})
	if err != nil {
		t.Fatal(err)
	}
	question, err := item.UserParts(here("A long document."), &item.InputText{Text: "What does it say?"})
	if err != nil {
		t.Fatal(err)
	}
	reads := tool.Must("read", "Reads.", func(context.Context, struct{}) ([]item.Part, error) { return []item.Part{here("Chapter one.")}, nil }, tool.ReadOnly())
	r := newRig(t, agenttest.Completed(item.Call("c1", "read", `{}`)), agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("more")))
	r.agent.Tools = []tool.Tool{reads}
	r.agent.Request.PromptCacheKey, r.agent.Request.PromptCacheRetention = "documents", "24h"
	r.agent.Request.PromptCacheOptions = &api.PromptCacheOptions{Mode: "explicit", TTL: "30m"}
	r.run(instructions, question)
	r.reopen()
	res := r.run(item.User("And then?"))
	for i, req := range r.server.Requests() {
		body := string(req.Body)
		contains(t, body, `"prompt_cache_key":"documents"`, `"prompt_cache_retention":"24h"`, `"prompt_cache_options":{"mode":"explicit","ttl":"30m"}`)
		if n := strings.Count(body, mark); n != []int{2, 3, 3}[i] {
			t.Errorf("request %d has %d breakpoints\n%s", i+1, n, body)
		}
	}
	if len(res.Cache) != 1 || res.Cache[0].Broken != nil || res.Cache[0].Stable != res.Cache[0].Previous {
		t.Errorf("%+v", res.Cache)
	}
}
