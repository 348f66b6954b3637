// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "github.com/antiphon-go/antiphon/internal/jsonx"

// Part is one element of a content list: [*InputText], [*InputImage],
// [*InputFile], [*OutputText], [*Refusal], [*ReasoningText], [*SummaryText],
// [*ComputerScreenshot], [*PlainText] or [*UnknownPart].
type Part interface {
	// PartType returns the part's type member.
	PartType() string
	display() string
	record
}

// Detail is how closely a model looks at an image. Values that this version
// does not know are kept. Schema: ImageDetail.
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

// InputImage is an image for the model: a URL (http, https or data) or a file
// id. An empty Detail leaves the member out; a detail of null stands in Extra.
// An image_url of the older form {"url":…} is read as its URL.
// Schemas: InputImageContent, InputImageContentParamAutoParam.
type InputImage struct {
	ImageURL        string
	FileID          string
	Detail          Detail
	CacheBreakpoint *CacheBreakpoint
	Extra           Extra
}

// InputFile is a file for the model: data (a data URI, with a file name), a
// URL, or a file id. Schema: InputFileContent.
type InputFile struct {
	FileID          string
	Filename        string
	FileData        string
	FileURL         string
	Detail          Detail
	CacheBreakpoint *CacheBreakpoint
	Extra           Extra
}

// OutputText is text from the model. Annotations and Logprobs are kept as
// JSON, since most readers pass them on; "" leaves the member out.
// [OutputText.Citations] and [OutputText.TokenLogprobs] read them. Schema:
// OutputTextContent.
type OutputText struct {
	Text        string
	Annotations JSON
	Logprobs    JSON
	Extra       Extra
}

// Refusal is the model's refusal. Schema: RefusalContent.
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

// UnknownPart is a part of a type that this version does not know, kept byte
// for byte.
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

// PartType returns the part's type member, or "" when it has none.
func (p *UnknownPart) PartType() string {
	if p == nil {
		return ""
	}
	return typeOfRaw(p.Raw)
}

func (p *InputText) fields(c *codec) {
	c.typ(p.PartType())
	c.needText("text", &p.Text, &p.Extra)
	optRecord(c, "prompt_cache_breakpoint", &p.CacheBreakpoint)
	c.end(&p.Extra)
}

func (p *InputImage) fields(c *codec) {
	c.typ(p.PartType())
	c.imageURL("image_url", &p.ImageURL, &p.Detail)
	c.optString("file_id", &p.FileID)
	c.optString("detail", (*string)(&p.Detail))
	optRecord(c, "prompt_cache_breakpoint", &p.CacheBreakpoint)
	c.end(&p.Extra)
}

func (p *InputFile) fields(c *codec) {
	c.typ(p.PartType())
	c.optString("file_id", &p.FileID)
	c.optString("filename", &p.Filename)
	c.optString("file_data", &p.FileData)
	c.optString("file_url", &p.FileURL)
	c.optString("detail", (*string)(&p.Detail))
	optRecord(c, "prompt_cache_breakpoint", &p.CacheBreakpoint)
	c.end(&p.Extra)
}

func (p *OutputText) fields(c *codec) {
	c.typ(p.PartType())
	c.raw("annotations", &p.Annotations)
	c.raw("logprobs", &p.Logprobs)
	c.needText("text", &p.Text, &p.Extra)
	c.end(&p.Extra)
}

func (p *Refusal) fields(c *codec) {
	c.typ(p.PartType())
	c.needText("refusal", &p.Refusal, &p.Extra)
	c.end(&p.Extra)
}

func (p *ReasoningText) fields(c *codec) {
	c.typ(p.PartType())
	c.needText("text", &p.Text, &p.Extra)
	c.end(&p.Extra)
}

func (p *SummaryText) fields(c *codec) {
	c.typ(p.PartType())
	c.needText("text", &p.Text, &p.Extra)
	c.end(&p.Extra)
}

// fields is never reached: an unknown part is its raw text.
func (p *UnknownPart) fields(*codec) {}

// imageURL is optString that also reads {"url":…}, with the detail inside it
// that Chat Completions puts there.
func (c *codec) imageURL(name string, v *string, detail *Detail) {
	c.optString(name, v)
	if !c.decoding || *v != "" {
		return
	}
	m := c.find(name)
	if m == nil || m.Value[0] != '{' {
		return
	}
	var nested legacyImageURL
	if decodeRecord(m.Value, &nested) == nil && nested.url != "" && len(nested.extra) == 0 {
		*v, *detail, m.Taken = nested.url, Detail(nested.detail), true
	}
}

type legacyImageURL struct {
	url, detail string
	extra       Extra
}

func (l *legacyImageURL) fields(c *codec) {
	c.optString("url", &l.url)
	c.optString("detail", &l.detail)
	c.rest(&l.extra)
}

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

// part is one part, left out when nil. What is not an object stays for Extra.
func (c *codec) part(name string, v *Part) {
	if !c.decoding {
		if *v != nil {
			c.name(name)
			out, err := appendPart(c.out, *v)
			c.out = out
			c.fail(name, err)
		}
		return
	}
	if m := c.find(name); m != nil && m.Value[0] == '{' {
		p, err := parsePart(m.Value)
		c.fail(name, err)
		*v, m.Taken = p, true
	}
}

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

func parseParts(s string) ([]Part, error) {
	parts := []Part{}
	var err error
	jsonx.EachElement(s, func(v string) {
		if err != nil {
			return
		}
		p, e := parsePart(v)
		if e != nil {
			err = indexed(len(parts), e)
			return
		}
		parts = append(parts, p)
	})
	return parts, err
}

func appendPart(dst []byte, p Part) ([]byte, error) {
	if p == nil {
		return dst, &ShapeError{Problem: "found no part"}
	}
	if u, ok := p.(*UnknownPart); ok {
		v, err := trimValue(string(u.Raw))
		return append(dst, v...), err
	}
	return appendRecord(dst, p)
}

func appendParts(dst []byte, parts []Part) ([]byte, error) {
	dst = append(dst, '[')
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		out, err := appendPart(dst, p)
		if err != nil {
			return dst, indexed(i, err)
		}
		dst = out
	}
	return append(dst, ']'), nil
}

// optParts is a list of parts, left out when nil. What is not a list stays for
// Extra.
func (c *codec) optParts(name string, v *[]Part) {
	if !c.decoding {
		if *v != nil {
			appendArray(c, name, *v, appendPart)
		}
		return
	}
	m := c.find(name)
	if m == nil || m.Value[0] != '[' {
		return
	}
	list, err := parseParts(m.Value)
	c.fail(name, err)
	*v, m.Taken = list, true
}
