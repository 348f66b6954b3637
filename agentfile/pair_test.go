// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/trust"
)

// P1, M7: where a response stands in a file, the model never reads that its call
// was interrupted: it gets the response, or the file has an error that says what
// to write.
func TestResponsesFindTheirCalls(t *testing.T) {
	const custom = "<tool_call tool_call_id=\"x\" function_name=\"f\" type=\"custom_tool_call\">in</tool_call>\n"
	for text, warning := range map[string]string{
		custom + "<tool_response tool_call_id=\"x\">Done</tool_response>":   "",
		"<tool_response tool_call_id=\"x\">Done</tool_response>\n" + custom: "talk.md:3:1: the response stands above its call of line 4",
		"<tool_response tool_call_id=\"x\">Done</tool_response>\n" + custom + "<tool_call tool_call_id=\"y\" function_name=\"f\"/><tool_response tool_call_id=\"y\">Done</tool_response>": "above its call",
	} {
		path := write(t, prompt+text, t.TempDir(), "talk.md")
		f, s := open(t, path, path)
		if got := len(f.Warnings) > 0 && strings.Contains(f.Warnings[0].Error(), warning); got != (warning != "") {
			t.Errorf("%s: %v", text, f.Warnings)
		}
		input := ""
		for _, it := range nextRequest(t, f, s) {
			input += it.JSON()
		}
		if strings.Count(input, "Done") != strings.Count(text, "Done") || strings.Contains(input, "interrupted") {
			t.Errorf("%s: %s", text, input)
		}
	}
	path := write(t, prompt+custom+"<tool_response tool_call_id=\"x\" type=\"function_call_output\">Done</tool_response>", t.TempDir(), "talk.md")
	_, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything})
	const want = `talk.md:4:1: the call is a custom_tool_call: the response to "x" is a function_call_output and does not answer the call of line 3 (write type="custom_tool_call", or leave the type out)`
	if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(err.Error(), filepath.Dir(path)) {
		t.Error(err)
	}
}
