// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// fitParts removes what Chat Completions accepts and the Responses API would reject:
// sound, video, a refusal by a user. It does not change a request that came in the
// form of the Responses API.
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

// fitItem returns the item, a changed copy, or the zero Item if nothing is left.
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

// fitContent removes the parts that the content cannot have, and reports whether
// there were any.
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

// chatParts lists the types of parts that only Chat Completions has.
var chatParts = []string{"input_audio", "video_url", "audio_url"}

// fits reports whether the API accepts a part. An unknown part of an item is
// assumed to be acceptable.
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
