// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// escapes writes UTF-16 as the inside of a JSON string, with escapes as a server in
// JavaScript writes them.
func escapes(units []uint16) string {
	var b strings.Builder
	for _, u := range units {
		if u < 0x20 || u == '"' || u == '\\' || u >= 0x7f {
			fmt.Fprintf(&b, `\u%04x`, u)
		} else {
			b.WriteByte(byte(u))
		}
	}
	return b.String()
}

// cutAnywhere cuts a text into pieces between any two units of UTF-16.
func cutAnywhere(r *rand.Rand, s string) []string {
	units := utf16.Encode([]rune(s))
	var pieces []string
	for len(units) > 0 {
		n := 1 + r.IntN(min(3, len(units)))
		pieces = append(pieces, escapes(units[:n]))
		units = units[n:]
	}
	return pieces
}

// S4: a text that is cut anywhere by UTF-16 arrives whole, of every kind of text and
// with texts in turn, from the decoder and from events that are parsed one by one.
func TestHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("ab\\\"n\u00e9\uFFFDu😀𝒳👨‍👩‍👧\U0010FFFF")
	for range 300 {
		var texts [3]string
		for i := range texts {
			for range 1 + r.IntN(12) {
				texts[i] += string(letters[r.IntN(len(letters))])
			}
		}
		events := []string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}}`,
			`{"type":"response.output_item.added","output_index":2,"item":{"type":"reasoning","id":"rs","summary":[]}}`,
		}
		var left [3][]string
		for i := range texts {
			left[i] = cutAnywhere(r, texts[i])
		}
		for len(left[0])+len(left[1])+len(left[2]) > 0 {
			i := r.IntN(3)
			if len(left[i]) == 0 {
				continue
			}
			kind := []string{"output_text", "function_call_arguments", "reasoning_summary_text"}[i]
			id := []string{"m", "fc", "rs"}[i]
			events = append(events, fmt.Sprintf(`{"type":"response.%s.delta","item_id":%q,"output_index":%d,"content_index":0,"summary_index":0,"delta":"%s"}`, kind, id, i, left[i][0]))
			left[i] = left[i][1:]
		}
		events = append(events, `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`)
		for _, decoded := range []bool{true, false} {
			var d api.EventDecoder
			var acc api.Accumulator
			shown := map[string]string{}
			for _, s := range events {
				ev, err := api.ParseEvent([]byte(s))
				if decoded {
					ev, err = d.Decode([]byte(s))
				}
				if err != nil {
					t.Fatal(err)
				}
				shown[ev.ItemID] += ev.Delta
				if _, err := acc.Add(ev); err != nil {
					t.Fatal(err)
				}
			}
			resp, _ := acc.Response()
			m, _ := item.As[item.Message](resp.Output[0])
			c, _ := item.As[item.FunctionCall](resp.Output[1])
			th, _ := item.As[item.Reasoning](resp.Output[2])
			got := [3]string{m.Content.Display(), c.Arguments, th.Summary[0].(*item.SummaryText).Text}
			if got != texts {
				t.Fatalf("decoded %v: got %q, want %q", decoded, got, texts)
			}
			if decoded && [3]string{shown["m"], shown["fc"], shown["rs"]} != texts {
				t.Fatalf("the deltas are %q, want %q", shown, texts)
			}
		}
	}
}

// Half a character whose other half does not come is U+FFFD, once.
func TestHalfAlone(t *testing.T) {
	for _, test := range []struct {
		deltas []string
		want   string
	}{
		{[]string{`x\ud83d`}, "x\uFFFD"},
		{[]string{`x\ud83d`, `y`}, "x\uFFFDy"},
		{[]string{`x\ud83d`, `\ud83d`, `\ude00`}, "x\uFFFD😀"},
		{[]string{`x\ude00`, `\ud83d`}, "x\uFFFD\uFFFD"},
		{[]string{`\\ud83d`, `\\ude00`}, `\ud83d\ude00`},
		{[]string{`\\\ud83d`, `\ude00`}, `\😀`},
		{[]string{`\ud83d`, ``, `\ude00`}, "😀"},
		{[]string{"\uFFFD", "\uFFFD"}, "\uFFFD\uFFFD"},
	} {
		for _, decoded := range []bool{true, false} {
			var d api.EventDecoder
			var acc api.Accumulator
			for _, delta := range append(test.deltas, "") {
				s := `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"` + delta + `"}`
				ev, err := api.ParseEvent([]byte(s))
				if decoded {
					ev, err = d.Decode([]byte(s))
				}
				if err != nil {
					t.Fatal(err)
				}
				_, _ = acc.Add(ev)
			}
			m, _ := item.As[item.Message](acc.Partial()[0])
			if got := m.Content.Display(); got != test.want {
				t.Errorf("%q, decoded %v: %q, want %q", test.deltas, decoded, got, test.want)
			}
		}
	}
}
