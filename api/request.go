// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// Request is the body of POST /responses. Fields that are not set are not sent;
// there are no hidden defaults. Members without a field are in Extra. Fields of type
// [item.JSON] hold values that have several forms, or that clients mostly pass on;
// the comment of each names the functions that build and read it. Schema:
// CreateResponse.
type Request struct {
	Model        string
	Instructions string
	// Input is the history. If a parsed request has a plain text as its input, Input
	// is nil and the text is in Extra; see [Request.InputItems].
	Input *item.List
	Tools []item.Tool
	// ToolChoice is a value such as [ChoiceAuto], or the result of a function such
	// as [ChooseFunction]. Read it with [ParseToolChoice].
	ToolChoice        item.JSON
	ParallelToolCalls *bool
	Stream            *bool
	StreamOptions     *StreamOptions
	Store             *bool
	Background        *bool
	// Include holds values such as [IncludeEncryptedReasoning].
	Include         []string
	MaxOutputTokens *int64
	MaxToolCalls    *int64
	Temperature     *float64
	TopP            *float64
	TopLogprobs     *int64
	Reasoning       *ReasoningConfig
	// Text can be made with [TextAsSchema] and read with [ParseTextConfig].
	Text               item.JSON
	PreviousResponseID string
	// Conversation can be made with [ConversationByID] and read with
	// [ConversationID].
	Conversation         item.JSON
	ContextManagement    []ContextManagement
	Prompt               *Prompt
	PromptCacheKey       string
	PromptCacheOptions   *PromptCacheOptions
	PromptCacheRetention string
	Moderation           *ModerationConfig
	SafetyIdentifier     string
	ServiceTier          string
	Truncation           string
	User                 string
	// Metadata is an object whose values are strings. The function [Metadata] makes
	// it.
	Metadata item.JSON
	Extra    item.Extra
	// Spelled holds the original text of numbers that encoding would write
	// differently, such as 1.0 for 1. It is used as long as the field still has the
	// same value.
	Spelled item.Extra
}

func (r *Request) fields(c *codec) {
	record.Keep(c, &r.Extra)
	record.Spell(c, &r.Spelled)
	c.OptString("model", &r.Model)
	c.OptString("instructions", &r.Instructions)
	listMember(c, "input", &r.Input)
	toolValues.List(c, "tools", &r.Tools)
	record.Raw(c, "tool_choice", &r.ToolChoice)
	c.OptBool("parallel_tool_calls", &r.ParallelToolCalls)
	c.OptBool("stream", &r.Stream)
	c.OptBool("store", &r.Store)
	c.OptBool("background", &r.Background)
	c.OptStrings("include", &r.Include)
	c.OptInt("max_output_tokens", &r.MaxOutputTokens)
	c.OptInt("max_tool_calls", &r.MaxToolCalls)
	c.OptFloat("temperature", &r.Temperature)
	c.OptFloat("top_p", &r.TopP)
	record.Opt(c, "reasoning", &r.Reasoning, (*ReasoningConfig).fields)
	record.Raw(c, "text", &r.Text)
	c.OptString("previous_response_id", &r.PreviousResponseID)
	c.OptString("prompt_cache_key", &r.PromptCacheKey)
	c.OptString("safety_identifier", &r.SafetyIdentifier)
	c.OptString("service_tier", &r.ServiceTier)
	c.OptString("truncation", &r.Truncation)
	c.OptString("user", &r.User)
	record.Raw(c, "metadata", &r.Metadata)
	record.Opt(c, "stream_options", &r.StreamOptions, (*StreamOptions).fields)
	c.OptInt("top_logprobs", &r.TopLogprobs)
	record.Raw(c, "conversation", &r.Conversation)
	record.List(c, "context_management", &r.ContextManagement, (*ContextManagement).fields)
	record.Opt(c, "prompt", &r.Prompt, (*Prompt).fields)
	record.Opt(c, "prompt_cache_options", &r.PromptCacheOptions, (*PromptCacheOptions).fields)
	c.OptString("prompt_cache_retention", &r.PromptCacheRetention)
	record.Opt(c, "moderation", &r.Moderation, (*ModerationConfig).fields)
}

// AppendJSON appends the request as JSON. It copies the bytes of the input once.
func (r *Request) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// MarshalJSON returns the request as JSON.
func (r *Request) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil // as encoding/json does for a nil pointer
	}
	// Everything except the input and the tools usually fits into 4096 bytes.
	return r.AppendJSON(make([]byte, 0, r.Input.Size()+4096))
}

// UnmarshalJSON replaces the request by that of [ParseRequest].
func (r *Request) UnmarshalJSON(data []byte) error {
	if r == nil {
		return errNil
	}
	if string(data) == "null" {
		return nil
	}
	read, err := ParseRequest(data)
	if err == nil {
		*r = *read
	}
	return err
}

// ParseRequest reads a request from a copy of data.
func ParseRequest(data []byte) (*Request, error) {
	r := new(Request)
	if err := parseRecord(string(data), r); err != nil {
		return nil, err
	}
	return r, nil
}

// InputItems returns the input as items. A plain text becomes one user message.
func (r *Request) InputItems() []item.Item {
	if r == nil {
		return nil
	}
	if r.Input == nil {
		v, _ := r.Extra.Get("input")
		if s, ok := v.Unquote(); ok {
			return []item.Item{item.User(s)}
		}
		return nil
	}
	items := make([]item.Item, 0, r.Input.Len())
	for _, it := range r.Input.All() {
		items = append(items, it)
	}
	return items
}

// Body returns the same bytes as [Request.AppendJSON], as a body to send. The body
// uses the list's own memory, which never changes, so sending it copies or allocates
// nothing for the history.
func (r *Request) Body() (item.Body, error) { return bodyOf(r) }

// Body returns the event as a body to send; see [Request.Body].
func (e *CreateEvent) Body() (item.Body, error) { return bodyOf(e) }

// Body returns the request as a body to send; see [Request.Body].
func (r *CompactRequest) Body() (item.Body, error) { return bodyOf(r) }

// Body returns the request as a body to send; see [Request.Body].
func (r *TokenCountRequest) Body() (item.Body, error) { return bodyOf(r) }

// Body returns the request as a body to send; see [Request.Body].
func (v *AddItems) Body() (item.Body, error) { return bodyOf(v) }

// StreamOptions controls how events are sent. Schema: ResponseStreamOptions.
type StreamOptions struct {
	// IncludeObfuscation, if false, leaves out the padding that hides the length of
	// deltas from observers of the network traffic.
	IncludeObfuscation *bool
	Extra              item.Extra
}

// PromptCacheOptions controls what the endpoint caches of a prompt. Schemas:
// PromptCacheOptionsParam, PromptCacheOptions.
type PromptCacheOptions struct {
	// Mode is implicit, or explicit to cache only at an [item.CacheBreakpoint].
	Mode string
	// TTL is how long the cache is kept, such as 30m.
	TTL   string
	Extra item.Extra
}

// ContextManagement is a way to keep a conversation within the model's context
// limit. Schema: ContextManagementParam.
type ContextManagement struct {
	// Type is "compaction".
	Type string
	// CompactThreshold is the number of tokens at which the endpoint compacts the
	// conversation.
	CompactThreshold *int64
	Extra            item.Extra
}

// ModerationConfig makes the endpoint moderate input and output. Schema:
// ModerationParam.
type ModerationConfig struct {
	Model  string
	Policy *ModerationPolicy
	Extra  item.Extra
}

// ModerationPolicy says what moderation does with each side. Schema:
// ModerationPolicyParam.
type ModerationPolicy struct {
	Input  *ModerationMode
	Output *ModerationMode
	Extra  item.Extra
}

// ModerationMode has the mode score or block. Schema: ModerationConfigParam.
type ModerationMode struct {
	Mode  string
	Extra item.Extra
}

// Prompt refers to a prompt stored by the endpoint. Variables is an object whose
// values are strings or parts, such as an input image. It is kept as JSON because
// few programs use it. Schema: Prompt.
type Prompt struct {
	ID        string
	Version   string
	Variables item.JSON
	Extra     item.Extra
}

// ConversationByID returns the value of [Request.Conversation] for a conversation
// id. Schema: ConversationParam.
func ConversationByID(id string) item.JSON { return item.Quote(id) }

// ConversationID returns the id in a [Request.Conversation], which is a string or an
// object. It returns false for anything else.
func ConversationID(j item.JSON) (string, bool) {
	if j == "" {
		return "", false
	}
	if id, ok := j.Unquote(); ok {
		return id, true
	}
	ref, err := parseBody[ConversationRef]([]byte(j))
	if err != nil || ref.ID == "" {
		return "", false
	}
	return ref.ID, true
}

// Metadata returns the value of [Request.Metadata] for pairs, sorted by name.
// Schema: Metadata.
func Metadata(pairs map[string]string) (item.JSON, error) {
	b, err := record.AppendStringMap(nil, pairs)
	return item.JSON(b), err
}

func (v *StreamOptions) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptBool("include_obfuscation", &v.IncludeObfuscation)
}

func (v *PromptCacheOptions) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("mode", &v.Mode)
	c.OptString("ttl", &v.TTL)
}

func (v *ContextManagement) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("type", &v.Type)
	c.OptInt("compact_threshold", &v.CompactThreshold)
}

func (v *ModerationConfig) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("model", &v.Model)
	record.Opt(c, "policy", &v.Policy, (*ModerationPolicy).fields)
}

func (v *ModerationPolicy) fields(c *codec) {
	record.Keep(c, &v.Extra)
	record.Opt(c, "input", &v.Input, (*ModerationMode).fields)
	record.Opt(c, "output", &v.Output, (*ModerationMode).fields)
}

func (v *ModerationMode) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("mode", &v.Mode)
}

func (v *Prompt) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.OptString("version", &v.Version)
	record.Raw(c, "variables", &v.Variables)
}

// Values for [Request.Include]. Schema: IncludeEnum.
const (
	// IncludeEncryptedReasoning asks for reasoning items in a form that a client
	// without stored responses can send back.
	IncludeEncryptedReasoning     = "reasoning.encrypted_content"
	IncludeFileSearchResults      = "file_search_call.results"
	IncludeWebSearchResults       = "web_search_call.results"
	IncludeWebSearchSources       = "web_search_call.action.sources"
	IncludeInputImageURLs         = "message.input_image.image_url"
	IncludeComputerImageURLs      = "computer_call_output.output.image_url"
	IncludeCodeInterpreterOutputs = "code_interpreter_call.outputs"
	IncludeLogprobs               = "message.output_text.logprobs"
)

// TextConfig describes the text that the model should produce; see [Request.Text].
// Schema: ResponseTextParam.
type TextConfig struct {
	Format *TextFormat
	// Verbosity is low, medium or high.
	Verbosity string
	Extra     item.Extra
}

// The types of a [TextFormat].
const (
	TextPlain      = "text"
	TextJSONObject = "json_object"
	TextJSONSchema = "json_schema"
)

// TextFormat is the format of the model's text: plain text, any JSON object, or JSON
// that follows a schema. Schemas: ResponseFormatText, ResponseFormatJsonObject,
// TextResponseFormatJsonSchema.
type TextFormat struct {
	// Type is [TextPlain], [TextJSONObject] or [TextJSONSchema]. The other fields
	// are used only with TextJSONSchema.
	Type        string
	Name        string
	Description string
	// Schema is a JSON Schema. It is passed on unchanged.
	Schema item.JSON
	Strict *bool
	Extra  item.Extra
}

// The values of [Request.Text] for formats without a schema.
const (
	TextAny      item.JSON = `{"format":{"type":"text"}}`
	TextAsObject item.JSON = `{"format":{"type":"json_object"}}`
)

// TextAsSchema returns the value of [Request.Text] for JSON that follows a schema.
// The model sees the name. The endpoint enforces the schema if strict is true.
func TextAsSchema(name string, schema item.JSON, strict bool) (item.JSON, error) {
	return (&TextConfig{Format: &TextFormat{Type: TextJSONSchema, Name: name, Schema: schema, Strict: &strict}}).JSON()
}

// ParseTextConfig reads [Request.Text] or [Response.TextConfig]. An unknown format
// is not an error.
func ParseTextConfig(j item.JSON) (*TextConfig, error) { return parseBody[TextConfig]([]byte(j)) }

// JSON returns the configuration as a value for [Request.Text].
func (v *TextConfig) JSON() (item.JSON, error) {
	b, err := appendRecord(nil, v)
	return item.JSON(b), err
}

func (v *TextConfig) fields(c *codec) {
	record.Keep(c, &v.Extra)
	record.Opt(c, "format", &v.Format, (*TextFormat).fields)
	c.OptString("verbosity", &v.Verbosity)
}

func (v *TextFormat) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("name", &v.Name)
	c.OptString("description", &v.Description)
	record.Raw(c, "schema", &v.Schema)
	c.OptBool("strict", &v.Strict)
}

// Values for [ReasoningConfig.Effort]: how much the model reasons. Not every model
// accepts all of them. Schema: ReasoningEffort.
const (
	EffortNone    = "none"
	EffortMinimal = "minimal"
	EffortLow     = "low"
	EffortMedium  = "medium"
	EffortHigh    = "high"
	EffortXHigh   = "xhigh"
	EffortMax     = "max"
)

// Values for [ReasoningConfig.Summary]: how much of its reasoning the model shows.
// Schema: Reasoning.summary.
const (
	SummaryAuto     = "auto"
	SummaryConcise  = "concise"
	SummaryDetailed = "detailed"
)

// ReasoningConfig controls how much a model reasons and how much of that it shows.
// Schema: Reasoning.
type ReasoningConfig struct {
	// Effort is a value such as [EffortHigh].
	Effort string
	// Summary is a value such as [SummaryAuto].
	Summary string
	// Context selects the earlier reasoning that the model sees: auto, current_turn
	// or all_turns.
	Context string
	// Mode is a word such as standard or pro.
	Mode string
	// GenerateSummary is the former name of Summary.
	GenerateSummary string
	Extra           item.Extra
}

func (r *ReasoningConfig) fields(c *codec) {
	record.Keep(c, &r.Extra)
	c.OptString("effort", &r.Effort)
	c.OptString("summary", &r.Summary)
	c.OptString("context", &r.Context)
	c.OptString("mode", &r.Mode)
	c.OptString("generate_summary", &r.GenerateSummary)
}

// Tool choices that are a word, or that are the same in every request. Functions
// such as [ChooseFunction] make the others. Schemas: ToolChoiceOptions,
// SpecificApplyPatchParam, SpecificFunctionShellParam,
// SpecificProgrammaticToolCallingParam.
const (
	ChoiceAuto     item.JSON = `"auto"`
	ChoiceNone     item.JSON = `"none"`
	ChoiceRequired item.JSON = `"required"`

	ChoiceApplyPatch   item.JSON = `{"type":"apply_patch"}`
	ChoiceShell        item.JSON = `{"type":"shell"}`
	ChoiceProgrammatic item.JSON = `{"type":"programmatic_tool_calling"}`
)

// Values for [ToolChoice.Mode].
const (
	ModeAuto     = "auto"
	ModeNone     = "none"
	ModeRequired = "required"
)

// Values for [ToolChoice.Type] that are not types of an [item.Tool]. Schemas:
// ToolChoiceAllowed, ToolChoiceTypes.
const (
	ChoiceTypeAllowed     = "allowed_tools"
	ChoiceTypeComputerUse = "computer_use"
)

// ToolChoice is the decoded form of [Request.ToolChoice]. If the choice is a word,
// Mode is the word and Type is empty. Schema: ToolChoiceParam.
type ToolChoice struct {
	// Type is the type of the tool that the model must use, or [ChoiceTypeAllowed].
	Type string
	Mode string
	// Name is the name of a function, a custom tool, or a tool of an MCP server.
	Name        string
	ServerLabel string
	// Tools lists the allowed tools, each reduced to the members that identify it.
	Tools []item.JSON
	Extra item.Extra
}

// ChooseFunction returns the tool choice that forces the named function.
// Schema: ToolChoiceFunction.
func ChooseFunction(name string) item.JSON {
	return `{"type":"function","name":` + item.Quote(name) + `}`
}

// ChooseCustom returns the tool choice that forces the named custom tool.
// Schema: ToolChoiceCustom.
func ChooseCustom(name string) item.JSON {
	return `{"type":"custom","name":` + item.Quote(name) + `}`
}

// ChooseMCP returns the tool choice that forces a tool of an MCP server, or any of
// its tools if name is empty. Schema: ToolChoiceMCP.
func ChooseMCP(serverLabel, name string) item.JSON {
	if name == "" {
		return `{"type":"mcp","server_label":` + item.Quote(serverLabel) + `}`
	}
	return `{"type":"mcp","server_label":` + item.Quote(serverLabel) + `,"name":` + item.Quote(name) + `}`
}

// ChooseHosted returns the tool choice that forces a hosted tool by its type, such
// as [item.ToolFileSearch]. Schema: ToolChoiceTypes.
func ChooseHosted(typ string) item.JSON { return `{"type":` + item.Quote(typ) + `}` }

// ChooseAllowed returns the tool choice that restricts the model to some of the
// request's tools. With [ModeRequired] the model must use one of them; with
// [ModeAuto] it may. Each tool is given as another tool choice:
//
//	api.ChooseAllowed(api.ModeAuto, api.ChooseFunction("get_weather"), api.ChooseMCP("maps", ""))
//
// Schema: ToolChoiceAllowed.
func ChooseAllowed(mode string, tools ...item.JSON) item.JSON {
	list := "["
	for i, t := range tools {
		if i > 0 {
			list += ","
		}
		list += string(t)
	}
	return `{"type":"allowed_tools","mode":` + item.Quote(mode) + `,"tools":` + item.JSON(list) + `]}`
}

// ParseToolChoice reads a tool choice. An unknown type is not an error. An absent
// choice gives the zero ToolChoice.
func ParseToolChoice(j item.JSON) (ToolChoice, error) {
	var v ToolChoice
	if j == "" {
		return v, nil
	}
	value, err := checked(string(j))
	if err != nil {
		return v, wordProblem(string(j), err)
	}
	switch value[0] {
	case '"':
		v.Mode = jsonx.Unquote(value)
	case '{':
		return choiceObject(value)
	default:
		err = &item.ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a tool choice"}
	}
	return v, err
}

// choiceObject reads a tool choice that is an object. It is apart, so that the usual choice, a
// word, takes no memory.
func choiceObject(value string) (v ToolChoice, err error) {
	err = decodeRecord(value, &v)
	return v, err
}

// wordProblem returns the error for a tool choice that is not JSON. A word without quotes
// gets a hint.
func wordProblem(text string, err error) error {
	switch text {
	case ModeAuto:
		return fmt.Errorf("%s is not JSON: write api.ChoiceAuto: %w", text, err)
	case ModeNone:
		return fmt.Errorf("%s is not JSON: write api.ChoiceNone: %w", text, err)
	case ModeRequired:
		return fmt.Errorf("%s is not JSON: write api.ChoiceRequired: %w", text, err)
	}
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return fmt.Errorf(`%.64s is not JSON: a word needs quotes, as in "\"auto\"", and api.ChooseFunction makes the choice of a tool: %w`, text, err)
	}
	return err
}

// JSON returns the choice as a value for [Request.ToolChoice].
func (v *ToolChoice) JSON() (item.JSON, error) {
	if v == nil {
		return "", errNil
	}
	// A choice that has only a mode is written as a word.
	if v.Type == "" && v.Mode != "" && len(v.Extra) == 0 {
		return item.Quote(v.Mode), nil
	}
	b, err := appendRecord(nil, v)
	return item.JSON(b), err
}

func (v *ToolChoice) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("mode", &v.Mode)
	c.OptString("name", &v.Name)
	c.OptString("server_label", &v.ServerLabel)
	record.RawList(c, "tools", &v.Tools)
}

// ClientEvent is an event that a client sends on a WebSocket: [*CreateEvent] or
// [*UnknownClientEvent]. The server answers with stream events; see [EventValue].
// Schema: ResponsesClientEvent.
type ClientEvent interface {
	// ClientEventType returns the type member.
	ClientEventType() string
	fielder
}

// ClientCreate is the type of [CreateEvent].
const ClientCreate = "response.create"

// CreateEvent asks for a response. It has the members of a [Request]; Stream need
// not be set. A WebSocket may carry several responses at once, distinguished by
// StreamID. Schema: ResponsesClientEventResponseCreate.
type CreateEvent struct {
	StreamID string
	// Request may be nil for an empty one. Its Extra holds the extra members of the
	// event.
	Request *Request
}

// UnknownClientEvent is an event of a type that this package does not know, kept
// byte for byte.
type UnknownClientEvent struct{ Raw item.JSON }

// ClientEventType returns [ClientCreate].
func (*CreateEvent) ClientEventType() string { return ClientCreate }

// ClientEventType returns the type member, or "".
func (e *UnknownClientEvent) ClientEventType() string { return typeOfRaw(e.Raw) }

func (e *CreateEvent) fields(c *codec) {
	c.Constant("type", ClientCreate)
	c.OptString("stream_id", &e.StreamID)
	r := e.Request
	if r == nil {
		r = new(Request)
	}
	r.fields(c)
	if c.Decoding {
		e.Request = r
	}
}

// fields is never called: an unknown event is written as its raw text.
func (e *UnknownClientEvent) fields(*codec) {}

func (e *UnknownClientEvent) rawJSON() item.JSON { return e.Raw }

// ParseClientEvent reads an event from a copy of data.
func ParseClientEvent(data []byte) (ClientEvent, error) {
	value, err := checked(string(data))
	if err != nil {
		return nil, err
	}
	if value[0] != '{' {
		return nil, &item.ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want an event"}
	}
	if typeOfRaw(item.JSON(value)) != ClientCreate {
		return &UnknownClientEvent{Raw: item.JSON(value)}, nil
	}
	e := new(CreateEvent)
	if err := decodeRecord(value, e); err != nil {
		return nil, err
	}
	return e, nil
}

// AppendClientEvent appends an event as JSON. Like [Request.AppendJSON], it copies
// the input once.
func AppendClientEvent(dst []byte, e ClientEvent) ([]byte, error) {
	out, err := appendUnion(dst, e)
	return wholeFrom(dst, out, err)
}
