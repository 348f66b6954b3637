// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

// OutputOnly returns the members that the Responses API writes into output items of a type but
// rejects in input items. If such an item is sent back unchanged, the request fails with status
// 400. The caller must not change the list.
func OutputOnly(itemType string) []string { return outputOnly[itemType] }

// outputOnly lists the members that OpenAI's published document has for output items and not for
// input items of the same type, and members seen in recordings that are not in the document.
// TestOutputOnly of internal/apispec compares it with the document and the recordings.
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
