// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// tester is what the helpers need of *testing.T and *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// parse returns the item or fails the test.
func parse(t tester, s string) item.Item {
	t.Helper()
	it, err := item.ParseString(s)
	if err != nil {
		t.Fatalf("ParseString(%.200s): %v", s, err)
	}
	return it
}

// decode returns the item's value or fails the test.
func decode(t tester, it item.Item) item.Value {
	t.Helper()
	v, err := it.Decode()
	if err != nil {
		t.Fatalf("Decode(%.200s): %v", it.JSON(), err)
	}
	return v
}

// encode returns the value's item or fails the test.
func encode(t tester, v item.Value) item.Item {
	t.Helper()
	it, err := item.New(v)
	if err != nil {
		t.Fatalf("New(%+v): %v", v, err)
	}
	return it
}

// as returns the item in its struct or fails the test.
func as[T any, P interface {
	*T
	item.Value
}](t tester, it item.Item) *T {
	t.Helper()
	v, err := item.As[T, P](it)
	if err != nil {
		t.Fatalf("As(%.200s): %v", it.JSON(), err)
	}
	return v
}

// event returns the event or fails the test.
func event(t tester, s string) api.Event {
	t.Helper()
	e, err := api.ParseEvent([]byte(s))
	if err != nil {
		t.Fatalf("ParseEvent(%.200s): %v", s, err)
	}
	return e
}

// roundTrip decodes and encodes the item s.
func roundTrip(t tester, s string) string {
	t.Helper()
	return encode(t, decode(t, parse(t, s))).JSON()
}

// plain reads JSON into Go values that compare by meaning: the order of
// members, escapes and the spelling of numbers do not show.
func plain(t tester, s string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.200s", err, s)
	}
	return normal(v)
}

func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case json.Number:
		return number(v.String())
	}
	return v
}

func number(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return s
	case f == math.Trunc(f) && math.Abs(f) < 1<<53:
		return int64(f)
	}
	return f
}

// sameJSON fails the test where the two texts do not mean the same.
func sameJSON(t tester, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	if x, y := plain(t, want), plain(t, got); !reflect.DeepEqual(x, y) {
		t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(x, y))
	}
}

// jsonOf joins the items to an array.
func jsonOf(items []item.Item) string { return item.NewList(items...).JSON() }

// wantShape fails the test unless err is a ShapeError with these members.
func wantShape(t tester, err error, want item.ShapeError) {
	t.Helper()
	var got *item.ShapeError
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want a *ShapeError", err)
	}
	if got.Type != want.Type || got.CallID != want.CallID || got.Path != want.Path {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	if !strings.Contains(got.Problem, want.Problem) {
		t.Errorf("problem %q does not say %q", got.Problem, want.Problem)
	}
}

// memberOf returns the named member of an object's JSON.
func memberOf(t tester, s, name string) (item.JSON, bool) { return parse(t, s).Member(name) }

func body(t tester, appendJSON func([]byte) ([]byte, error)) string {
	t.Helper()
	b, err := appendJSON([]byte("x"))
	if err != nil || len(b) == 0 || b[0] != 'x' {
		t.Fatalf("AppendJSON: %q, %v", b, err)
	}
	return string(b[1:])
}

// seeds are items of every shape that the decoders treat apart.
var seeds = []string{
	`{"role":"user","content":"hi"}`,
	`{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"hi"},{"type":"refusal","refusal":"no"}]}`,
	`{"type":"message","role":"user","content":[{"type":"input_image","image_url":{"url":"https://x/y.png","detail":"low"}},{"type":"input_file","file_id":"f","detail":null},{"type":"input_audio","x":1}]}`,
	`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{\"a\":1}","status":"completed"}`,
	`{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"auto"}]}`,
	`{"type":"custom_tool_call","call_id":"c","name":"n","input":"i","namespace":null}`,
	`{"type":"custom_tool_call_output","call_id":"c","output":""}`,
	`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}],"content":null,"encrypted_content":"e"}`,
	`{"type":"web_search_call","id":"ws_1","action":{"n":1e400,"n":12345678901234567890}}`,
	`{"id":"msg_9"}`,
	`{"type":"function_call_output","call_id":"c","output":5}`,
	`{"\u0074ype":"message","role":"user","role":"system","content":"\ud800","x":{},"x":[null]}`,
	`{"type":"mcp_approval_request","id":"a"}`,
	` { } `,
}
