// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

func TestToItems(t *testing.T) {
	spec := apispec.Load(t)
	for _, c := range []struct {
		rule, messages, items, losses string
	}{
		{"I1: system and developer messages stay where they are", `[{"role":"system","content":"a"},{"role":"user","content":"b"},{"role":"developer","content":[{"type":"text","text":"c"}]}]`,
			`[{"type":"message","content":"a","role":"system"},{"type":"message","content":"b","role":"user"},{"type":"message","content":[{"type":"input_text","text":"c"}],"role":"developer"}]`, ``},
		{"I2, W4: parts in their order, images with a detail", `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x/1.png"}},{"type":"image_url","image_url":"https://x/2.png"},{"type":"image_url","image_url":{"url":"u","detail":"low"}}]}]`,
			`[{"type":"message","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x/1.png","detail":"auto"},{"type":"input_image","image_url":"https://x/2.png","detail":"auto"},{"type":"input_image","image_url":"u","detail":"low"}],"role":"user"}]`, ``},
		{"I3: files", `[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AA==","filename":"a.pdf"}},{"type":"file","file":{"file_id":"file_1"}},{"type":"file","file":{"file_data":"https://x/a.pdf"}}]}]`,
			`[{"type":"message","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="},{"type":"input_file","file_id":"file_1"},{"type":"input_file","file_url":"https://x/a.pdf"}],"role":"user"}]`, ``},
		{"I4: what the model said", `[{"role":"assistant","content":"a","refusal":null,"annotations":[]},{"role":"assistant","content":null,"refusal":"no"}]`,
			`[{"type":"message","content":"a","role":"assistant"},{"id":"msg_chat_1","type":"message","status":"completed","content":[{"type":"refusal","refusal":"no"}],"role":"assistant"}]`, ``},
		{"I5, I6, I7: calls, without an empty message, arguments as the model wrote them", `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{ \"a\" : 1 }"}},{"id":"c2","type":"function","function":{"name":"g","arguments":""}},{"id":"c3","type":"function","function":{"name":"g","arguments":{"b": 2}}}]},{"role":"tool","tool_call_id":"c1","content":"x"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"y"}]},{"role":"tool","tool_call_id":"c3","content":""}]`,
			`[{"type":"function_call","arguments":"{ \"a\" : 1 }","call_id":"c1","name":"f"},{"type":"function_call","arguments":"{}","call_id":"c2","name":"g"},{"type":"function_call","arguments":"{\"b\": 2}","call_id":"c3","name":"g"},{"type":"function_call_output","call_id":"c1","output":"x"},{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"y"}]},{"type":"function_call_output","call_id":"c3","output":""}]`, ``},
		{"custom tools", `[{"role":"assistant","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sh","input":"ls"}}]},{"role":"tool","tool_call_id":"c1","content":"x"}]`,
			`[{"type":"custom_tool_call","call_id":"c1","input":"ls","name":"sh"},{"type":"custom_tool_call_output","call_id":"c1","output":"x"}]`, ``},
		{"functions, as they were before tools", `[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"x"}]`,
			`[{"type":"function_call","arguments":"{}","call_id":"call_0_0","name":"f"},{"type":"function_call_output","call_id":"call_0_0","output":"x"}]`,
			"messages[0].function_call: the older form: becomes a call of a tool\nmessages[1].role: the older form: becomes the output of a tool"},
		{"P4: blank ids, of calls and of outputs", `[{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]},{"role":"tool","name":"g","content":"x"},{"role":"tool","content":"y"}]`,
			`[{"type":"function_call","arguments":"{}","call_id":"call_0_0","name":"f"},{"type":"function_call","arguments":"{}","call_id":"call_0_1","name":"g"},{"type":"function_call_output","call_id":"call_0_1","output":"x"},{"type":"function_call_output","call_id":"call_0_0","output":"y"}]`, "messages[1].name: stands in the call"},
		{"R1: reasoning before what it led to", `[{"role":"assistant","reasoning_content":"hm","content":"a","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}]`,
			`[{"id":"rs_chat_0","type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}],"summary":[]},{"type":"message","content":"a","role":"assistant"},{"type":"function_call","arguments":"{}","call_id":"c1","name":"f"}]`, ``},
		{"I13: blank messages add nothing", `[{"role":"user","content":""},{"role":"assistant","content":""},{"role":"user","content":"a"},{"role":"system","content":[]}]`,
			`[{"type":"message","content":"a","role":"user"}]`,
			"messages[0]: says nothing and is left out\nmessages[1]: says nothing and is left out\nmessages[3]: says nothing and is left out"},
		{"what has no counterpart is named", `[{"role":"user","name":"eve","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","audio":{"id":"au_1"},"content":"b"}]`,
			`[{"type":"message","content":[{"type":"input_text","text":"a"}],"role":"user"},{"type":"message","content":"b","role":"assistant"}]`,
			"messages[0].content[0].cache_control: has no counterpart\nmessages[0].name: has no counterpart\nmessages[1].audio: has no counterpart"},
		{"annotations", `[{"role":"assistant","content":"a","annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":1,"url":"u","title":"t"}}]}]`,
			`[{"id":"msg_chat_0","type":"message","status":"completed","content":[{"type":"output_text","annotations":[{"type":"url_citation","start_index":0,"end_index":1,"url":"u","title":"t"}],"text":"a"}],"role":"assistant"}]`, ``},
	} {
		items, losses, err := completions.ToItems([]byte(c.messages))
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		got := item.NewList(items...).JSON()
		if d := cmp.Diff(c.items, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.rule, d)
		}
		if d := cmp.Diff(c.losses, lines(losses)); d != "" {
			t.Errorf("%s: losses (-want +got):\n%s", c.rule, d)
		}
		body, err := (&api.Request{Model: "m", Input: item.NewList(items...)}).AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		spec.Check(t, "CreateResponse", body) // B6
	}
}

func lines(losses []completions.Loss) string {
	var list []string
	for _, l := range losses {
		list = append(list, l.String())
	}
	return strings.Join(list, "\n")
}

// I8: no guess at what somebody meant.
func TestToItemsRefuses(t *testing.T) {
	for messages, want := range map[string]string{
		`[{"role":"critic","content":"a"}]`: `messages[0].role: unknown role "critic"`,
		`[{"content":"a"}]`:                 `messages[0].role: it is missing; the roles are system`,
		`[{"role":7,"content":"a"}]`:        `messages[0].role: found the number 7`,
		`[7]`:                               `messages[0]: found the number 7`,
		`{"role":"user"}`:                   `messages: found an object, want a list`,
		`[{"role":"user","content":7}]`:     `messages[0].content: found the number 7`,
		`[{"role":"user","content":[7]}]`:   `messages[0].content[0]: found the number 7`,
		`[{"role":"user","content":"a"},{"role":"tool","content":"x"}]`:                                    `messages[1].tool_call_id: found no id of a call`,
		`[{"role":"function","name":"f","content":"x"}]`:                                                   `messages[0].name: no call of "f" waits`,
		`[{"role":"assistant","tool_calls":[{"id":"c"}]}]`:                                                 `messages[0].tool_calls[0]: found no function`,
		`[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"arguments":"{}"}}]}]`: `found no name of what is called`,
		`[{"role":"assistant","tool_calls":7}]`:                                                            `messages[0].tool_calls: found the number 7`,
		`[{"role":"tool","tool_call_id":"c","content":{"a":1}}]`:                                           `messages[0].content: found an object`,
		`[{"role":"assistant","content":null,"function_call":"f"}]`:                                        `messages[0].function_call: found a string`,
	} {
		_, _, err := completions.ToItems([]byte(messages))
		var shape *item.ShapeError
		if !errors.As(err, &shape) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", messages, err, want)
		}
	}
	for _, messages := range []string{`[]`, `[{"role":"user","content":""}]`} {
		if _, _, err := completions.ToItems([]byte(messages)); !errors.Is(err, completions.ErrNothing) {
			t.Errorf("%s: got %v", messages, err)
		}
	}
	var syntax *item.SyntaxError
	if _, _, err := completions.ToItems([]byte(`[{"role":`)); !errors.As(err, &syntax) || syntax.Offset != 9 {
		t.Errorf("got %v", err)
	}
}

func TestFromItems(t *testing.T) {
	reasoning := completions.Options{Reasoning: completions.ReasoningContent}
	for _, c := range []struct {
		rule, items, messages, losses string
		o                             completions.Options
	}{
		{rule: "a turn of the model's is one message", o: reasoning,
			items:    `[{"role":"user","content":"q"},{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"},{"type":"custom_tool_call","call_id":"c2","name":"sh","input":"ls"},{"type":"function_call_output","call_id":"c1","output":"x"},{"type":"custom_tool_call_output","call_id":"c2","output":"y"}]`,
			messages: `[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"a"}],"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c2","type":"custom","custom":{"name":"sh","input":"ls"}}]},{"role":"tool","tool_call_id":"c1","content":"x"},{"role":"tool","tool_call_id":"c2","content":"y"}]`,
			losses:   "input[1].id: has no counterpart\ninput[2].id: has no counterpart\ninput[2].status: has no counterpart"},
		{rule: "text alone as one string", o: completions.Options{Plain: true},
			items:    `[{"role":"user","content":[{"type":"input_text","text":"q"}]},{"role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},{"role":"user","content":[{"type":"input_text","text":"q"},{"type":"input_image","image_url":"u","detail":"high"}]}]`,
			messages: `[{"role":"user","content":"q"},{"role":"assistant","content":"a\nb"},{"role":"user","content":[{"type":"text","text":"q"},{"type":"image_url","image_url":{"url":"u","detail":"high"}}]}]`,
			losses:   "input: several parts become one text, a line break between them"},
		{rule: "T10: images of outputs follow the whole batch, once",
			items:    `[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x/1","detail":"low"}]},{"type":"function_call_output","call_id":"c2","output":[{"type":"input_image","image_url":"https://x/2"}]},{"role":"assistant","content":"done"}]`,
			messages: `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"a"},{"type":"text","text":"<image src=\"https://x/1\" detail=\"low\"/>"}]},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"<image src=\"https://x/2\"/>"}]},{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/1","detail":"low"}},{"type":"image_url","image_url":{"url":"https://x/2"}}]},{"role":"assistant","content":"done"}]`,
			losses:   "input[2].output[1]: follows in a user message, with a marker in its place\ninput[3].output[0]: follows in a user message, with a marker in its place"},
		{rule: "L5: what stands between calls and outputs comes behind them",
			items:    `[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"role":"user","content":"wait"},{"type":"function_call_output","call_id":"c1","output":"x"}]`,
			messages: `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"x"},{"role":"user","content":"wait"}]`,
			losses:   "input[1]: moved: outputs follow their calls at once"},
		{rule: "a text behind calls of the same turn joins it",
			items:    `[{"type":"function_call","call_id":"c1","name":"f","arguments":""},{"role":"assistant","content":"so"},{"type":"function_call_output","call_id":"c1","output":"x"}]`,
			messages: `[{"role":"assistant","content":"so","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"x"}]`,
			losses:   "input[1].content: moved: the order of the two is not the same"},
		{rule: "R6: reasoning is not sent alone", o: reasoning,
			items:    `[{"role":"user","content":"q"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}]`,
			messages: `[{"role":"user","content":"q"}]`,
			losses:   "input: reasoning with nothing behind it is left out"},
		{rule: "reasoning goes with what follows it", o: reasoning,
			items:    `[{"role":"assistant","content":"a"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},{"role":"assistant","content":"b"}]`,
			messages: `[{"role":"assistant","content":"a"},{"role":"assistant","content":"b","reasoning_content":"hm"}]`},
		{rule: "roles, and refusals", o: completions.Options{Roles: map[string]string{"developer": "system"}},
			items:    `[{"role":"developer","content":"a"},{"role":"assistant","content":[{"type":"output_text","text":"b"},{"type":"refusal","refusal":"no"}]}]`,
			messages: `[{"role":"system","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}],"refusal":"no"}]`},
		{rule: "items of other kinds are named",
			items:    `[{"role":"user","content":"q"},{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"tomorrow"}]`,
			messages: `[{"role":"user","content":"q"}]`,
			losses:   "input[1]: web_search_call has no counterpart and is left out\ninput[2]: tomorrow has no counterpart and is left out"},
		{rule: "what the model does not see is named as such",
			items:    `[{"role":"user","content":[{"type":"input_text","text":"q"},{"type":"input_image","file_id":"file_1"},{"type":"input_file","file_url":"https://x/a.pdf"}]}]`,
			messages: `[{"role":"user","content":[{"type":"text","text":"q"}]}]`,
			losses:   "input[0].content[1]: an image by its file id has no counterpart: send it as data or by a URL\ninput[0].content[2]: a file by its URL has no counterpart: send it as data or by a file id"},
		{rule: "a file id beside an image's URL is named",
			items:    `[{"role":"user","content":[{"type":"input_image","image_url":"https://x/a.png","file_id":"file_1"}]}]`,
			messages: `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/a.png"}}]}]`,
			losses:   "input[0].content[0].file_id: has no counterpart beside image_url"},
	} {
		items, err := item.ParseList(c.items)
		if err != nil {
			t.Fatal(err)
		}
		got, losses, err := completions.FromItems(item.NewList(items...), c.o)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		if d := cmp.Diff(c.messages, string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.rule, d)
		}
		if d := cmp.Diff(c.losses, lines(losses)); d != "" {
			t.Errorf("%s: losses (-want +got):\n%s", c.rule, d)
		}
	}
}

// I8, W6
func TestFromItemsRefuses(t *testing.T) {
	for items, want := range map[string]string{
		`[{"role":"critic","content":"a"}]`: `input[0].role: unknown role "critic"`,
		`[{"role":"user","content":7}]`:     `input[0].content: found the number 7`,
		`[{"role":"user","content":"q"},{"type":"function_call","call_id":"c","name":"f","arguments":{}}]`: `input[1].arguments: found an object`,
		`[{"type":"function_call_output","call_id":"c","output":5}]`:                                       `call c: input[0].output: found the number 5`,
	} {
		list, err := item.ParseList(items)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = completions.FromItems(item.NewList(list...), completions.Options{})
		var shape *item.ShapeError
		if !errors.As(err, &shape) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", items, err, want)
		}
	}
	if _, _, err := completions.FromItems(new(item.List), completions.Options{}); !errors.Is(err, completions.ErrNothing) {
		t.Errorf("got %v", err)
	}
}

// What Chat Completions can say goes there and back unchanged.
func TestThereAndBack(t *testing.T) {
	for _, messages := range []string{
		`[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u","detail":"high"}},{"type":"file","file":{"filename":"f","file_data":"d"}},{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]},{"role":"assistant","content":"b","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\u20ac\"}"}},{"id":"c2","type":"custom","custom":{"name":"g","input":"x"}}]},{"role":"tool","tool_call_id":"c1","content":"1"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"2"},{"type":"text","text":"3"}]},{"role":"assistant","content":null,"refusal":"no"}]`,
	} {
		items, losses, err := completions.ToItems([]byte(messages))
		if err != nil || losses != nil {
			t.Fatal(err, losses)
		}
		back, _, err := completions.FromItems(item.NewList(items...), completions.Options{Reasoning: completions.ReasoningContent})
		if d := cmp.Diff(messages, string(back)); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	}
}
