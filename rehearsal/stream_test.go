// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

const everything = `
turn
  reason I should look around first.
  say Hello, wörld 😀.
  pause 1ms
  say And more.
  call read_file {"path": "{{first_line "a\nb"}}"}
  call_raw read_file {"path":
  custom patch *** Begin
  say Done.
`

func everythingRequest() *api.Request {
	req := request([]string{"read_file"}, item.System("Be brief."), item.User("Hi"))
	req.Instructions = "Obey."
	req.Include = []string{api.IncludeEncryptedReasoning}
	req.Temperature = new(0.5)
	req.Metadata = `{"k":"v"}`
	return req
}

// The events of every kind of output, one by one, as the schema has them.
func TestEventSequence(t *testing.T) {
	url := start(t, &Server{Script: parse(t, everything)})
	var got []string
	for i, e := range streamed(t, url, everythingRequest()) {
		if e.SequenceNumber != int64(i) {
			t.Errorf("event %d has sequence number %d", i, e.SequenceNumber)
		}
		got = append(got, describe(e))
	}
	want := strings.Split(strings.TrimSpace(`
response.created in_progress 0
response.in_progress in_progress 0
response.output_item.added 0 reasoning
response.reasoning_summary_part.added 0/0
response.reasoning_summary_text.delta 0/0 "I "
response.reasoning_summary_text.delta 0/0 "should "
response.reasoning_summary_text.delta 0/0 "look "
response.reasoning_summary_text.delta 0/0 "around "
response.reasoning_summary_text.delta 0/0 "first."
response.reasoning_summary_text.done 0/0 "I should look around first."
response.reasoning_summary_part.done 0/0
response.output_item.done 0 reasoning
response.output_item.added 1 message
response.content_part.added 1/0
response.output_text.delta 1/0 "Hello, "
response.output_text.delta 1/0 "wörld "
response.output_text.delta 1/0 "😀."
response.output_text.delta 1/0 "\n"
response.output_text.delta 1/0 "And "
response.output_text.delta 1/0 "more."
response.output_text.done 1/0 "Hello, wörld 😀.\nAnd more."
response.content_part.done 1/0
response.output_item.done 1 message
response.output_item.added 2 function_call
response.function_call_arguments.delta 2 "{\"path\": "
response.function_call_arguments.delta 2 "\"a\"}"
response.function_call_arguments.done 2 "{\"path\": \"a\"}"
response.output_item.done 2 function_call
response.output_item.added 3 function_call
response.function_call_arguments.delta 3 "{\"path\":"
response.function_call_arguments.done 3 "{\"path\":"
response.output_item.done 3 function_call
response.output_item.added 4 custom_tool_call
response.custom_tool_call_input.delta 4 "*** "
response.custom_tool_call_input.delta 4 "Begin"
response.custom_tool_call_input.done 4 "*** Begin"
response.output_item.done 4 custom_tool_call
response.output_item.added 5 message
response.content_part.added 5/0
response.output_text.delta 5/0 "Done."
response.output_text.done 5/0 "Done."
response.content_part.done 5/0
response.output_item.done 5 message
response.completed completed 6`), "\n")
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// describe shows an event's type, place and text.
func describe(e api.Event) string {
	s := string(e.Type)
	if r, err := e.Response(); err == nil {
		return fmt.Sprintf("%s %s %d", s, r.Status, len(r.Output))
	}
	s += fmt.Sprintf(" %d", e.OutputIndex)
	if it, err := e.Item(); err == nil {
		return s + " " + string(it.Type())
	}
	switch {
	case e.ContentIndex >= 0:
		s += fmt.Sprintf("/%d", e.ContentIndex)
	case e.SummaryIndex >= 0:
		s += fmt.Sprintf("/%d", e.SummaryIndex)
	}
	if text := cmp.Or(e.Delta, e.Text("text"), e.Text("arguments"), e.Text("input")); text != "" {
		s += fmt.Sprintf(" %q", text)
	}
	return s
}

// S4 S5 W9: the stream, its deltas and the whole response say the same. Fresh
// servers, so that the count of cached tokens is the same too.
func TestStreamEqualsWhole(t *testing.T) {
	script := parse(t, everything)
	whole := create(t, start(t, &Server{Script: script}), everythingRequest())
	list := streamed(t, start(t, &Server{Script: script}), everythingRequest())

	last, err := list[len(list)-1].Response()
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(encodeResponse(t, whole), encodeResponse(t, last)); d != "" {
		t.Errorf("completed event against whole response (-whole +event):\n%s", d)
	}
	var full, bare api.Accumulator
	for _, e := range list {
		if _, err := full.Add(e); err != nil {
			t.Error(err)
		}
		if e.Type == api.EventItemAdded || e.Delta != "" {
			if _, err := bare.Add(e); err != nil { // only what a stream that breaks off has
				t.Error(err)
			}
		}
	}
	got, terminal := full.Response()
	if !terminal {
		t.Error("the stream has no last event")
	}
	if d := gocmp.Diff(encodeResponse(t, whole), encodeResponse(t, got)); d != "" {
		t.Errorf("accumulated against whole response (-whole +events):\n%s", d)
	}
	if text := bare.Partial()[1]; !strings.Contains(text.JSON(), "wörld 😀.\\nAnd more.") {
		t.Errorf("deltas alone give %s", text.JSON())
	}
}

func encodeResponse(t *testing.T, r *api.Response) string {
	t.Helper()
	b, err := r.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every event and response is valid by the published schema.
func TestSchema(t *testing.T) {
	spec := apispec.Load(t)
	server := &Server{Script: parse(t, everything+"again\nturn\n  say Bye.\n")}
	url := start(t, server)
	for _, req := range []*api.Request{everythingRequest(), request(nil, item.User("x"))} {
		for _, e := range streamed(t, url, req) {
			spec.Check(t, "ResponseStreamEvent", []byte(e.JSON()))
		}
		spec.Check(t, "Response", []byte(encodeResponse(t, create(t, url, req))))
	}
	resp, refusal := post(t, url, []byte(`{"model":"m"}`))
	object, err := item.Parse(refusal)
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Fatalf("%v, %s: %s", err, resp.Status, refusal)
	}
	body, _ := object.Member("error")
	spec.Check(t, "Error", []byte(body))
}
