// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// userParts is item.UserParts for parts known to be good.
func userParts(t *testing.T, parts ...item.Part) item.Item {
	t.Helper()
	it, err := item.UserParts(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func output(t *testing.T, c item.Content) item.Item {
	t.Helper()
	it, err := item.Output("call_1", c)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// constructed is everything that the constructors build. I3
func constructed(t *testing.T) map[string]item.Item {
	t.Helper()
	image := &item.InputImage{ImageURL: "data:image/png;base64,AAAA"}
	return map[string]item.Item{
		"user":       item.User("hi"),
		"user empty": item.User(""),
		"system":     item.System("s"),
		"developer":  item.Developer("d"),
		"assistant":  item.Assistant("a"),
		"user text, image, text": userParts(t, &item.InputText{Text: "a"}, image,
			&item.InputImage{FileID: "file_1", Detail: item.DetailOriginal}, &item.InputText{Text: "b"}),
		"user files": userParts(t, &item.InputFile{Filename: "a.pdf", FileData: "data:application/pdf;base64,AAAA"},
			&item.InputFile{FileURL: "https://x/a.pdf"}, &item.InputFile{FileID: "file_1"}),
		"call":              item.Call("call_1", "f", `{"a":1}`),
		"call without args": item.Call("call_1", "f", ""),
		"output text":       output(t, item.Text("done")),
		"output parts":      output(t, item.Parts(&item.InputText{Text: "a"}, image, &item.InputFile{FileID: "f"})),
		"output no parts":   output(t, item.Parts()),
		"full message": item.Must(&item.Message{ID: "msg_1", Role: item.RoleAssistant, Status: "completed", Phase: "final_answer",
			Content: item.Parts(&item.OutputText{Text: "a", Annotations: "[]", Logprobs: "[]"}, &item.Refusal{Refusal: "no"})}),
		"full call": item.Must(&item.FunctionCall{ID: "fc_1", CallID: "call_1", Name: "f", Namespace: "ns", Arguments: "{", Status: "incomplete"}),
		"full output": item.Must(&item.FunctionCallOutput{ID: "fco_1", CallID: "call_1", Status: "completed",
			Output: item.Parts(&item.InputText{Text: "a"})}),
		"custom call":   item.Must(&item.CustomToolCall{ID: "ctc_1", CallID: "call_1", Name: "f", Namespace: "ns", Input: "x"}),
		"custom output": item.Must(&item.CustomToolCallOutput{CallID: "call_1", Output: item.Text("x")}),
		"reasoning": item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{&item.SummaryText{Text: "s"}},
			Content: []item.Part{&item.ReasoningText{Text: "r"}}, EncryptedContent: "e", Status: "completed"}),
		"empty reasoning": item.Must(&item.Reasoning{ID: "rs_1"}),
		"reference":       item.Must(&item.Unknown{Raw: `{"type":"item_reference","id":"msg_1"}`}),
	}
}

// B6 I1-I6: what we build is a valid item of a request.
func TestConstructedAreValid(t *testing.T) {
	spec := apispec.Load(t)
	for name, it := range constructed(t) {
		t.Run(name, func(t *testing.T) { spec.Check(t, "InputItem", []byte(it.JSON())) })
	}
}

// Building is deterministic and decoding gives back what was built.
func TestConstructedRoundTrip(t *testing.T) {
	for name, it := range constructed(t) {
		if again := encode(t, decode(t, it)); again != it {
			t.Errorf("%s: %s, then %s", name, it.JSON(), again.JSON())
		}
	}
}

// I1 I2 I4 I6 I7: the exact shape of the short constructors.
func TestConstructors(t *testing.T) {
	for _, test := range []struct {
		got  item.Item
		want string
	}{
		{item.User("a\n\"b\""), `{"type":"message","content":[{"type":"input_text","text":"a\n\"b\""}],"role":"user"}`},
		{item.System("s"), `{"type":"message","content":[{"type":"input_text","text":"s"}],"role":"system"}`},
		{item.Developer("d"), `{"type":"message","content":[{"type":"input_text","text":"d"}],"role":"developer"}`},
		{item.Assistant("a"), `{"type":"message","content":"a","role":"assistant"}`},
		{item.Call("c", "f", `{"a": "\u0041"}`), `{"type":"function_call","arguments":"{\"a\": \"\\u0041\"}","call_id":"c","name":"f"}`},
		{item.Call("c", "f", ""), `{"type":"function_call","arguments":"{}","call_id":"c","name":"f"}`},
		{item.Call("c", "f", `"{\"a\":1}"`), `{"type":"function_call","arguments":"\"{\\\"a\\\":1}\"","call_id":"c","name":"f"}`},
		{item.Call("c", "f", "not json"), `{"type":"function_call","arguments":"not json","call_id":"c","name":"f"}`},
		{output(t, item.Text("")), `{"type":"function_call_output","call_id":"call_1","output":""}`},
		{item.User("a\xffb\x00"), `{"type":"message","content":[{"type":"input_text","text":"a` + "\uFFFD" + `b\u0000"}],"role":"user"}`},
	} {
		if test.got.JSON() != test.want {
			t.Errorf("got  %s\nwant %s", test.got.JSON(), test.want)
		}
	}
}

// I2: images of messages carry a detail, auto unless given; the caller's part
// is not changed.
func TestUserPartsDetail(t *testing.T) {
	plain := &item.InputImage{ImageURL: "https://x"}
	null := &item.InputImage{ImageURL: "https://x", Extra: item.Extra{{Name: "detail", Value: "null"}}}
	it := userParts(t, &item.InputText{Text: "a"}, plain, &item.InputImage{FileID: "f", Detail: item.DetailHigh}, null)
	want := `{"type":"message","content":[{"type":"input_text","text":"a"},` +
		`{"type":"input_image","image_url":"https://x","detail":"auto"},{"type":"input_image","file_id":"f","detail":"high"},` +
		`{"type":"input_image","image_url":"https://x","detail":null}],"role":"user"}`
	if it.JSON() != want {
		t.Errorf("got  %s\nwant %s", it.JSON(), want)
	}
	if plain.Detail != "" {
		t.Error("the caller's part was changed")
	}
	_, err := item.UserParts(&item.InputText{Text: "ok"}, &item.InputText{Text: "\xff"})
	wantShape(t, err, item.ShapeError{Type: "message", Path: "content[1].text", Problem: "UTF-8"})
}

// I4 I5: an assistant message keeps phase, id and status; calls need none.
func TestAssistantKeeps(t *testing.T) {
	in := `{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"a"}],"phase":"commentary","role":"assistant"}`
	m := as[item.Message](t, parse(t, in))
	want := &item.Message{ID: "msg_1", Role: item.RoleAssistant, Status: "completed", Phase: "commentary",
		Content: item.Parts(&item.OutputText{Text: "a", Annotations: "[]"})}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out := encode(t, m).JSON(); out != in {
		t.Errorf("written as %s", out)
	}
	if !item.Call("c", "f", "").IsCall() || item.Assistant("").IsCall() {
		t.Error("IsCall")
	}
}

// calls holds a call of every kind, and what is none that the client answers.
var calls = []struct {
	call     string
	answered bool // by an output that holds text
	client   bool // whether the client must answer it
	output   item.Type
}{
	{`{"type":"function_call","id":"fc","call_id":"call_1","name":"f","arguments":"{}"}`, true, true, item.TypeFunctionCallOutput},
	{`{"type":"custom_tool_call","id":"ctc","call_id":"call_1","name":"f","input":""}`, true, true, item.TypeCustomToolCallOutput},
	{`{"type":"local_shell_call","id":"lsh","call_id":"call_1","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}`, true, true, item.TypeLocalShellCallOutput},
	{`{"type":"shell_call","id":"sh","call_id":"call_1","action":{"commands":["ls"]}}`, true, true, item.TypeShellCallOutput},
	{`{"type":"apply_patch_call","id":"apc","call_id":"call_1","status":"completed","operation":{"type":"delete_file","path":"a"}}`, true, true, item.TypeApplyPatchCallOutput},
	{`{"type":"tool_search_call","id":"tsc","call_id":"call_1","execution":"client","arguments":{}}`, true, true, item.TypeToolSearchOutput},
	{`{"type":"mcp_approval_request","id":"call_1","name":"f","arguments":"{}","server_label":"s"}`, true, true, item.TypeMCPApprovalResponse},
	{`{"type":"computer_call","id":"cu","call_id":"call_1","action":{"type":"wait"}}`, false, true, ""},
	{`{"type":"tool_search_call","id":"tsc","call_id":"call_1","execution":"server","arguments":{}}`, false, false, ""},
	{`{"type":"web_search_call","id":"ws","status":"completed"}`, false, false, ""},
	{`{"type":"mcp_call","id":"mcp","name":"f","arguments":"{}","server_label":"s"}`, false, false, ""},
	{`{"type":"message","role":"assistant","content":"x"}`, false, false, ""},
}

// P2 I6: every call that takes text is answered by an output of its kind, with
// its id, valid for the API.
func TestOutputFor(t *testing.T) {
	for _, test := range calls {
		call := parse(t, test.call)
		if call.IsCall() != test.client || call.IsOutput() {
			t.Errorf("%s: IsCall %v, IsOutput %v", call, call.IsCall(), call.IsOutput())
		}
		for _, c := range []item.Content{item.Text("it \"failed\"\n"), item.Parts(&item.InputText{Text: "a"})} {
			out, ok, err := item.OutputFor(call, c)
			if err != nil || ok != test.answered {
				t.Errorf("%s: %v, %v", call, ok, err)
				continue
			}
			if !ok {
				continue
			}
			if out.Type() != test.output || out.CallID() != "call_1" || !out.IsOutput() || out.IsCall() {
				t.Errorf("%s is answered by %s", call, out.JSON())
			}
		}
	}
}

// B6
func TestOutputForIsValid(t *testing.T) {
	spec := apispec.Load(t)
	for _, test := range calls {
		if out, ok, _ := item.OutputFor(parse(t, test.call), item.Text("it failed")); ok {
			spec.Check(t, "InputItem", []byte(out.JSON()))
		}
	}
}

// P2: an approval is refused, with the text as the reason.
func TestOutputForApproval(t *testing.T) {
	out, _, err := item.OutputFor(parse(t, `{"type":"mcp_approval_request","id":"mcpr_1"}`), item.Text("no"))
	if want := `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,"reason":"no"}`; err != nil || out.JSON() != want {
		t.Errorf("got %s, %v; want %s", out.JSON(), err, want)
	}
}

// schema uses what JSON Schema has and a decoder would lose.
const schema = `{ "type":["object","null"], "$defs":{"n":{"type":"integer","maximum":1e400}}, "properties":{"b":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"string","pattern":"^\\d+$"}]},"a":{}}, "additionalProperties":false }`

// I9: definitions are flat, with strict written, the schema byte for byte.
func TestToolDefinitions(t *testing.T) {
	tools := []item.Tool{
		&item.FunctionTool{Name: "f", Description: "d", Parameters: schema, Strict: new(false)},
		&item.FunctionTool{Name: "g", Parameters: "{}", Strict: new(true), DeferLoading: new(true)},
		&item.CustomTool{Name: "c", Description: "d", Format: `{"type":"grammar","syntax":"regex","definition":"a+"}`},
		&item.WebSearchTool{SearchContextSize: "low"},
	}
	req := &api.Request{Model: "m", Input: item.NewList(item.User("q")), Tools: tools, ToolChoice: api.ChoiceAuto}
	got := body(t, req.AppendJSON)
	want := `{"model":"m","input":[` + item.User("q").JSON() + `],"tools":[` +
		`{"type":"function","name":"f","description":"d","parameters":` + schema + `,"strict":false},` +
		`{"type":"function","name":"g","parameters":{},"strict":true,"defer_loading":true},` +
		`{"type":"custom","name":"c","description":"d","format":{"type":"grammar","syntax":"regex","definition":"a+"}},` +
		`{"type":"web_search","search_context_size":"low"}],"tool_choice":"auto"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := api.ParseRequest([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tools, back.Tools); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := api.ChooseFunction(`a"b`); got != `{"type":"function","name":"a\"b"}` {
		t.Errorf("ChooseFunction: %s", got)
	}
}

// I9 W7: a definition in the nested form of Chat Completions, or of no shape
// at all, is kept as it came.
func TestOddTools(t *testing.T) {
	for _, in := range []string{
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`,
		`{"tools":[{"name":"f"}],"tool_choice":{"type":"function","name":"f"}}`,
		`{"tools":null}`, `{"tools":{}}`, `{"tools":[]}`,
	} {
		req, err := api.ParseRequest([]byte(in))
		if err != nil || body(t, req.AppendJSON) != in {
			t.Errorf("%s: %v, %s", in, err, body(t, req.AppendJSON))
		}
	}
	_, err := api.ParseRequest([]byte(`{"tools":[{"type":"custom","name":"a"},7]}`))
	wantShape(t, err, item.ShapeError{Path: "tools[1]", Problem: "want a tool"})
}

// fullRequest sets every field.
func fullRequest(t *testing.T) *api.Request {
	t.Helper()
	list := new(item.List)
	for _, it := range constructed(t) {
		list.Append(it)
	}
	return &api.Request{
		Model: "gpt-5", Instructions: "be brief", Input: list,
		Tools: []item.Tool{&item.FunctionTool{Name: "f", Parameters: schema, Strict: new(false)},
			&item.CustomTool{Name: "c", Format: `{"type":"text"}`}},
		ToolChoice: api.ChooseFunction("f"), ParallelToolCalls: new(true), Stream: new(true), Store: new(false), Background: new(false),
		Include: []string{api.IncludeEncryptedReasoning}, MaxOutputTokens: new(int64(16)), MaxToolCalls: new(int64(3)),
		Temperature: new(0.5), TopP: new(1.0), Reasoning: &api.ReasoningConfig{Effort: "low", Summary: "auto"},
		Text: `{"format":{"type":"text"}}`, PreviousResponseID: "resp_1", PromptCacheKey: "k", SafetyIdentifier: "s",
		ServiceTier: "auto", Truncation: "auto", User: "u", Metadata: `{"a":"b"}`,
		TopLogprobs: new(int64(2)),
	}
}

// B6 B7: a request with everything set is valid and read back equal.
func TestFullRequest(t *testing.T) {
	req := fullRequest(t)
	got := body(t, req.AppendJSON)
	back, err := api.ParseRequest([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	if again := body(t, back.AppendJSON); again != got {
		t.Errorf("got  %s\nthen %s", got, again)
	}
	if diff := cmp.Diff(req, back, cmp.Comparer(func(a, b *item.List) bool {
		return a.JSON() == b.JSON()
	})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	apispec.Load(t).Check(t, "CreateResponse", []byte(got))
}

// B7: what is not set is not sent; zero and false are.
func TestNoHiddenDefaults(t *testing.T) {
	if got := body(t, new(api.Request).AppendJSON); got != `{}` {
		t.Errorf("the zero request is %s", got)
	}
	req := &api.Request{Temperature: new(0.0), Stream: new(false), MaxToolCalls: new(int64(0)), Include: []string{},
		Input: new(item.List), Tools: []item.Tool{}, Reasoning: new(api.ReasoningConfig)}
	if got, want := body(t, req.AppendJSON),
		`{"input":[],"tools":[],"stream":false,"include":[],"max_tool_calls":0,"temperature":0,"reasoning":{}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err := (&api.Request{TopP: new(math.NaN())}).AppendJSON(nil)
	wantShape(t, err, item.ShapeError{Path: "top_p", Problem: "finite"})
}

// W11: members of a request that a field cannot hold are sent as they came.
func TestRequestLeniency(t *testing.T) {
	for _, in := range []string{
		`{"input":"plain text"}`, `{"input":null}`, `{"model":null}`, `{"stream":"yes"}`, `{"temperature":1e999}`,
		`{"max_output_tokens":12345678901234567890}`, `{"max_output_tokens":1.5}`, `{"include":["a",5]}`, `{"reasoning":null}`,
		`{"reasoning":{"effort":null,"x":1}}`, `{"invented":[1.0]}`, `{"metadata":null}`,
	} {
		req, err := api.ParseRequest([]byte(in))
		if err != nil || body(t, req.AppendJSON) != in {
			t.Errorf("%s: %v, %s", in, err, body(t, req.AppendJSON))
		}
	}
	req, _ := api.ParseRequest([]byte(`{"input":"plain text"}`))
	if items := req.InputItems(); len(items) != 1 || items[0] != item.User("plain text") {
		t.Errorf("InputItems: %s", jsonOf(items))
	}
	_, err := api.ParseRequest([]byte(`{"input":[{"role":"user"},5]}`))
	wantShape(t, err, item.ShapeError{Path: "input[1]", Problem: "want an item"})
}

// Numbers are written in plain digits, as strict clients expect of a time.
func TestNumbers(t *testing.T) {
	for _, n := range []struct {
		f    float64
		want string
	}{
		{1763474589, "1763474589"}, {0.5, "0.5"}, {1e20, "100000000000000000000"}, {1e21, "1e+21"},
		{1e-6, "0.000001"}, {1e-7, "1e-07"}, {-0.25, "-0.25"}, {0, "0"},
	} {
		got := body(t, (&api.Response{ID: "r", CreatedAt: &n.f}).AppendJSON)
		if want := `{"id":"r","object":"response","created_at":` + n.want + `}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for in, want := range map[string]int64{"5": 5, "5.0": 5, "5e1": 50, "-0": 0, "9007199254740993": 9007199254740993} {
		r, err := api.ParseRequest([]byte(`{"max_output_tokens":` + in + `}`))
		if err != nil || r.MaxOutputTokens == nil || *r.MaxOutputTokens != want {
			t.Errorf("%s: %v, %v", in, r.MaxOutputTokens, err)
		}
	}
}

// C6: a compaction is read like a response and keeps what it is.
func TestResponseObject(t *testing.T) {
	for _, in := range []string{
		`{"id":"r","object":"response","output":[]}`,
		`{"id":"r","output":[],"object":"response.compaction"}`,
	} {
		r, err := api.ParseResponse([]byte(in))
		if err != nil || body(t, r.AppendJSON) != in {
			t.Errorf("%s: %v, %s", in, err, body(t, r.AppendJSON))
		}
	}
}
