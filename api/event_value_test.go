// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// eventTypes are the types of the document's stream events.
func eventTypes(t *testing.T) []EventType {
	t.Helper()
	var out []EventType
	for _, b := range apispec.LoadSchemas(t).Branches("ResponseStreamEvent") {
		out = append(out, EventType(b.Types()[0]))
	}
	return out
}

// filledEvent is an event with every field set to what its schema allows, but
// what WebSockets alone have.
func filledEvent(typ EventType) EventValue {
	v := newEvent(typ)
	apispec.Fill(reflect.ValueOf(v).Elem(), given)
	reflect.ValueOf(v).Elem().FieldByName("StreamID").SetString("")
	switch v := v.(type) {
	case *ProgressEvent:
		v.Type = typ
	case *SummaryPartAddedEvent:
		v.Part = &item.SummaryText{Text: "x"}
	case *SummaryPartDoneEvent:
		v.Part, v.Status = &item.SummaryText{Text: "x"}, item.StatusIncomplete
	case *ShellOutputDoneEvent:
		v.Output[0].Outcome = item.ShellExit(1)
	case *TextDeltaEvent:
		v.Logprobs = []item.TokenLogprob{{Token: "x", Logprob: -0.5, Top: []item.TopLogprob{{Token: "x", Logprob: -0.5}}}}
	case *TextDoneEvent:
		v.Logprobs = nil
	case *ShellCommandAddedEvent:
		v.ItemID = ""
	case *ShellCommandDeltaEvent:
		v.ItemID = ""
	case *ShellCommandDoneEvent:
		v.ItemID = ""
	case *ErrorEvent:
		v.Status, v.Error = nil, nil
	}
	if r := reflect.ValueOf(v).Elem().FieldByName("Response"); r.IsValid() {
		r.Set(reflect.ValueOf(&Response{ID: "resp_1", CreatedAt: new(1.5), Model: "gpt-5", Output: []item.Item{someItem}, Instructions: "null",
			Metadata: "{}", ParallelToolCalls: new(true), Temperature: new(1.0), TopP: new(0.5), ToolChoice: ChoiceAuto, Tools: "[]",
			Extra: item.Extra{{Name: "error", Value: "null"}, {Name: "incomplete_details", Value: "null"}}}))
	}
	return v
}

// W12: every event, built by hand, is valid and is read back as it was built,
// as a view and as a struct.
func TestEveryEvent(t *testing.T) {
	spec := apispec.Load(t)
	types := eventTypes(t)
	if len(types) != 58 {
		t.Errorf("%d events", len(types))
	}
	for _, typ := range types {
		v := filledEvent(typ)
		e, err := NewEvent(v)
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		checkEvent(t, spec, e)
		back, err := e.Decode()
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		if diff := cmp.Diff(v, back, sameItems); diff != "" {
			t.Errorf("%s (-built +read):\n%s", e.JSON(), diff)
		}
	}
}

var sameItems = cmp.Comparer(func(x, y item.Item) bool { return x == y })

// extras are members that endpoints send and the document leaves out.
var extras = []string{"/obfuscation", "/background", "/output_format", "/quality", "/size", "/response_id"}

func checkEvent(t *testing.T, spec *apispec.Spec, e Event) {
	t.Helper()
	faults, err := spec.Faults("ResponseStreamEvent", []byte(e.JSON()))
	if err != nil {
		t.Error(err)
	}
	for _, f := range faults {
		known := false
		for _, x := range extras {
			known = known || strings.HasPrefix(f, x+": unknown member")
		}
		if !known {
			t.Errorf("%s: %s", e.JSON(), f)
		}
	}
}

// W7: an event with members gone or odd is read without loss.
func TestEventsLoseNothing(t *testing.T) {
	for _, typ := range eventTypes(t) {
		e, err := NewEvent(filledEvent(typ))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var values []string
		jsonx.EachMember(e.JSON(), func(name, value string) { names, values = append(names, name), append(values, value) })
		for i := range names {
			if names[i] == `"type"` {
				continue
			}
			for _, odd := range []string{"", "null", "5", "1.5", "-1", `"s"`, `""`, "[]", "{}", "[5]", "true"} {
				again(t, rebuilt(names, values, i, odd))
			}
		}
	}
}

// rebuilt is an object in which one value is another, or is gone when that is
// "".
func rebuilt(names, values []string, i int, other string) string {
	var members []string
	for k := range names {
		v := values[k]
		if k == i {
			v = other
		}
		if v != "" {
			members = append(members, names[k]+":"+v)
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func again(t *testing.T, s string) {
	t.Helper()
	e, err := ParseEvent([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.Decode()
	if err != nil {
		if shape := new(item.ShapeError); !errors.As(err, &shape) || shape.Type != item.Type(e.Type) {
			t.Errorf("%v in %s", err, s)
		}
		return
	}
	out, err := NewEvent(v)
	if err != nil {
		t.Fatal(err)
	}
	sameMembers(t, s, out.JSON())
}

// sameMembers fails the test unless the two objects have the same members with
// the same text.
func sameMembers(t *testing.T, want, got string) {
	t.Helper()
	list := func(s string) map[string]string {
		m := map[string]string{}
		jsonx.EachMember(s, func(name, value string) { m[name] = value })
		return m
	}
	x, y := list(want), list(got)
	for k := range y {
		if x[k] != y[k] && (len(x[k]) > 40 || x[k] != "" && x[k][0] == '{') && len(y[k]) > 0 {
			y[k] = x[k] // nested objects have their own tests, and their own order
		}
	}
	if diff := cmp.Diff(x, y); diff != "" {
		t.Errorf("%s (-want +got):\n%s", want, diff)
	}
}

func TestEventAs(t *testing.T) {
	data := []byte(`{"type":"response.image_generation_call.partial_image","item_id":"ig","partial_image_b64":"AAAA","partial_image_index":2,"new":1}`)
	e, err := ParseEvent(data)
	if err != nil {
		t.Fatal(err)
	}
	p, err := EventAs[ImagePartialEvent](e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := EventAs[TextDeltaEvent](e); !errors.Is(err, item.ErrType) {
		t.Errorf("got %v", err)
	}
	raw, err := EventAs[UnknownEvent](e)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = '#'
	}
	if p.Image != "AAAA" || p.Index != 2 || p.ItemID != "ig" || p.OutputIndex != -1 || p.SequenceNumber != -1 {
		t.Errorf("got %+v", p)
	}
	if v, ok := p.Extra.Get("new"); !ok || v != "1" {
		t.Errorf("got %+v", p.Extra)
	}
	if raw.EventType() != EventImagePartial {
		t.Errorf("got %s", raw.Raw)
	}
}

// W7: events that the document does not have are kept byte for byte.
func TestUnknownEvents(t *testing.T) {
	for _, s := range []string{`{"type":"keepalive","sequence_number":3}`, `{"type":"response.reasoning_part.added","part":{ "x":1.0 }}`, `{"type":"response.cancelled"}`, `{"x":null}`, `{}`} {
		e, err := ParseEvent([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Decode()
		if err != nil {
			t.Fatal(err)
		}
		u, ok := v.(*UnknownEvent)
		if !ok || u.EventType() != e.Type {
			t.Errorf("%s: got %T %s", s, v, v.EventType())
		}
		out, err := NewEvent(v)
		if err != nil || out.JSON() != s {
			t.Errorf("%s: written as %s, %v", s, out.JSON(), err)
		}
	}
	if _, err := NewEvent(&TextDeltaEvent{Delta: "\xff"}); err == nil {
		t.Error("a text that is not UTF-8 was written")
	}
}

// S3: an error on a WebSocket.
func TestSocketError(t *testing.T) {
	spec := apispec.Load(t)
	v := &ErrorEvent{EventHead: EventHead{StreamID: "s"}, Status: new(int64(400)),
		Error: &APIError{Type: "invalid_request_error", Code: "c", Message: "m", Param: "p", Headers: map[string]string{"a": "b"}}}
	e, err := NewEvent(v)
	if err != nil {
		t.Fatal(err)
	}
	spec.Check(t, "ResponsesServerEvent", []byte(e.JSON()))
	back, err := EventAs[ErrorEvent](e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, back); diff != "" {
		t.Errorf("(-built +read):\n%s", diff)
	}
	if apiErr, ok := e.Err(); !ok || apiErr.Code != "c" {
		t.Errorf("got %v", apiErr)
	}
}

// W7: members of the caller are written once each, however many the records before had.
func TestExtraOfManyRecords(t *testing.T) {
	for _, n := range []int{1, 2, 300, 1, 300, 2} {
		var r Response
		for i := range n {
			name := fmt.Sprintf("own_%d", i)
			r.Extra = append(r.Extra, item.Member{Name: name, Value: "1"}, item.Member{Name: name, Value: "2"})
		}
		text, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if name := fmt.Sprintf(`"own_%d":1`, i); strings.Count(string(text), name) != 1 || bytes.Contains(text, []byte(":2")) {
				t.Fatalf("%d members: %s is not there once in %.200s", n, name, text)
			}
		}
	}
}
