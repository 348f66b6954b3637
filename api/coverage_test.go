// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// W12: every type of the unions of this package has a constant with a struct, and every struct
// a field for every member of its Schemas.
func TestSchemaUnions(t *testing.T) {
	s := apispec.LoadSchemas(t)
	for _, union := range []struct {
		name string
		make func(typ string) fielder
	}{
		{"ToolChoiceParam", func(string) fielder { return new(ToolChoice) }},
		{"ResponseStreamEvent", eventRecord},
		{"ResponsesServerEvent", eventRecord},
		{"ResponsesClientEvent", clientEventRecord},
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

func eventRecord(typ string) fielder {
	if v := newEvent(EventType(typ)); v != nil {
		return v
	}
	return nil
}

func clientEventRecord(typ string) fielder {
	if typ == ClientCreate {
		return new(CreateEvent)
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
	"CreateResponse":                      new(Request),
	"ResponsesClientEventResponseCreate":  new(CreateEvent),
	"Response":                            new(Response),
	"ResponseUsage":                       new(Usage),
	"ResponseError":                       new(APIError),
	"ResponseUsage.input_tokens_details":  new(InputTokensDetails),
	"ResponseUsage.output_tokens_details": new(OutputTokensDetails),
	"Response.incomplete_details":         new(IncompleteDetails),
	"ResponseConversation":                new(ConversationRef),
	"ConversationParam-2":                 new(ConversationRef),
	"Error":                               new(APIError),
	"ErrorPayload":                        new(APIError),
	"ErrorResponse":                       new(ErrorBody),
	"ResponseWsError":                     new(ErrorEvent),
	"Reasoning":                           new(ReasoningConfig),
	"ResponseTextParam":                   new(TextConfig),
	"ResponseFormatText":                  new(TextFormat),
	"ResponseFormatJsonObject":            new(TextFormat),
	"TextResponseFormatJsonSchema":        new(TextFormat),
	"ResponseStreamOptions":               new(StreamOptions),
	"ContextManagementParam":              new(ContextManagement),
	"Prompt":                              new(Prompt),
	"PromptCacheOptions":                  new(PromptCacheOptions),
	"PromptCacheOptionsParam":             new(PromptCacheOptions),
	"Moderation":                          new(Moderation),
	"ModerationResultBody":                new(ModerationResult),
	"ModerationErrorBody":                 new(ModerationResult),
	"ModerationParam":                     new(ModerationConfig),
	"ModerationPolicyParam":               new(ModerationPolicy),
	"ModerationConfigParam":               new(ModerationMode),
	"CompactResponseMethodPublicBody":     new(CompactRequest),
	"CompactResource":                     new(Compacted),
	"TokenCountsBody":                     new(TokenCountRequest),
	"TokenCountsResource":                 new(TokenCount),
	"ConversationResource":                new(Conversation),
	"CreateConversationBody":              new(CreateConversation),
	"UpdateConversationBody":              new(UpdateConversation),
	"DeletedConversationResource":         new(Deleted),
	"ResponseItemList":                    new(ItemPage),
	"ConversationItemList":                new(ItemPage),
	"ShellCallOutputDelta":                new(ShellOutputDelta),
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
	s := apispec.LoadSchemas(t)
	for name, r := range records {
		node := s.At(name)
		if len(node.Properties()) == 0 {
			t.Errorf("%s: no such object", name)
		}
		checkNames(t, name, r, node)
	}
	itemTest, err := os.ReadFile("../item/coverage_test.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := s.InUnions()
	for _, name := range s.Names() {
		_, listed := records[name]
		listed = listed || strings.Contains(string(itemTest), "\n\t"+strconv.Quote(name)+":")
		if listed || seen[name] || slices.Contains(elsewhere, name) || strings.Contains(name, "ChatCompletion") {
			continue
		}
		if len(s.At(name).Own()) > 0 {
			t.Errorf("%s: no Go struct is named for it", name)
		}
	}
}

// W12: the words of the schema have a constant.
func TestSchemaWords(t *testing.T) {
	s := apispec.LoadSchemas(t)
	for name, have := range map[string][]string{
		"IncludeEnum": {IncludeEncryptedReasoning, IncludeFileSearchResults, IncludeWebSearchResults, IncludeWebSearchSources,
			IncludeInputImageURLs, IncludeComputerImageURLs, IncludeCodeInterpreterOutputs, IncludeLogprobs},
		"ReasoningEffort":   {EffortNone, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax},
		"Reasoning.summary": {SummaryAuto, SummaryConcise, SummaryDetailed},
		"ToolChoiceOptions": {ModeAuto, ModeNone, ModeRequired},
		"ToolChoiceTypes.type": {item.ToolFileSearch, item.ToolWebSearchPreview, item.ToolComputer, item.ToolComputerPreview, ChoiceTypeComputerUse,
			item.ToolWebSearchPreview20250311, item.ToolImageGeneration, item.ToolCodeInterpreter},
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
	someItem = item.Must(&item.Message{Role: item.RoleAssistant, ID: "msg_1", Status: item.StatusCompleted,
		Content: item.Parts(&item.OutputText{Text: "x", Annotations: "[]", Logprobs: "[]"})})
	given = map[reflect.Type]any{
		reflect.TypeFor[item.Extra]():          nil,
		reflect.TypeFor[item.JSON]():           item.JSON(`{}`),
		reflect.TypeFor[item.Item]():           someItem,
		reflect.TypeFor[*item.List]():          item.NewList(someItem),
		reflect.TypeFor[item.Content]():        item.Text("x"),
		reflect.TypeFor[item.Part]():           item.Part(&item.OutputText{Text: "x", Annotations: "[]", Logprobs: "[]"}),
		reflect.TypeFor[item.Tool]():           item.Tool(&item.CustomTool{Name: "x"}),
		reflect.TypeFor[item.ComputerAction](): item.ComputerAction(&item.WaitAction{}),
		reflect.TypeFor[item.Annotation]():     item.Annotation(&item.FilePath{FileID: "x", Index: 1}),
	}
)
