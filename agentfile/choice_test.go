// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/trust"
)

// G6: a file can make the model call a tool, each kind in its own words; a name
// that no tool has is a mistake of the file.
func TestToolChoice(t *testing.T) {
	const tools = `<tool name="read_file"/><tool name="now" command="date"/>`
	for _, tt := range []struct {
		choice, tools string
		want          item.JSON
		says          string // of an error
	}{
		{"", tools, "", ""},
		{"auto", "", api.ChoiceAuto, ""},
		{"none", tools, api.ChoiceNone, ""},
		{"required", tools, api.ChoiceRequired, ""},
		{"required", "", "", `tool_choice is "required", and the file declares no tool`},
		{"now", tools, api.ChooseFunction("now"), ""},
		{"apply_patch", `<tool name="apply_patch" form="custom"/>`, api.ChooseCustom("apply_patch"), ""},
		{"apply_patch", `<tool name="apply_patch" form="function"/>`, api.ChooseFunction("apply_patch"), ""},
		{"apply_patch", `<tool name="apply_patch" form="api"/>`, api.ChoiceApplyPatch, ""},
		{"later", tools, "", `tool_choice is "later", and the file has no tool of that name (auto, none, required or one of: read_file, now)`},
		{"look", `<tool mcp_server="https://maps.example/mcp"/>`, api.ChooseFunction("look"), ""},
	} {
		text := tt.tools + "\n<user>x</user>\n"
		if tt.choice != "" {
			text = `<config tool_choice="` + tt.choice + `"/>` + text
		}
		path := write(t, text, t.TempDir(), "a.md")
		if tt.says != "" {
			if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v", tt.choice, err)
			}
			continue
		}
		if got := load(t, path, agentfile.Options{Consent: trust.Everything}).Agent(nil).Request.ToolChoice; got != tt.want {
			t.Errorf("%s of %s: %s, want %s", tt.choice, tt.tools, got, tt.want)
		}
	}
}
