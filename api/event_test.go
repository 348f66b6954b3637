// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// W7: an event's common members are read; what is absent or odd is -1 or "".
func TestParseEvent(t *testing.T) {
	type members struct {
		Type                     api.EventType
		Seq                      int64
		ID                       string
		Output, Content, Summary int
		Delta                    string
	}
	for _, test := range []struct {
		in   string
		want members
	}{
		{`{}`, members{"", -1, "", -1, -1, -1, ""}},
		{`{"type":"response.output_text.delta","sequence_number":7,"item_id":"m","output_index":0,"content_index":1,"delta":"a\n\u0041","logprobs":[]}`,
			members{api.EventTextDelta, 7, "m", 0, 1, -1, "a\nA"}},
		{`{"type":"invented","summary_index":2,"delta":{"x":1}}`, members{"invented", -1, "", -1, -1, 2, ""}},
		{`{"type":5,"sequence_number":"1","item_id":null,"output_index":-1,"content_index":1.5,"delta":null}`, members{"", -1, "", -1, -1, -1, ""}},
		{`{"type":"a","\u0074ype":"b","delta":"x","delta":"y","output_index":2e0}`, members{"b", -1, "", 2, -1, -1, "y"}},
	} {
		e := event(t, " "+test.in+"\n")
		got := members{e.Type, e.SequenceNumber, e.ItemID, e.OutputIndex, e.ContentIndex, e.SummaryIndex, e.Delta}
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.in, got, test.want)
		}
		if e.JSON() != test.in {
			t.Errorf("JSON: %s", e.JSON())
		}
	}
	for _, in := range []string{`[]`, `"x"`, `null`, ` 5 `} {
		_, err := api.ParseEvent([]byte(in))
		wantShape(t, err, item.ShapeError{Problem: "want an event"})
	}
	for _, in := range []string{``, `{`, `{} x`, `nul`} {
		if _, err := api.ParseEvent([]byte(in)); err == nil || !strings.HasPrefix(err.Error(), "invalid JSON at byte ") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// An event does not change with the memory that it was read from; nor do items
// and responses taken out of one.
func TestEventStays(t *testing.T) {
	data := []byte(`{"type":"response.completed","item_id":"abc","delta":"text","item":{"type":"message","role":"user","content":"hi"},"response":{"id":"resp_1","status":"completed","output":[{"role":"assistant","content":"yo"}]},"error":{"code":"c"}}`)
	e, err := api.ParseEvent(data)
	if err != nil {
		t.Fatal(err)
	}
	kept := e
	it, err1 := e.Item()
	r, err2 := e.Response()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for i := range data {
		data[i] = '#'
	}
	if kept.Type != api.EventCompleted || kept.ItemID != "abc" || kept.Delta != "text" || kept.Text("delta") != "text" {
		t.Errorf("got %+v", kept)
	}
	if m := as[item.Message](t, it); m.Content.Text != "hi" {
		t.Errorf("got %+v", m)
	}
	if r.ID != "resp_1" || r.Status != item.StatusCompleted || r.Text() != "yo" {
		t.Errorf("got %+v", r)
	}
}

func TestEventWithoutItem(t *testing.T) {
	for _, in := range []string{`{"type":"x"}`, `{"type":"x","item":null,"response":[]}`} {
		_, err := event(t, in).Item()
		wantShape(t, err, item.ShapeError{Type: "x", Path: "item", Problem: "want an item"})
		_, err = event(t, in).Response()
		wantShape(t, err, item.ShapeError{Type: "x", Path: "response", Problem: "want a response"})
	}
	_, err := event(t, `{"type":"x","response":{"output":[5]}}`).Response()
	wantShape(t, err, item.ShapeError{Type: "x", Path: "output[0]", Problem: "want an item"})
}

// S3: every form of an error; null is none.
func TestEventErr(t *testing.T) {
	for _, test := range []struct {
		in   string
		want *api.APIError
	}{
		{`{"type":"error","code":"rate_limit","message":"slow down","param":null,"sequence_number":1}`,
			&api.APIError{Code: "rate_limit", Message: "slow down", Extra: item.Extra{{Name: "param", Value: "null"}, {Name: "sequence_number", Value: "1"}}}},
		{`{"type":"error","error":{"type":"invalid_request_error","code":"x","message":"m","param":"input"}}`,
			&api.APIError{Type: "invalid_request_error", Code: "x", Message: "m", Param: "input"}},
		{`{"type":"error","error":{"code":429,"message":"m"}}`,
			&api.APIError{Code: "429", Message: "m", Extra: item.Extra{{Name: "code", Value: "429"}}}},
		{`{"error":{"message":"untyped"}}`, &api.APIError{Message: "untyped"}},
		{`{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"m"}}}`,
			&api.APIError{Code: "server_error", Message: "m"}},
		{`{"type":"response.failed","response":{"id":"r","error":null}}`, nil},
		{`{"type":"response.failed"}`, nil},
		{`{"type":"response.completed","response":{"error":null}}`, nil},
		{`{"type":"response.created","error":null}`, nil},
		{`{"error":null}`, nil},
		{`{}`, nil},
	} {
		got, ok := event(t, test.in).Err()
		if ok != (test.want != nil) {
			t.Errorf("%s: %v, %+v", test.in, ok, got)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.in, diff)
		}
	}
	for want, e := range map[string]*api.APIError{
		"c: m": {Code: "c", Message: "m"}, "m": {Message: "m"}, "c: no message": {Code: "c"}, "no message": {},
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e.Error(), want)
		}
	}
}

func TestTerminal(t *testing.T) {
	for typ, want := range map[api.EventType]bool{
		api.EventCompleted: true, api.EventFailed: true, api.EventIncomplete: true, api.EventCancelled: true, api.EventError: true,
		api.EventCreated: false, api.EventItemDone: false, api.EventTextDone: false, "": false, "invented": false,
	} {
		if (api.Event{Type: typ}).Terminal() != want {
			t.Errorf("%q: want %v", typ, want)
		}
	}
}

// S3 S9: failed and incomplete responses are told with reason and usage.
func TestResponseEnds(t *testing.T) {
	r, _ := accumulate(t, "failed", []string{
		`{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"m"},"output":[]}}`})
	if r.Status != item.StatusFailed || r.Error == nil || r.Error.Code != "server_error" || r.Usage != nil {
		t.Errorf("got %+v", r)
	}
	r, _ = accumulate(t, "incomplete", []string{
		`{"type":"response.incomplete","response":{"id":"r","status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","id":"m","status":"incomplete","role":"assistant","content":[]}]}}`})
	if r.Incomplete == nil || r.Incomplete.Reason != "max_output_tokens" || r.Error != nil || len(r.Output) != 1 || r.Output[0].Status() != "incomplete" {
		t.Errorf("got %+v", r)
	}
	r, _ = accumulate(t, "completed", []string{
		`{"type":"response.completed","response":{"id":"r","output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15,"new":1}}}`})
	u := r.Usage
	if u.InputTokens != 10 || u.OutputTokens != 5 || u.TotalTokens != 15 || u.Cached() != 4 || u.CacheWrite() != 3 || u.Reasoning() != 2 {
		t.Errorf("got %+v", u)
	}
	for _, u := range []*api.Usage{nil, {}, {InputDetails: &api.InputTokensDetails{}}} {
		if u.Cached() != 0 || u.CacheWrite() != 0 || u.Reasoning() != 0 {
			t.Errorf("got %+v", u)
		}
	}
}

const (
	created   = `{"type":"response.created","response":{"id":"resp_1","status":"in_progress","model":"m","output":[]}}`
	completed = `{"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"m"}}`
)

func added(index, item string) string {
	return `{"type":"response.output_item.added","output_index":` + index + `,"item":` + item + `}`
}

// S4: deltas are joined as they come, empty and repeated ones too, and a done
// text takes their place.
func TestDeltas(t *testing.T) {
	message := added("0", `{"id":"m","type":"message","status":"in_progress","role":"assistant","phase":"commentary","content":[]}`)
	delta := func(text string) string {
		return `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":` + string(item.Quote(text)) + `}`
	}
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "a", " ", "😀", "\n", `"`, "\\"}), 1, 10).Draw(rt, "deltas")
		events := []string{created, message}
		for _, p := range parts {
			events = append(events, delta(p))
		}
		r, whole := accumulate(t, "deltas", append(events, completed))
		want := encode(rt, &item.Message{ID: "m", Status: "completed", Role: item.RoleAssistant, Phase: "commentary",
			Content: item.Parts(&item.OutputText{Text: strings.Join(parts, ""), Annotations: "[]"})})
		if len(r.Output) != 1 || r.Output[0] != want || len(whole) != 1 || whole[0] != want {
			rt.Fatalf("got %s, announced %s, want %s", jsonOf(r.Output), jsonOf(whole), want.JSON())
		}
	})
	r, _ := accumulate(t, "done", []string{message, delta("lost"),
		`{"type":"response.output_text.done","item_id":"m","content_index":0,"text":"whole"}`, completed})
	if r.Text() != "whole" {
		t.Errorf("got %s", jsonOf(r.Output))
	}
}

// S5 S6: the shapes in which servers send less, put together by hand.
func TestAccumulatorShapes(t *testing.T) {
	call := `{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":"","status":"in_progress"}`
	callDone := `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed"}`
	arguments := func(rest string) string {
		return `{"type":"response.function_call_arguments.delta",` + rest + `}`
	}
	done := func(it string) string { return `{"type":"response.output_item.done","item":` + it + `}` }
	for _, test := range []struct {
		name   string
		events []string
		want   string
	}{
		{"deltas of two calls, by id", []string{
			added("0", call), added("1", strings.NewReplacer("fc_1", "fc_2", "c1", "c2").Replace(call)),
			arguments(`"item_id":"fc_2","delta":"[2"`), arguments(`"item_id":"fc_1","delta":"[1"`),
			arguments(`"item_id":"fc_2","delta":"]"`), arguments(`"item_id":"fc_1","delta":"]"`), completed},
			`[` + strings.Replace(callDone, "{}", "[1]", 1) + `,` + strings.NewReplacer("fc_1", "fc_2", "c1", "c2", "{}", "[2]").Replace(callDone) + `]`},
		{"every output_index is 0", []string{
			added("0", call), `{"type":"response.output_item.done","output_index":0,"item":` + callDone + `}`,
			added("0", strings.ReplaceAll(call, "_1", "_2")), arguments(`"item_id":"fc_2","output_index":0,"delta":"{}"`), completed},
			`[` + callDone + `,` + strings.ReplaceAll(callDone, "_1", "_2") + `]`},
		{"items without ids", []string{
			added("0", `{"type":"function_call","call_id":"c1","name":"f","arguments":""}`), arguments(`"output_index":0,"delta":"{}"`), completed},
			`[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}","status":"completed"}]`},
		{"neither id nor index", []string{
			`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c1","name":"f","arguments":""}}`,
			arguments(`"delta":"{"`), arguments(`"delta":"}"`), completed},
			`[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}","status":"completed"}]`},
		{"done arguments and no deltas", []string{added("0", call),
			`{"type":"response.function_call_arguments.done","item_id":"fc_1","arguments":"{}"}`, completed}, `[` + callDone + `]`},
		{"done items only, the same one twice", []string{done(callDone), done(callDone), completed}, `[` + callDone + `]`},
		{"done items out of order", []string{
			`{"type":"response.output_item.done","output_index":1,"item":{"id":"b","type":"x"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"a","type":"x"}}`, completed},
			`[{"id":"a","type":"x"},{"id":"b","type":"x"}]`},
		{"text with no added item", []string{`{"type":"response.output_text.delta","item_id":"m","delta":"hi"}`, completed},
			`[{"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"hi"}]}]`},
		{"arguments with no added item", []string{arguments(`"item_id":"fc_1","delta":"{}"`), completed}, `[]`},
		{"refusal", []string{added("0", `{"id":"m","type":"message","role":"assistant","content":[]}`),
			`{"type":"response.refusal.delta","item_id":"m","content_index":0,"delta":"no"}`,
			`{"type":"response.refusal.done","item_id":"m","content_index":0,"refusal":"no way"}`, completed},
			`[{"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"no way"}]}]`},
		{"reasoning", []string{added("0", `{"id":"rs","type":"reasoning","summary":[]}`),
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs","summary_index":0,"delta":"a"}`,
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs","summary_index":1,"delta":"b"}`,
			`{"type":"response.reasoning_text.delta","item_id":"rs","content_index":0,"delta":"r"}`, completed},
			`[{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"content":[{"type":"reasoning_text","text":"r"}]}]`},
		{"custom tool input", []string{added("0", `{"id":"ctc","type":"custom_tool_call","call_id":"c","name":"n","input":""}`),
			`{"type":"response.custom_tool_call_input.delta","item_id":"ctc","delta":"x"}`,
			`{"type":"response.custom_tool_call_input.done","item_id":"ctc","input":"xy"}`, completed},
			`[{"id":"ctc","type":"custom_tool_call","call_id":"c","name":"n","input":"xy"}]`},
		{"an unknown item added", []string{added("0", `{"id":"z","type":"zebra","n":1.0}`), completed}, `[{"id":"z","type":"zebra","n":1.0}]`},
		{"other items in the last event", []string{done(callDone),
			`{"type":"response.completed","response":{"id":"r","output":[{"id":"rs","type":"reasoning","summary":[]},` + callDone + `]}}`},
			`[{"id":"rs","type":"reasoning","summary":[]},` + callDone + `]`},
		{"no events of items", []string{created, completed}, `[]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, whole := accumulate(t, test.name, test.events)
			sameJSON(t, "output", jsonOf(r.Output), test.want)
			if len(whole) != len(r.Output) {
				t.Errorf("announced %s", jsonOf(whole))
			}
		})
	}
}

// S2 S8: what was said before a stream broke off is kept and marked; calls are
// not made up.
func TestPartial(t *testing.T) {
	var a api.Accumulator
	if r, ended := a.Response(); r == nil || ended || len(a.Partial()) != 0 {
		t.Errorf("before any event: %+v, %v", r, ended)
	}
	for _, data := range []string{created,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"a","type":"message","role":"assistant","content":[]}}`,
		added("1", `{"id":"m","type":"message","status":"in_progress","role":"assistant","content":[]}`),
		`{"type":"response.output_text.delta","item_id":"m","content_index":0,"delta":"so f"}`,
		added("2", `{"id":"fc","type":"function_call","call_id":"c","name":"f","arguments":""}`),
		`{"type":"response.function_call_arguments.delta","item_id":"fc","delta":"{\"a"}`,
	} {
		if _, err := a.Add(event(t, data)); err != nil {
			t.Fatal(err)
		}
	}
	r, ended := a.Response()
	if ended || r.ID != "resp_1" || len(r.Output) != 1 || r.Output[0].ID() != "a" {
		t.Errorf("got %+v, %v", r, ended)
	}
	sameJSON(t, "partial", jsonOf(a.Partial()),
		`[{"id":"m","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"so f"}]}]`)
}

// A stream's error leaves the accumulator with what it had.
func TestErrorEnds(t *testing.T) {
	r, _ := accumulate(t, "error", []string{created,
		`{"type":"response.output_item.done","item":{"id":"a","type":"x"}}`, `{"type":"error","code":"c","message":"m"}`})
	if r.ID != "resp_1" || len(r.Output) != 1 {
		t.Errorf("got %+v", r)
	}
}

// W6: an event that cannot be read is told, and the rest goes on.
func TestAccumulatorErrors(t *testing.T) {
	var a api.Accumulator
	for _, data := range []string{
		`{"type":"response.output_item.added","item":"x"}`, `{"type":"response.output_item.done"}`,
		`{"type":"response.completed","response":{"output":[1]}}`,
	} {
		if items, err := a.Add(event(t, data)); err == nil || items != nil {
			t.Errorf("%s: %v, %v", data, items, err)
		}
	}
	if _, err := a.Add(event(t, `{"type":"response.output_item.done","item":{"id":"a","type":"x"}}`)); err != nil {
		t.Error(err)
	}
	if r, ended := a.Response(); !ended || len(r.Output) != 1 {
		t.Errorf("got %+v, %v", r, ended)
	}
}

// S5: parts that the added item has already are filled in their place.
func TestDeltasOfAddedParts(t *testing.T) {
	r, _ := accumulate(t, "parts", []string{
		added("0", `{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","text":""},{"type":"output_text","text":""}]}`),
		`{"type":"response.output_text.delta","item_id":"m","content_index":1,"delta":"b"}`,
		`{"type":"response.output_text.delta","item_id":"m","content_index":0,"delta":"a"}`, completed})
	if r.Text() != "a\nb" {
		t.Errorf("got %s", jsonOf(r.Output))
	}
}

// S5: items that are done stay as they are and come in the order of the last
// event, however that repeats them.
func TestFinalOutput(t *testing.T) {
	const a, b, c = `{"id":"a","type":"message","role":"assistant","content":[]}`, `{"id":"b","type":"function_call","call_id":"b","name":"f","arguments":"{}"}`, `{"id":"c","type":"message","role":"assistant","content":[]}`
	changed := strings.Replace(a, `"content"`, `"status":"completed","content"`, 1)
	for _, test := range []struct {
		output string
		want   []string
		rest   int // items that the last event brings
	}{
		{`[` + a + `,` + b + `]`, []string{a, b}, 0},
		{`[ ` + a + `, ` + b + ` ]`, []string{a, b}, 0},
		{`[` + changed + `,` + b + `]`, []string{a, b}, 0},
		{`[` + b + `,` + a + `]`, []string{b, a}, 0},
		{`[` + a + `,` + b + `,` + c + `]`, []string{a, b, c}, 1},
		{`[` + a + `]`, []string{a, b}, 0},
		{`[]`, []string{a, b}, 0},
	} {
		var acc api.Accumulator
		rest := 0
		for i, text := range []string{
			`{"type":"response.output_item.done","output_index":0,"item":` + a + `}`, `{"type":"response.output_item.done","output_index":1,"item":` + b + `}`,
			`{"type":"response.completed","response":{"id":"r","output":` + test.output + `,"status":"completed"}}`,
		} {
			ev, err := api.ParseEvent([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			items, err := acc.Add(ev)
			if err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				rest = len(items)
			}
		}
		r, whole := acc.Response()
		var got []string
		for _, it := range r.Output {
			got = append(got, it.JSON())
		}
		if diff := cmp.Diff(test.want, got); diff != "" || !whole || r.ID != "r" || rest != test.rest || len(r.Extra) > 1 {
			t.Errorf("%s: %d more, %v, extra %v (-want +got):\n%s", test.output, rest, whole, r.Extra, diff)
		}
	}
}
