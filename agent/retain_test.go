// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"iter"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// echoing is a model whose last event repeats the instructions, as endpoints do. It knows
// whether the text of that event is still in memory.
type echoing struct{ last []weak.Pointer[byte] }

func (m *echoing) Stream(context.Context, *api.Request) iter.Seq2[api.Event, error] {
	const message = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes.","annotations":[]}]}`
	done := `{"type":"response.output_item.done","sequence_number":0,"output_index":0,"item":` + message + `}`
	last := []byte(`{"type":"response.completed","sequence_number":1,"response":{"id":"resp_17","object":"response","status":"completed","model":"gpt-5.1-2025","service_tier":"flexible",` +
		`"conversation":{"id":"conv_1"},"instructions":"` + strings.Repeat("Be terse. ", 10_000) + `","output":[` + message + `],` +
		`"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3,"new_tokens":4,"input_tokens_details":{"cached_tokens":0,"warm_tokens":1},"output_tokens_details":{"reasoning_tokens":0,"odd_tokens":1}}}}`)
	m.last = append(m.last, weak.Make(&last[0]))
	return func(yield func(api.Event, error) bool) {
		for _, text := range []string{done, unsafe.String(&last[0], len(last))} {
			ev, err := api.ParseEventString(text)
			if !yield(ev, err) {
				return
			}
		}
	}
}

// TestTurnsHoldNoReplies proves that a session keeps what a reply said, and not the text of
// its last event, which also repeats the instructions, the tools and all items.
func TestTurnsHoldNoReplies(t *testing.T) {
	m := new(echoing)
	s := session.New()
	for range 3 {
		if _, err := (&agent.Agent{Model: m}).Run(t.Context(), s, item.User("Well?")); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	for i, p := range m.last {
		if p.Value() != nil {
			t.Errorf("the last event of turn %d is still in memory", i+1)
		}
	}
	var ended session.TurnEnded
	for e := range s.Entries() {
		if b, ok := e.Body.(session.TurnEnded); ok {
			ended = b
		}
	}
	if u := ended.Usage; ended.ResponseID != "resp_17" || ended.Model != "gpt-5.1-2025" || ended.ServiceTier != "flexible" || ended.InConversation != "conv_1" ||
		u == nil || len(u.Extra) != 1 || u.Extra[0].Name != "new_tokens" || u.InputDetails.Extra[0].Name != "warm_tokens" || u.OutputDetails.Extra[0].Value != "1" {
		t.Errorf("the turn ended as %+v, with usage %+v", ended, ended.Usage)
	}
}
