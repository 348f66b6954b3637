// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// member is a field under the name that a file gives it. The field is a
// *string, *bool, *int, *[]string, *map[string]string, rawMap or choice.
type member struct {
	name  string
	field any
}

// rawMap is a map whose values are JSON.
type rawMap struct{ to *map[string]string }

// choice is a text that is one of few.
type choice struct {
	get func() string
	set func(string) bool
	all func() []string // quoted
}

// oneOf is a field of the given values, and of "".
func oneOf[T ~string](to *T, values ...T) choice {
	return choice{
		get: func() string { return string(*to) },
		set: func(s string) bool {
			ok := s == "" || slices.Contains(values, T(s))
			if ok {
				*to = T(s)
			}
			return ok
		},
		all: func() []string {
			var list []string
			for _, v := range values {
				list = append(list, strconv.Quote(string(v)))
			}
			return list
		},
	}
}

// members names the fields of a profile, for both directions.
func (p *Profile) members() []member {
	support := func(to *Support) choice { return oneOf(to, Yes, No) }
	return []member{
		{"name", &p.Name},
		{"hosts", &p.Hosts},
		{"servers", &p.Servers},
		{"fallback", &p.Fallback},
		{"base_path", &p.BasePath},
		{"responses_path", &p.ResponsesPath},
		{"chat_path", &p.ChatPath},
		{"apis", &p.APIs},
		{"key_header", &p.KeyHeader},
		{"key_hint", &p.KeyHint},
		{"account_header", &p.AccountHeader},
		{"header", &p.Header},
		{"socket_header", &p.SocketHeader},
		{"idempotency_header", &p.IdempotencyHeader},
		{"set", rawMap{&p.Set}},
		{"omit", &p.Omit},
		{"refuse", &p.Refuse},
		{"min_output_tokens", &p.MinOutputTokens},
		{"max_cache_key", &p.MaxCacheKey},
		{"efforts", &p.Efforts},
		{"instructions", oneOf(&p.Instructions, Leading)},
		{"needs_instructions", &p.NeedsInstructions},
		{"roles", &p.Roles},
		{"typed_messages", &p.TypedMessages},
		{"short_messages", &p.ShortMessages},
		{"alternate", &p.Alternate},
		{"output_ids", &p.OutputIDs},
		{"omit_output_only", &p.OmitOutputOnly},
		{"items", &p.Items},
		{"other_items", oneOf(&p.OtherItems, Drop, ToText, Refuse)},
		{"omit_in_items", &p.OmitInItems},
		{"reasoning", oneOf(&p.Reasoning, ReasoningText, ReasoningNone)},
		{"parts", &p.Parts},
		{"images", oneOf(&p.Images, DataOnly, URLOrData, NoneOfThem)},
		{"files", oneOf(&p.Files, DataOnly, URLOrData, NoneOfThem)},
		{"outputs", oneOf(&p.Outputs, OutputString)},
		{"strict_names", &p.StrictNames},
		{"object_arguments", &p.ObjectArguments},
		{"tools", &p.Tools},
		{"other_tools", oneOf(&p.OtherTools, Drop, Refuse)},
		{"windows", &p.Windows},
		{"chat_max_tokens", &p.ChatMaxTokens},
		{"chat_reasoning", &p.ChatReasoning},
		{"chat_usage", support(&p.ChatUsage)},
		{"previous_response", support(&p.PreviousResponse)},
		{"conversations", support(&p.Conversations)},
		{"background", support(&p.Background)},
		{"stored", support(&p.Stored)},
		{"web_socket", support(&p.WebSocket)},
		{"compact", support(&p.Compact)},
		{"input_tokens", support(&p.InputTokens)},
	}
}

// members names the fields of a model.
func (m *Model) members() []member {
	support := func(to *Support) choice { return oneOf(to, Yes, No) }
	return []member{
		{"names", &m.Names},
		{"reasoning", support(&m.Reasoning)},
		{"efforts", &m.Efforts},
		{"default_effort", &m.DefaultEffort},
		{"summaries", support(&m.Summaries)},
		{"sampling", oneOf(&m.Sampling, Yes, No, WithoutReasoning)},
		{"verbosity", support(&m.Verbosity)},
		{"images", support(&m.Images)},
		{"files", support(&m.Files)},
		{"context_window", &m.ContextWindow},
		{"max_output", &m.MaxOutput},
	}
}

func names(list []member) []string {
	var all []string
	for _, m := range list {
		all = append(all, m.name)
	}
	return all
}

func find(list []member, name string) any {
	for _, m := range list {
		if m.name == name {
			return m.field
		}
	}
	return nil
}

// AppendJSON appends the profile as [LoadProfiles] reads it.
func (p Profile) AppendJSON(dst []byte) []byte {
	return appendMembers(append(dst, `{"like":"specified"`...), p.members())
}

// AppendJSON appends the model as [LoadProfiles] reads it.
func (m Model) AppendJSON(dst []byte) []byte { return appendMembers(append(dst, '{'), m.members()) }

// appendMembers appends what is not zero, and the closing brace.
func appendMembers(dst []byte, list []member) []byte {
	for _, m := range list {
		value := appendField(nil, m.field)
		if value == nil {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, m.name), ':')
		dst = append(dst, value...)
	}
	return append(dst, '}')
}

// appendField appends nothing for a zero value.
func appendField(dst []byte, field any) []byte {
	switch f := field.(type) {
	case *string:
		return appendNonempty(dst, *f)
	case choice:
		return appendNonempty(dst, f.get())
	case *bool:
		if *f {
			return append(dst, "true"...)
		}
	case *int:
		if *f != 0 {
			return strconv.AppendInt(dst, int64(*f), 10)
		}
	case *[]string:
		if *f == nil {
			return dst
		}
		dst = append(dst, '[')
		for i, s := range *f {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(dst, s)
		}
		return append(dst, ']')
	case *map[string]string:
		return appendMap(dst, *f, appendText)
	case rawMap:
		return appendMap(dst, *f.to, func(dst []byte, s string) []byte { return append(dst, s...) })
	}
	return dst
}

func appendMap(dst []byte, m map[string]string, value func([]byte, string) []byte) []byte {
	if m == nil {
		return dst
	}
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(append(appendText(dst, name), ':'), m[name])
	}
	return append(dst, '}')
}

func appendNonempty(dst []byte, s string) []byte {
	if s == "" {
		return dst
	}
	return appendText(dst, s)
}

// appendText appends a JSON string. What is not UTF-8 is replaced.
func appendText(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
