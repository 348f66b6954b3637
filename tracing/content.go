// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// Limits of texts in a span, in bytes.
const (
	maxName     = 128
	maxText     = 8 << 10
	maxMessages = 32 << 10
)

// data matches probable base64: after its media type, or in runs that do not occur
// in words, on one or several lines.
var data = regexp.MustCompile(`data:[^,"\s]{0,100};base64,[A-Za-z0-9+/_=-]*|(?:[A-Za-z0-9+/_-]{60,}={0,2}(?:\\[rn]|[\r\n])*){4,}`)

// shown returns a text without base64, shortened to limit. A note says how much is
// missing, and is not included in limit.
func shown(s string, limit int) string {
	total := len(s)
	if len(s) > 8*limit { // enough to find data, without searching all of a large text
		s = s[:8*limit]
	}
	s = data.ReplaceAllStringFunc(s, func(d string) string {
		head, _, typed := strings.Cut(d, ",")
		if !typed {
			head = "base64"
		}
		return fmt.Sprintf("(%s, %d characters)", head, len(d))
	})
	longer := len(s) > limit || total > 8*limit
	s = prefix(s, limit)
	if longer {
		s += fmt.Sprintf("… (of %d bytes)", total)
	}
	return s
}

// prefix returns the beginning of a text, as valid UTF-8.
func prefix(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// name returns a name or id from another source, which may be long.
func name(s string) string { return prefix(s, maxName) }

// message and part are the form of messages in the conventions.
type message struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments any    `json:"arguments,omitempty"` // JSON, or a text if it was shortened or is not JSON
	Response  string `json:"response,omitempty"`
}

// messages encodes items up to the size limit.
func messages(items []item.Item) string {
	list := make([]message, 0, len(items))
	left := maxMessages
	for _, it := range items {
		if left <= 0 {
			break
		}
		m := messageOf(it, min(left, maxText))
		p := &m.Parts[0]
		left -= len(p.Content) + lengthOf(p.Arguments) + len(p.Response) + maxName
		list = append(list, m)
	}
	return encoded(list)
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// arguments returns the arguments of a call as JSON if they are complete.
func arguments(text string, limit int) any {
	s := shown(text, limit)
	if s == text && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return s
}

func lengthOf(arguments any) int {
	switch a := arguments.(type) {
	case json.RawMessage:
		return len(a)
	case string:
		return len(a)
	}
	return 0
}

// messageOf encodes an item. For kinds without text it gives the type.
func messageOf(it item.Item, limit int) message {
	v, err := it.Decode()
	if err == nil {
		switch v := v.(type) {
		case *item.Message:
			return message{name(string(v.Role)), []part{{Type: "text", Content: shown(v.Content.Display(), limit)}}}
		case *item.FunctionCall:
			return message{"assistant", []part{{Type: "tool_call", ID: name(v.CallID), Name: name(v.Name), Arguments: arguments(v.Arguments, limit)}}}
		case *item.CustomToolCall:
			return message{"assistant", []part{{Type: "tool_call", ID: name(v.CallID), Name: name(v.Name), Arguments: shown(v.Input, limit)}}}
		case *item.Reasoning:
			return message{"assistant", []part{{Type: "reasoning", Content: shown(reasoningText(v), limit)}}}
		case *item.FunctionCallOutput:
			return message{"tool", []part{{Type: "tool_call_response", ID: name(v.CallID), Response: shown(v.Output.Display(), limit)}}}
		case *item.CustomToolCallOutput:
			return message{"tool", []part{{Type: "tool_call_response", ID: name(v.CallID), Response: shown(v.Output.Display(), limit)}}}
		}
	}
	role := "user"
	if said(it) {
		role = "assistant"
	}
	return message{role, []part{{Type: name(string(it.Type()))}}}
}

// reasoningText returns what the model shows of its reasoning.
func reasoningText(r *item.Reasoning) string {
	var texts []string
	for _, p := range append(append([]item.Part(nil), r.Summary...), r.Content...) {
		texts = append(texts, item.Parts(p).Display())
	}
	return strings.Join(texts, "\n")
}
