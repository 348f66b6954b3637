// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// structured adds a result's structured content, which should appear only once: T2.
// For clients that do not support it, servers repeat it in the text, each in its own
// way. If the text has the same content, nothing is added.
func (o *resultOutput) structured(raw, content jsontext.Value) {
	if len(raw) == 0 || raw.Kind() == 'n' || mirrors(raw, content) {
		return
	}
	compact := raw.Clone()
	if compact.Compact(lenient) != nil {
		return // it is part of a message that was decoded
	}
	texts := o.texts()
	for _, t := range texts {
		if sameJSON(jsontext.Value(t.Text), raw) {
			t.Text = o.link.server.hide(string(compact))
			return
		}
	}
	if says(texts, raw) || string(compact) == "{}" && len(o.parts) > 0 {
		return
	}
	if s, ok := outputMember(raw); ok {
		o.text(s)
		return
	}
	if s, ok := item.JSON(compact).Unquote(); ok {
		o.text(s)
		return
	}
	text := string(compact)
	for _, data := range o.shown {
		text = strings.ReplaceAll(text, data, "(sent as a part)")
	}
	o.text(text)
}

// mirrors reports whether the structured value repeats the content, alone or as the
// only member of an object.
func mirrors(raw, content jsontext.Value) bool {
	if raw.Kind() == '{' {
		only, ok := members(raw, 1)
		if !ok {
			return false
		}
		for _, raw = range only {
		}
	}
	return raw.Kind() == '[' && sameJSON(raw, content)
}

// says reports whether the texts equal the structured value: the value is their
// text, or a list with each of them, or an object with only one of these, as servers
// wrap values that are not objects.
func says(texts []*item.InputText, raw jsontext.Value) bool {
	if len(texts) == 0 {
		return false
	}
	switch raw.Kind() {
	case '{':
		only, ok := members(raw, 1)
		if !ok {
			return false
		}
		for _, v := range only {
			return v.Kind() != '{' && says(texts, v) || v.Kind() == '{' && len(texts) == 1 && saysOne(texts[0], v)
		}
	case '[':
		if len(texts) == 1 && saysOne(texts[0], raw) {
			return true
		}
		list, ok := elements(raw, len(texts))
		if !ok || len(list) != len(texts) {
			return false
		}
		for i, v := range list {
			if !saysOne(texts[i], v) {
				return false
			}
		}
		return true
	}
	return len(texts) == 1 && saysOne(texts[0], raw)
}

func saysOne(text *item.InputText, raw jsontext.Value) bool {
	if s, ok := item.JSON(raw).Unquote(); ok && s == text.Text {
		return true
	}
	return sameJSON(jsontext.Value(text.Text), raw)
}

// sameJSON reports whether two texts are the same value, regardless of the order of
// members and white space.
func sameJSON(a, b jsontext.Value) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, errA := jsontext.AppendFormat(nil, a, canonical)
	y, errB := jsontext.AppendFormat(nil, b, canonical)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

var canonical = json.JoinOptions(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawFloats(true), jsontext.AllowInvalidUTF8(true))

// outputMember returns the string member output of an object.
func outputMember(raw jsontext.Value) (string, bool) {
	all, _ := members(raw, mostMembers)
	return item.JSON(all["output"]).Unquote()
}
