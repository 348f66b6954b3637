// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// M7, P1: a response written by hand answers the call that has its id, whatever
// kind that call is of and wherever it stands. One that says its kind, or was
// written by this program, is what it says.
func TestResponseKind(t *testing.T) {
	const (
		custom   = `<tool_call tool_call_id="x" function_name="f" type="custom_tool_call">in</tool_call>`
		function = `<tool_call tool_call_id="x" function_name="f">{}</tool_call>`
	)
	for src, want := range map[string]item.Type{
		custom + `<tool_response tool_call_id="x">Done</tool_response>`:                                                                         item.TypeCustomToolCallOutput,
		`<tool_response tool_call_id="x">Done</tool_response>` + custom:                                                                         item.TypeCustomToolCallOutput,
		custom + `<msg role="tool" tool_call_id="x">Done</msg>`:                                                                                 item.TypeCustomToolCallOutput,
		function + `<tool_response tool_call_id="x">Done</tool_response>`:                                                                       item.TypeFunctionCallOutput,
		custom + `<tool_response tool_call_id="y">Done</tool_response>`:                                                                         item.TypeFunctionCallOutput,
		custom + `<tool_response tool_call_id="x" type="function_call_output">Done</tool_response>`:                                             item.TypeFunctionCallOutput,
		custom + `<tool_response tool_call_id="x" output="text">Done</tool_response>`:                                                           item.TypeFunctionCallOutput,
		custom + function + `<tool_response tool_call_id="x" type="custom_tool_call">Done</tool_response>`:                                      item.TypeCustomToolCallOutput,
		`<item>{"type":"custom_tool_call","call_id":"x","name":"f","input":""}</item>` + `<tool_response tool_call_id="x">Done</tool_response>`: item.TypeCustomToolCallOutput,
	} {
		f, err := Parse("f", []byte(src))
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		items, err := f.Items(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			if it.Item.IsOutput() && it.Item.Type() != want {
				t.Errorf("%s: %s, want %s", src, it.Item.Type(), want)
			}
		}
	}
	_, err := Parse("f", []byte(custom+"\n"+function+"\n"+`<tool_response tool_call_id="x">Done</tool_response>`))
	if err == nil || !strings.HasPrefix(err.Error(), `f:3:1: <tool_response> does not say which call it answers: the call "x" of line 1 is a custom_tool_call, that of line 2 a function_call`) {
		t.Error(err)
	}
}
