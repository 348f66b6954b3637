// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// What [Request.Include] may ask for. Schema: IncludeEnum.
const (
	// IncludeEncryptedReasoning asks for reasoning items in the form that a
	// stateless caller can send back.
	IncludeEncryptedReasoning     = "reasoning.encrypted_content"
	IncludeFileSearchResults      = "file_search_call.results"
	IncludeWebSearchResults       = "web_search_call.results"
	IncludeWebSearchSources       = "web_search_call.action.sources"
	IncludeInputImageURLs         = "message.input_image.image_url"
	IncludeComputerImageURLs      = "computer_call_output.output.image_url"
	IncludeCodeInterpreterOutputs = "code_interpreter_call.outputs"
	IncludeLogprobs               = "message.output_text.logprobs"
)
