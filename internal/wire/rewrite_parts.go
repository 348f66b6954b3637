// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

func textMember(it item.Item, name string) string {
	v, _ := it.Member(name)
	s, _ := v.Unquote()
	return s
}

// outputOf returns the content of an output that is a text or parts.
func outputOf(it item.Item) (item.Content, bool) {
	switch it.Type() {
	case item.TypeFunctionCallOutput:
		v, err := item.As[item.FunctionCallOutput](it)
		if err == nil {
			return v.Output, true
		}
	case item.TypeCustomToolCallOutput:
		v, err := item.As[item.CustomToolCallOutput](it)
		if err == nil {
			return v.Output, true
		}
	}
	return item.Content{}, false
}

// output gives an output the shape that the endpoint takes.
func (w *rewriter) output(it item.Item) error {
	if w.p.Outputs != endpoint.OutputString && w.takesAllParts() {
		w.put(it, false)
		return nil
	}
	raw, _ := it.Member("output")
	if raw == "" || raw[0] != '[' {
		w.put(it, false)
		return nil
	}
	content, ok := outputOf(it)
	if !ok {
		w.put(it, false) // what it holds is not known: as it was said
		return nil
	}
	if w.p.Outputs == endpoint.OutputString {
		text, err := w.textOf(content, it.CallID())
		if err != nil {
			return err
		}
		sent, err := it.With("output", item.Quote(text))
		w.put(sent, true)
		return err
	}
	parts, changed, err := w.parts(content.Parts, "")
	if err != nil || !changed {
		w.put(it, false)
		return err
	}
	list, err := item.Parts(parts...).JSON()
	if err != nil {
		return err
	}
	sent, err := it.With("output", list)
	w.put(sent, true)
	return err
}

// textOf is the text of an output. Its images and files are put by for the
// message after the batch.
func (w *rewriter) textOf(content item.Content, callID string) (string, error) {
	if content.IsText() {
		return content.Text, nil
	}
	parts, _, err := w.parts(content.Parts, "")
	if err != nil {
		return "", err
	}
	var lines []string
	images := 0
	for _, p := range parts {
		switch p := p.(type) {
		case *item.InputText:
			lines = append(lines, p.Text)
		case *item.InputImage, *item.InputFile:
			if images++; images == 1 {
				w.late = append(w.late, &item.InputText{Text: "From the output of " + callID + ":"})
			}
			w.late = append(w.late, p)
		default:
			lines = append(lines, item.Parts(p).Display())
		}
	}
	if images > 0 {
		lines = append(lines, fmt.Sprintf("(%d of its parts, images or files, follow in the next message)", images))
	}
	return strings.Join(lines, "\n"), nil
}

// flush appends what was put by: the messages that calls and outputs became, and
// one with what the outputs could not hold.
func (w *rewriter) flush() error {
	for _, it := range w.told {
		w.put(it, true)
	}
	w.told = nil
	if len(w.late) == 0 {
		return nil
	}
	message, err := item.UserParts(w.late...)
	w.late = nil
	if err == nil {
		w.put(message, true)
	}
	return err
}

// parts replaces those that the endpoint or the model does not take by texts
// that say what stood there; "" is the role of a tool. An image that a person
// sent is not replaced where the model sees none, but refused.
func (w *rewriter) parts(parts []item.Part, role item.Role) ([]item.Part, bool, error) {
	changed := false
	out := slices.Clone(parts)
	for i, p := range parts {
		why := w.untaken(p)
		switch {
		case why == "":
		case role == item.RoleUser && w.blind && p.PartType() == imageType:
			return nil, false, w.refuse("it holds an image, and the model takes none")
		default:
			changed = true
			text := fmt.Sprintf("%s (not shown: %s)", item.Parts(p).Display(), why)
			out[i] = &item.InputText{Text: text}
			if role == item.RoleAssistant {
				out[i] = &item.OutputText{Text: text, Annotations: "[]"}
			}
		}
	}
	return out, changed, nil
}

// takesAllParts reports that there is no part that is not taken.
func (how form) takesAllParts() bool {
	p := how.profile
	return p.Parts == nil && !how.blind && p.Images == endpoint.AnySource && p.Files == endpoint.AnySource
}

const imageType = "input_image"

// untaken says why a part is not taken, "" if it is.
func (w *rewriter) untaken(p item.Part) string {
	if w.p.Parts != nil && !slices.Contains(w.p.Parts, p.PartType()) {
		return "this endpoint takes no " + p.PartType()
	}
	switch p := p.(type) {
	case *item.InputImage:
		if w.blind {
			return "the model takes no images"
		}
		return unreachable(w.p.Images, p.ImageURL, p.FileID)
	case *item.InputFile:
		return unreachable(w.p.Files, p.FileURL, p.FileID)
	}
	return ""
}

// unreachable says why a source is not taken, "" if it is.
func unreachable(takes endpoint.Source, url, fileID string) string {
	remote := url != "" && !strings.HasPrefix(url, "data:")
	switch {
	case takes == endpoint.NoneOfThem:
		return "this endpoint takes none"
	case takes != endpoint.AnySource && fileID != "":
		return "this endpoint stores no files"
	case takes == endpoint.DataOnly && remote:
		return "this endpoint fetches no URLs"
	}
	return ""
}
