// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// dice draws random JSON whose texts are tokens, each there once, so that it can
// be told where each of them went.
type dice struct {
	*rapid.T
	n int
}

type obj = map[string]any

func (d *dice) tok() string {
	d.n++
	return fmt.Sprintf("tok%dx", d.n)
}

func (d *dice) chance(percent int) bool { return rapid.IntRange(1, 100).Draw(d.T, "chance") <= percent }

// maybe sets members that are there by chance.
func (d *dice) maybe(o obj, names ...string) obj {
	for _, n := range names {
		if d.chance(30) {
			o[n] = d.tok()
		}
	}
	return o
}

func (d *dice) list(from, to int, one func() any) []any {
	list := []any{}
	for range rapid.IntRange(from, to).Draw(d.T, "n") {
		list = append(list, one())
	}
	return list
}

func (d *dice) pick(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "pick") }

// textOrParts is the content of a message.
func (d *dice) textOrParts(part func() any) any {
	if d.chance(40) {
		return d.tok()
	}
	return d.list(0, 3, part)
}

var aToken = regexp.MustCompile(`tok\d+x`)

// unaccounted returns the tokens of source that are neither in result nor named
// by a loss of theirs or of what they stand in.
func unaccounted(source any, root, result string, losses []completions.Loss) []string {
	var missing []string
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case obj:
			for name, inner := range v {
				walk(inner, strings.TrimPrefix(path+"."+name, "."))
			}
		case []any:
			for i, inner := range v {
				walk(inner, fmt.Sprintf("%s[%d]", path, i))
			}
		case string:
			for _, tok := range aToken.FindAllString(v, -1) {
				if strings.Contains(result, tok) {
					continue
				}
				if !slices.ContainsFunc(losses, func(l completions.Loss) bool { return strings.HasPrefix(path, l.Path) }) {
					missing = append(missing, path+" "+tok)
				}
			}
		}
	}
	walk(source, root)
	slices.Sort(missing)
	return missing
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// chatPart is a part of a chat message.
func (d *dice) chatPart() any {
	switch d.pick(8) {
	case 0:
		return d.maybe(obj{"type": "image_url", "image_url": d.tok()}, "foreign")
	case 1:
		return d.maybe(obj{"type": "image_url", "image_url": d.maybe(obj{"url": d.tok()}, "detail", "foreign")}, "foreign")
	case 2:
		return obj{"type": "file", "file": d.maybe(obj{"file_data": d.tok()}, "filename", "file_id", "foreign")}
	case 3:
		return obj{"type": "input_audio", "input_audio": obj{"data": d.tok(), "format": "wav"}}
	case 4:
		return obj{"type": "tomorrow", "x": d.tok()}
	case 5:
		return obj{"type": "text", "text": d.tok(), "cache_control": obj{"type": d.tok()}}
	}
	return d.maybe(obj{"type": "text", "text": d.tok()}, "foreign")
}

func (d *dice) answerPart() any {
	switch d.pick(4) {
	case 0:
		return obj{"type": "refusal", "refusal": d.tok()}
	case 1:
		return obj{"type": "thinking", "thinking": []any{obj{"type": "text", "text": d.tok()}}}
	}
	return d.maybe(obj{"type": "text", "text": d.tok()}, "foreign")
}

func (d *dice) chatCall() (obj, string) {
	id := d.tok()
	switch d.pick(4) {
	case 0:
		return obj{"id": id, "type": "custom", "custom": d.maybe(obj{"name": d.tok(), "input": d.tok()}, "foreign")}, id
	case 1:
		return obj{"id": id, "type": "function", "function": obj{"name": d.tok(), "arguments": obj{"a": d.tok()}}}, id
	}
	return d.maybe(obj{"id": id, "type": "function", "function": d.maybe(obj{"name": d.tok(), "arguments": `{"a":"` + d.tok() + `"}`}, "foreign")}, "foreign"), id
}

func (d *dice) annotation() any {
	return obj{"type": "url_citation", "url_citation": obj{"url": d.tok(), "title": d.tok(), "start_index": 1, "end_index": 2}}
}

func (d *dice) assistant() (obj, []string) {
	m := d.maybe(obj{"role": "assistant"}, "name", "refusal", "reasoning_content", "reasoning", "foreign")
	var ids []string
	if d.chance(70) {
		m["content"] = d.textOrParts(d.answerPart)
	}
	if d.chance(20) {
		m["annotations"] = d.list(1, 2, d.annotation)
	}
	if d.chance(20) {
		m["reasoning_details"] = []any{obj{"type": "reasoning.text", "text": d.tok(), "signature": d.tok()}, obj{"type": "reasoning.encrypted", "data": d.tok()}}
	}
	if d.chance(10) {
		m["audio"] = obj{"id": d.tok()}
	}
	if d.chance(50) {
		m["tool_calls"] = d.list(1, 3, func() any {
			c, id := d.chatCall()
			ids = append(ids, id)
			return c
		})
	}
	if d.chance(10) {
		m["function_call"] = obj{"name": d.tok(), "arguments": `{"a":"` + d.tok() + `"}`}
	}
	return m, ids
}

func (d *dice) chatMessages() []any {
	list := []any{obj{"role": "user", "content": d.tok()}}
	for range rapid.IntRange(0, 4).Draw(d.T, "messages") {
		switch d.pick(3) {
		case 0:
			role := []string{"user", "system", "developer"}[d.pick(3)]
			list = append(list, d.maybe(obj{"role": role, "content": d.textOrParts(d.chatPart)}, "name", "foreign"))
		default:
			m, ids := d.assistant()
			list = append(list, m)
			for _, id := range ids {
				list = append(list, d.maybe(obj{"role": "tool", "tool_call_id": id, "content": d.textOrParts(d.chatPart)}, "name", "foreign"))
			}
			if c, ok := m["function_call"].(obj); ok {
				list = append(list, obj{"role": "function", "name": c["name"], "content": d.tok()})
			}
		}
	}
	return list
}

// What chat messages say is in the items, or is named.
func TestMessagesLoseNothingUnnamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &dice{T: t}
		messages := d.chatMessages()
		text := marshal(messages)
		items, losses, err := completions.ToItems(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		list := item.NewList(items...)
		result := list.JSON()
		if missing := unaccounted(messages, "messages", result, losses); missing != nil {
			t.Fatalf("lost without a word: %q\nfrom %s\nto   %s\n%v", missing, text, result, losses)
		}
		for _, o := range []completions.Options{{}, {Plain: true, Reasoning: completions.ReasoningDetails}, {Reasoning: completions.ReasoningContent}} {
			back, losses, err := completions.FromItems(list, o)
			if err != nil {
				t.Fatalf("%v in %s", err, result)
			}
			if missing := unaccounted(anyOf(result), "input", string(back), losses); missing != nil {
				t.Fatalf("lost without a word on the way back: %q\nfrom %s\nto   %s\n%v", missing, result, back, losses)
			}
			again, _, err := completions.FromItems(list, o)
			if err != nil || string(again) != string(back) {
				t.Fatalf("not the same twice (I12): %v", err)
			}
		}
	})
}

func anyOf(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

// part is a part of an item.
func (d *dice) part() any {
	switch d.pick(9) {
	case 0:
		return d.maybe(obj{"type": "input_image", "image_url": d.tok(), "detail": "auto"}, "foreign")
	case 1:
		return obj{"type": "input_image", "file_id": d.tok()}
	case 2:
		return d.maybe(obj{"type": "input_file", "file_data": d.tok()}, "filename", "file_id", "file_url", "detail", "foreign")
	case 3:
		return obj{"type": "input_file", "file_url": d.tok()}
	case 4:
		return obj{"type": "refusal", "refusal": d.tok()}
	case 5:
		return obj{"type": "output_text", "text": d.tok(), "annotations": []any{obj{"type": "url_citation", "url": d.tok()}}}
	case 6:
		return obj{"type": "tomorrow", "x": d.tok()}
	case 7:
		return obj{"type": "input_text", "text": d.tok(), "prompt_cache_breakpoint": obj{"mode": d.tok()}}
	}
	return d.maybe(obj{"type": "input_text", "text": d.tok()}, "foreign")
}

func (d *dice) call() (obj, obj) {
	id := d.tok()
	if d.chance(30) {
		return d.maybe(obj{"type": "custom_tool_call", "call_id": id, "name": d.tok(), "input": d.tok()}, "id", "namespace", "created_by", "foreign"),
			d.maybe(obj{"type": "custom_tool_call_output", "call_id": id, "output": d.textOrParts(d.part)}, "id", "created_by", "foreign")
	}
	return d.maybe(obj{"type": "function_call", "call_id": id, "name": d.tok(), "arguments": `{"a":"` + d.tok() + `"}`}, "id", "namespace", "created_by", "foreign"),
		d.maybe(obj{"type": "function_call_output", "call_id": id, "output": d.textOrParts(d.part)}, "id", "name", "namespace", "created_by", "foreign")
}

// history is a random history in which calls have their outputs, though not at
// once.
func (d *dice) history() []any {
	list := []any{obj{"role": "user", "content": d.tok()}}
	var open []any
	for range rapid.IntRange(0, 8).Draw(d.T, "items") {
		switch d.pick(8) {
		case 0:
			role := []string{"user", "system", "developer"}[d.pick(3)]
			list = append(list, d.maybe(obj{"type": "message", "role": role, "content": d.textOrParts(d.part)}, "id", "foreign"))
		case 1, 2:
			list = append(list, d.maybe(obj{"type": "message", "role": "assistant", "content": d.textOrParts(d.part)}, "id", "phase"))
		case 3:
			list = append(list, d.maybe(obj{"type": "reasoning", "summary": []any{obj{"type": "summary_text", "text": d.tok()}}, "content": d.list(0, 2, func() any {
				return obj{"type": "reasoning_text", "text": d.tok()}
			})}, "id", "encrypted_content", "foreign"))
		case 4:
			list = append(list, obj{"type": "web_search_call", "id": d.tok(), "status": "completed"})
		case 5, 6:
			call, output := d.call()
			list, open = append(list, call), append(open, output)
		case 7:
			if len(open) > 0 {
				list, open = append(list, open[0]), open[1:]
			}
		}
	}
	return append(list, open...)
}

// What items say is in the messages, or is named, and calls are followed by
// their outputs at once.
func TestItemsLoseNothingUnnamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &dice{T: t}
		history := d.history()
		text := marshal(history)
		items, err := item.ParseList(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []completions.Options{{}, {Plain: true, Reasoning: completions.ReasoningPlain}} {
			messages, losses, err := completions.FromItems(item.NewList(items...), o)
			if err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if missing := unaccounted(history, "input", string(messages), losses); missing != nil {
				t.Fatalf("lost without a word: %q\nfrom %s\nto   %s\n%v", missing, text, messages, losses)
			}
			if problem := unpaired(anyList(anyOf(string(messages)))); problem != "" {
				t.Fatalf("%s\nfrom %s\nto   %s", problem, text, messages)
			}
			if _, _, err := completions.ToItems(messages); err != nil {
				t.Fatalf("%v\nfrom %s\nto   %s", err, text, messages)
			}
		}
	})
}

// unpaired says what a strict endpoint would refuse: a call whose output does
// not follow at once, an output without its call.
func unpaired(messages []any) string {
	var open []any
	for i, m := range messages {
		if get(m, "role") == "tool" {
			at := slices.Index(open, get(m, "tool_call_id"))
			if at < 0 {
				return fmt.Sprintf("message %d answers no call", i)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("message %d stands before the outputs of %v", i, open)
		}
		for _, c := range anyList(get(m, "tool_calls")) {
			open = append(open, get(c, "id"))
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("no outputs of %v", open)
	}
	return ""
}
