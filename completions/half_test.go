// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// S4: texts, refusals, reasoning and arguments that a server cut anywhere by UTF-16
// arrive whole, and so do their deltas.
func TestHalves(t *testing.T) {
	const text = `{"a":"é😀𝒳\ud83d👩‍👩‍👧"}` // with an escape that is the text's own
	units := utf16.Encode([]rune(text))
	for at := 1; at < len(units); at++ {
		for next := at + 1; next <= len(units); next++ {
			var d completions.Decoder
			var acc api.Accumulator
			var resp *api.Response
			deltas := map[api.EventType]string{}
			take := func(ev api.Event) bool {
				deltas[ev.Type] += ev.Delta
				if _, err := acc.Add(ev); err != nil {
					t.Fatal(err)
				}
				return true
			}
			for _, piece := range [][]uint16{units[:at], units[at:next], units[next:]} {
				v := quoted(piece)
				for _, members := range []string{
					`"reasoning_content":` + v, `"content":` + v, `"refusal":` + v,
					`"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":` + v + `}}]`,
				} {
					if err := d.Decode([]byte(delta(members)), take); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := d.Decode([]byte(finish("tool_calls")), take); err != nil {
				t.Fatal(err)
			}
			if err := d.Finish(take); err != nil {
				t.Fatal(err)
			}
			resp, _ = acc.Response()
			th, _ := item.As[item.Reasoning](resp.Output[0])
			m, _ := item.As[item.Message](resp.Output[1])
			c, _ := item.As[item.FunctionCall](resp.Output[2])
			got := []string{
				th.Content[0].(*item.ReasoningText).Text, m.Content.Parts[0].(*item.OutputText).Text, m.Content.Parts[1].(*item.Refusal).Refusal, c.Arguments,
				deltas[api.EventReasoningTextDelta], deltas[api.EventTextDelta], deltas[api.EventRefusalDelta], deltas[api.EventArgumentsDelta],
			}
			for i, s := range got {
				if s != text {
					t.Fatalf("cut at %d and %d: text %d is %q", at, next, i, s)
				}
			}
		}
	}
}

// Half a character that stays alone is U+FFFD, and told.
func TestHalfAlone(t *testing.T) {
	var d completions.Decoder
	var acc api.Accumulator
	shown := ""
	take := func(ev api.Event) bool {
		shown += ev.Delta
		_, _ = acc.Add(ev)
		return true
	}
	for _, chunk := range []string{delta(`"content":"x\ud83d"`), finish("stop")} {
		if err := d.Decode([]byte(chunk), take); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Finish(take); err != nil {
		t.Fatal(err)
	}
	resp, _ := acc.Response()
	if shown != "x\uFFFD" || resp.Text() != shown || len(d.Losses()) != 1 || !strings.Contains(d.Losses()[0].What, "half a character") {
		t.Errorf("shown %q, kept %q, losses %v", shown, resp.Text(), d.Losses())
	}
}

func quoted(units []uint16) string {
	s := ""
	for _, u := range units {
		s += fmt.Sprintf(`\u%04x`, u)
	}
	return `"` + s + `"`
}
