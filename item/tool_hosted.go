// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"cmp"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
)

// WebSearchTool lets the model search the web. Schema: WebSearchTool.
type WebSearchTool struct {
	// Type defaults to [ToolWebSearch]. It may be a version with a date.
	Type string
	// ExternalWebAccess, if false, restricts the search to content that the endpoint
	// has stored.
	ExternalWebAccess *bool
	Filters           *WebSearchFilters
	UserLocation      *Location
	// SearchContextSize is low, medium or high.
	SearchContextSize string
	Extra             Extra
}

// WebSearchFilters restricts a search to certain domains. Schema:
// WebSearchTool.filters.
type WebSearchFilters struct {
	AllowedDomains []string
	Extra          Extra
}

// WebSearchPreviewTool is the older form of [WebSearchTool]. Schema:
// WebSearchPreviewTool.
type WebSearchPreviewTool struct {
	// Type defaults to [ToolWebSearchPreview]. It may be a version with a date.
	Type               string
	UserLocation       *Location
	SearchContextSize  string
	SearchContentTypes []string
	Extra              Extra
}

// Location is the approximate location of the user. Country is a two-letter code and
// Timezone an IANA name. Schemas: ApproximateLocation, WebSearchApproximateLocation.
type Location struct {
	// Type is "approximate". The preview tool requires it.
	Type     string
	Country  string
	Region   string
	City     string
	Timezone string
	Extra    Extra
}

// CodeInterpreterTool lets the model run code. Container is the id of a container as
// a JSON string, or an [Environment] with the type [EnvironmentAuto]. Schema:
// CodeInterpreterTool.
type CodeInterpreterTool struct {
	Container      JSON
	AllowedCallers []string
	Extra          Extra
}

// ImageGenerationTool lets the model make and edit images. The endpoint chooses
// values for empty fields. Schema: ImageGenTool.
type ImageGenerationTool struct {
	Model             string
	Action            string
	Background        string
	InputFidelity     string
	InputImageMask    *ImageMask
	Moderation        string
	OutputCompression *int64 // percent
	OutputFormat      string
	PartialImages     *int64 // number of images sent before the final one
	Quality           string
	Size              string
	Extra             Extra
}

// ImageMask says where an image may be changed. Schema:
// ImageGenTool.input_image_mask.
type ImageMask struct {
	ImageURL string
	FileID   string
	Extra    Extra
}

// ProgrammaticTool lets the model write programs that call tools; see [Program].
// Schema: ProgrammaticToolCallingParam.
type ProgrammaticTool struct{ Extra Extra }

// ToolType returns t.Type, which defaults to [ToolWebSearch].
func (t *WebSearchTool) ToolType() string {
	if t == nil {
		return ToolWebSearch
	}
	return cmp.Or(t.Type, ToolWebSearch)
}

// ToolType returns t.Type, which defaults to [ToolWebSearchPreview].
func (t *WebSearchPreviewTool) ToolType() string {
	if t == nil {
		return ToolWebSearchPreview
	}
	return cmp.Or(t.Type, ToolWebSearchPreview)
}

// ToolType returns [ToolCodeInterpreter].
func (*CodeInterpreterTool) ToolType() string { return ToolCodeInterpreter }

// ToolType returns [ToolImageGeneration].
func (*ImageGenerationTool) ToolType() string { return ToolImageGeneration }

// ToolType returns [ToolProgrammatic].
func (*ProgrammaticTool) ToolType() string { return ToolProgrammatic }

func (t *WebSearchTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	version(c, &t.Type, ToolWebSearch)
	c.OptBool("external_web_access", &t.ExternalWebAccess)
	record.Opt(c, "filters", &t.Filters, (*WebSearchFilters).fields)
	c.OptString("search_context_size", &t.SearchContextSize)
	record.Opt(c, "user_location", &t.UserLocation, (*Location).fields)
}

func (v *WebSearchFilters) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptStrings("allowed_domains", &v.AllowedDomains)
}

func (t *WebSearchPreviewTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	version(c, &t.Type, ToolWebSearchPreview)
	c.OptStrings("search_content_types", &t.SearchContentTypes)
	c.OptString("search_context_size", &t.SearchContextSize)
	record.Opt(c, "user_location", &t.UserLocation, (*Location).fields)
}

func (v *Location) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("city", &v.City)
	c.OptString("country", &v.Country)
	c.OptString("region", &v.Region)
	c.OptString("timezone", &v.Timezone)
}

func (t *CodeInterpreterTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolCodeInterpreter)
	record.Raw(c, "container", &t.Container)
	c.OptStrings("allowed_callers", &t.AllowedCallers)
}

func (t *ImageGenerationTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolImageGeneration)
	c.OptString("action", &t.Action)
	c.OptString("background", &t.Background)
	c.OptString("input_fidelity", &t.InputFidelity)
	record.Opt(c, "input_image_mask", &t.InputImageMask, (*ImageMask).fields)
	c.OptString("model", &t.Model)
	c.OptString("moderation", &t.Moderation)
	c.OptInt("output_compression", &t.OutputCompression)
	c.OptString("output_format", &t.OutputFormat)
	c.OptInt("partial_images", &t.PartialImages)
	c.OptString("quality", &t.Quality)
	c.OptString("size", &t.Size)
}

func (v *ImageMask) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("image_url", &v.ImageURL)
	c.OptString("file_id", &v.FileID)
}

func (t *ProgrammaticTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolProgrammatic)
}

// version is a type member that may have several values. If the field is empty,
// otherwise is written.
func version(c *codec, v *string, otherwise string) {
	if !c.Decoding {
		c.WriteString("type", cmp.Or(*v, otherwise))
		return
	}
	if c.OptString("type", v); *v == otherwise {
		*v = ""
	}
}

// FileSearchTool lets the model search the caller's files. Schema: FileSearchTool.
type FileSearchTool struct {
	// VectorStoreIDs is written as [] if nil.
	VectorStoreIDs []string
	MaxNumResults  *int64
	RankingOptions *RankingOptions
	// Filters is a [Filter]. It is kept as JSON because filters may nest without
	// limit.
	Filters JSON
	Extra   Extra
}

// RankingOptions controls how results are ranked. Schema: RankingOptions.
type RankingOptions struct {
	Ranker string
	// ScoreThreshold, from 0 to 1, excludes results with a lower score.
	ScoreThreshold *float64
	HybridSearch   *HybridSearch
	Extra          Extra
}

// HybridSearch weights search by meaning against search by words. Schema:
// HybridSearchOptions.
type HybridSearch struct {
	EmbeddingWeight float64
	TextWeight      float64
	Extra           Extra
}

// Filter restricts a search to files with certain attributes. With the type "and" or
// "or" it combines Filters. With eq, ne, gt, gte, lt, lte, in or nin it compares the
// attribute Key with Value, which is a string, number, boolean or list. Schemas:
// ComparisonFilter, CompoundFilter.
type Filter struct {
	Type    string
	Key     string
	Value   JSON
	Filters []Filter
	Extra   Extra
}

// ParseFilter reads [FileSearchTool.Filters]. It copies j.
func ParseFilter(j JSON) (*Filter, error) {
	s, err := checked(strings.Clone(string(j)))
	if err != nil {
		return nil, err
	}
	if s[0] != '{' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want an object"}
	}
	f := new(Filter)
	f.read(s)
	return f, nil
}

// read reads the validated object at the start of s and returns its length. It
// decodes nested filters when it reaches them, so that each is scanned only once.
func (v *Filter) read(s string) (length int) {
	_ = record.With(func(c *codec) { // cannot fail: the fields accept any value
		length = v.readMembers(c, s)
		v.fields(c)
	})
	return length
}

// readMembers adds the members of the object at the start of s to c, and returns the
// length of the object. It reads nested filters on the way.
func (v *Filter) readMembers(c *codec, s string) (length int) {
	i := jsonx.SkipSpace(s, 1)
	for s[i] == '"' {
		end := jsonx.SkipString(s, i)
		name := s[i:end]
		i = jsonx.SkipSpace(s, jsonx.SkipSpace(s, end)+1)
		if jsonx.Unquote(name) == "filters" {
			end = i + v.readFilters(s[i:])
		} else {
			end = jsonx.SkipValue(s, i)
		}
		c.Members.Add(name, s[i:end])
		if i = jsonx.SkipSpace(s, end); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	c.Members.DropEarlier()
	return i + 1
}

// readFilters reads a list of filters and returns its length. A value that is not a
// list of objects gives no filters.
func (v *Filter) readFilters(s string) int {
	v.Filters = nil
	if s[0] != '[' {
		return jsonx.SkipValue(s, 0)
	}
	list, whole := []Filter{}, true
	i := jsonx.SkipSpace(s, 1)
	for s[i] != ']' {
		if whole = whole && s[i] == '{'; whole {
			list = append(list, Filter{})
			i += list[len(list)-1].read(s[i:])
		} else {
			i = jsonx.SkipValue(s, i)
		}
		if i = jsonx.SkipSpace(s, i); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	if whole {
		v.Filters = list
	}
	return i + 1
}

// JSON returns the filter as a value for [FileSearchTool.Filters].
func (v *Filter) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

// ToolType returns [ToolFileSearch].
func (*FileSearchTool) ToolType() string { return ToolFileSearch }

func (t *FileSearchTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolFileSearch)
	record.Raw(c, "filters", &t.Filters)
	c.OptInt("max_num_results", &t.MaxNumResults)
	record.Opt(c, "ranking_options", &t.RankingOptions, (*RankingOptions).fields)
	c.OrEmpty("vector_store_ids", "[]", t.VectorStoreIDs == nil)
	c.OptStrings("vector_store_ids", &t.VectorStoreIDs)
}

func (v *RankingOptions) fields(c *codec) {
	record.Keep(c, &v.Extra)
	record.Opt(c, "hybrid_search", &v.HybridSearch, (*HybridSearch).fields)
	c.OptString("ranker", &v.Ranker)
	c.OptFloat("score_threshold", &v.ScoreThreshold)
}

func (v *HybridSearch) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Decimal("embedding_weight", &v.EmbeddingWeight)
	c.Decimal("text_weight", &v.TextWeight)
}

func (v *Filter) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("key", &v.Key)
	record.Raw(c, "value", &v.Value)
	if !c.Decoding {
		record.List(c, "filters", &v.Filters, (*Filter).fields)
	} else if m := c.Find("filters"); m != nil {
		// readMembers has read the filters already, unless they had another shape.
		m.Taken = v.Filters != nil
	}
}

// MCPTool lets the model call the tools of an MCP server, which the endpoint reaches
// by ServerURL, ConnectorID or TunnelID. Schema: MCPTool.
type MCPTool struct {
	ServerLabel       string
	ServerURL         string
	ServerDescription string
	ConnectorID       string
	TunnelID          string
	// Authorization is a secret: the token that the endpoint sends to the server.
	Authorization string
	Headers       map[string]string
	// AllowedTools is a list of names or a filter; see [MCPToolFilter].
	AllowedTools   JSON
	AllowedCallers []string
	// RequireApproval is [ApprovalAlways], [ApprovalNever], or an [MCPApproval] as
	// JSON.
	RequireApproval JSON
	DeferLoading    *bool
	Extra           Extra
}

// The values of [MCPTool.RequireApproval] that are a word.
const (
	ApprovalAlways JSON = `"always"`
	ApprovalNever  JSON = `"never"`
)

// MCPToolFilter selects tools of an MCP server: by name, and by whether the server
// describes them as read-only. Schema: MCPToolFilter.
type MCPToolFilter struct {
	ToolNames []string
	ReadOnly  *bool
	Extra     Extra
}

// MCPApproval says which tools of an MCP server always or never need approval.
// Schema: MCPTool.require_approval.
type MCPApproval struct {
	Always *MCPToolFilter
	Never  *MCPToolFilter
	Extra  Extra
}

// JSON returns the filter as a value for [MCPTool.AllowedTools].
func (v *MCPToolFilter) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

// JSON returns the policy as a value for [MCPTool.RequireApproval].
func (v *MCPApproval) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

// ToolType returns [ToolMCP].
func (*MCPTool) ToolType() string { return ToolMCP }

func (t *MCPTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolMCP)
	c.Text("server_label", &t.ServerLabel)
	c.OptString("server_url", &t.ServerURL)
	c.OptString("server_description", &t.ServerDescription)
	c.OptString("connector_id", &t.ConnectorID)
	c.OptString("tunnel_id", &t.TunnelID)
	c.OptString("authorization", &t.Authorization)
	c.StringMap("headers", &t.Headers)
	record.Raw(c, "allowed_tools", &t.AllowedTools)
	c.OptStrings("allowed_callers", &t.AllowedCallers)
	record.Raw(c, "require_approval", &t.RequireApproval)
	c.OptBool("defer_loading", &t.DeferLoading)
}

func (v *MCPToolFilter) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptStrings("tool_names", &v.ToolNames)
	c.OptBool("read_only", &v.ReadOnly)
}

func (v *MCPApproval) fields(c *codec) {
	record.Keep(c, &v.Extra)
	record.Opt(c, "always", &v.Always, (*MCPToolFilter).fields)
	record.Opt(c, "never", &v.Never, (*MCPToolFilter).fields)
}

// The types of an [Environment].
const (
	EnvironmentLocal     = "local"
	EnvironmentContainer = "container_reference"
	EnvironmentNew       = "container_auto" // for the shell
	EnvironmentAuto      = "auto"           // for the code interpreter
)

// Environment is where commands or code run: on the client's machine, in the
// container with the id ContainerID, or in a new container with the given files,
// limits and skills. Schemas: LocalEnvironmentParam, LocalEnvironmentResource,
// ContainerReferenceParam, ContainerReferenceResource, ContainerAutoParam,
// AutoCodeInterpreterToolParam.
type Environment struct {
	// Type is one of the constants above.
	Type        string
	ContainerID string
	FileIDs     []string
	// MemoryLimit is 1g, 4g, 16g or 64g.
	MemoryLimit   string
	NetworkPolicy *NetworkPolicy
	Skills        []Skill
	Extra         Extra
}

// NetworkPolicy says what a container may connect to: nothing with the type
// "disabled", or AllowedDomains with the type "allowlist". Schemas:
// ContainerNetworkPolicyDisabledParam, ContainerNetworkPolicyAllowlistParam.
type NetworkPolicy struct {
	Type           string
	AllowedDomains []string
	DomainSecrets  []DomainSecret
	Extra          Extra
}

// DomainSecret is a value that is inserted into requests to a domain. The model does
// not see it. Schema: ContainerNetworkPolicyDomainSecretParam.
type DomainSecret struct {
	Domain string
	Name   string
	Value  string
	Extra  Extra
}

// Skill is a set of instructions and files for the model. With the type
// "skill_reference" it is stored and identified by SkillID. With the type "inline"
// it is given as Source. Without a type it is a folder at Path on the client's
// machine. Schemas: SkillReferenceParam, InlineSkillParam, LocalSkillParam.
type Skill struct {
	Type        string
	SkillID     string
	Version     string
	Name        string
	Description string
	Path        string
	Source      *SkillSource
	Extra       Extra
}

// SkillSource is a packed skill: the type "base64", the media type application/zip
// and the data. Schema: InlineSkillSourceParam.
type SkillSource struct {
	Type      string
	MediaType string
	Data      string
	Extra     Extra
}

// JSON returns the environment as a value for [CodeInterpreterTool].
func (v *Environment) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

func (v *Environment) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("container_id", &v.ContainerID)
	c.OptStrings("file_ids", &v.FileIDs)
	c.OptString("memory_limit", &v.MemoryLimit)
	record.Opt(c, "network_policy", &v.NetworkPolicy, (*NetworkPolicy).fields)
	record.List(c, "skills", &v.Skills, (*Skill).fields)
}

func (v *NetworkPolicy) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptStrings("allowed_domains", &v.AllowedDomains)
	record.List(c, "domain_secrets", &v.DomainSecrets, (*DomainSecret).fields)
}

func (v *DomainSecret) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("domain", &v.Domain)
	c.Text("name", &v.Name)
	c.Text("value", &v.Value)
}

func (v *Skill) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("skill_id", &v.SkillID)
	c.OptString("version", &v.Version)
	c.OptString("name", &v.Name)
	c.OptString("description", &v.Description)
	c.OptString("path", &v.Path)
	record.Opt(c, "source", &v.Source, (*SkillSource).fields)
}

func (v *SkillSource) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("media_type", &v.MediaType)
	c.OptString("data", &v.Data)
}
