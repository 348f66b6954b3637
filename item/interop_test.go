// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// record holds the package's values as other programs' structs do.
type record struct {
	Item  item.Item   `json:"item"`
	Items []item.Item `json:"items"`
	None  item.Item   `json:"none"`
	Raw   item.JSON   `json:"raw"`
}

// W8: in the structs of other encoders, items and JSON are raw JSON.
func TestEncodersOfOthers(t *testing.T) {
	in := record{
		Item:  parse(t, `{"type":"zebra","n":12345678901234567890,"s":"\u0041\/"}`),
		Items: []item.Item{item.User("a<b"), item.Call("c", "f", "{}")},
		Raw:   `[1.50,{"b":1,"a":2}]`,
	}
	want := `{"item":` + in.Item.JSON() + `,"items":` + jsonOf(in.Items) + `,"none":null,"raw":` + string(in.Raw) + `}`
	for name, c := range map[string]struct {
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
	}{
		"v1": {json.Marshal, json.Unmarshal},
		"v2": {func(v any) ([]byte, error) { return jsonv2.Marshal(v) }, func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) }},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			sameJSON(t, "encoded", string(got), want)
			var out record
			if err := c.unmarshal([]byte(want), &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(in, out, cmp.Comparer(func(a, b item.Item) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := c.unmarshal([]byte(`{"item":[]}`), &out); err == nil {
				t.Error("a list was taken as an item")
			}
		})
	}
}

// The bodies too.
func TestEncodersOfOthersBodies(t *testing.T) {
	l := item.NewList(item.User("a"))
	in := map[string]any{
		"list": l, "request": &api.Request{Model: "m", Input: l}, "response": &api.Response{ID: "r"},
		"usage": &api.Usage{InputTokens: 1}, "absent": item.JSON(""),
	}
	want := `{"list":` + l.JSON() + `,"request":{"model":"m","input":` + l.JSON() + `},` +
		`"response":{"id":"r","object":"response"},"usage":{"input_tokens":1,"output_tokens":0,"total_tokens":0},"absent":null}`
	v1, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	v2, err := jsonv2.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "v1", string(v1), want)
	sameJSON(t, "v2", string(v2), want)
}

// The reads that people make: a short description, never the payload.
func TestString(t *testing.T) {
	for in, want := range map[string]string{
		`{"role":"user","content":"secret"}`:                                         "message user",
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"k\":1}"}`: "function_call f c1",
		`{}`: "untyped item",
	} {
		if got := parse(t, in).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := (item.Item{}).String(); got != "no item" {
		t.Errorf("got %q", got)
	}
}

func TestMember(t *testing.T) {
	it := parse(t, `{"a":1,"b":{"c":"x"},"a":2,"\u0062\u0062":null}`)
	for name, want := range map[string]item.JSON{"a": "2", "b": `{"c":"x"}`, "bb": "null", "c": ""} {
		if got, ok := it.Member(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	if _, ok := (item.Item{}).Member("a"); ok {
		t.Error("the zero item has a member")
	}
}

func TestParseList(t *testing.T) {
	items, err := item.ParseList(` [ {"id":"a"} , {"type":"x"} ] `)
	if err != nil || len(items) != 2 || items[1].JSON() != `{"type":"x"}` {
		t.Errorf("got %s, %v", items, err)
	}
	if items, err := item.ParseList(`[]`); err != nil || items == nil || len(items) != 0 {
		t.Errorf("got %v, %v", items, err)
	}
	_, err = item.ParseList(`{}`)
	wantShape(t, err, item.ShapeError{Problem: "want a list of items"})
	_, err = item.ParseList(`[{},[]]`)
	wantShape(t, err, item.ShapeError{Path: "[1]", Problem: "want an item"})
}

func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		`invalid JSON at byte 3: bad`: &item.SyntaxError{Offset: 3, Problem: "bad"},
		`function_call_output: call c: output[1]: found a list, want a part`: &item.ShapeError{
			Type: item.TypeFunctionCallOutput, CallID: "c", Path: "output[1]", Problem: "found a list, want a part"},
		`found nothing`: &item.ShapeError{Problem: "found nothing"},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestMust(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Must took a text that is not UTF-8")
		}
	}()
	item.Must(&item.CustomToolCall{Input: "\xff"})
}

// W1 W2: a content by itself.
func TestContentJSON(t *testing.T) {
	for want, c := range map[string]item.Content{
		`"a\n"`: item.Text("a\n"), `""`: {}, `[]`: item.Parts(),
		`[{"type":"input_text","text":"a"},{"x":1}]`: item.Parts(&item.InputText{Text: "a"}, &item.UnknownPart{Raw: ` {"x":1} `}),
	} {
		if got, err := c.JSON(); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	if _, err := item.Parts(&item.UnknownPart{Raw: "{"}).JSON(); err == nil {
		t.Error("a part that is not JSON was encoded")
	}
}

// W8 G8: what has the methods of encoding/json comes back as it was, members without a field
// included, also into a value that held something else. A struct by itself is an error, as it
// would be written by the names of its Go fields.
func TestJSONOfStructs(t *testing.T) {
	list := item.NewList(item.User("a"), parse(t, `{"type":"zebra","n":1.50}`))
	tools, err := item.ParseTool([]byte(`{"type":"function","name":"f","parameters":{"b":1,"a":2},"strict":null,"x":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]interface {
		json.Marshaler
		json.Unmarshaler
	}{
		"list": list, "content": &item.Content{Parts: []item.Part{&item.InputText{Text: "x"}, &item.UnknownPart{Raw: `{"type":"tomorrow","n":1}`}}}, "text": &item.Content{Text: "x"},
		"request":  &api.Request{Model: "m", Tools: []item.Tool{tools}, MaxOutputTokens: new(int64(5)), Input: list, Extra: item.Extra{{Name: "y", Value: "[1]"}}},
		"response": &api.Response{ID: "r", Output: []item.Item{item.Assistant("x")}, Usage: &api.Usage{InputTokens: 1}, Extra: item.Extra{{Name: "y", Value: "[1]"}}},
		"usage":    &api.Usage{InputTokens: 1, Extra: item.Extra{{Name: "y", Value: "[1]"}}},
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, into := range []string{"empty", "full"} {
			got := reflect.New(reflect.TypeOf(v).Elem())
			if into == "full" {
				got.Elem().Set(reflect.ValueOf(v).Elem())
			}
			if err := json.Unmarshal(want, got.Interface()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if again, err := json.Marshal(got.Interface()); err != nil || string(again) != string(want) {
				t.Errorf("%s: %v\n%s\n%s", name, err, want, again)
			}
		}
		for _, bad := range []string{`{"a":`, `5`} {
			if err := v.UnmarshalJSON([]byte(bad)); err == nil {
				t.Errorf("%s: %s is read", name, bad)
			}
		}
	}
	for _, v := range []any{&item.FunctionTool{Name: "f"}, item.FunctionCall{}, &item.Message{}, []item.Part{&item.InputText{}}, &api.TextFormat{}} {
		if text, err := json.Marshal(v); err == nil || !strings.Contains(err.Error(), "item.New or item.ToolJSON") {
			t.Errorf("%T: %s, %v", v, text, err)
		}
	}
	if got, err := item.ToolJSON(tools); err != nil || got != `{"type":"function","name":"f","parameters":{"b":1,"a":2},"strict":null,"x":1}` {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []item.Tool{nil, (*item.MCPTool)(nil), &item.UnknownTool{}, &item.UnknownTool{Raw: "{"}} {
		if got, err := item.ToolJSON(bad); err == nil {
			t.Errorf("%T: %s", bad, got)
		}
	}
}
