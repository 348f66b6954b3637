// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// W12: every type of the unions has a constant with a struct, and every struct
// a field for every member of its Schemas.
func TestSchemaUnions(t *testing.T) {
	s := apispec.LoadSchemas(t)
	for _, union := range []struct {
		name string
		make func(typ string) fielder
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
		{"ComputerAction", actionRecord},
	} {
		branches := s.Branches(union.name)
		if len(branches) == 0 {
			t.Errorf("%s: no such union", union.name)
		}
		count := 0
		for _, b := range branches {
			for _, typ := range b.Types() {
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
func itemRecord(typ string) fielder {
	if v := newValue(Type(typ)); v != nil {
		return v
	}
	return nil
}

func partRecord(typ string) fielder {
	if p := newPart(typ); p != nil {
		return p
	}
	return nil
}

func annotationRecord(typ string) fielder {
	if v, ok := newAnnotation(typ); ok {
		return v
	}
	return nil
}

func actionRecord(typ string) fielder {
	if v, ok := newAction(typ); ok {
		return v
	}
	return nil
}

func toolRecord(typ string) fielder {
	if v := newTool(typ); v != nil {
		return v
	}
	return nil
}

// checkNames fails the test for every member of the schema that the struct has
// no field for.
func checkNames(t *testing.T, what string, r fielder, schema apispec.Node) {
	t.Helper()
	have := namesOf(t, r)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties())) {
		if !have[name] {
			t.Errorf("%s: %T has no field for %q", what, r, name)
		}
	}
}

// records names the struct of every object of the document that is not a branch of a
// union and belongs to this package.
var records = map[string]fielder{
	"PromptCacheBreakpointConfig":                new(CacheBreakpoint),
	"PromptCacheBreakpointParam":                 new(CacheBreakpoint),
	"LogProb":                                    new(TokenLogprob),
	"TopLogProb":                                 new(TopLogprob),
	"ResponseLogProb":                            new(TokenLogprob),
	"ResponseLogProb.top_logprobs[]":             new(TopLogprob),
	"DirectToolCallCaller":                       new(Caller),
	"DirectToolCallCallerParam":                  new(Caller),
	"ProgramToolCallCaller":                      new(Caller),
	"ProgramToolCallCallerParam":                 new(Caller),
	"FileSearchToolCall.results[]":               new(FileSearchResult),
	"WebSearchActionSearch":                      new(WebSearchAction),
	"WebSearchActionSearch.sources[]":            new(WebSearchSource),
	"WebSearchActionOpenPage":                    new(WebSearchAction),
	"WebSearchActionFind":                        new(WebSearchAction),
	"ComputerCallSafetyCheckParam":               new(SafetyCheck),
	"ComputerScreenshotImage":                    new(ComputerScreenshot),
	"CoordParam":                                 new(Coordinate),
	"LocalShellExecAction":                       new(LocalShellAction),
	"FunctionShellAction":                        new(ShellAction),
	"FunctionShellActionParam":                   new(ShellAction),
	"FunctionShellCallOutputContent":             new(ShellOutput),
	"FunctionShellCallOutputContentParam":        new(ShellOutput),
	"FunctionShellCallOutputExitOutcome":         new(ShellOutcome),
	"FunctionShellCallOutputExitOutcomeParam":    new(ShellOutcome),
	"FunctionShellCallOutputTimeoutOutcome":      new(ShellOutcome),
	"FunctionShellCallOutputTimeoutOutcomeParam": new(ShellOutcome),
	"ApplyPatchCreateFileOperation":              new(PatchOperation),
	"ApplyPatchDeleteFileOperation":              new(PatchOperation),
	"ApplyPatchUpdateFileOperation":              new(PatchOperation),
	"ApplyPatchCreateFileOperationParam":         new(PatchOperation),
	"ApplyPatchDeleteFileOperationParam":         new(PatchOperation),
	"ApplyPatchUpdateFileOperationParam":         new(PatchOperation),
	"CodeInterpreterOutputLogs":                  new(CodeOutput),
	"CodeInterpreterOutputImage":                 new(CodeOutput),
	"MCPListToolsTool":                           new(MCPListedTool),
	"MCPProtocolError":                           new(MCPCallError),
	"MCPToolExecutionError":                      new(MCPCallError),
	"HTTPError":                                  new(MCPCallError),
	"LocalEnvironmentParam":                      new(Environment),
	"LocalEnvironmentResource":                   new(Environment),
	"ContainerReferenceParam":                    new(Environment),
	"ContainerReferenceResource":                 new(Environment),
	"ContainerAutoParam":                         new(Environment),
	"AutoCodeInterpreterToolParam":               new(Environment),
	"ContainerNetworkPolicyDisabledParam":        new(NetworkPolicy),
	"ContainerNetworkPolicyAllowlistParam":       new(NetworkPolicy),
	"ContainerNetworkPolicyDomainSecretParam":    new(DomainSecret),
	"LocalSkillParam":                            new(Skill),
	"SkillReferenceParam":                        new(Skill),
	"InlineSkillParam":                           new(Skill),
	"InlineSkillSourceParam":                     new(SkillSource),
	"CustomTextFormatParam":                      new(CustomFormat),
	"CustomGrammarFormatParam":                   new(CustomFormat),
	"RankingOptions":                             new(RankingOptions),
	"HybridSearchOptions":                        new(HybridSearch),
	"ComparisonFilter":                           new(Filter),
	"CompoundFilter":                             new(Filter),
	"WebSearchTool.filters":                      new(WebSearchFilters),
	"ApproximateLocation":                        new(Location),
	"WebSearchApproximateLocation":               new(Location),
	"MCPToolFilter":                              new(MCPToolFilter),
	"MCPTool.require_approval":                   new(MCPApproval),
	"ImageGenTool.input_image_mask":              new(ImageMask),
}

// W12: the structs of other objects of the document have all their members. Package
// api has the test that no object is missing.
func TestSchemaObjects(t *testing.T) {
	s := apispec.LoadSchemas(t)
	for name, r := range records {
		node := s.At(name)
		if len(node.Properties()) == 0 {
			t.Errorf("%s: no such object", name)
		}
		checkNames(t, name, r, node)
	}
}

// W12: the words of the schema have a constant.
func TestSchemaWords(t *testing.T) {
	s := apispec.LoadSchemas(t)
	for name, have := range map[string][]string{
		"ImageDetail":                    {string(DetailAuto), string(DetailLow), string(DetailHigh), string(DetailOriginal)},
		"DetailEnum":                     {string(DetailAuto), string(DetailLow), string(DetailHigh), string(DetailOriginal)},
		"EasyInputMessage.role":          {string(RoleUser), string(RoleAssistant), string(RoleSystem), string(RoleDeveloper)},
		"Response.status":                {StatusCompleted, StatusFailed, StatusInProgress, StatusCancelled, StatusQueued, StatusIncomplete},
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
		words := s.At(name).Words()
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

// namesOf returns the names of the members that a struct has fields for: those
// that it writes when every field is set.
func namesOf(t *testing.T, r fielder) map[string]bool {
	t.Helper()
	v := reflect.New(reflect.TypeOf(r).Elem())
	apispec.Fill(v.Elem(), given)
	data, err := appendRecord(nil, v.Interface().(fielder))
	if err != nil {
		t.Fatalf("%T: %v", r, err)
	}
	names := map[string]bool{}
	jsonx.EachMember(string(data), func(name, _ string) { names[jsonx.Unquote(name)] = true })
	return names
}

var (
	someItem = Must(&Message{Role: RoleAssistant, ID: "msg_1", Status: StatusCompleted,
		Content: Parts(&OutputText{Text: "x", Annotations: "[]", Logprobs: "[]"})})
	given = map[reflect.Type]any{
		reflect.TypeFor[Extra]():          nil,
		reflect.TypeFor[JSON]():           JSON(`{}`),
		reflect.TypeFor[Item]():           someItem,
		reflect.TypeFor[*List]():          NewList(someItem),
		reflect.TypeFor[Content]():        Text("x"),
		reflect.TypeFor[Part]():           Part(&OutputText{Text: "x", Annotations: "[]", Logprobs: "[]"}),
		reflect.TypeFor[Tool]():           Tool(&CustomTool{Name: "x"}),
		reflect.TypeFor[ComputerAction](): ComputerAction(&WaitAction{}),
		reflect.TypeFor[Annotation]():     Annotation(&FilePath{FileID: "x", Index: 1}),
	}
)
