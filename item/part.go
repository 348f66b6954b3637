// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/record"
)

// Part is one element of a content list: [*InputText], [*InputImage], [*InputFile],
// [*OutputText], [*Refusal], [*ReasoningText], [*SummaryText],
// [*ComputerScreenshot], [*PlainText] or [*UnknownPart].
type Part interface {
	// PartType returns the part's type member.
	PartType() string
	display() string
	fielder
}

// Detail is the level of detail at which a model looks at an image. Unknown values
// are kept. Schema: ImageDetail.
type Detail string

// The details of the schema.
const (
	DetailAuto     Detail = "auto"
	DetailLow      Detail = "low"
	DetailHigh     Detail = "high"
	DetailOriginal Detail = "original"
)

// InputText is text for the model. Schema: InputTextContent.
type InputText struct {
	Text            string
	CacheBreakpoint *CacheBreakpoint
	Extra           Extra
}

// InputImage is an image for the model: a URL (http, https or data) or a file id. An
// empty Detail is not written; a null detail is kept in Extra. An image_url in the
// older form {"url":…} is read as its URL. Schemas: InputImageContent,
// InputImageContentParamAutoParam.
type InputImage struct {
	ImageURL        string
	FileID          string
	Detail          Detail
	CacheBreakpoint *CacheBreakpoint
	Extra           Extra
}

// InputFile is a file for the model: data (a data URI, with a file name), a URL, or
// a file id. Schema: InputFileContent.
type InputFile struct {
	FileID          string
	Filename        string
	FileData        string
	FileURL         string
	Detail          Detail
	CacheBreakpoint *CacheBreakpoint
	Extra           Extra
}

// OutputText is text from the model. Annotations and Logprobs are kept as JSON,
// because most programs only pass them on; if "", the member is not written. Read
// them with [OutputText.Citations] and [OutputText.TokenLogprobs]. Schema:
// OutputTextContent.
type OutputText struct {
	Text        string
	Annotations JSON
	Logprobs    JSON
	Extra       Extra
}

// Refusal says that the model refuses to answer. Schema: RefusalContent.
type Refusal struct {
	Refusal string
	Extra   Extra
}

// ReasoningText is a part of a reasoning item's content. Schema:
// ReasoningTextContent.
type ReasoningText struct {
	Text  string
	Extra Extra
}

// SummaryText is a part of a reasoning item's summary. Schema:
// SummaryTextContent.
type SummaryText struct {
	Text  string
	Extra Extra
}

// UnknownPart is a part of a type that this package does not know, kept byte for
// byte.
type UnknownPart struct {
	Raw JSON
}

// PartType returns "input_text".
func (*InputText) PartType() string { return "input_text" }

// PartType returns "input_image".
func (*InputImage) PartType() string { return "input_image" }

// PartType returns "input_file".
func (*InputFile) PartType() string { return "input_file" }

// PartType returns "output_text".
func (*OutputText) PartType() string { return "output_text" }

// PartType returns "refusal".
func (*Refusal) PartType() string { return "refusal" }

// PartType returns "reasoning_text".
func (*ReasoningText) PartType() string { return "reasoning_text" }

// PartType returns "summary_text".
func (*SummaryText) PartType() string { return "summary_text" }

// PartType returns the part's type member, or "" if it has none.
func (p *UnknownPart) PartType() string {
	if p == nil {
		return ""
	}
	return typeOfRaw(p.Raw)
}

func (p *InputText) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Type(p.PartType())
	c.NeedText("text", &p.Text)
	record.Opt(c, "prompt_cache_breakpoint", &p.CacheBreakpoint, (*CacheBreakpoint).fields)
}

func (p *InputImage) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Type(p.PartType())
	imageURL(c, "image_url", &p.ImageURL, &p.Detail)
	c.OptString("file_id", &p.FileID)
	c.OptString("detail", (*string)(&p.Detail))
	record.Opt(c, "prompt_cache_breakpoint", &p.CacheBreakpoint, (*CacheBreakpoint).fields)
}

func (p *InputFile) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Type(p.PartType())
	c.OptString("file_id", &p.FileID)
	c.OptString("filename", &p.Filename)
	c.OptString("file_data", &p.FileData)
	c.OptString("file_url", &p.FileURL)
	c.OptString("detail", (*string)(&p.Detail))
	record.Opt(c, "prompt_cache_breakpoint", &p.CacheBreakpoint, (*CacheBreakpoint).fields)
}

func (p *OutputText) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Type(p.PartType())
	record.Raw(c, "annotations", &p.Annotations)
	record.Raw(c, "logprobs", &p.Logprobs)
	c.NeedText("text", &p.Text)
}

func (p *Refusal) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Type(p.PartType())
	c.NeedText("refusal", &p.Refusal)
}

func (p *ReasoningText) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Type(p.PartType())
	c.NeedText("text", &p.Text)
}

func (p *SummaryText) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Type(p.PartType())
	c.NeedText("text", &p.Text)
}

// fields is never called: an unknown part is written as its raw text.
func (p *UnknownPart) fields(*codec) {}

// imageURL is like OptString, and also reads the form {"url":…} with the detail
// inside, as in Chat Completions.
func imageURL(c *codec, name string, v *string, detail *Detail) {
	c.OptString(name, v)
	if !c.Decoding || *v != "" {
		return
	}
	m := c.Find(name)
	if m == nil || m.Value[0] != '{' {
		return
	}
	var nested legacyImageURL
	// Anything else in the object would be lost, so then the member goes to Extra.
	if decodeRecord(m.Value, &nested) == nil && nested.url != "" && len(nested.extra) == 0 {
		*v, *detail, m.Taken = nested.url, Detail(nested.detail), true
	}
}

type legacyImageURL struct {
	url, detail string
	extra       Extra
}

func (l *legacyImageURL) fields(c *codec) {
	record.Keep(c, &l.extra)
	c.OptString("url", &l.url)
	c.OptString("detail", &l.detail)
}

// newPart returns an empty struct for a part of the type, or nil if there is none.
func newPart(typ string) Part {
	switch typ {
	case "input_text":
		return new(InputText)
	case "input_image":
		return new(InputImage)
	case "input_file":
		return new(InputFile)
	case "output_text":
		return new(OutputText)
	case "refusal":
		return new(Refusal)
	case "reasoning_text":
		return new(ReasoningText)
	case "summary_text":
		return new(SummaryText)
	case "computer_screenshot":
		return new(ComputerScreenshot)
	case "text":
		return new(PlainText)
	}
	return nil
}

// partValues reads and writes parts in a member of a record.
var partValues = record.Values[Part]{Read: parsePart, Append: appendPart}

// parsePart reads a part from validated text.
func parsePart(s string) (Part, error) {
	if s[0] != '{' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want a part"}
	}
	t, _ := memberOf(s, "type")
	name, _ := t.Unquote()
	p := newPart(name)
	if p == nil {
		return &UnknownPart{Raw: JSON(s)}, nil
	}
	if err := decodeRecord(s, p); err != nil {
		return nil, err
	}
	return p, nil
}

// parseParts reads a list of parts from validated text.
func parseParts(s string) ([]Part, error) {
	list, err := partValues.ReadList(s)
	return list, shaped(err)
}

// appendPart appends a part as JSON.
func appendPart(dst []byte, p Part) ([]byte, error) {
	if nils.Is(p) {
		return dst, &ShapeError{Problem: "found no part"}
	}
	if u, ok := p.(*UnknownPart); ok {
		v, err := checked(string(u.Raw))
		return append(dst, v...), err
	}
	return appendRecord(dst, p)
}

// appendParts appends a list of parts as JSON.
func appendParts(dst []byte, list []Part) ([]byte, error) {
	out, err := partValues.AppendList(dst, list)
	return out, shaped(err)
}

// ComputerScreenshot is a picture of the screen: the output of a computer call, and
// a part of messages in a conversation. Schemas: ComputerScreenshotImage,
// ComputerScreenshotContent.
type ComputerScreenshot struct {
	ImageURL        string
	FileID          string
	Detail          Detail
	CacheBreakpoint *CacheBreakpoint
	Extra           Extra
}

// PlainText is a part of messages in a conversation that does not say whether its
// text is input or output. Schema: TextContent.
type PlainText struct {
	Text  string
	Extra Extra
}

// CacheBreakpoint marks the end of a prefix of the input that the endpoint should
// cache. Schemas: PromptCacheBreakpointParam, PromptCacheBreakpointConfig.
type CacheBreakpoint struct {
	// Mode is "explicit".
	Mode  string
	Extra Extra
}

// PartType returns "computer_screenshot".
func (*ComputerScreenshot) PartType() string { return "computer_screenshot" }

// PartType returns "text".
func (*PlainText) PartType() string { return "text" }

func (p *ComputerScreenshot) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Kind("computer_screenshot")
	imageURL(c, "image_url", &p.ImageURL, &p.Detail)
	c.OptString("file_id", &p.FileID)
	c.OptString("detail", (*string)(&p.Detail))
	record.Opt(c, "prompt_cache_breakpoint", &p.CacheBreakpoint, (*CacheBreakpoint).fields)
}

func (p *PlainText) fields(c *codec) {
	record.Keep(c, &p.Extra)
	c.Type("text")
	c.Text("text", &p.Text)
}

func (v *CacheBreakpoint) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("mode", &v.Mode)
}

func (p *ComputerScreenshot) display() string {
	return (&InputImage{ImageURL: p.ImageURL, FileID: p.FileID, Detail: p.Detail}).display()
}

func (p *PlainText) display() string { return p.Text }

// Annotation gives the source of a piece of the model's text: [*FileCitation],
// [*URLCitation], [*ContainerFileCitation], [*FilePath] or [*UnknownAnnotation].
// Indexes count characters of the text. Schema: Annotation.
type Annotation interface {
	// AnnotationType returns the type member.
	AnnotationType() string
	fielder
}

// FileCitation cites a file of the caller. Schema: FileCitationBody.
type FileCitation struct {
	FileID   string
	Filename string
	Index    int64
	Extra    Extra
}

// URLCitation cites a web page for the text from StartIndex to EndIndex. Schema:
// UrlCitationBody.
type URLCitation struct {
	URL        string
	Title      string
	StartIndex int64
	EndIndex   int64
	Extra      Extra
}

// ContainerFileCitation cites a file that code made in its container. Schema:
// ContainerFileCitationBody.
type ContainerFileCitation struct {
	ContainerID string
	FileID      string
	Filename    string
	StartIndex  int64
	EndIndex    int64
	Extra       Extra
}

// FilePath refers to a file that the model made. Schema: FilePath.
type FilePath struct {
	FileID string
	Index  int64
	Extra  Extra
}

// UnknownAnnotation is an annotation of a type that this package does not know, kept
// byte for byte.
type UnknownAnnotation struct{ Raw JSON }

// AnnotationType returns "file_citation".
func (*FileCitation) AnnotationType() string { return "file_citation" }

// AnnotationType returns "url_citation".
func (*URLCitation) AnnotationType() string { return "url_citation" }

// AnnotationType returns "container_file_citation".
func (*ContainerFileCitation) AnnotationType() string { return "container_file_citation" }

// AnnotationType returns "file_path".
func (*FilePath) AnnotationType() string { return "file_path" }

// AnnotationType returns the type member, or "".
func (a *UnknownAnnotation) AnnotationType() string { return typeOfRaw(a.Raw) }

// newAnnotation returns an empty struct for an annotation of the type, and whether
// there is one.
func newAnnotation(typ string) (Annotation, bool) {
	switch typ {
	case "file_citation":
		return new(FileCitation), true
	case "url_citation":
		return new(URLCitation), true
	case "container_file_citation":
		return new(ContainerFileCitation), true
	case "file_path":
		return new(FilePath), true
	}
	return nil, false
}

// parseAnnotation reads an annotation from validated text.
func parseAnnotation(s string) (Annotation, error) {
	return parseUnion(s, "an annotation", newAnnotation, func(raw JSON) Annotation { return &UnknownAnnotation{Raw: raw} })
}

// annotationValues reads and writes annotations in a member of a record.
var annotationValues = record.Values[Annotation]{Read: parseAnnotation, Append: appendUnion[Annotation]}

// Citations decodes the annotations. The error is a [*ShapeError] with the path of a
// value that is not an annotation.
func (p *OutputText) Citations() ([]Annotation, error) {
	return parseListOf(p.Annotations, annotationValues)
}

// AnnotationList encodes annotations as a value for [OutputText]. Without arguments
// it returns the empty list, which the schema requires.
func AnnotationList(list ...Annotation) (JSON, error) { return listJSON(list, annotationValues) }

func (a *FileCitation) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("file_citation")
	c.Text("file_id", &a.FileID)
	c.Text("filename", &a.Filename)
	c.Number("index", &a.Index)
}

func (a *URLCitation) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("url_citation")
	c.Number("end_index", &a.EndIndex)
	c.Number("start_index", &a.StartIndex)
	c.Text("title", &a.Title)
	c.Text("url", &a.URL)
}

func (a *ContainerFileCitation) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("container_file_citation")
	c.Text("container_id", &a.ContainerID)
	c.Number("end_index", &a.EndIndex)
	c.Text("file_id", &a.FileID)
	c.Text("filename", &a.Filename)
	c.Number("start_index", &a.StartIndex)
}

func (a *FilePath) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("file_path")
	c.Text("file_id", &a.FileID)
	c.Number("index", &a.Index)
}

// fields is never called: an unknown annotation is written as its raw text.
func (a *UnknownAnnotation) fields(*codec) {}

func (a *UnknownAnnotation) rawJSON() JSON { return a.Raw }

// TokenLogprob is one token of a text with the logarithm of its probability. Bytes
// holds the bytes of the token; it is nil if the endpoint does not report them.
// Schemas: LogProb, ResponseLogProb.
type TokenLogprob struct {
	Token   string
	Logprob float64
	Bytes   []int64
	// Top lists the most likely tokens at this position.
	Top   []TopLogprob
	Extra Extra
}

// TopLogprob is one of the most likely tokens. Schemas: TopLogProb,
// ResponseLogProb.top_logprobs.
type TopLogprob struct {
	Token   string
	Logprob float64
	Bytes   []int64
	Extra   Extra
}

// TokenLogprobs decodes the log probabilities. They are sent if api.IncludeLogprobs
// asks for them.
func (p *OutputText) TokenLogprobs() ([]TokenLogprob, error) {
	return parseListOf(p.Logprobs, logprobValues)
}

// LogprobList encodes log probabilities as a value for [OutputText].
func LogprobList(list ...TokenLogprob) (JSON, error) {
	return listJSON(list, logprobValues)
}

// logprobValues reads and writes log probabilities in a member of a record.
var logprobValues = record.Values[TokenLogprob]{
	Read:   parseLogprob,
	Append: func(dst []byte, v TokenLogprob) ([]byte, error) { return appendRecord(dst, &v) },
}

// parseLogprob reads a log probability from validated text.
func parseLogprob(s string) (TokenLogprob, error) {
	var v TokenLogprob
	err := decodeRecord(s, &v)
	return v, err
}

func (v *TokenLogprob) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("token", &v.Token)
	c.Numbers("bytes", &v.Bytes)
	c.Decimal("logprob", &v.Logprob)
	record.List(c, "top_logprobs", &v.Top, (*TopLogprob).fields)
}

func (v *TopLogprob) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("token", &v.Token)
	c.Numbers("bytes", &v.Bytes)
	c.Decimal("logprob", &v.Logprob)
}
