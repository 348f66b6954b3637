// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"cmp"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// The members in which servers put reasoning. Chat Completions itself has none.
const (
	// ReasoningContent is the member of DeepSeek, llama.cpp and vLLM.
	ReasoningContent = "reasoning_content"
	// ReasoningPlain is the member of OpenRouter, Groq and Ollama, and also of vLLM.
	ReasoningPlain = "reasoning"
	// ReasoningDetails is OpenRouter's list of pieces. Some are encrypted or signed, and the model
	// needs them back unchanged.
	ReasoningDetails = "reasoning_details"
)

// readReasoning takes the reasoning of a message, or returns nil. The details are kept unchanged in
// the item's Extra.
func readReasoning(o *object, thoughts []string) *item.Reasoning {
	v := &item.Reasoning{}
	text, other := o.text(ReasoningContent), o.text(ReasoningPlain)
	if text != "" && other != "" && text != other {
		o.at(ReasoningPlain).lose("differs from " + ReasoningContent)
	}
	text = cmp.Or(text, other) + strings.Join(thoughts, "")
	if details := o.take(ReasoningDetails); !blank(details) && details[0] == '[' {
		v.Extra.Set(ReasoningDetails, details)
		text = cmp.Or(text, detailText(details))
	}
	if text != "" {
		v.Content = []item.Part{&item.ReasoningText{Text: text}}
	} else if len(v.Extra) == 0 {
		return nil
	}
	return v
}

// detailText returns the text of reasoning details.
func detailText(details item.JSON) string {
	var b strings.Builder
	eachElement(details, func(_ int, d item.JSON) {
		for _, name := range []string{"text", "summary"} {
			s, _ := member(d, name).Unquote()
			b.WriteString(s)
		}
	})
	return b.String()
}

// thoughtsOf returns the text of a reasoning item, or else the text of its summary.
func thoughtsOf(v *item.Reasoning) string {
	parts := v.Content
	if len(parts) == 0 {
		parts = v.Summary
	}
	var texts []string
	for _, p := range parts {
		switch p := p.(type) {
		case *item.ReasoningText:
			texts = append(texts, p.Text)
		case *item.SummaryText:
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
