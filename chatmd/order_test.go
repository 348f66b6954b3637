// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// shuffled returns the text of a JSON value with its members in another order.
func shuffled(t *rapid.T, text string) string {
	list, kind, ok := valuesOf(text)
	if !ok {
		return text
	}
	var parts []string
	for _, v := range rapid.Permutation(list).Draw(t, "members") {
		if kind != '{' {
			break
		}
		parts = append(parts, string(item.Quote(v.name))+":"+shuffled(t, v.text))
	}
	if kind == '{' {
		return "{" + strings.Join(parts, ",") + "}"
	}
	for _, v := range list {
		parts = append(parts, shuffled(t, v.text))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// TestExactProperty proves that what was received comes back as the same bytes,
// whatever the order of its members, and that the second write is the same. W8 M1
func TestExactProperty(t *testing.T) {
	w := Writer{Exact: true}
	rapid.Check(t, func(rt *rapid.T) {
		want := shuffled(rt, anyItem().Draw(rt, "item").JSON())
		it, err := item.ParseString(want)
		if err != nil {
			rt.Skip()
		}
		text, err := w.Append(nil, it)
		if err != nil {
			rt.Fatal(err)
		}
		back := readOne(t, string(text))
		if got := back.JSON(); got != want {
			rt.Fatalf("got\n%s\nwant\n%s\nin\n%s", got, want, text)
		}
		if again, err := w.Append(nil, back); err != nil || string(again) != string(text) {
			rt.Fatalf("%v\n%s\nfirst\n%s", err, again, text)
		}
	})
}

// W8: items of servers that order members in other ways are still for people to
// read.
func TestExactOrder(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[{"type":"output_text","text":"Hi.","logprobs":[],"annotations":[]}],"id":"m","role":"assistant","type":"message","status":"completed"}`: "<assistant id=\"m\" status=\"completed\" logprobs=\"[]\" members=\"content(type text logprobs annotations) id role type status\">\nHi.\n</assistant>\n",
		`{"arguments":"{}","call_id":"c","name":"f","type":"function_call","id":"f1"}`:                                                                       "<tool_call tool_call_id=\"c\" function_name=\"f\" id=\"f1\" members=\"arguments call_id name type id\">\nRAW|\n{}\n|RAW\n</tool_call>\n",
		`{"arguments":"{}", "call_id":"c","name":"f","type":"function_call"}`:                                                                                "<item type=\"function_call\">\nRAW|\n{\"arguments\":\"{}\", \"call_id\":\"c\",\"name\":\"f\",\"type\":\"function_call\"}\n|RAW\n</item>\n",
	} {
		w := Writer{Exact: true}
		got, err := w.Append(nil, parsed(t, raw))
		if err != nil || string(got) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
	if it := readOne(t, `<assistant id="m" members="role nonsense(">Hi.</assistant>`); it.ID() != "m" {
		t.Errorf("an order that does not fit: %s", it.JSON())
	}
}

// W8: the same for items as recorded streams have them.
func TestExactRecorded(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(apispec.Shared(t, "corpus"), "streams", "*.sse"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	readable, all := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			line, _ = strings.CutPrefix(line, "data: ")
			var ev struct {
				Type string
				Item json.RawMessage
			}
			if json.Unmarshal([]byte(line), &ev) != nil || ev.Type != "response.output_item.done" {
				continue
			}
			it, err := item.ParseString(string(ev.Item))
			if err != nil {
				t.Fatal(err)
			}
			w := Writer{Exact: true}
			text, err := w.Append(nil, it)
			if err != nil || readOne(t, string(text)).JSON() != string(ev.Item) {
				t.Errorf("%v: %s", err, ev.Item)
			}
			switch it.Type() {
			case item.TypeMessage, item.TypeFunctionCall, item.TypeCustomToolCall, item.TypeReasoning:
				if all++; !strings.HasPrefix(string(text), "<item") {
					readable++
				}
			}
		}
	}
	if readable*100 < all*94 {
		t.Errorf("%d of %d items are readable, want 94%%", readable, all)
	}
}
