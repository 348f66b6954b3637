// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec

import "slices"

// optional lists members that the document requires and that need not be there.
var optional = map[string][]string{
	// The official clients and the document's examples leave these out.
	"FunctionTool":           {"strict", "parameters"},
	"OutputTextContent":      {"annotations", "logprobs"},
	"InputImageContent":      {"detail"},
	"OutputMessage":          {"id", "status", "type"},
	"ReasoningItem":          {"id"},
	"ResponseTextDeltaEvent": {"logprobs"},
	"ResponseTextDoneEvent":  {"logprobs"},
	// These are required without being declared: left over from a renaming.
	"LocalShellToolCallOutput":          {"call_id"},
	"ResponseAudioDoneEvent":            {"response_id"},
	"ResponseAudioTranscriptDeltaEvent": {"response_id"},
	"ResponseAudioTranscriptDoneEvent":  {"response_id"},
	"MCPApprovalResponse":               {"request_id"},
	"MCPApprovalResponseResource":       {"request_id"},
}

// nullable lists members that the document's examples or OpenAI's clients set
// to null.
var nullable = map[string][]string{
	"Response":                {"usage"},
	"ModelResponseProperties": {"user"},
	"ReasoningItem":           {"content"},
}

// answered lists members of a response that the document does not name, and
// that the API's answers hold.
var answered = []string{"store", "presence_penalty", "frequency_penalty"}

// relax drops demands from the schemas.
func relax(schemas map[string]any) {
	for _, part := range list(object(schemas["Response"])["allOf"]) {
		if props := object(object(part)["properties"]); props != nil {
			for _, m := range answered {
				props[m] = map[string]any{"type": []any{"boolean", "number", "null"}}
			}
		}
	}
	for name, members := range optional {
		s := object(schemas[name])
		required := slices.DeleteFunc(list(s["required"]), func(m any) bool {
			name, _ := m.(string)
			return slices.Contains(members, name)
		})
		if s != nil {
			s["required"] = required
		}
	}
	for name, members := range nullable {
		for _, m := range members {
			allowNull(object(schemas[name]), m)
		}
	}
}

// allowNull lets the member be null wherever the schema declares it.
func allowNull(schema map[string]any, member string) {
	if props := object(schema["properties"]); props[member] != nil {
		props[member] = orNull(props[member])
	}
	for _, part := range list(schema["allOf"]) {
		allowNull(object(part), member)
	}
}

func orNull(schema any) any {
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}
