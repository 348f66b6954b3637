// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// B5: a secret of a hosted tool is found however its JSON is written, and only there.
func TestHoldsSecrets(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"new_tool","authorization" : "x"}`:                    true,
		`{"type":"new_tool","\u0061uthorization":"x"}`:                 true,
		`{"type":"new_tool","a":[{"b":{"headers":{}}}]}`:               true,
		`{"type":"new_tool","say":"authorization","b":["headers"]}`:    false,
		`{"type":"function","name":"f","parameters":{"headers":true}}`: false,
	} {
		def, err := item.ParseTool([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := holdsSecrets(def); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// B5: a choice names no tool that is left out, and allows no more than before.
func TestChoiceWithoutSecrets(t *testing.T) {
	notes, mail := &item.MCPTool{ServerLabel: "notes", ServerURL: "https://a.example", Authorization: "x"}, &item.MCPTool{ServerLabel: "mail", ServerURL: "https://b.example"}
	for choice, want := range map[item.JSON]item.JSON{
		"":                                   "",
		`"auto"`:                             `"auto"`,
		api.ChooseMCP("notes", "find"):       "",
		api.ChooseMCP("mail", "find"):        api.ChooseMCP("mail", "find"),
		`{"type":"function","name":"notes"}`: `{"type":"function","name":"notes"}`,
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"notes"}]}`:                                      `"none"`,
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"mail"},{"type":"mcp","server_label":"notes"}]}`: `{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"mail"}]}`,
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"mail"}]}`:                                       `{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"mail"}]}`,
	} {
		got := withoutSecrets(&api.Request{Tools: []item.Tool{notes, mail}, ToolChoice: choice})
		if got.ToolChoice != want || len(got.Tools) != 1 {
			t.Errorf("%s: %s, %d tools", choice, got.ToolChoice, len(got.Tools))
		}
	}
}
