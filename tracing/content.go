// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"encoding/json"
	"strings"

	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/item"
)

// maxMessages limits the messages of a span, in bytes.
const maxMessages = 32 << 10

// message and part are the form of messages in the conventions. Only a message of a model has a
// reason why it ends.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments any    `json:"arguments,omitempty"` // JSON, or a text if it was shortened or is not JSON
	Response  string `json:"response,omitempty"`
}

// messages encodes items up to the size limit, each as a message.
func messages(items []item.Item) string { return encoded(asMessages(items)) }

func asMessages(items []item.Item) []message {
	list := make([]message, 0, len(items))
	left := maxMessages
	for _, it := range items {
		if left <= 0 {
			break
		}
		m := messageOf(it, min(left, excerpt.MaxText))
		p := &m.Parts[0]
		left -= len(p.Content) + lengthOf(p.Arguments) + len(p.Response) + excerpt.MaxName
		list = append(list, m)
	}
	return list
}

// reply encodes a reply, which is one message, up to the size limit.
func reply(items []item.Item, finish string) string {
	whole := message{Role: "assistant", Parts: make([]part, 0, len(items)), Finish: finish}
	for _, m := range asMessages(items) {
		whole.Parts = append(whole.Parts, m.Parts...)
	}
	return encoded([]message{whole})
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
	s := excerpt.Text(text, limit)
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
			return message{Role: excerpt.Name(string(v.Role)), Parts: []part{{Type: "text", Content: excerpt.Text(v.Content.Display(), limit)}}}
		case *item.FunctionCall:
			return message{Role: "assistant", Parts: []part{{Type: "tool_call", ID: excerpt.Name(v.CallID), Name: excerpt.Name(v.Name), Arguments: arguments(v.Arguments, limit)}}}
		case *item.CustomToolCall:
			return message{Role: "assistant", Parts: []part{{Type: "tool_call", ID: excerpt.Name(v.CallID), Name: excerpt.Name(v.Name), Arguments: excerpt.Text(v.Input, limit)}}}
		case *item.Reasoning:
			return message{Role: "assistant", Parts: []part{{Type: "reasoning", Content: excerpt.Text(reasoningText(v), limit)}}}
		case *item.FunctionCallOutput:
			return message{Role: "tool", Parts: []part{{Type: "tool_call_response", ID: excerpt.Name(v.CallID), Response: excerpt.Text(v.Output.Display(), limit)}}}
		case *item.CustomToolCallOutput:
			return message{Role: "tool", Parts: []part{{Type: "tool_call_response", ID: excerpt.Name(v.CallID), Response: excerpt.Text(v.Output.Display(), limit)}}}
		}
	}
	role := "user"
	if said(it) {
		role = "assistant"
	}
	return message{Role: role, Parts: []part{{Type: excerpt.Name(string(it.Type()))}}}
}

// reasoningText returns what the model shows of its reasoning.
func reasoningText(r *item.Reasoning) string {
	var texts []string
	for _, p := range append(append([]item.Part(nil), r.Summary...), r.Content...) {
		texts = append(texts, item.Parts(p).Display())
	}
	return strings.Join(texts, "\n")
}
