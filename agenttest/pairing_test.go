// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// history builds items from a short text: "u" and "a" are messages, "r" is
// reasoning, "c1" and "x1" a function and a custom call, "c1=" and "x1=" their
// outputs, "w" a web search of the endpoint.
func history(t *testing.T, text string) []item.Item {
	t.Helper()
	var items []item.Item
	for _, word := range strings.Fields(text) {
		id, out := strings.CutSuffix(word[1:], "=")
		var raw string
		switch kind := word[0]; {
		case kind == 'u':
			raw = `{"role":"user","content":"q"}`
		case kind == 'a':
			raw = `{"type":"message","role":"assistant","content":"a"}`
		case kind == 'r':
			raw = `{"type":"reasoning","id":"rs_1","summary":[]}`
		case kind == 'w':
			raw = `{"type":"web_search_call","id":"ws_1","status":"completed"}`
		case kind == 'c' && out:
			raw = fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"o"}`, id)
		case kind == 'c':
			raw = fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"f","arguments":"{}"}`, id)
		case kind == 'x' && out:
			raw = fmt.Sprintf(`{"type":"custom_tool_call_output","call_id":%q,"output":"o"}`, id)
		case kind == 'x':
			raw = fmt.Sprintf(`{"type":"custom_tool_call","call_id":%q,"name":"f","input":""}`, id)
		}
		it, err := item.ParseString(raw)
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		items = append(items, it)
	}
	return items
}

// P1 R6
func TestCheckPairing(t *testing.T) {
	for _, c := range []struct{ history, want string }{
		{"", ""},
		{"u a u", ""},
		{"u c1 c1= a", ""},
		{"u c1 x1 x1= c1=", ""}, // an id counts within its kind
		{"r c1 r a c1=", ""},
		{"r r w", ""},
		{"u c1", `item 1: function_call "1" has no output behind it`},
		{"u c1= c1", `item 1: function_call_output "1" has no call before it`},
		{"c1 x1=", `item 1: custom_tool_call_output "1" has no call before it`},
		{"c1 c1= c1=", `item 2: function_call_output "1" is output number 2 of the call at item 0`},
		{"c1 c1= c1 c1=", `item 2: function_call "1" has the id of item 0`},
		{"c c=", "item 0: function_call without a call id"},
		{"r", "item 0: reasoning that no item of its reply follows"},
		{"r u", "item 0: reasoning that no item of its reply follows"},
		{"c1 r c1=", "item 1: reasoning that no item of its reply follows"},
		{"r r u r a", "item 1: reasoning that no item of its reply follows"},
	} {
		err := agenttest.CheckPairing(history(t, c.history)...)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.history, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", c.history, err, c.want)
		}
	}
}

// The judge has a table of its own, so that one mistake does not excuse another.
// Both must know the same kinds.
func TestCheckPairingKnowsAllKinds(t *testing.T) {
	for _, kind := range item.CallKinds() {
		call, err := item.ParseString(`{"type":"` + string(kind.Call) + `","id":"c1","call_id":"c1","execution":"client"}`)
		if err != nil {
			t.Fatal(err)
		}
		output, err := item.ParseString(`{"type":"` + string(kind.Output) + `","id":"c1","call_id":"c1","approval_request_id":"c1","execution":"client"}`)
		if err != nil {
			t.Fatal(err)
		}
		if err := agenttest.CheckPairing(call, output); err != nil {
			t.Errorf("%s with its output: %v", kind.Call, err)
		}
		for _, wrong := range [][]item.Item{{call}, {output}, {output, call}, {call, output, output}} {
			if agenttest.CheckPairing(wrong...) == nil {
				t.Errorf("%s: %v is not refused", kind.Call, wrong)
			}
		}
	}
}
