// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// S5 S6: what hosted tools stream becomes part of their items where no done
// item comes.
func TestHostedDeltas(t *testing.T) {
	for _, test := range []struct {
		name   string
		events []string
		want   string
	}{
		{"annotations", []string{added("0", `{"id":"m","type":"message","role":"assistant","content":[]}`),
			`{"type":"response.output_text.delta","item_id":"m","content_index":0,"delta":"hi"}`,
			`{"type":"response.output_text.annotation.added","item_id":"m","content_index":0,"annotation_index":0,"annotation":{"type":"file_path","file_id":"f","index":0}}`,
			`{"type":"response.output_text.annotation.added","item_id":"m","content_index":0,"annotation":{"type":"invented","n":1.0}}`,
			`{"type":"response.output_text.annotation.added","item_id":"m","content_index":0,"annotation_index":0,"annotation":{"type":"file_path","file_id":"g","index":0}}`,
			`{"type":"response.output_text.annotation.added","item_id":"m","content_index":0,"annotation_index":2,"annotation":null}`},
			`{"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi",
				"annotations":[{"type":"file_path","file_id":"g","index":0},{"type":"invented","n":1.0}]}]}`},
		{"a whole part", []string{added("0", `{"id":"m","type":"message","role":"assistant","content":[]}`),
			`{"type":"response.output_text.delta","item_id":"m","content_index":0,"delta":"h"}`,
			`{"type":"response.content_part.done","item_id":"m","content_index":0,"part":{"type":"output_text","text":"hi","annotations":[{"type":"x"}],"logprobs":[],"new":1}}`,
			`{"type":"response.content_part.done","item_id":"m","content_index":1,"part":{"type":"invented","x":1.0}}`},
			`{"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[{"type":"x"}],"logprobs":[],"new":1},{"type":"invented","x":1.0}]}`},
		{"whole parts of reasoning", []string{added("0", `{"id":"rs","type":"reasoning","summary":[]}`),
			`{"type":"response.reasoning_summary_part.done","item_id":"rs","summary_index":0,"part":{"type":"summary_text","text":"s","new":1}}`,
			`{"type":"response.content_part.done","item_id":"rs","content_index":0,"part":{"type":"reasoning_text","text":"r"}}`},
			`{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"s","new":1}],"content":[{"type":"reasoning_text","text":"r"}]}`},
		{"code", []string{added("0", `{"id":"ci","type":"code_interpreter_call","status":"in_progress","code":"","container_id":"c","outputs":null}`),
			`{"type":"response.code_interpreter_call_code.delta","item_id":"ci","output_index":0,"delta":"1+"}`,
			`{"type":"response.code_interpreter_call_code.delta","item_id":"ci","output_index":0,"delta":"1"}`,
			`{"type":"response.code_interpreter_call.interpreting","item_id":"ci","output_index":0}`},
			`{"id":"ci","type":"code_interpreter_call","status":"completed","code":"1+1","container_id":"c","outputs":null}`},
		{"done code", []string{added("0", `{"id":"ci","type":"code_interpreter_call","status":"in_progress","code":"","container_id":"c"}`),
			`{"type":"response.code_interpreter_call_code.done","item_id":"ci","code":"2"}`},
			`{"id":"ci","type":"code_interpreter_call","status":"completed","code":"2","container_id":"c"}`},
		{"MCP arguments", []string{added("0", `{"id":"mcp","type":"mcp_call","status":"in_progress","server_label":"s","name":"t","arguments":"","approval_request_id":null}`),
			`{"type":"response.mcp_call_arguments.delta","output_index":0,"delta":"{"}`,
			`{"type":"response.mcp_call_arguments.delta","output_index":0,"delta":"}"}`,
			`{"type":"response.mcp_call.failed","item_id":"mcp","output_index":0}`},
			`{"id":"mcp","type":"mcp_call","status":"failed","server_label":"s","name":"t","arguments":"{}","approval_request_id":null}`},
		{"done MCP arguments", []string{added("0", `{"id":"mcp","type":"mcp_call","server_label":"s","name":"t","arguments":""}`),
			`{"type":"response.mcp_call_arguments.done","item_id":"mcp","arguments":"{\"a\":1}"}`},
			`{"id":"mcp","type":"mcp_call","server_label":"s","name":"t","arguments":"{\"a\":1}"}`},
		{"commands", []string{added("0", `{"id":"sh","type":"shell_call","call_id":"c","status":"in_progress","action":{"commands":[],"timeout_ms":null}}`),
			`{"type":"response.shell_call_command.added","output_index":0,"command_index":0,"command":""}`,
			`{"type":"response.shell_call_command.delta","output_index":0,"command_index":0,"delta":"l"}`,
			`{"type":"response.shell_call_command.delta","output_index":0,"command_index":0,"delta":"s"}`,
			`{"type":"response.shell_call_command.added","output_index":0,"command_index":1,"command":"p"}`,
			`{"type":"response.shell_call_command.done","output_index":0,"command_index":1,"command":"pwd"}`},
			`{"id":"sh","type":"shell_call","call_id":"c","status":"completed","action":{"commands":["ls","pwd"],"timeout_ms":null}}`},
		{"outputs of commands", []string{added("0", `{"id":"sho","type":"shell_call_output","call_id":"c","status":"in_progress","output":[]}`),
			`{"type":"response.shell_call_output_content.delta","item_id":"sho","command_index":1,"delta":{"stdout":"a"}}`,
			`{"type":"response.shell_call_output_content.delta","item_id":"sho","command_index":1,"delta":{"stdout":"b","stderr":"!"}}`,
			`{"type":"response.shell_call_output_content.done","item_id":"sho","command_index":0,"output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`},
			`{"id":"sho","type":"shell_call_output","call_id":"c","status":"completed","output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}},{"stdout":"ab","stderr":"!"}]}`},
		{"the output of a command without a number", []string{added("0", `{"id":"sho","type":"shell_call_output","call_id":"c","status":"in_progress","output":[]}`),
			`{"type":"response.shell_call_output_content.delta","item_id":"sho","delta":{"stdout":"a"}}`,
			`{"type":"response.shell_call_output_content.done","item_id":"sho","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`},
			`{"id":"sho","type":"shell_call_output","call_id":"c","status":"completed","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`},
		{"a search that is done", []string{added("0", `{"id":"ws","type":"web_search_call","status":"in_progress","action":{"type":"search","query":"q"}}`),
			`{"type":"response.web_search_call.completed","item_id":"ws","output_index":0}`},
			`{"id":"ws","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`},
		{"a search of which nothing was said", []string{added("0", `{"id":"ws","type":"web_search_call","status":"searching"}`)},
			`{"id":"ws","type":"web_search_call","status":"searching"}`},
		{"the state of an item that nobody added", []string{added("0", `{"id":"a","type":"x"}`), `{"type":"response.web_search_call.completed","item_id":"ws","output_index":5}`},
			`{"id":"a","type":"x"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, _ := accumulate(t, test.name, append(test.events, completed))
			sameJSON(t, "output", jsonOf(r.Output), "["+test.want+"]")
		})
	}
}

// S6: partial images and audio belong to no item; they reach the event feed as
// views and as structs.
func TestMediaEvents(t *testing.T) {
	var a api.Accumulator
	var audio, transcript strings.Builder
	var images []string
	for _, s := range []string{created, added("0", `{"id":"ig","type":"image_generation_call","status":"in_progress","result":null}`),
		`{"type":"response.image_generation_call.partial_image","item_id":"ig","output_index":0,"partial_image_index":0,"partial_image_b64":"AAAA"}`,
		`{"type":"response.audio.delta","delta":"UklG"}`, `{"type":"response.audio.transcript.delta","delta":"hi"}`,
		`{"type":"response.audio.delta","delta":"Rg=="}`, `{"type":"response.audio.done"}`, `{"type":"response.audio.transcript.done"}`,
		`{"type":"response.image_generation_call.completed","item_id":"ig","output_index":0}`} {
		e := event(t, s)
		items, err := a.Add(e)
		if err != nil || len(items) != 0 {
			t.Errorf("%s: %v, %v", s, items, err)
		}
		v, err := e.Decode()
		if err != nil {
			t.Fatal(err)
		}
		switch v := v.(type) {
		case *api.ImagePartialEvent:
			images = append(images, v.Image, e.Text("partial_image_b64"))
		case *api.AudioDeltaEvent:
			audio.WriteString(e.Delta)
		case *api.TranscriptDeltaEvent:
			transcript.WriteString(v.Delta)
		}
	}
	if strings.Join(images, " ") != "AAAA AAAA" || audio.String() != "UklGRg==" || transcript.String() != "hi" {
		t.Errorf("got %q, %q, %q", images, audio.String(), transcript.String())
	}
	if len(a.Partial()) != 0 {
		t.Errorf("partial %s", jsonOf(a.Partial()))
	}
	items, err := a.Add(event(t, completed))
	if err != nil || len(items) != 1 || items[0].Status() != item.StatusCompleted {
		t.Errorf("got %v, %v", items, err)
	}
}

// Code and arguments that were broken off are not partial items.
func TestHostedPartial(t *testing.T) {
	var a api.Accumulator
	for _, s := range []string{created,
		added("0", `{"id":"ci","type":"code_interpreter_call","status":"in_progress","code":"","container_id":"c"}`),
		`{"type":"response.code_interpreter_call_code.delta","item_id":"ci","delta":"1+"}`,
		added("1", `{"id":"mcp","type":"mcp_call","server_label":"s","name":"t","arguments":""}`),
		`{"type":"response.mcp_call_arguments.delta","item_id":"mcp","delta":"{"}`} {
		if _, err := a.Add(event(t, s)); err != nil {
			t.Fatal(err)
		}
	}
	if p := a.Partial(); len(p) != 0 {
		t.Errorf("got %s", jsonOf(p))
	}
}
