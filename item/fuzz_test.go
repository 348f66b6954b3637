// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// seeds are items of every shape that the decoders treat apart.
var seeds = []string{
	`{"role":"user","content":"hi"}`,
	`{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"hi"},{"type":"refusal","refusal":"no"}]}`,
	`{"type":"message","role":"user","content":[{"type":"input_image","image_url":{"url":"https://x/y.png","detail":"low"}},{"type":"input_file","file_id":"f","detail":null},{"type":"input_audio","x":1}]}`,
	`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{\"a\":1}","status":"completed"}`,
	`{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"auto"}]}`,
	`{"type":"custom_tool_call","call_id":"c","name":"n","input":"i","namespace":null}`,
	`{"type":"custom_tool_call_output","call_id":"c","output":""}`,
	`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}],"content":null,"encrypted_content":"e"}`,
	`{"type":"web_search_call","id":"ws_1","action":{"n":1e400,"n":12345678901234567890}}`,
	`{"id":"msg_9"}`,
	`{"type":"function_call_output","call_id":"c","output":5}`,
	`{"\u0074ype":"message","role":"user","role":"system","content":"\ud800","x":{},"x":[null]}`,
	`{"type":"mcp_approval_request","id":"a"}`,
	` { } `,
}

// W7 W8 W11: no text makes a panic; an item keeps its bytes; what is decoded
// and encoded once stays as it is, byte for byte.
func FuzzItem(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		it, err := item.ParseString(s)
		if err != nil {
			return
		}
		if it.JSON() != strings.Trim(s, " \t\r\n") {
			t.Fatalf("the bytes changed: %q", it.JSON())
		}
		checkMembers(t, it)
		_, _, _ = it.String(), it.IsOutput(), it.Status()
		v, err := it.Decode()
		if err != nil {
			return
		}
		once := encode(t, v)
		if item.JSON(once.JSON()).Valid() != nil || once.Type() != it.Type() {
			t.Fatalf("encoded as %s item %q", once.Type(), once.JSON())
		}
		if twice := encode(t, decode(t, once)); twice != once {
			t.Fatalf("no fixpoint:\n%s\n%s", once.JSON(), twice.JSON())
		}
		if it.IsCall() {
			if out, ok, err := item.OutputFor(it, item.Text("x")); err != nil || ok && !(out.IsOutput() && out.CallID() == strings.ToValidUTF8(it.CallID(), "\uFFFD")) {
				t.Fatalf("OutputFor: %s, %v, %v", out.JSON(), ok, err)
			}
		}
	})
}

// W7 W11: the bodies of requests and responses.
func FuzzBody(f *testing.F) {
	for _, s := range seeds {
		f.Add(`{"model":"m","input":[` + s + `],"tools":[{"type":"function","name":"f","parameters":{}}],"temperature":1e-7}`)
		f.Add(`{"id":"resp_1","object":"response","created_at":1.5,"output":[` + s + `],"usage":{"input_tokens":1,"output_tokens":null},"error":null}`)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := api.ParseRequest([]byte(s)); err == nil {
			_ = r.InputItems()
			once := body(t, r.AppendJSON)
			again, err := api.ParseRequest([]byte(once))
			if err != nil {
				t.Fatalf("%v in %s", err, once)
			}
			if twice := body(t, again.AppendJSON); twice != once {
				t.Fatalf("no fixpoint:\n%s\n%s", once, twice)
			}
		}
		if r, err := api.ParseResponse([]byte(s)); err == nil {
			_ = r.Text()
			once := body(t, r.AppendJSON)
			again, err := api.ParseResponse([]byte(once))
			if err != nil {
				t.Fatalf("%v in %s", err, once)
			}
			if twice := body(t, again.AppendJSON); twice != once {
				t.Fatalf("no fixpoint:\n%s\n%s", once, twice)
			}
		}
	})
}

func body(t tester, appendJSON func([]byte) ([]byte, error)) string {
	t.Helper()
	b, err := appendJSON([]byte("x"))
	if err != nil || len(b) == 0 || b[0] != 'x' {
		t.Fatalf("AppendJSON: %q, %v", b, err)
	}
	return string(b[1:])
}

// S5 W11: no stream makes a panic, whatever its events are; the data is one
// event a line.
func FuzzEvent(f *testing.F) {
	f.Add(`{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}
{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"hi"}
{"type":"response.completed","response":{"id":"r","output":[]}}`)
	f.Add(`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c","name":"n","arguments":""}}
{"type":"response.failed","response":{"id":"r","error":{"code":5,"message":"m"}}}`)
	f.Add(`{"type":"error","code":null,"message":"m","sequence_number":1e0}
{"type":"response.reasoning_summary_text.delta","summary_index":2147483648,"delta":5}
{"error":{"message":"untyped"}}`)
	f.Fuzz(func(t *testing.T, s string) {
		var a api.Accumulator
		for line := range strings.Lines(s) {
			e, err := api.ParseEvent([]byte(line))
			if err != nil {
				continue
			}
			_, _ = e.Err()
			items, _ := a.Add(e)
			for _, it := range items {
				if it.IsZero() || !utf8.ValidString(it.JSON()) {
					t.Fatalf("announced %q", it.JSON())
				}
			}
		}
		r, _ := a.Response()
		for _, it := range append(r.Output, a.Partial()...) {
			if _, err := item.ParseString(it.JSON()); err != nil {
				t.Fatalf("%v in %q", err, it.JSON())
			}
		}
	})
}

// W11
func FuzzScan(f *testing.F) {
	for _, s := range append(seeds, `"\ud800\u0041"`, `[1.5e+7,-0,{"a":[]}]`, "\"\xff\"", `{"a":1,"a":2}`) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkScan(t, s) })
}

// W11
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\x7f", `\ud83d\ude00\ud800`, "a\xffb", "<\u2028>&", `\/\b\f\n\r\t`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkString(t, s) })
}
