// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// Items of the past that an upstream does not know become text, or are left out with a
// note. What is asked for now is refused by name. V1
func TestPast(t *testing.T) {
	const input = `[{"role":"user","content":"a"},
		{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"the weather"}},
		{"type":"mcp_list_tools","id":"mcpl_1","server_label":"x","tools":[]},
		{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed"},
		{"type":"mcp_call","id":"mcp_1","server_label":"x","name":"read","arguments":"{\"p\":1}","output":"forty-two"},
		{"type":"function_call_output","call_id":"c1","output":"done"},
		{"role":"user","content":"b"}]`
	for name, chat := range map[string]bool{"chat": true, "responses": false} {
		t.Run(name, func(t *testing.T) {
			local := agenttest.StartLocal(t, &agenttest.Local{Text: "Well then.", Server: "llama.cpp"})
			w := serving(t, open(t, local.URL, chat))
			if r := w.create(`{"model":"m","input":` + input + `}`); r.Text() != "Well then." {
				t.Errorf("%q", r.Text())
			}
			sent := string(local.Requests()[0].Body)
			for _, want := range []string{"the weather", "forty-two", "I call the tool read"} {
				if !strings.Contains(sent, want) {
					t.Errorf("sent %s, which lacks %q", sent, want)
				}
			}
			if strings.Contains(sent, "mcp_list_tools") || strings.Contains(sent, `"mcp_call"`) {
				t.Errorf("sent %s", sent)
			}
			notes := strings.Join(w.records[0].Notes, "\n")
			for _, want := range []string{"1 mcp_list_tools left out", "1 mcp_call became text", "1 web_search_call became text"} {
				if !strings.Contains(notes, want) {
					t.Errorf("notes %s, want %q", notes, want)
				}
			}
			for asked, param := range map[string]string{
				`"tools":[{"type":"web_search"}],"max_tool_calls":3`:                      "max_tool_calls",
				`"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`:       "tools[0]",
				`"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]`:            "tools[0]",
				`"prompt":{"id":"pmpt_1"}`:                                                "prompt",
				`"truncation":"auto"`:                                                     "truncation",
				`"context_management":[{"type":"compaction","compact_threshold":100000}]`: "context_management",
			} {
				if !chat && (param == "max_tool_calls" || param == "truncation" || param == "context_management") {
					continue // the Responses API has these; the upstream decides
				}
				if _, e := w.refused(`{"model":"m","input":"a",`+asked+`}`, 400); text(e, "param") != param || strings.Contains(text(e, "message"), "left out") {
					t.Errorf("%s: %s", asked, e.JSON())
				}
			}
			if n := len(local.Requests()); n > 2 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

// A server that speaks another way than the API is behind the gateway like any other:
// streamed, whole, and when it breaks off.
func TestLocalServers(t *testing.T) {
	for name, local := range map[string]*agenttest.Local{
		"llama-server": {Text: "one two three", Server: "llama.cpp"}, "ollama": {Text: "one two three", Ollama: true},
		"breaks": {Text: "one two three", Break: func(int) int { return 2 }},
	} {
		for _, chat := range []bool{true, false} {
			l := agenttest.StartLocal(t, &agenttest.Local{Text: local.Text, Server: local.Server, Ollama: local.Ollama, Break: local.Break})
			w := serving(t, open(t, l.URL, chat))
			whole := w.create(`{"model":"m","input":"a","instructions":"Be brief."}`)
			events := w.events(`{"model":"m","input":"b","stream":true,"previous_response_id":null}`)
			last, err := events[len(events)-1].Response()
			if err != nil {
				t.Fatal(err)
			}
			want := item.StatusCompleted
			if name == "breaks" {
				want = item.StatusFailed
			}
			if whole.Status != want || last.Status != want || want == item.StatusCompleted && (whole.Text() != "one two three" || last.Text() != "one two three") {
				t.Errorf("%s, chat %v: %s %q, %s %q", name, chat, whole.Status, whole.Text(), last.Status, last.Text())
			}
		}
	}
}

// An upstream that does not compact has the model write a summary. The usage has all that the
// schema wants, though the upstream says less.
func TestCompact(t *testing.T) {
	local := agenttest.StartLocal(t, &agenttest.Local{Text: "They talked about boats."})
	w := serving(t, open(t, local.URL, true))
	c := w.typed()
	history := item.NewList(item.System("Be brief."), item.User("Tell me about boats."), item.Assistant("They float."))
	got, err := c.Compact(t.Context(), &api.CompactRequest{Model: "m", Input: history})
	if err != nil || len(got.Output) != 1 || got.Output[0].Type() != item.TypeCompaction {
		t.Fatalf("%v, %v", got, err)
	}
	w.create(`{"model":"m","input":[` + got.Output[0].JSON() + `,{"role":"user","content":"Go on."}]}`)
	for _, want := range []string{"They talked about boats.", "Be brief.", "Go on."} {
		if sent := string(local.Requests()[1].Body); !strings.Contains(sent, want) {
			t.Errorf("sent %s, which lacks %q", sent, want)
		}
	}
	if sent := string(local.Requests()[0].Body); !strings.Contains(sent, "They float.") {
		t.Errorf("sent %s", sent)
	}
	_, _, body := w.ask(http.MethodPost, "/responses/compact", `{"model":"m","input":"a"}`)
	apispec.Load(t).Check(t, "CompactResource", []byte(body))
}

// An upstream that does not count tokens is asked for the least output if it is Counted, and says what it
// read. Another one is not asked, and nothing is guessed.
func TestCount(t *testing.T) {
	for _, chat := range []bool{true, false} {
		local := agenttest.StartLocal(t, &agenttest.Local{Text: "Well."})
		paid := open(t, local.URL, chat)
		paid.Counted = true
		w := serving(t, paid)
		ask := `{"model":"m","input":[{"role":"user","content":"How many?"}],"instructions":"Be brief."}`
		status, _, body := w.ask(http.MethodPost, "/responses/input_tokens", ask)
		list := local.Requests()
		if len(list) != 1 {
			t.Fatalf("chat %v: %d requests, %d %s", chat, len(list), status, body)
		}
		if want := fmt.Sprintf(`"input_tokens":%d`, list[0].Input); status != http.StatusOK || !strings.Contains(body, want) || list[0].Input == 0 {
			t.Errorf("chat %v: %d %s, want %s", chat, status, body, want)
		}
		least := map[bool]string{true: `"max_tokens":16`, false: `"max_output_tokens":16`}[chat] // of an unknown server
		for _, want := range []string{least, "How many?", "Be brief."} {
			if sent := string(list[0].Body); !strings.Contains(sent, want) {
				t.Errorf("chat %v: sent %s, which lacks %s", chat, sent, want)
			}
		}
		status, _, body = serving(t, open(t, local.URL, chat)).ask(http.MethodPost, "/responses/input_tokens", ask)
		if status != http.StatusBadRequest || !strings.Contains(body, "cannot count tokens") || len(local.Requests()) != 1 {
			t.Errorf("chat %v: %d %s", chat, status, body)
		}
	}
}

// A count is admitted and told as a response is, if the upstream was asked for a reply, and so is a
// summary; also those whose answer breaks off, and those of an upstream that lacks what its profile says it
// has. A count that costs nothing is not admitted.
func TestBesideSpends(t *testing.T) {
	cut := func(int) int { return 1 }
	whole, broken := agenttest.StartLocal(t, &agenttest.Local{Text: "They talked about boats."}), agenttest.StartLocal(t, &agenttest.Local{Text: "They talked about boats.", Break: cut})
	counts := agenttest.NewServer(t)
	counts.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Raw(200, "application/json", `{"object":"response.input_tokens","input_tokens":42}`)
	})
	b := &gateway.Backend{Upstreams: []gateway.Upstream{open(t, whole.URL, true), open(t, broken.URL, true), open(t, counts.URL, false), open(t, whole.URL, false)}}
	b.Upstreams[0].Models, b.Upstreams[1].Models, b.Upstreams[2].Models, b.Upstreams[3].Models = "whole", "broken", "counts", "lacks"
	b.Upstreams[0].Counted, b.Upstreams[1].Counted = true, true
	b.Upstreams[3].Counted = true
	b.Upstreams[2].Config.Profile = &endpoint.Profile{InputTokens: endpoint.Yes}
	b.Upstreams[3].Config.Profile = b.Upstreams[2].Config.Profile
	var got []server.Outcome
	w := &world{t: t, b: b}
	w.serve(&server.Server{Backend: b, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
		return func(o server.Outcome) { got = append(got, o) }, nil
	}})
	defer w.end()
	for _, tt := range []struct{ model, path, status string }{
		{"whole", "/responses/input_tokens", "completed"},
		{"whole", "/responses/compact", "completed"},
		{"broken", "/responses/input_tokens", "failed"},
		{"broken", "/responses/compact", "failed"},
		{"lacks", "/responses/input_tokens", "completed"},
		{"counts", "/responses/input_tokens", ""},
	} {
		got = nil
		status, _, body := w.ask(http.MethodPost, tt.path, `{"model":"`+tt.model+`","input":"Tell me about boats."}`)
		switch {
		case tt.status == "":
			if len(got) != 0 || !strings.Contains(body, "42") {
				t.Errorf("%v: %+v %d %s", tt, got, status, body)
			}
		case len(got) != 1 || got[0].Status != tt.status || got[0].ID == "" || got[0].Usage == nil || got[0].Usage.InputTokens == 0 || got[0].Model != tt.model:
			t.Errorf("%v: %+v %d %s", tt, got, status, body)
		}
	}
}

// An item of a type that the API does not have is left out if a model has made it. One of the client's own, such as a message
// whose type is misspelled, is refused: it would be lost.
func TestStrangeItems(t *testing.T) {
	for _, chat := range []bool{false, true} {
		local := agenttest.StartLocal(t, &agenttest.Local{Text: "Well then.", Server: "llama.cpp"})
		w := serving(t, open(t, local.URL, chat))
		const made = `{"type":"dream_call","id":"dc_1","status":"completed"},{"role":"assistant","content":"b"}`
		w.create(`{"model":"m","input":[{"role":"user","content":"a"},` + made + `,{"role":"user","content":"c"}]}`)
		for strange, param := range map[string]string{
			`{"type":"massage","role":"user","content":"B"},{"role":"user","content":"c"}`: "input[1].type",
			`{"type":"massage","role":"user","content":"B"},` + made:                       "input[1].type",
			made + `,{"type":"item_referenc","id":"x"}`:                                    "input[3].type",
		} {
			if _, e := w.refused(`{"model":"m","input":[{"role":"user","content":"a"},`+strange+`]}`, 400); text(e, "param") != param {
				t.Errorf("%v: %s: %s", chat, strange, e.JSON())
			}
		}
		if n := len(local.Requests()); n != 1 {
			t.Errorf("%v: %d requests", chat, n)
		}
	}
}

// The answer to a request for approval cannot reach an upstream that does not know such items: it is refused and
// not left out.
func TestApprovalPast(t *testing.T) {
	for _, chat := range []bool{false, true} {
		local := agenttest.StartLocal(t, &agenttest.Local{Text: "Well then.", Server: "llama.cpp"})
		w := serving(t, open(t, local.URL, chat))
		const asked = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"x","name":"n","arguments":"{}"}`
		_, e := w.refused(`{"model":"m","input":[{"role":"user","content":"a"},`+asked+`,{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}]}`, 400)
		if text(e, "param") != "input[2]" || !strings.Contains(text(e, "message"), "without the gateway") {
			t.Errorf("%v: %s", chat, e.JSON())
		}
		if n := len(local.Requests()); n != 0 {
			t.Errorf("%v: %d requests", chat, n)
		}
	}
}

// The list has the models of all upstreams that answer, by the names that requests use.
func TestModels(t *testing.T) {
	models := func(list string) string {
		s := agenttest.NewServer(t)
		s.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Raw(200, "application/json", list) })
		return s.URL
	}
	one := open(t, models(`{"object":"list","data":[{"id":"a","object":"model","created":1,"owned_by":"x"},{"id":"b","object":"model","created":2,"owned_by":"x"}]}`), false)
	two := open(t, models(`{"object":"list","data":[{"id":"b","object":"model","created":3,"owned_by":"y"}]}`), true)
	dead := open(t, agenttest.DeadURL(t, agenttest.Refusing), false)
	exact := open(t, dead.Config.BaseURL, false)
	two.Models, dead.Models, exact.Models = "local/", "dead-*", "named"
	w := serving(t, one, two, dead, exact)
	status, _, body := w.ask(http.MethodGet, "/models", "")
	var order []int
	for _, id := range []string{`"a"`, `"b"`, `"local/b"`, `"named"`} {
		order = append(order, strings.Index(body, `{"id":`+id))
	}
	if status != http.StatusOK || order[0] < 0 || order[1] < order[0] || order[2] < order[1] || order[3] < order[2] || strings.Contains(body, "dead") || strings.Contains(body, "careful") {
		t.Errorf("%d %s", status, body)
	}
	for _, id := range []string{"local%2Fb", "local/b", "b"} { // clients escape the slash, or do not
		if status, _, body := w.ask(http.MethodGet, "/models/"+id, ""); status != http.StatusOK || !strings.Contains(body, `"id":"`+strings.ReplaceAll(id, "%2F", "/")+`"`) {
			t.Errorf("%s: %d %s", id, status, body)
		}
	}
	if status, _, body := w.ask(http.MethodGet, "/models/none", ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
	down := serving(t, dead)
	if status, _, body := down.ask(http.MethodGet, "/models", ""); status != http.StatusBadGateway || !strings.Contains(body, "upstream_unreachable") {
		t.Errorf("%d %s", status, body)
	}
	bare := agenttest.NewServer(t)
	bare.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Raw(404, "text/plain", "404 page not found")
	})
	if status, _, body := serving(t, open(t, bare.URL, false)).ask(http.MethodGet, "/models", ""); status != http.StatusOK || !strings.Contains(body, `"data":[]`) {
		t.Errorf("an upstream without a list: %d %s", status, body)
	}
	none := serving(t, two)
	if _, e := none.refused(`{"model":"other","input":"a"}`, 404); text(e, "code") != "model_not_found" {
		t.Errorf("%s", e.JSON())
	}
}

// Files, vector stores, containers, prompts and skills of the upstream's account belong to the
// operator. A request that names one is refused by name, also in history that was only stored, unless the
// operator allows it. What an upstream has made passes. V3
func TestAccountIDs(t *testing.T) {
	up := says(t, "Well.")
	w := serving(t, open(t, up.URL, false))
	message := func(part string) string { return `"input":[{"role":"user","content":[` + part + `]}]` }
	refused := map[string]string{
		message(`{"type":"input_image","detail":"auto","file_id":"file_1"}`):                                                                        "input[0]",
		message(`{"type":"input_file","FILE_ID":"file_1"}`):                                                                                         "input[0]",
		message(`{"type":"input_file","file\u005fid":"file_1"}`):                                                                                    "input[0]",
		`"input":[{"type":"tomorrows_item","deep":[{"file_ids":["file_1"]}]}]`:                                                                      "input[0]",
		`"input":"a","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]`:                                                                  "tools[0]",
		`"input":"a","tools":[{"type":"web_search"},{"type":"code_interpreter","container":"cntr_1"}]`:                                              "tools[1]",
		`"input":"a","tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f_1"]}}]`:                                          "tools[0]",
		`"input":"a","tools":[{"type":"shell","environment":{"type":"container_reference","container_id":"cntr_1"}}]`:                               "tools[0]",
		`"input":"a","tools":[{"type":"shell","environment":{"type":"container_auto","skills":[{"type":"skill_reference","skill_id":"skill_1"}]}}]`: "tools[0]",
		`"input":"a","tools":[{"type":"image_generation","input_image_mask":{"file_id":"file_1"}}]`:                                                 "tools[0]",
		`"input":"a","prompt":{"id":"pmpt_1"}`:                                                                                                      "prompt",
		`"input":"a","tomorrow":{"file_id":"file_1"}`:                                                                                               "tomorrow",
	}
	passes := []string{
		`"input":"file_id","tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"file_id":{"type":"string","default":"x"}}}}]`,
		`"input":"a","tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"prompt":null`,
		`"input":[{"type":"code_interpreter_call","id":"ci_1","code":"1","container_id":"cntr_1","status":"completed","outputs":[]},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[{"type":"container_file_citation","container_id":"cntr_1","file_id":"cfile_1","filename":"f","start_index":0,"end_index":1}]}]},{"role":"user","content":"{\"file_id\":\"x\"}"}]`,
	}
	for members, param := range refused {
		_, e := w.refused(`{"model":"m",`+members+`}`, http.StatusBadRequest)
		if text(e, "param") != param || !strings.Contains(text(e, "message"), "--account-ids") {
			t.Errorf("%s: %s", members, e.JSON())
		}
	}
	_, _, body := w.ask(http.MethodPost, "/conversations", `{"items":[{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]}]}`)
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	w.refused(`{"model":"m","input":"a","conversation":"`+talk.ID+`"}`, http.StatusBadRequest)
	if n := len(up.Requests()); n > 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
	for _, members := range passes {
		w.create(`{"model":"m",` + members + `}`)
	}
	allowed := serving(t, open(t, up.URL, false))
	allowed.b.AccountIDs = true
	for members := range refused {
		if status, _, body := allowed.ask(http.MethodPost, "/responses", `{"model":"m",`+members+`}`); status != http.StatusOK {
			t.Errorf("allowed: %s: %d %s", members, status, body)
		}
	}
}

// A count runs nothing: the model is not asked if its server could run a tool of the request, or do something
// else that is more than reading the input, and it is not made to call a function.
func TestCountRunsNothing(t *testing.T) {
	const function = `{"type":"function","name":"look","parameters":{"type":"object"}}`
	for _, tt := range []struct{ members, refused string }{
		{`"tools":[{"type":"web_search"}]`, "tools[0]"},
		{`"tools":[` + function + `,{"type":"mcp","server_label":"x","server_url":"https://8.8.8.8/mcp","require_approval":"never"}],"tool_choice":"required"`, "tools[1]"},
		{`"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}]`, "tools[0]"},
		{`"tools":[{"type":"new_hosted_thing"}]`, "tools[0]"},
		{`"tools":[{"type":"function","Type":"mcp","name":"look","parameters":{"type":"object"}}]`, "tools[0]"},
		{`"input":[{"role":"user","content":"a"},{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"}]}]`, "input"},
		{`"plugins":[{"id":"web"}]`, "plugins"},
		{`"prompt":{"id":"pmpt_1"}`, "prompt"},
		{`"tools":[` + function + `],"tool_choice":"required"`, ""},
		{`"tools":[` + function + `],"tool_choice":{"type":"function","name":"look"}`, ""},
		{`"tools":[` + function + `],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"look"}]}`, ""},
		{`"context_management":[{"type":"compaction","compact_threshold":1}],"service_tier":"priority","moderation":{"model":"m"}`, ""},
	} {
		local := agenttest.StartLocal(t, &agenttest.Local{Text: "Well."})
		up := open(t, local.URL, false)
		up.Counted = true
		up.Config.Profile = &endpoint.Profile{InputTokens: endpoint.No} // it knows all items
		ask := `{"model":"m",` + tt.members + `}`
		if !strings.Contains(ask, `"input"`) {
			ask = `{"model":"m","input":"How many?",` + tt.members + `}`
		}
		w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{up}, AccountIDs: true}}
		w.serve(&server.Server{Backend: w.b})
		status, _, body := w.ask(http.MethodPost, "/responses/input_tokens", ask)
		w.end()
		sent := ""
		for _, r := range local.Requests() {
			sent += string(r.Body)
		}
		switch {
		case tt.refused != "":
			if status != http.StatusBadRequest || !strings.Contains(body, `"param": "`+tt.refused) || !strings.Contains(body, "count") || sent != "" {
				t.Errorf("%s: %d %s, sent %s", tt.members, status, body, sent)
			}
		case status != http.StatusOK || !strings.Contains(sent, "How many?") || strings.Contains(tt.members, "look") != strings.Contains(sent, `"name":"look"`):
			t.Errorf("%s: %d %s, sent %s", tt.members, status, body, sent)
		}
		for _, never := range []string{"tool_choice", "context_management", "priority", "moderation"} {
			if strings.Contains(sent, never) {
				t.Errorf("%s: sent %s, which has %s", tt.members, sent, never)
			}
		}
	}
}

// A count and a summary whose response fails say why, as a response does.
func TestBesideFails(t *testing.T) {
	up := agenttest.NewServer(t)
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Failed("context_length_exceeded", "Your input exceeds the context window of this model.")
	})
	paid := open(t, up.URL, false)
	paid.Counted = true
	paid.Config.Profile = &endpoint.Profile{InputTokens: endpoint.No, Compact: endpoint.No}
	w := serving(t, paid)
	for _, path := range []string{"/responses/input_tokens", "/responses/compact"} {
		status, _, body := w.ask(http.MethodPost, path, `{"model":"m","input":"a"}`)
		if status != http.StatusBadRequest || !strings.Contains(body, "exceeds the context window") || !strings.Contains(body, `"context_length_exceeded"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
