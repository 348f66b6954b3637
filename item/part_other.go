// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ComputerScreenshot is a picture of the screen: the output of a computer call,
// and a part of messages in a conversation. Schemas: ComputerScreenshotImage,
// ComputerScreenshotContent.
type ComputerScreenshot struct {
	ImageURL        string
	FileID          string
	Detail          Detail
	CacheBreakpoint *CacheBreakpoint
	Extra           Extra
}

// PlainText is a part of messages in a conversation that says no more than that
// it is text. Schema: TextContent.
type PlainText struct {
	Text  string
	Extra Extra
}

// CacheBreakpoint marks the end of a prefix of the input that the endpoint
// should cache. Schemas: PromptCacheBreakpointParam,
// PromptCacheBreakpointConfig.
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
	c.kind("computer_screenshot", &p.Extra)
	c.imageURL("image_url", &p.ImageURL, &p.Detail)
	c.optString("file_id", &p.FileID)
	c.optString("detail", (*string)(&p.Detail))
	optRecord(c, "prompt_cache_breakpoint", &p.CacheBreakpoint)
	c.end(&p.Extra)
}

func (p *PlainText) fields(c *codec) {
	c.typ("text")
	c.text("text", &p.Text, &p.Extra)
	c.end(&p.Extra)
}

func (v *CacheBreakpoint) fields(c *codec) {
	c.text("mode", &v.Mode, &v.Extra)
	c.end(&v.Extra)
}

func (p *ComputerScreenshot) display() string {
	return (&InputImage{ImageURL: p.ImageURL, FileID: p.FileID, Detail: p.Detail}).display()
}

func (p *PlainText) display() string { return p.Text }
