// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/dialect/dialecttest"
	"github.com/antiphon-go/antiphon/item"
)

func TestDialect(t *testing.T) {
	dialecttest.Run(t, dialecttest.Wire{
		Dialect: completions.Dialect{Options: &completions.Options{Reasoning: completions.ReasoningContent}},
		Stream:  chatEvents,
		Whole:   chatWhole,
		Read: func(body []byte) (*api.Request, error) {
			r, _, err := completions.ParseRequest(body)
			return r, err
		},
	})
}

func chatText(s string) string { return string(item.Quote(s)) }

func chatReason(r dialecttest.Reply) string {
	switch {
	case r.Limit:
		return "length"
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func chatUsage(r dialecttest.Reply) string {
	return fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, r.Input, r.Output, r.Input+r.Output)
}

// chatEvents writes a reply as a server of Chat Completions does.
func chatEvents(r dialecttest.Reply) (events []string) {
	chunk := func(members string) {
		events = append(events, `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m",`+members+"}\n\n")
	}
	delta := func(members string) { chunk(`"choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]`) }
	for _, list := range []struct {
		member string
		texts  []string
	}{{"reasoning_content", r.Reasoning}, {"content", r.Text}, {"refusal", r.Refusal}} {
		for _, s := range list.texts {
			delta(`"` + list.member + `":` + chatText(s))
		}
	}
	call := func(i int, members string) { delta(fmt.Sprintf(`"tool_calls":[{"index":%d,%s}]`, i, members)) }
	for i, c := range r.Calls {
		call(i, fmt.Sprintf(`"id":%q,"type":"function","function":{"name":%q,"arguments":""}`, c.ID, c.Name))
	}
	for n, more := 0, true; more; n++ {
		more = false
		for i, c := range r.Calls {
			if n < len(c.Arguments) {
				call(i, `"function":{"arguments":`+chatText(c.Arguments[n])+`}`)
				more = true
			}
		}
	}
	if r.Error != nil {
		return append(events, fmt.Sprintf("data: {\"error\":{\"message\":%q,\"code\":%q}}\n\n", r.Error.Message, r.Error.Code))
	}
	chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"` + chatReason(r) + `"}]`)
	chunk(`"choices":[],` + chatUsage(r))
	return append(events, "data: [DONE]\n\n")
}

// chatWhole writes a reply in one piece.
func chatWhole(r dialecttest.Reply) string {
	var calls []string
	for _, c := range r.Calls {
		calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, c.ID, c.Name, chatText(strings.Join(c.Arguments, ""))))
	}
	message := `"role":"assistant","content":` + cmp.Or(chatText(strings.Join(r.Text, "")), "null")
	if len(calls) > 0 {
		message += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	return fmt.Sprintf(`{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{%s},"finish_reason":%q}],%s}`, message, chatReason(r), chatUsage(r))
}
