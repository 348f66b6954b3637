// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// W12: every type of the unions has a constant with a struct, and every struct
// a field for every member of its schemas.
func TestSchemaUnions(t *testing.T) {
	s := loadSchemas(t)
	for _, union := range []struct {
		name string
		make func(typ string) record
	}{
		{"InputItem", itemRecord},
		{"Item", itemRecord},
		{"OutputItem", itemRecord},
		{"ItemField", itemRecord},
		{"ItemResource", itemRecord},
		{"ConversationItem", itemRecord},
		{"InputContent", partRecord},
		{"OutputContent", partRecord},
		{"OutputMessageContent", partRecord},
		{"FunctionAndCustomToolCallOutput", partRecord},
		{"FunctionCallOutputItemParam.output[]", partRecord},
		{"Message.content[]", partRecord},
		{"Annotation", annotationRecord},
		{"Tool", toolRecord},
		{"NamespaceToolParam.tools[]", toolRecord},
		{"ToolChoiceParam", func(string) record { return new(ToolChoice) }},
		{"ComputerAction", actionRecord},
		{"ResponseStreamEvent", eventRecord},
		{"ResponsesServerEvent", eventRecord},
		{"ResponsesClientEvent", clientEventRecord},
	} {
		branches := s.branches(union.name)
		if len(branches) == 0 {
			t.Errorf("%s: no such union", union.name)
		}
		count := 0
		for _, b := range branches {
			for _, typ := range b.types() {
				count++
				r := union.make(typ)
				if r == nil {
					t.Errorf("%s: type %q has no Go struct", union.name, typ)
					continue
				}
				checkNames(t, union.name+" "+typ, r, b)
			}
		}
		t.Logf("%s: %d branches, %d types", union.name, len(branches), count)
	}
}

// itemRecord is the struct for a type of item; the one branch without a type is
// the message in its short form, or a reference.
func itemRecord(typ string) record {
	if v := newValue(Type(typ)); v != nil {
		return v
	}
	return nil
}

func partRecord(typ string) record {
	if p := newPart(typ); p != nil {
		return p
	}
	return nil
}

func annotationRecord(typ string) record {
	if v, ok := newAnnotation(typ); ok {
		return v
	}
	return nil
}

func actionRecord(typ string) record {
	if v, ok := newAction(typ); ok {
		return v
	}
	return nil
}

func toolRecord(typ string) record {
	if v := newTool(typ); v != nil {
		return v
	}
	return nil
}

func eventRecord(typ string) record {
	if v := newEvent(EventType(typ)); v != nil {
		return v
	}
	return nil
}

func clientEventRecord(typ string) record {
	if v, ok := newClientEvent(typ); ok {
		return v
	}
	return nil
}

// checkNames fails the test for every member of the schema that the struct has
// no field for.
func checkNames(t *testing.T, what string, r record, schema schemaNode) {
	t.Helper()
	have := namesOf(t, r)
	for _, name := range slices.Sorted(maps.Keys(schema.properties())) {
		if !have[name] {
			t.Errorf("%s: %T has no field for %q", what, r, name)
		}
	}
}

// records names the struct of every other object of the document.
var records = map[string]record{
	"CreateResponse": new(Request), "ResponsesClientEventResponseCreate": new(CreateEvent),
	"Response": new(Response), "ResponseUsage": new(Usage), "ResponseError": new(APIError),
	"ResponseUsage.input_tokens_details": new(InputTokensDetails), "ResponseUsage.output_tokens_details": new(OutputTokensDetails),
	"Response.incomplete_details": new(IncompleteDetails), "ResponseConversation": new(ConversationRef), "ConversationParam-2": new(ConversationRef),
	"Error": new(APIError), "ErrorPayload": new(APIError), "ErrorResponse": new(ErrorBody), "ResponseWsError": new(ErrorEvent),
	"Reasoning": new(ReasoningConfig), "ResponseTextParam": new(TextConfig), "ResponseFormatText": new(TextFormat),
	"ResponseFormatJsonObject": new(TextFormat), "TextResponseFormatJsonSchema": new(TextFormat),
	"ResponseStreamOptions": new(StreamOptions), "ContextManagementParam": new(ContextManagement), "Prompt": new(Prompt),
	"PromptCacheOptions": new(PromptCacheOptions), "PromptCacheOptionsParam": new(PromptCacheOptions),
	"PromptCacheBreakpointConfig": new(CacheBreakpoint), "PromptCacheBreakpointParam": new(CacheBreakpoint),
	"Moderation": new(Moderation), "ModerationResultBody": new(ModerationResult), "ModerationErrorBody": new(ModerationResult),
	"ModerationParam": new(ModerationConfig), "ModerationPolicyParam": new(ModerationPolicy), "ModerationConfigParam": new(ModerationMode),

	"CompactResponseMethodPublicBody": new(CompactRequest), "CompactResource": new(Compacted),
	"TokenCountsBody": new(TokenCountRequest), "TokenCountsResource": new(TokenCount),
	"ConversationResource": new(Conversation), "CreateConversationBody": new(CreateConversation), "UpdateConversationBody": new(UpdateConversation),
	"DeletedConversationResource": new(Deleted), "ResponseItemList": new(ItemPage), "ConversationItemList": new(ItemPage),

	"LogProb": new(TokenLogprob), "TopLogProb": new(TopLogprob), "ResponseLogProb": new(TokenLogprob), "ResponseLogProb.top_logprobs[]": new(TopLogprob),
	"DirectToolCallCaller": new(Caller), "DirectToolCallCallerParam": new(Caller), "ProgramToolCallCaller": new(Caller), "ProgramToolCallCallerParam": new(Caller),
	"FileSearchToolCall.results[]": new(FileSearchResult), "WebSearchActionSearch": new(WebSearchAction), "WebSearchActionSearch.sources[]": new(WebSearchSource),
	"WebSearchActionOpenPage": new(WebSearchAction), "WebSearchActionFind": new(WebSearchAction),
	"ComputerCallSafetyCheckParam": new(SafetyCheck), "ComputerScreenshotImage": new(ComputerScreenshot), "CoordParam": new(Coordinate),
	"LocalShellExecAction": new(LocalShellAction), "FunctionShellAction": new(ShellAction), "FunctionShellActionParam": new(ShellAction),
	"FunctionShellCallOutputContent": new(ShellOutput), "FunctionShellCallOutputContentParam": new(ShellOutput), "ShellCallOutputDelta": new(ShellOutputDelta),
	"FunctionShellCallOutputExitOutcome": new(ShellOutcome), "FunctionShellCallOutputExitOutcomeParam": new(ShellOutcome),
	"FunctionShellCallOutputTimeoutOutcome": new(ShellOutcome), "FunctionShellCallOutputTimeoutOutcomeParam": new(ShellOutcome),
	"ApplyPatchCreateFileOperation": new(PatchOperation), "ApplyPatchDeleteFileOperation": new(PatchOperation), "ApplyPatchUpdateFileOperation": new(PatchOperation),
	"ApplyPatchCreateFileOperationParam": new(PatchOperation), "ApplyPatchDeleteFileOperationParam": new(PatchOperation), "ApplyPatchUpdateFileOperationParam": new(PatchOperation),
	"CodeInterpreterOutputLogs": new(CodeOutput), "CodeInterpreterOutputImage": new(CodeOutput),
	"MCPListToolsTool": new(MCPListedTool), "MCPProtocolError": new(MCPCallError), "MCPToolExecutionError": new(MCPCallError), "HTTPError": new(MCPCallError),

	"LocalEnvironmentParam": new(Environment), "LocalEnvironmentResource": new(Environment), "ContainerReferenceParam": new(Environment),
	"ContainerReferenceResource": new(Environment), "ContainerAutoParam": new(Environment), "AutoCodeInterpreterToolParam": new(Environment),
	"ContainerNetworkPolicyDisabledParam": new(NetworkPolicy), "ContainerNetworkPolicyAllowlistParam": new(NetworkPolicy),
	"ContainerNetworkPolicyDomainSecretParam": new(DomainSecret), "LocalSkillParam": new(Skill), "SkillReferenceParam": new(Skill),
	"InlineSkillParam": new(Skill), "InlineSkillSourceParam": new(SkillSource),
	"CustomTextFormatParam": new(CustomFormat), "CustomGrammarFormatParam": new(CustomFormat),
	"RankingOptions": new(RankingOptions), "HybridSearchOptions": new(HybridSearch), "ComparisonFilter": new(Filter), "CompoundFilter": new(Filter),
	"WebSearchTool.filters": new(WebSearchFilters), "ApproximateLocation": new(Location), "WebSearchApproximateLocation": new(Location),
	"MCPToolFilter": new(MCPToolFilter), "MCPTool.require_approval": new(MCPApproval), "ImageGenTool.input_image_mask": new(ImageMask),
}

// elsewhere lists the objects of the document that are not part of the Responses
// API, or are parts of others.
var elsewhere = []string{
	"CompletionUsage", "CustomToolChatCompletions", "FunctionObject", "PredictionContent", "ResponseFormatJsonSchema", "WebSearchLocation",
	"ModelResponseProperties", "CreateModelResponseProperties", "ResponseProperties", // of CreateResponse and Response
	"ComputerToolCallOutput", // of ComputerToolCallOutputResource
}

// W12: every other object of the document has a struct with all its members.
func TestSchemaObjects(t *testing.T) {
	s := loadSchemas(t)
	for name, r := range records {
		node := s.at(name)
		if len(node.properties()) == 0 {
			t.Errorf("%s: no such object", name)
		}
		checkNames(t, name, r, node)
	}
	seen := s.inUnions()
	for _, name := range s.names() {
		_, listed := records[name]
		if listed || seen[name] || slices.Contains(elsewhere, name) || strings.Contains(name, "ChatCompletion") {
			continue
		}
		if len(s.at(name).own()) > 0 {
			t.Errorf("%s: no Go struct is named for it", name)
		}
	}
}

// W12: the words of the schema have a constant.
func TestSchemaWords(t *testing.T) {
	s := loadSchemas(t)
	for name, have := range map[string][]string{
		"IncludeEnum": {IncludeEncryptedReasoning, IncludeFileSearchResults, IncludeWebSearchResults, IncludeWebSearchSources,
			IncludeInputImageURLs, IncludeComputerImageURLs, IncludeCodeInterpreterOutputs, IncludeLogprobs},
		"ImageDetail":           {string(DetailAuto), string(DetailLow), string(DetailHigh), string(DetailOriginal)},
		"DetailEnum":            {string(DetailAuto), string(DetailLow), string(DetailHigh), string(DetailOriginal)},
		"EasyInputMessage.role": {string(RoleUser), string(RoleAssistant), string(RoleSystem), string(RoleDeveloper)},
		"Response.status":       {StatusCompleted, StatusFailed, StatusInProgress, StatusCancelled, StatusQueued, StatusIncomplete},
		"ReasoningEffort":       {EffortNone, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax},
		"Reasoning.summary":     {SummaryAuto, SummaryConcise, SummaryDetailed},
		"ToolChoiceOptions":     {ModeAuto, ModeNone, ModeRequired},
		"ToolChoiceTypes.type": {ToolFileSearch, ToolWebSearchPreview, ToolComputer, ToolComputerPreview, ChoiceTypeComputerUse,
			ToolWebSearchPreview20250311, ToolImageGeneration, ToolCodeInterpreter},
		"CallableToolAllowedCaller":      {AllowDirect, AllowProgrammatic},
		"ToolSearchExecutionType":        {ExecutionServer, ExecutionClient},
		"GrammarSyntax1":                 {SyntaxLark, SyntaxRegex},
		"MessagePhase":                   {PhaseCommentary, PhaseFinalAnswer},
		"FunctionToolCall.status":        {StatusInProgress, StatusCompleted, StatusIncomplete},
		"CodeInterpreterToolCall.status": {StatusInProgress, StatusCompleted, StatusIncomplete, StatusInterpreting, StatusFailed},
		"WebSearchToolCall.status":       {StatusInProgress, StatusSearching, StatusCompleted, StatusFailed},
		"ImageGenToolCall.status":        {StatusInProgress, StatusCompleted, StatusGenerating, StatusFailed},
		"MCPToolCallStatus":              {StatusInProgress, StatusCompleted, StatusIncomplete, StatusCalling, StatusFailed},
	} {
		words := s.at(name).words()
		if len(words) == 0 {
			t.Errorf("%s: no words there", name)
		}
		for _, w := range words {
			if !slices.Contains(have, w) {
				t.Errorf("%s: no constant for %q", name, w)
			}
		}
		for _, w := range have {
			if !slices.Contains(words, w) {
				t.Errorf("%s: the schema does not have %q", name, w)
			}
		}
	}
}
