// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

// OutputOnly returns the members that the Responses API writes into items of a
// type and refuses in a request, where the item is input: sent back unchanged,
// such an item ends a conversation with status 400. The caller must not change
// the list.
func OutputOnly(itemType string) []string { return outputOnly[itemType] }

// outputOnly is what OpenAI's published document gives output items and does not
// give input items of the same type, together with what recordings show that the
// document does not know at all. TestOutputOnly of internal/apispec holds it
// against the document and the recordings.
var outputOnly = map[string][]string{
	"apply_patch_call":        {"created_by"},
	"apply_patch_call_output": {"created_by"},
	"compaction":              {"created_by"},
	"computer_call_output":    {"created_by"},
	"custom_tool_call":        {"status"}, // recorded
	"custom_tool_call_output": {"created_by", "status"},
	"function_call_output":    {"created_by"},
	"image_generation_call":   {"action", "background", "output_format", "prompt", "quality", "revised_prompt", "size"}, // recorded
	"shell_call":              {"created_by"},
	"shell_call_output":       {"created_by"},
	"tool_search_call":        {"created_by"},
	"tool_search_output":      {"created_by"},
}
