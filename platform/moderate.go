// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// ModerationRequest asks whether content is harmful. Schema: CreateModerationRequest.
type ModerationRequest struct {
	// Model is the classifier; empty means the endpoint's default.
	Model string
	// Texts are judged one by one, if there are no images. Images are URLs or data URIs, which are
	// judged together with all the texts.
	Texts  []string
	Images []string
	Extra  item.Extra
}

func (v *ModerationRequest) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("model", &v.Model)
	if c.Decoding {
		v.readInput(c)
		return
	}
	if len(v.Images) == 0 {
		c.OptStrings("input", &v.Texts)
		return
	}
	var parts []moderationPart
	for _, s := range v.Texts {
		parts = append(parts, moderationPart{text: s})
	}
	for _, s := range v.Images {
		parts = append(parts, moderationPart{image: s})
	}
	record.List(c, "input", &parts, (*moderationPart).fields)
}

// readInput reads texts. Another input stays in Extra.
func (v *ModerationRequest) readInput(c *codec) {
	if c.OptStrings("input", &v.Texts); v.Texts != nil {
		return
	}
	if m := c.Find("input"); m != nil && m.Value[0] == '"' {
		v.Texts, m.Taken = []string{jsonx.Unquote(m.Value)}, true
	}
}

// moderationPart is a text or an image. Schemas: ModerationTextInput, ModerationImageURLInput.
type moderationPart struct{ text, image string }

// fields is for writing only.
func (v *moderationPart) fields(c *codec) {
	if v.image == "" {
		c.WriteString("type", "text")
		c.WriteString("text", v.text)
		return
	}
	c.WriteString("type", "image_url")
	image := &imageURL{v.image}
	record.Opt(c, "image_url", &image, (*imageURL).fields)
}

type imageURL struct{ url string }

func (v *imageURL) fields(c *codec) { c.WriteString("url", v.url) }

// MarshalJSON returns the request as JSON.
func (v *ModerationRequest) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the request from a copy of data.
func (v *ModerationRequest) UnmarshalJSON(data []byte) error { return decode(data, v) }

// Moderations is the answer to a [ModerationRequest]. Schema: CreateModerationResponse.
type Moderations struct {
	ID      string
	Model   string
	Results []Moderation // one for each text, or one for all content with images
	Extra   item.Extra
}

// Moderation is the judgement of one content.
type Moderation struct {
	Flagged bool
	// Categories, Scores and InputTypes are objects with a member for each category, such as
	// "violence": whether it applies, its score from 0 to 1, and the kinds of input it was judged by.
	Categories item.JSON
	Scores     item.JSON
	InputTypes item.JSON
	Extra      item.Extra
}

func (v *Moderations) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.Text("model", &v.Model)
	c.OrEmpty("results", "[]", v.Results == nil)
	record.List(c, "results", &v.Results, (*Moderation).fields)
}

func (v *Moderation) fields(c *codec) {
	record.Keep(c, &v.Extra)
	flagged := &v.Flagged
	if c.Flag("flagged", flagged); c.Decoding && c.Find("flagged") != nil {
		c.Fail("flagged", errors.New("want true or false"))
	}
	record.Raw(c, "categories", &v.Categories)
	record.Raw(c, "category_scores", &v.Scores)
	record.Raw(c, "category_applied_input_types", &v.InputTypes)
}

// MarshalJSON returns the answer as JSON.
func (v *Moderations) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the answer from a copy of data.
func (v *Moderations) UnmarshalJSON(data []byte) error { return decode(data, v) }

// Flags returns the names of the categories that apply, sorted.
func (v *Moderation) Flags() (names []string) {
	if v == nil || v.Categories.Valid() != nil || v.Categories[0] != '{' {
		return nil
	}
	jsonx.EachMember(string(v.Categories), func(name, value string) {
		if value == "true" {
			names = append(names, jsonx.Unquote(name))
		}
	})
	slices.Sort(names)
	return names
}

// Score returns the score of a category, or 0 if the endpoint gave none.
func (v *Moderation) Score(category string) float64 {
	if v == nil || v.Scores.Valid() != nil || v.Scores[0] != '{' {
		return 0
	}
	value, _ := jsonx.MemberOf(string(v.Scores), category)
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0
	}
	return f
}

// Moderate judges content. An answer with fewer results than texts is an error, and so is a result
// that does not say whether the content is harmful.
func (c *Client) Moderate(ctx context.Context, req *ModerationRequest) (*Moderations, error) {
	if req == nil {
		return nil, errNil
	}
	want := len(req.Texts)
	if len(req.Images) > 0 {
		want = 1
	}
	if _, other := req.Extra.Get("input"); want == 0 && !other {
		return nil, refused("input", "there is nothing to judge", "give a text or an image")
	}
	p := place{"create moderation", "/moderations", "ask a second model"}
	v, err := send[Moderations](ctx, c, p, req, transport.Always, "moderation", "results")
	if err != nil {
		return nil, err
	}
	if len(v.Results) < want {
		return nil, &endpoint.Error{Op: p.op, Class: endpoint.Protocol, Message: fmt.Sprintf("the answer has %d results for %d texts", len(v.Results), want)}
	}
	for i := range v.Results {
		if !transport.HasMember(v.Results[i].Extra, "flagged") {
			return nil, &endpoint.Error{Op: p.op, Class: endpoint.Protocol, Message: fmt.Sprintf("result %d does not say whether the content is flagged", i)}
		}
	}
	return v, nil
}
