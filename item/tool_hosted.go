// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "cmp"

// WebSearchTool lets the model search the web. Schema: WebSearchTool.
type WebSearchTool struct {
	// Type is [ToolWebSearch] when empty, or a dated version of it.
	Type string
	// ExternalWebAccess false keeps the search to what the endpoint has stored.
	ExternalWebAccess *bool
	Filters           *WebSearchFilters
	UserLocation      *Location
	// SearchContextSize is low, medium or high.
	SearchContextSize string
	Extra             Extra
}

// WebSearchFilters keeps a search to some domains. Schema:
// WebSearchTool.filters.
type WebSearchFilters struct {
	AllowedDomains []string
	Extra          Extra
}

// WebSearchPreviewTool is the older form of [WebSearchTool]. Schema:
// WebSearchPreviewTool.
type WebSearchPreviewTool struct {
	// Type is [ToolWebSearchPreview] when empty, or a dated version of it.
	Type               string
	UserLocation       *Location
	SearchContextSize  string
	SearchContentTypes []string
	Extra              Extra
}

// Location is about where the user is. Country is a code of two letters,
// Timezone a name of the IANA list. Schemas: ApproximateLocation,
// WebSearchApproximateLocation.
type Location struct {
	// Type is "approximate"; the preview tool wants it.
	Type     string
	Country  string
	Region   string
	City     string
	Timezone string
	Extra    Extra
}

// CodeInterpreterTool lets the model run code. Container is the id of one, as a
// JSON string, or an [Environment] with the type [EnvironmentAuto]. Schema:
// CodeInterpreterTool.
type CodeInterpreterTool struct {
	Container      JSON
	AllowedCallers []string
	Extra          Extra
}

// ImageGenerationTool lets the model make and edit pictures. What is empty is
// for the endpoint to choose. Schema: ImageGenTool.
type ImageGenerationTool struct {
	Model             string
	Action            string
	Background        string
	InputFidelity     string
	InputImageMask    *ImageMask
	Moderation        string
	OutputCompression *int64 // percent
	OutputFormat      string
	PartialImages     *int64 // pictures sent while the last is not ready
	Quality           string
	Size              string
	Extra             Extra
}

// ImageMask says where a picture may be changed. Schema:
// ImageGenTool.input_image_mask.
type ImageMask struct {
	ImageURL string
	FileID   string
	Extra    Extra
}

// ProgrammaticTool lets the model write programs that call tools, see
// [Program]. Schema: ProgrammaticToolCallingParam.
type ProgrammaticTool struct{ Extra Extra }

// ToolType returns Type, or [ToolWebSearch].
func (t *WebSearchTool) ToolType() string {
	if t == nil {
		return ToolWebSearch
	}
	return cmp.Or(t.Type, ToolWebSearch)
}

// ToolType returns Type, or [ToolWebSearchPreview].
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
	c.version(&t.Type, ToolWebSearch)
	c.optBool("external_web_access", &t.ExternalWebAccess)
	optRecord(c, "filters", &t.Filters)
	c.optString("search_context_size", &t.SearchContextSize)
	optRecord(c, "user_location", &t.UserLocation)
	c.rest(&t.Extra)
}

func (v *WebSearchFilters) fields(c *codec) {
	c.optStrings("allowed_domains", &v.AllowedDomains)
	c.rest(&v.Extra)
}

func (t *WebSearchPreviewTool) fields(c *codec) {
	c.version(&t.Type, ToolWebSearchPreview)
	c.optStrings("search_content_types", &t.SearchContentTypes)
	c.optString("search_context_size", &t.SearchContextSize)
	optRecord(c, "user_location", &t.UserLocation)
	c.rest(&t.Extra)
}

func (v *Location) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("city", &v.City)
	c.optString("country", &v.Country)
	c.optString("region", &v.Region)
	c.optString("timezone", &v.Timezone)
	c.rest(&v.Extra)
}

func (t *CodeInterpreterTool) fields(c *codec) {
	c.typ(ToolCodeInterpreter)
	c.raw("container", &t.Container)
	c.optStrings("allowed_callers", &t.AllowedCallers)
	c.rest(&t.Extra)
}

func (t *ImageGenerationTool) fields(c *codec) {
	c.typ(ToolImageGeneration)
	c.optString("action", &t.Action)
	c.optString("background", &t.Background)
	c.optString("input_fidelity", &t.InputFidelity)
	optRecord(c, "input_image_mask", &t.InputImageMask)
	c.optString("model", &t.Model)
	c.optString("moderation", &t.Moderation)
	c.optInt("output_compression", &t.OutputCompression)
	c.optString("output_format", &t.OutputFormat)
	c.optInt("partial_images", &t.PartialImages)
	c.optString("quality", &t.Quality)
	c.optString("size", &t.Size)
	c.rest(&t.Extra)
}

func (v *ImageMask) fields(c *codec) {
	c.optString("image_url", &v.ImageURL)
	c.optString("file_id", &v.FileID)
	c.rest(&v.Extra)
}

func (t *ProgrammaticTool) fields(c *codec) {
	c.typ(ToolProgrammatic)
	c.rest(&t.Extra)
}

// version is a type member with several values, of which one is written when
// the field is empty.
func (c *codec) version(v *string, otherwise string) {
	if !c.decoding {
		c.writeString("type", cmp.Or(*v, otherwise))
		return
	}
	if c.optString("type", v); *v == otherwise {
		*v = ""
	}
}
