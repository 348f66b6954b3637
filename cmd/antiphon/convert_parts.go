// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// fitParts leaves out of the input what Chat Completions has and the Responses
// API would refuse: sound, video, a refusal by a user. What a request says that
// is of the Responses API already is left as it is.
func (d *document) fitParts() error {
	if d.from == formRequest {
		return nil
	}
	list := new(item.List)
	for i, it := range d.request.Input.All() {
		fitted, err := d.fitItem(it, fmt.Sprintf("input[%d]", i))
		if err != nil {
			return err
		}
		if !fitted.IsZero() {
			list.Append(fitted)
		}
	}
	d.request.Input = list
	return nil
}

// fitItem returns the item, another one, or the zero Item where nothing is left.
func (d *document) fitItem(it item.Item, at string) (item.Item, error) {
	v, err := it.Decode()
	if err != nil {
		return it, nil // as it came
	}
	switch v := v.(type) {
	case *item.Message:
		if !d.fitContent(&v.Content, v.Role == item.RoleAssistant, at+".content") {
			return it, nil
		}
		if len(v.Content.Parts) == 0 {
			d.lose(at, "says nothing else and is left out")
			return item.Item{}, nil
		}
		return item.New(v)
	case *item.FunctionCallOutput:
		if d.fitContent(&v.Output, false, at+".output") {
			return item.New(v)
		}
	case *item.CustomToolCallOutput:
		if d.fitContent(&v.Output, false, at+".output") {
			return item.New(v)
		}
	}
	return it, nil
}

// fitContent leaves out the parts that have no place in the content, and reports
// whether there were any.
func (d *document) fitContent(c *item.Content, model bool, at string) bool {
	var kept []item.Part
	for i, p := range c.Parts {
		if d.fits(p, model) {
			kept = append(kept, p)
			continue
		}
		d.losses = append(d.losses, completions.Loss{
			Path: fmt.Sprintf("%s[%d]", at, i), What: fmt.Sprintf("%s has no counterpart here and is left out", p.PartType()), Kind: completions.LostContent,
		})
	}
	if len(kept) == len(c.Parts) {
		return false
	}
	*c = item.Text("")
	if len(kept) > 0 {
		*c = item.Parts(kept...)
	}
	return true
}

// chatParts are the types of parts that Chat Completions alone has.
var chatParts = []string{"input_audio", "video_url", "audio_url"}

// fits reports whether the API takes a part. Of one that came as an item, and
// of which nothing is known, it may.
func (d *document) fits(p item.Part, model bool) bool {
	foreign := d.from == formMessages || d.from == formChat
	switch p.(type) {
	case *item.UnknownPart:
		return !foreign && !slices.Contains(chatParts, p.PartType())
	case *item.OutputText:
		return model || !foreign
	case *item.Refusal:
		return model || !foreign
	case *item.InputText, *item.InputImage, *item.InputFile:
		return !model || !foreign
	}
	return true
}
