// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

var (
	direct  = &item.Caller{Type: item.CallerDirect}
	program = &item.Caller{Type: item.CallerProgram, CallerID: "call_p"}
	checks  = []item.SafetyCheck{{ID: "sc_1", Code: "malicious_instructions", Message: "careful"}}
	fn      = &item.FunctionTool{Name: "f", Parameters: `{"type":"object"}`, Strict: new(false)}
)

// values is one item of every type and shape, as a program would write it, with
// the directions in which the schema has it.
var values = []struct {
	value   item.Value
	in, out bool
}{
	{&item.Message{Role: item.RoleUser, Content: item.Text("hi")}, true, false},
	{&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputText{Text: "hi", CacheBreakpoint: &item.CacheBreakpoint{Mode: "explicit"}})}, true, false},
	{&item.Message{ID: "msg_1", Role: item.RoleAssistant, Status: item.StatusCompleted, Phase: item.PhaseFinalAnswer,
		Content: item.Parts(&item.OutputText{Text: "yo", Annotations: citations, Logprobs: logprobs}, &item.Refusal{Refusal: "no"})}, true, true},
	{&item.FunctionCall{ID: "fc_1", CallID: "call_1", Name: "f", Namespace: "ns", Arguments: "{}", Caller: program, Status: item.StatusCompleted}, true, true},
	{&item.FunctionCallOutput{ID: "fco_1", CallID: "call_1", Output: item.Text(""), Name: "f", Namespace: "ns", Caller: direct, Status: item.StatusCompleted}, true, true},
	{&item.CustomToolCall{ID: "ctc_1", CallID: "call_1", Name: "n", Namespace: "ns", Input: "i", Caller: direct}, true, true},
	{&item.CustomToolCallOutput{ID: "cto_1", CallID: "call_1", Output: item.Parts(&item.InputText{Text: "t"}), Caller: direct}, true, false},
	{&item.CustomToolCallOutput{ID: "cto_1", CallID: "call_1", Output: item.Text("t"), Status: item.StatusCompleted, CreatedBy: "me"}, false, true},
	{&item.Reasoning{ID: "rs_1", Summary: []item.Part{&item.SummaryText{Text: "s"}}, Content: []item.Part{&item.ReasoningText{Text: "r"}},
		EncryptedContent: "e", Status: item.StatusCompleted}, true, true},
	{&item.FileSearchCall{ID: "fs_1", Status: item.StatusCompleted, Queries: []string{"q"},
		Results: []item.FileSearchResult{{FileID: "f", Filename: "n", Text: "t", Score: new(0.25), Attributes: `{"a":1,"b":true,"c":"x"}`}}}, true, true},
	{&item.FileSearchCall{ID: "fs_1", Status: item.StatusSearching}, true, true},
	{&item.WebSearchCall{ID: "ws_1", Status: item.StatusCompleted, Action: &item.WebSearchAction{Type: item.WebSearchQuery, Query: "q", Queries: []string{"q"},
		Sources: []item.WebSearchSource{{Type: "url", URL: "https://x"}}}}, true, true},
	{&item.WebSearchCall{ID: "ws_1", Status: item.StatusCompleted, Action: &item.WebSearchAction{Type: item.WebSearchOpenPage, URL: "https://x"}}, true, true},
	{&item.WebSearchCall{ID: "ws_1", Status: item.StatusCompleted, Action: &item.WebSearchAction{Type: item.WebSearchFind, URL: "https://x", Pattern: "p"}}, true, true},
	{&item.ComputerCall{ID: "cu_1", CallID: "call_1", Status: item.StatusCompleted, Action: &item.ClickAction{Button: "left", X: 0, Y: 2, Keys: []string{"SHIFT"}}, PendingSafetyChecks: checks}, true, true},
	{&item.ComputerCall{ID: "cu_1", CallID: "call_1", Status: item.StatusCompleted, Actions: []item.ComputerAction{&item.DoubleClickAction{X: 1, Y: 2},
		&item.DragAction{Path: []item.Coordinate{{X: 0, Y: 0}, {X: 5, Y: 5}}}, &item.KeyPressAction{Keys: []string{"A"}}, &item.MoveAction{X: 1}, &item.ScreenshotAction{},
		&item.ScrollAction{ScrollY: -3}, &item.TypeAction{Text: "t"}, &item.WaitAction{}}}, true, true},
	{&item.ComputerCallOutput{ID: "cuo_1", CallID: "call_1", Output: &item.ComputerScreenshot{ImageURL: "https://x/y.png"}, AcknowledgedSafetyChecks: checks, Status: item.StatusCompleted}, true, true},
	{&item.ToolSearchCall{ID: "ts_1", CallID: "call_1", Execution: item.ExecutionClient, Arguments: `{}`, Status: item.StatusCompleted}, true, true},
	{&item.ToolSearchOutput{ID: "tso_1", CallID: "call_1", Execution: item.ExecutionClient, Tools: []item.Tool{fn}, Status: item.StatusCompleted}, true, true},
	{&item.AdditionalTools{ID: "at_1", Role: item.RoleDeveloper, Tools: []item.Tool{fn}}, true, true},
	{&item.Compaction{ID: "cmp_1", EncryptedContent: "e"}, true, true},
	{&item.CompactionTrigger{}, true, false},
	{&item.ItemReference{ID: "msg_1"}, true, false},
	{&item.Program{ID: "prog_1", CallID: "call_p", Code: "f()", Fingerprint: "x"}, true, true},
	{&item.ProgramOutput{ID: "po_1", CallID: "call_p", Result: "r", Status: item.StatusCompleted}, true, true},
	{&item.ImageGenerationCall{ID: "ig_1", Status: item.StatusCompleted, Result: "AAAA"}, true, true},
	{&item.ImageGenerationCall{ID: "ig_1", Status: item.StatusGenerating}, true, true},
	{&item.CodeInterpreterCall{ID: "ci_1", Status: item.StatusCompleted, ContainerID: "cntr_1", Code: "1+1",
		Outputs: []item.CodeOutput{{Type: "logs", Logs: "2"}, {Type: "image", URL: "https://x"}}}, true, true},
	{&item.CodeInterpreterCall{ID: "ci_1", Status: item.StatusInterpreting, ContainerID: "cntr_1"}, true, true},
	{&item.LocalShellCall{ID: "lsh_1", CallID: "call_1", Status: item.StatusCompleted,
		Action: &item.LocalShellAction{Command: []string{"ls"}, Env: map[string]string{"A": "b"}, TimeoutMS: new(int64(5)), User: "u", WorkingDirectory: "/"}}, true, true},
	{&item.LocalShellCall{ID: "lsh_1", CallID: "call_1", Status: item.StatusCompleted, Action: &item.LocalShellAction{}}, true, true},
	{&item.LocalShellCallOutput{ID: "lsh_1", Output: "o", Status: item.StatusCompleted}, true, true},
	{&item.ShellCall{ID: "sh_1", CallID: "call_1", Caller: direct, Status: item.StatusCompleted, CreatedBy: "me",
		Action:      &item.ShellAction{Commands: []string{"ls"}, TimeoutMS: new(int64(5)), MaxOutputLength: new(int64(9))},
		Environment: &item.Environment{Type: item.EnvironmentContainer, ContainerID: "cntr_1"}}, false, true},
	{&item.ShellCall{CallID: "call_1", Action: &item.ShellAction{Commands: []string{"ls"}}}, true, false},
	{&item.ShellCallOutput{ID: "sho_1", CallID: "call_1", Caller: direct, Status: item.StatusCompleted, MaxOutputLength: new(int64(9)),
		Output: []item.ShellOutput{{Stdout: "a", Outcome: item.ShellExit(0)}, {Stderr: "b", Outcome: item.ShellTimeout()}}}, true, true},
	{&item.ShellCallOutput{CallID: "call_1"}, true, false},
	{&item.ApplyPatchCall{ID: "ap_1", CallID: "call_1", Caller: direct, Status: item.StatusCompleted, Operation: &item.PatchOperation{Type: item.PatchCreate, Path: "a", Diff: "+x"}}, true, true},
	{&item.ApplyPatchCall{ID: "ap_1", CallID: "call_1", Status: item.StatusInProgress, Operation: &item.PatchOperation{Type: item.PatchUpdate, Path: "a"}}, true, true},
	{&item.ApplyPatchCall{ID: "ap_1", CallID: "call_1", Status: item.StatusCompleted, Operation: &item.PatchOperation{Type: item.PatchDelete, Path: "a"}}, true, true},
	{&item.ApplyPatchCallOutput{ID: "apo_1", CallID: "call_1", Caller: direct, Status: item.StatusFailed, Output: "no such file"}, true, true},
	{&item.MCPListTools{ID: "mcpl_1", ServerLabel: "s", Tools: []item.MCPListedTool{{Name: "t", Description: "d", InputSchema: `{}`, Annotations: `{"readOnlyHint":true}`}}}, true, true},
	{&item.MCPListTools{ID: "mcpl_1", ServerLabel: "s", Error: "unreachable"}, true, true},
	{&item.MCPCall{ID: "mcp_1", ServerLabel: "s", Name: "t", Arguments: "{}", Output: "o", Status: item.StatusCompleted, ApprovalRequestID: "mcpr_1"}, true, true},
	{&item.MCPCall{ID: "mcp_1", ServerLabel: "s", Name: "t", Arguments: "{}", Status: item.StatusFailed,
		Error: &item.MCPCallError{Type: item.MCPHTTPError, Code: new(int64(424)), Message: "m"}}, true, true},
	{&item.MCPCall{ID: "mcp_1", ServerLabel: "s", Name: "t", Status: item.StatusCalling,
		Error: &item.MCPCallError{Type: item.MCPExecutionError, Content: `[{"type":"text","text":"x"}]`}}, true, true},
	{&item.MCPApprovalRequest{ID: "mcpr_1", ServerLabel: "s", Name: "t", Arguments: "{}"}, true, true},
	{&item.MCPApprovalResponse{ApprovalRequestID: "mcpr_1"}, true, false},
	{&item.MCPApprovalResponse{ID: "mcpa_1", ApprovalRequestID: "mcpr_1", Approve: true, Reason: "fine"}, true, true},
}

const (
	citations item.JSON = `[{"type":"file_citation","file_id":"f","filename":"n","index":0},{"type":"url_citation","end_index":4,"start_index":0,"title":"t","url":"https://x"},` +
		`{"type":"container_file_citation","container_id":"c","end_index":4,"file_id":"f","filename":"n","start_index":0},{"type":"file_path","file_id":"f","index":3}]`
	logprobs item.JSON = `[{"token":"yo","bytes":[121,111],"logprob":-0.5,"top_logprobs":[{"token":"yo","bytes":[121,111],"logprob":-0.5}]}]`
)

// W9 W12: every kind of item, built by hand, is valid where the schema has it,
// and is read back as it was built.
func TestEveryItem(t *testing.T) {
	spec := apispec.Load(t)
	types := tally{}
	for _, v := range values {
		it := encode(t, v.value)
		types[string(it.Type())]++
		if v.in {
			spec.Check(t, "InputItem", []byte(it.JSON()))
		}
		if v.out {
			spec.Check(t, "OutputItem", []byte(it.JSON()))
		}
		back := decode(t, parse(t, it.JSON()))
		if diff := cmp.Diff(v.value, back); diff != "" {
			t.Errorf("%s (-built +read):\n%s", it.JSON(), diff)
		}
		if again := encode(t, back); again != it {
			t.Errorf("encoded again: %s\nfirst: %s", again.JSON(), it.JSON())
		}
	}
	if len(types) != 30 {
		t.Errorf("%d types of 30", len(types))
	}
}

// tools is one definition of every type.
var tools = []item.Tool{
	&item.FunctionTool{Name: "f", Description: "d", Parameters: `{"type":"object"}`, OutputSchema: `{"type":"object"}`, Strict: new(true),
		DeferLoading: new(true), AllowedCallers: []string{item.AllowDirect, item.AllowProgrammatic}},
	&item.CustomTool{Name: "c", Description: "d", Format: item.FormatText, DeferLoading: new(false), AllowedCallers: []string{item.AllowDirect}},
	&item.CustomTool{Name: "c", Format: item.FormatGrammar(item.SyntaxLark, `start: "a"`)},
	&item.NamespaceTool{Name: "n", Description: "d", Tools: []item.Tool{fn, &item.CustomTool{Name: "c"}}},
	&item.ToolSearchTool{Execution: item.ExecutionClient, Description: "d", Parameters: `{}`},
	&item.ProgrammaticTool{},
	&item.ShellTool{AllowedCallers: []string{item.AllowDirect}, Environment: &item.Environment{Type: item.EnvironmentNew, FileIDs: []string{"f"}, MemoryLimit: "4g",
		NetworkPolicy: &item.NetworkPolicy{Type: "allowlist", AllowedDomains: []string{"x"}, DomainSecrets: []item.DomainSecret{{Domain: "x", Name: "n", Value: "v"}}},
		Skills: []item.Skill{{Type: "skill_reference", SkillID: "s", Version: "1"},
			{Type: "inline", Name: "n", Description: "d", Source: &item.SkillSource{Type: "base64", MediaType: "application/zip", Data: "AA=="}}}}},
	&item.ShellTool{Environment: &item.Environment{Type: item.EnvironmentLocal, Skills: []item.Skill{{Name: "n", Description: "d", Path: "/p"}}}},
	&item.LocalShellTool{},
	&item.ApplyPatchTool{AllowedCallers: []string{item.AllowDirect}},
	&item.ComputerTool{},
	&item.ComputerPreviewTool{Environment: "browser", DisplayWidth: 1024, DisplayHeight: 768},
	&item.FileSearchTool{VectorStoreIDs: []string{"vs_1"}, MaxNumResults: new(int64(5)),
		RankingOptions: &item.RankingOptions{Ranker: "auto", ScoreThreshold: new(0.5), HybridSearch: &item.HybridSearch{EmbeddingWeight: 1}},
		Filters:        filter},
	&item.WebSearchTool{ExternalWebAccess: new(false), Filters: &item.WebSearchFilters{AllowedDomains: []string{"x"}}, SearchContextSize: "low",
		UserLocation: &item.Location{Type: "approximate", City: "Graz", Country: "AT", Region: "Styria", Timezone: "Europe/Vienna"}},
	&item.WebSearchTool{Type: item.ToolWebSearch20250826},
	&item.WebSearchPreviewTool{SearchContentTypes: []string{"text"}, SearchContextSize: "high", UserLocation: &item.Location{Type: "approximate"}},
	&item.WebSearchPreviewTool{Type: item.ToolWebSearchPreview20250311},
	&item.MCPTool{ServerLabel: "s", ServerURL: "https://x", ServerDescription: "d", Authorization: "t", Headers: map[string]string{"A": "b"},
		AllowedTools: `["t"]`, RequireApproval: item.ApprovalNever, AllowedCallers: []string{item.AllowDirect}, DeferLoading: new(true)},
	&item.MCPTool{ServerLabel: "s", ConnectorID: "connector_gmail", AllowedTools: readOnly, RequireApproval: approval},
	&item.MCPTool{ServerLabel: "s", TunnelID: "tunnel_0123456789abcdef0123456789abcdef", RequireApproval: item.ApprovalAlways},
	&item.CodeInterpreterTool{Container: `"cntr_1"`, AllowedCallers: []string{item.AllowDirect}},
	&item.CodeInterpreterTool{Container: must((&item.Environment{Type: item.EnvironmentAuto, FileIDs: []string{"f"}, MemoryLimit: "1g", NetworkPolicy: &item.NetworkPolicy{Type: "disabled"}}).JSON())},
	&item.ImageGenerationTool{Model: "gpt-image-1", Action: "edit", Background: "opaque", InputFidelity: "high", InputImageMask: &item.ImageMask{FileID: "f"},
		Moderation: "low", OutputCompression: new(int64(80)), OutputFormat: "webp", PartialImages: new(int64(2)), Quality: "high", Size: "1024x1024"},
}

var (
	filter = must((&item.Filter{Type: "and", Filters: []item.Filter{{Type: "eq", Key: "k", Value: `"v"`},
		{Type: "or", Filters: []item.Filter{{Type: "in", Key: "k", Value: `[1,2]`}}}}}).JSON())
	readOnly = must((&item.MCPToolFilter{ToolNames: []string{"t"}, ReadOnly: new(true)}).JSON())
	approval = must((&item.MCPApproval{Always: &item.MCPToolFilter{ToolNames: []string{"a"}}, Never: &item.MCPToolFilter{ReadOnly: new(true)}}).JSON())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// W12 B6: every kind of tool, tool choice, text format and option, built by
// hand, is valid and is read back as it was built.
func TestEveryTool(t *testing.T) {
	spec := apispec.Load(t)
	types := tally{}
	for _, tool := range tools {
		types[tool.ToolType()]++
		req := &api.Request{Model: "m", Input: item.NewList(item.User("q")), Tools: []item.Tool{tool}}
		data := body(t, req.AppendJSON)
		spec.Check(t, "CreateResponse", []byte(data))
		back, err := api.ParseRequest([]byte(data))
		if err != nil {
			t.Errorf("%v in %s", err, data)
			continue
		}
		if diff := cmp.Diff(req.Tools, back.Tools); diff != "" {
			t.Errorf("%s (-built +read):\n%s", data, diff)
		}
	}
	if len(types) != 18 {
		t.Errorf("%d types of 18: %v", len(types), types)
	}
}

func TestFilter(t *testing.T) {
	f, err := item.ParseFilter(filter)
	if err != nil || f.Filters[1].Filters[0].Value != `[1,2]` {
		t.Errorf("got %+v, %v", f, err)
	}
	if again := must(f.JSON()); again != filter {
		t.Errorf("got %s", again)
	}
}

// W11: definitions that nest without end are read in a time that grows with
// their size.
func TestNestedTools(t *testing.T) {
	const deep = 4000
	body := `{"tools":[` + strings.Repeat(`{"type":"namespace","name":"n","description":"d","tools":[`, deep) + strings.Repeat(`]}`, deep) + `]}`
	r, err := api.ParseRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	outer, ok := r.Tools[0].(*item.NamespaceTool)
	if !ok || outer.Tools[0].ToolType() != item.ToolNamespace {
		t.Fatalf("got %T", r.Tools[0])
	}
	if _, ok := outer.Tools[0].(*item.UnknownTool); !ok {
		t.Errorf("got %T", outer.Tools[0])
	}
	out, err := r.AppendJSON(nil)
	if err != nil || string(out) != body {
		t.Errorf("changed: %v", err)
	}
}

// W12 B6
func TestEveryChoice(t *testing.T) {
	spec := apispec.Load(t)
	for _, test := range []struct {
		choice item.JSON
		want   api.ToolChoice
	}{
		{"", api.ToolChoice{}},
		{api.ChoiceAuto, api.ToolChoice{Mode: api.ModeAuto}},
		{api.ChoiceNone, api.ToolChoice{Mode: api.ModeNone}},
		{api.ChoiceRequired, api.ToolChoice{Mode: api.ModeRequired}},
		{api.ChoiceApplyPatch, api.ToolChoice{Type: item.ToolApplyPatch}},
		{api.ChoiceShell, api.ToolChoice{Type: item.ToolShell}},
		{api.ChoiceProgrammatic, api.ToolChoice{Type: item.ToolProgrammatic}},
		{api.ChooseFunction("f"), api.ToolChoice{Type: item.ToolFunction, Name: "f"}},
		{api.ChooseCustom("c"), api.ToolChoice{Type: item.ToolCustom, Name: "c"}},
		{api.ChooseMCP("s", ""), api.ToolChoice{Type: item.ToolMCP, ServerLabel: "s"}},
		{api.ChooseMCP("s", "t"), api.ToolChoice{Type: item.ToolMCP, ServerLabel: "s", Name: "t"}},
		{api.ChooseHosted(item.ToolFileSearch), api.ToolChoice{Type: item.ToolFileSearch}},
		{api.ChooseHosted(api.ChoiceTypeComputerUse), api.ToolChoice{Type: api.ChoiceTypeComputerUse}},
		{api.ChooseAllowed(api.ModeRequired, api.ChooseFunction("f"), api.ChooseMCP("s", "")),
			api.ToolChoice{Type: api.ChoiceTypeAllowed, Mode: api.ModeRequired, Tools: []item.JSON{api.ChooseFunction("f"), api.ChooseMCP("s", "")}}},
		{api.ChooseAllowed(api.ModeAuto), api.ToolChoice{Type: api.ChoiceTypeAllowed, Mode: api.ModeAuto, Tools: []item.JSON{}}},
		{`{"type":"invented","x":[1.0]}`, api.ToolChoice{Type: "invented", Extra: item.Extra{{Name: "x", Value: "[1.0]"}}}},
	} {
		got, err := api.ParseToolChoice(test.choice)
		if err != nil {
			t.Errorf("%s: %v", test.choice, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.choice, diff)
		}
		if test.choice == "" {
			continue
		}
		if got.Type != "invented" {
			spec.Check(t, "ToolChoiceParam", []byte(test.choice))
		}
		back, err := got.JSON()
		if err != nil {
			t.Errorf("%s: %v", test.choice, err)
		}
		sameJSON(t, "tool choice", string(back), string(test.choice))
	}
	for _, bad := range []item.JSON{"5", "[]", "null", "{", "auto"} {
		if c, err := api.ParseToolChoice(bad); err == nil {
			t.Errorf("%s: read as %+v", bad, c)
		}
	}
}

// W12: annotations and log probabilities are read by method, and built.
func TestAnnotations(t *testing.T) {
	p := &item.OutputText{Text: "x", Annotations: citations, Logprobs: logprobs}
	list, err := p.Citations()
	if err != nil {
		t.Fatal(err)
	}
	want := []item.Annotation{&item.FileCitation{FileID: "f", Filename: "n"}, &item.URLCitation{URL: "https://x", Title: "t", EndIndex: 4},
		&item.ContainerFileCitation{ContainerID: "c", FileID: "f", Filename: "n", EndIndex: 4}, &item.FilePath{FileID: "f", Index: 3}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := must(item.AnnotationList(list...)); got != citations {
		t.Errorf("got %s", got)
	}
	probs, err := p.TokenLogprobs()
	if err != nil || len(probs) != 1 || probs[0].Logprob != -0.5 || probs[0].Top[0].Bytes[1] != 'o' {
		t.Errorf("got %+v, %v", probs, err)
	}
	if got := must(item.LogprobList(probs...)); got != logprobs {
		t.Errorf("got %s", got)
	}
	if got := must(item.AnnotationList()); got != "[]" {
		t.Errorf("got %s", got)
	}
	for _, none := range []item.JSON{"", "[]", "null"} {
		if list, err := (&item.OutputText{Annotations: none}).Citations(); err != nil || len(list) != 0 {
			t.Errorf("%s: %v, %v", none, list, err)
		}
	}
	odd := item.JSON(`[{"type":"invented","x":1e400},{"type":"url_citation","start_index":1.5}]`)
	list, err = (&item.OutputText{Annotations: odd}).Citations()
	if err != nil || list[0].AnnotationType() != "invented" {
		t.Fatalf("%v, %v", list, err)
	}
	if got := must(item.AnnotationList(list...)); got != odd {
		t.Errorf("got %s", got)
	}
	_, err = (&item.OutputText{Annotations: `[{},5]`}).Citations()
	wantShape(t, err, item.ShapeError{Path: "[1]", Problem: "want an annotation"})
	if _, err := item.AnnotationList(nil); err == nil {
		t.Error("a nil annotation was written")
	}
}
