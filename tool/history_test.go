// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

func readTool(t *testing.T, parts ...item.Part) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(tool.Must("read", "", func(context.Context, struct{}) (tool.Result, error) {
		return tool.Result{Text: strings.Repeat("line\n", 1000), Parts: parts}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func readCall(t *testing.T, id string) item.Item {
	t.Helper()
	call, err := item.New(&item.FunctionCall{CallID: id, Name: "read", Arguments: "{}"})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// T8: what was sent stays as it was sent. A history holds outputs, not results:
// other settings write later outputs otherwise, and the bytes before them are
// the same.
func TestSentOutputsStay(t *testing.T) {
	set := readTool(t)
	var history item.List
	answer := func(id string, shape output.Policy) {
		call := readCall(t, id)
		out := set.Invoke(t.Context(), tool.Call{ID: id, Name: "read"}, shape)
		output, ok, err := item.OutputFor(call, out.Content)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		history.Append(call, output)
	}
	request := func() string { return strings.TrimSuffix(history.JSON(), "]") }
	before := ""
	for i, shape := range []output.Policy{
		{Limit: &output.Limit{Bytes: 2000}},
		{Envelope: true, Limit: &output.Limit{Bytes: 1200, Mode: output.Sample}},
		{},
		{Envelope: true},
	} {
		answer(string(rune('a'+i)), shape)
		now := request()
		if !strings.HasPrefix(now, before) || now == before {
			t.Fatalf("shape %d rewrote what was sent:\n%.300s\n%.300s", i, before, now)
		}
		before = now
	}
}

// T3: the envelope reads the same over both APIs, and the image stays a part.
func TestEnvelopeOnBothAPIs(t *testing.T) {
	shape := output.Policy{Envelope: true, Limit: &output.Limit{Bytes: 1024}}
	want := readTool(t).Invoke(t.Context(), tool.Call{Name: "read"}, shape).Content.Text
	if !strings.HasPrefix(want, "status:\nsuccess\n\ntoolName:\nread\n\nerror:\n\n\noutput:\nline\n") {
		t.Fatalf("%q", want)
	}
	call := readCall(t, "c")
	for name, parts := range map[string][]item.Part{
		"text":      nil,
		"and image": {&item.InputImage{ImageURL: "https://example.com/a.png"}},
	} {
		out := readTool(t, parts...).Invoke(t.Context(), tool.Call{ID: "c", Name: "read"}, shape)
		output, _, err := item.OutputFor(call, out.Content)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(output.JSON(), string(item.Quote(want))) {
			t.Errorf("%s: Responses sends %s", name, output.JSON())
		}
		var list item.List
		list.Append(item.User("x"), call, output)
		chat, _, err := completions.FromItems(&list, completions.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(chat), string(item.Quote(want))) {
			t.Errorf("%s: Chat Completions sends %s", name, chat)
		}
		if len(parts) > 0 && !strings.Contains(string(chat), "https://example.com/a.png") {
			t.Errorf("%s: the image is lost: %s", name, chat)
		}
	}
}
