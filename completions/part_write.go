// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// textOf returns the text of a text part as a message can hold it, and reports the part's other
// members as lost.
func textOf(p item.Part, at place) (string, bool) {
	switch p := p.(type) {
	case *item.InputText:
		at.extra(p.Extra)
		at.breakpoint(p.CacheBreakpoint)
		return p.Text, true
	case *item.OutputText:
		at.extra(p.Extra)
		for name, v := range map[string]item.JSON{"annotations": p.Annotations, "logprobs": p.Logprobs} {
			if !blank(v) {
				at.at(name).lose(noCounterpart)
			}
		}
		return p.Text, true
	case *item.PlainText:
		at.extra(p.Extra)
		return p.Text, true
	case *item.SummaryText:
		at.extra(p.Extra)
		return p.Text, true
	case *item.ReasoningText:
		at.extra(p.Extra)
		return p.Text, true
	}
	return "", false
}

func (p place) breakpoint(b *item.CacheBreakpoint) {
	if b != nil {
		p.at("prompt_cache_breakpoint").lose(noCounterpart)
	}
}

// allText reports whether the content is only text.
func allText(c item.Content) bool {
	for _, p := range c.Parts {
		if _, ok := textOf(p, place{}); !ok {
			return false
		}
	}
	return true
}

// texts returns the texts of content that is only text.
func texts(c item.Content, at place) []string {
	if c.IsText() {
		return []string{c.Text}
	}
	var list []string
	for i, p := range c.Parts {
		if s, ok := textOf(p, at.index(i)); ok {
			list = append(list, s)
		}
	}
	return list
}

// writeText writes content that is only text, either unchanged or as one string, if strings are
// required.
func (o Options) writeText(w *writer, name string, c item.Content, at place) {
	list := texts(c, at)
	if c.IsText() || o.Plain {
		if len(list) > 1 {
			at.move("several parts become one text, a line break between them")
		}
		w.text(name, strings.Join(list, "\n"))
		return
	}
	w.name(name)
	w.open('[')
	for _, s := range list {
		writeTextPart(w, s)
	}
	w.close(']')
}

func writeTextPart(w *writer, s string) {
	w.open('{')
	w.text("type", "text")
	w.text("text", s)
	w.close('}')
}

// writePart appends a part of a user's message, and reports whether Chat Completions has a form for
// it.
func writePart(w *writer, p item.Part, at place) bool {
	if s, ok := textOf(p, at); ok {
		writeTextPart(w, s)
		return true
	}
	switch p := p.(type) {
	case *item.InputImage:
		at.breakpoint(p.CacheBreakpoint)
		return writeImage(w, p.ImageURL, p.FileID, p.Detail, p.Extra, at)
	case *item.ComputerScreenshot:
		at.breakpoint(p.CacheBreakpoint)
		return writeImage(w, p.ImageURL, p.FileID, p.Detail, p.Extra, at)
	case *item.InputFile:
		return writeFile(w, p, at)
	case *item.Refusal:
		at.extra(p.Extra)
		w.open('{')
		w.text("type", "refusal")
		w.text("refusal", p.Refusal)
		w.close('}')
		return true
	case *item.UnknownPart:
		if p.Raw.Valid() != nil || foreignPart(p.PartType()) {
			break
		}
		w.raw("", trim(p.Raw))
		return true
	}
	at.loseContent(noCounterpart)
	return false
}

// foreignPart reports whether a part belongs to another API and this version cannot convert it.
// Chat Completions would reject it.
func foreignPart(typ string) bool {
	return strings.HasPrefix(typ, "input_") && typ != "input_audio" || strings.HasPrefix(typ, "output_")
}

func writeImage(w *writer, url, fileID string, detail item.Detail, x item.Extra, at place) bool {
	if url == "" {
		at.loseContent("an image by its file id has no counterpart: send it as data or by a URL")
		return false
	}
	at.extra(x)
	if fileID != "" {
		at.at("file_id").lose("has no counterpart beside image_url")
	}
	w.open('{')
	w.text("type", "image_url")
	w.name("image_url")
	w.open('{')
	w.text("url", url)
	w.optText("detail", string(detail))
	w.close('}')
	w.close('}')
	return true
}

func writeFile(w *writer, p *item.InputFile, at place) bool {
	if p.FileID == "" && p.FileData == "" {
		at.loseContent("a file by its URL has no counterpart: send it as data or by a file id")
		return false
	}
	at.breakpoint(p.CacheBreakpoint)
	at.extra(p.Extra)
	if p.FileURL != "" {
		at.at("file_url").lose(noCounterpart)
	}
	if p.Detail != "" {
		at.at("detail").lose(noCounterpart)
	}
	w.open('{')
	w.text("type", "file")
	w.name("file")
	w.open('{')
	w.optText("filename", p.Filename)
	w.optText("file_data", p.FileData)
	w.optText("file_id", p.FileID)
	w.close('}')
	w.close('}')
	return true
}
