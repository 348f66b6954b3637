// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// outputs returns an output of both kinds, with this JSON as its output.
func outputs(output string) []string {
	return []string{
		`{"type":"function_call_output","call_id":"call_1","output":` + output + `}`,
		`{"type":"custom_tool_call_output","call_id":"call_1","output":` + output + `}`,
	}
}

func contentOf(t *testing.T, s string) item.Content {
	t.Helper()
	switch v := decode(t, parse(t, s)).(type) {
	case *item.FunctionCallOutput:
		return v.Output
	case *item.CustomToolCallOutput:
		return v.Output
	case *item.Message:
		return v.Content
	default:
		t.Fatalf("%T", v)
		return item.Content{}
	}
}

// W1 W2 W5: the union of an output keeps its branch, on both kinds of output.
func TestOutputUnion(t *testing.T) {
	text := func(s string) item.Part { return &item.InputText{Text: s} }
	for _, test := range []struct {
		output string
		want   item.Content
	}{
		{`"hello"`, item.Text("hello")},
		{`""`, item.Text("")},
		{`"[]"`, item.Text("[]")},
		{`"a\nb \"c\" 😀"`, item.Text("a\nb \"c\" 😀")},
		{`[]`, item.Parts()},
		{`[{"type":"input_text","text":"a"}]`, item.Parts(text("a"))},
		{`[{"type":"input_text","text":""},{"type":"input_image","image_url":"https://x/y.png"},{"type":"input_file","file_id":"f"},{"type":"input_text","text":"b"}]`,
			item.Parts(text(""), &item.InputImage{ImageURL: "https://x/y.png"}, &item.InputFile{FileID: "f"}, text("b"))},
		{`[{"type":"input_hologram","z":1}]`, item.Parts(&item.UnknownPart{Raw: `{"type":"input_hologram","z":1}`})},
	} {
		for _, in := range outputs(test.output) {
			got := contentOf(t, in)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", in, diff)
			}
			if got.IsText() != (test.output[0] == '"') {
				t.Errorf("%s: IsText %v", in, got.IsText())
			}
			if out := roundTrip(t, in); out != in {
				t.Errorf("%s is written as\n%s", in, out)
			}
		}
	}
}

// W3: an image's detail survives, and absent, null and empty stay apart.
func TestImageDetail(t *testing.T) {
	for _, test := range []struct {
		member string
		detail item.Detail
	}{
		{``, ""}, {`,"detail":null`, ""}, {`,"detail":""`, ""}, {`,"detail":5`, ""},
		{`,"detail":"low"`, item.DetailLow}, {`,"detail":"high"`, item.DetailHigh}, {`,"detail":"auto"`, item.DetailAuto},
		{`,"detail":"original"`, item.DetailOriginal}, {`,"detail":"tomorrow"`, "tomorrow"},
	} {
		for _, in := range outputs(`[{"type":"input_image","image_url":"https://x/y"` + test.member + `}]`) {
			img := contentOf(t, in).Parts[0].(*item.InputImage)
			if img.Detail != test.detail || img.ImageURL != "https://x/y" {
				t.Errorf("%s: %+v", in, img)
			}
			if out := roundTrip(t, in); out != in {
				t.Errorf("%s is written as\n%s", in, out)
			}
		}
	}
}

// W4: image_url as an object is read like the string, and written as one.
func TestImageURLObject(t *testing.T) {
	for _, test := range []struct{ in, out string }{
		{`"image_url":"https://x"`, `"image_url":"https://x"`},
		{`"image_url":{"url":"https://x"}`, `"image_url":"https://x"`},
		{`"image_url":{"url":"https://x","detail":"low"}`, `"image_url":"https://x","detail":"low"`},
		{`"image_url":{"url":"https://x"},"detail":"high"`, `"image_url":"https://x","detail":"high"`},
		{`"image_url":{"url":"https://x","detail":"low"},"detail":null`, `"image_url":"https://x","detail":"low"`},
		// What the string cannot hold stays as it came.
		{`"image_url":{"url":"https://x","new":1}`, `"image_url":{"url":"https://x","new":1}`},
		{`"image_url":null,"file_id":"f"`, `"file_id":"f","image_url":null`},
	} {
		in := `{"type":"message","content":[{"type":"input_image",` + test.in + `}],"role":"user"}`
		want := `{"type":"message","content":[{"type":"input_image",` + test.out + `}],"role":"user"}`
		if out := roundTrip(t, in); out != want {
			t.Errorf("%s is written as\n%s", in, out)
		}
	}
}

// W6: a value that no reading fits is an error with its path and call, and
// the item stays readable as JSON.
func TestShapeErrors(t *testing.T) {
	for _, test := range []struct {
		in   string
		want item.ShapeError
	}{
		{outputs(`5`)[0], item.ShapeError{Type: "function_call_output", CallID: "call_1", Path: "output", Problem: "found the number 5, want a string or a list of parts"}},
		{outputs(`{}`)[1], item.ShapeError{Type: "custom_tool_call_output", CallID: "call_1", Path: "output", Problem: "found an object"}},
		{outputs(`null`)[0], item.ShapeError{Type: "function_call_output", CallID: "call_1", Path: "output", Problem: "found null"}},
		{outputs(`true`)[0], item.ShapeError{Type: "function_call_output", CallID: "call_1", Path: "output", Problem: "found true"}},
		{outputs(`[{"type":"input_text","text":"a"},"b"]`)[0], item.ShapeError{Type: "function_call_output", CallID: "call_1", Path: "output[1]", Problem: "found a string, want a part"}},
		{outputs(`[[]]`)[1], item.ShapeError{Type: "custom_tool_call_output", CallID: "call_1", Path: "output[0]", Problem: "found a list"}},
		{outputs(`[{"type":"input_text","text":7}]`)[0], item.ShapeError{Type: "function_call_output", CallID: "call_1", Path: "output[0].text", Problem: "want a string"}},
		{`{"type":"function_call","call_id":"c","name":"f","arguments":{"a":1}}`, item.ShapeError{Type: "function_call", CallID: "c", Path: "arguments", Problem: "found an object, want a string"}},
		{`{"type":"function_call","call_id":7,"name":"f","arguments":""}`, item.ShapeError{Type: "function_call", Path: "call_id", Problem: "found the number 7"}},
		{`{"role":"user","content":[1]}`, item.ShapeError{Type: "message", Path: "content[0]", Problem: "want a part"}},
		{`{"type":"reasoning","id":"r","summary":[null]}`, item.ShapeError{Type: "reasoning", Path: "summary[0]", Problem: "found null"}},
	} {
		it := parse(t, test.in)
		if it.JSON() != test.in {
			t.Errorf("%s: the item is not readable", test.in)
		}
		v, err := it.Decode()
		wantShape(t, err, test.want)
		if v != nil {
			t.Errorf("%s: a value beside the error: %+v", test.in, v)
		}
	}
}

// W6: one bad output leaves the rest of a body and of a stream readable.
func TestShapeErrorIsLocal(t *testing.T) {
	bad := outputs(`5`)[0]
	req, err := api.ParseRequest([]byte(`{"input":[` + bad + `,{"role":"user","content":"hi"}]}`))
	if err != nil || req.Input.Len() != 2 {
		t.Fatalf("%v, %+v", err, req)
	}
	if m := as[item.Message](t, req.Input.At(1)); m.Content.Text != "hi" {
		t.Errorf("got %+v", m)
	}
	var a api.Accumulator
	for _, data := range []string{
		`{"type":"response.output_item.done","output_index":0,"item":7}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + bad + `}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"role":"assistant","content":"hi"}}`,
	} {
		if _, err := a.Add(event(t, data)); (err != nil) != (data[len(data)-2] == '7') {
			t.Errorf("%s: %v", data, err)
		}
	}
	if r, _ := a.Response(); len(r.Output) != 2 {
		t.Errorf("got %s", jsonOf(r.Output))
	}
}

// W7 W8 W9: what is received is kept byte for byte and sent on unchanged.
func TestBytesAreKept(t *testing.T) {
	for _, in := range []string{
		`{ "type" : "function_call" , "arguments":"\u007b\/\u007d","name":"f","call_id":"c","n":1.50e+3, "n":12345678901234567890 }`,
		`{"type":"invented_tomorrow","payload":[1,{"x":null}],"status":"odd"}`,
		`{"type":"message","role":"narrator","content":"x","status":"odd","new":{"a":[]}}`,
		`{"type":"message","role":"user","content":"\ud800 alone"}`,
		`{}`,
	} {
		it, err := item.Parse([]byte(" \n" + in + "\t"))
		if err != nil {
			t.Fatal(err)
		}
		if it.JSON() != in {
			t.Errorf("got %s, want %s", it.JSON(), in)
		}
		if body, err := (&api.Request{Input: item.NewList(it)}).AppendJSON(nil); err != nil || string(body) != `{"input":[`+in+`]}` {
			t.Errorf("sent as %s, %v", body, err)
		}
	}
	data := []byte(`{"type":"message","role":"user","content":"a"}`)
	it, _ := item.Parse(data)
	data[10] = '#'
	if it != parse(t, `{"type":"message","role":"user","content":"a"}`) {
		t.Error("Parse kept the caller's memory")
	}
}

// W7: unknown types, members and enum values are not errors and stay.
func TestUnknown(t *testing.T) {
	in := `{"type":"message","status":"paused","content":[{"type":"hologram","b":2,"a":1},{"type":"input_text","text":"t","new":[1]},{"no":"type"}],"role":"narrator","z":1.0,"y":null}`
	m := as[item.Message](t, parse(t, in))
	if m.Role != "narrator" || m.Status != "paused" {
		t.Errorf("got %+v", m)
	}
	if p := m.Content.Parts[0]; p.PartType() != "hologram" {
		t.Errorf("got part type %q", p.PartType())
	}
	if v, ok := m.Content.Parts[1].(*item.InputText).Extra.Get("new"); !ok || v != "[1]" {
		t.Errorf("got %q, %v", v, ok)
	}
	if out := roundTrip(t, in); out != in {
		t.Errorf("written as\n%s", out)
	}
	u := as[item.Unknown](t, parse(t, `{"type":"new_call","call_id":"c"}`))
	if u.ItemType() != "new_call" || encode(t, u).CallID() != "c" {
		t.Errorf("got %+v", u)
	}
	tool := `{"type":"web_search","filters":{"b":1,"a":2.0}}`
	req, err := api.ParseRequest([]byte(`{"tools":[` + tool + `]}`))
	if err != nil || req.Tools[0].ToolType() != "web_search" || body(t, req.AppendJSON) != `{"tools":[`+tool+`]}` {
		t.Errorf("%v, %+v", err, req)
	}
}

// W10: easy messages, with and without a type, of any role.
func TestEasyMessage(t *testing.T) {
	for _, role := range []item.Role{item.RoleUser, item.RoleAssistant, item.RoleSystem, item.RoleDeveloper, "critic"} {
		for _, content := range []string{`""`, `"hi"`, `[]`, `[{"type":"input_text","text":"hi"}]`} {
			for _, typ := range []string{``, `"type":"message",`} {
				in := fmt.Sprintf(`{%s"content":%s,"role":%q}`, typ, content, role)
				it := parse(t, in)
				if it.Type() != item.TypeMessage || it.Role() != role || it.JSON() != in {
					t.Errorf("%s: %s %s", in, it.Type(), it.Role())
				}
				want := fmt.Sprintf(`{"type":"message","content":%s,"role":%q}`, content, role)
				if out := roundTrip(t, in); out != want {
					t.Errorf("%s is written as\n%s", in, out)
				}
			}
		}
	}
	for in, want := range map[string]item.Type{
		`{"id":"msg_1"}`:                 item.TypeItemReference,
		`{"type":null,"id":"msg_1"}`:     item.TypeItemReference,
		`{"x":1}`:                        "",
		`{"\u0074ype":"function_call"}`:  item.TypeFunctionCall,
		`{"type":"a","type":"b"}`:        "b",
		`{"type":"message","type":null}`: "",
	} {
		if got := parse(t, in).Type(); got != want {
			t.Errorf("%s: type %q, want %q", in, got, want)
		}
	}
}

// W7: As tells an item of another type apart.
func TestAsOtherType(t *testing.T) {
	_, err := item.As[item.FunctionCall](item.User("x"))
	if !errors.Is(err, item.ErrType) {
		t.Errorf("got %v", err)
	}
}

// P5: the call id is call_id, never id; for the kinds that have none, what
// pairs call and answer.
func TestCallID(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"}`:     "call_1",
		`{"type":"function_call","id":"fc_1","name":"f","arguments":"{}"}`:                        "",
		`{"type":"custom_tool_call","id":"ctc_1","call_id":"call_1","name":"f","input":""}`:       "call_1",
		`{"type":"function_call_output","id":"fco_1","call_id":"call_1","output":""}`:             "call_1",
		`{"type":"shell_call","id":"sh_1","call_id":"call_1"}`:                                    "call_1",
		`{"type":"local_shell_call","id":"lsh_1","call_id":"call_1"}`:                             "call_1",
		`{"type":"local_shell_call_output","id":"call_1","output":""}`:                            "call_1",
		`{"type":"mcp_approval_request","id":"mcpr_1"}`:                                           "mcpr_1",
		`{"type":"mcp_approval_response","id":"x","approval_request_id":"mcpr_1","approve":true}`: "mcpr_1",
		`{"type":"message","id":"msg_1","role":"user","content":""}`:                              "",
	} {
		if got := parse(t, in).CallID(); got != want {
			t.Errorf("%s: call id %q, want %q", in, got, want)
		}
	}
	call := as[item.FunctionCall](t, parse(t, `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"}`))
	if call.ID != "fc_1" || call.CallID != "call_1" {
		t.Errorf("got %+v", call)
	}
}

// R1 R2: reasoning goes back in its place with all it holds.
func TestReasoningReplay(t *testing.T) {
	reasoning := func(id, summary string) string {
		return `{"id":"` + id + `","type":"reasoning","encrypted_content":"gAAA` + id + `","summary":` + summary + `}`
	}
	same := `[{"type":"summary_text","text":"s"},{"type":"summary_text","text":"s"}]`
	out := []string{
		reasoning("rs_1", `[]`),
		`{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`,
		reasoning("rs_2", same),
		`{"type":"message","id":"m","role":"assistant","content":[]}`,
		reasoning("rs_3", same),
		`{"type":"function_call","id":"fc_2","call_id":"c2","name":"f","arguments":"{}"}`,
	}
	joined := "["
	for i, s := range out {
		if i > 0 {
			joined += ","
		}
		joined += s
	}
	joined += "]"
	r, err := api.ParseResponse([]byte(`{"id":"resp_1","output":` + joined + `}`))
	if err != nil {
		t.Fatal(err)
	}
	next := item.NewList(item.User("q"))
	next.Append(r.Output...)
	if got := next.JSON(); got != "["+item.User("q").JSON()+","+joined[1:] {
		t.Errorf("replayed as %s", got)
	}
	v := as[item.Reasoning](t, r.Output[2])
	want := &item.Reasoning{ID: "rs_2", EncryptedContent: "gAAArs_2",
		Summary: []item.Part{&item.SummaryText{Text: "s"}, &item.SummaryText{Text: "s"}}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sameJSON(t, "decoded and encoded", encode(t, v).JSON(), out[2])
}
