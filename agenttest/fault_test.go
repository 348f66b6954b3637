// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

func everything() []item.Item {
	return []item.Item{
		item.Must(&item.Reasoning{Summary: []item.Part{&item.SummaryText{Text: "First, think."}}, EncryptedContent: "gAAA"}),
		item.Assistant("Hello, you"),
		item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Parts(&item.Refusal{Refusal: "no"})}),
		item.Call("call_1", "read_file", `{"path":"a"}`),
		item.Must(&item.CustomToolCall{CallID: "call_2", Name: "sql", Input: "select 1"}),
	}
}

// ask posts a request and returns the body of the answer.
func ask(t *testing.T, srv *agenttest.Server, body string) string {
	t.Helper()
	resp, err := http.Post(srv.URL+"/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func dataOf(stream string) (list []string) {
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			list = append(list, strings.TrimSpace(data))
		}
	}
	return list
}

// The events come in the API's order, numbered.
func TestReplyEvents(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("Hello, you"), item.Call("call_1", "f", "")))
	stream := ask(t, srv, `{"model":"m","input":"x","stream":true}`)
	var got []string
	for i, data := range dataOf(stream) {
		ev, err := api.ParseEvent([]byte(data))
		if err != nil || ev.SequenceNumber != int64(i) {
			t.Errorf("event %d: %v: %s", i, err, data)
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s", ev.Type, ev.Delta)))
	}
	want := []string{
		"response.created", "response.in_progress",
		"response.output_item.added", "response.content_part.added",
		"response.output_text.delta Hello,", "response.output_text.delta", "response.output_text.delta you", "response.output_text.done",
		"response.content_part.done", "response.output_item.done",
		"response.output_item.added", "response.function_call_arguments.delta {}", "response.function_call_arguments.done", "response.output_item.done",
		"response.completed",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if reqs := srv.Requests(); len(reqs) != 1 || reqs[0].Method != "POST" || reqs[0].Path != "/v1/responses" || reqs[0].Parse(t).Model != "m" {
		t.Errorf("recorded %+v", reqs)
	}
}

// B6: what the server sends is valid by the API's schema, except where a test
// asks for a fault.
func TestRepliesAreValid(t *testing.T) {
	response, event := schemas(t)
	for name, a := range map[string]agenttest.Reply{
		"reply":      agenttest.Completed(everything()...),
		"incomplete": agenttest.Incomplete("max_output_tokens", everything()...),
		"failed":     agenttest.Failed("server_error", "it broke", everything()...),
		"error":      agenttest.ErrorEvent("server_error", "it broke", everything()...),
	} {
		srv := agenttest.NewServer(t, a, a)
		for _, data := range dataOf(ask(t, srv, `{"model":"m","input":"x","stream":true}`)) {
			validate(t, name, event, data)
		}
		if name != "error" {
			validate(t, name, response, ask(t, srv, `{"model":"m","input":"x"}`))
		}
	}
}

func validate(t *testing.T, name string, s *jsonschema.Schema, text string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, text)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %.1500v\n%s", name, err, text)
	}
}

// schemas are those of a response and of a stream event.
func schemas(t *testing.T) (response, event *jsonschema.Schema) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		raw, err := os.ReadFile(filepath.Join(dir, "shared", "spec", "openai-responses.openapi.json"))
		if err != nil {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		relax(doc)
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		if err := c.AddResource("mem://spec.json", doc); err != nil {
			t.Fatal(err)
		}
		response, err = c.Compile("mem://spec.json#/components/schemas/Response")
		if err != nil {
			t.Fatal(err)
		}
		event, err = c.Compile("mem://spec.json#/components/schemas/ResponseStreamEvent")
		if err != nil {
			t.Fatal(err)
		}
		return response, event
	}
	t.Skip("no schema: ../shared/spec is not beside the checkout")
	return nil, nil
}

// relax takes out of the published document what keeps it from being used: its
// oneOf branches overlap, and keywords of an older draft are left in it.
func relax(v any) {
	switch v := v.(type) {
	case map[string]any:
		if branches, ok := v["oneOf"]; ok && v["anyOf"] == nil {
			v["anyOf"] = branches
			delete(v, "oneOf")
		}
		delete(v, "$recursiveAnchor")
		delete(v, "$recursiveRef")
		for _, child := range v {
			relax(child)
		}
	case []any:
		for _, child := range v {
			relax(child)
		}
	}
}

// A whole reply is the same response as the streamed one.
func TestReplyWhole(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed(everything()...), agenttest.Failed("server_error", "it broke"))
	var got struct {
		Status string `json:"status"`
		Output []any  `json:"output"`
	}
	if err := json.Unmarshal([]byte(ask(t, srv, `{"input":"x"}`)), &got); err != nil || got.Status != "completed" || len(got.Output) != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(ask(t, srv, `{"input":"x"}`)), &got); err != nil || got.Status != "failed" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Each fault is what its name says, seen from a plain HTTP client.
func TestFaults(t *testing.T) {
	reply := agenttest.Completed(item.Assistant("hi"))
	get := func(a agenttest.Reply) (*http.Response, string, error) {
		srv := agenttest.NewServer(t, a)
		defer http.DefaultClient.CloseIdleConnections()
		resp, err := http.Post(srv.URL+"/responses", "application/json", strings.NewReader(`{"stream":true}`))
		if err != nil {
			return nil, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp, string(b), err
	}
	if _, _, err := get(agenttest.Reset()); err == nil {
		t.Error("Reset: no error")
	}
	if _, body, err := get(reply.CutAfter(100)); err != io.ErrUnexpectedEOF || len(body) != 100 {
		t.Errorf("CutAfter: %d bytes, %v", len(body), err)
	}
	if _, body, err := get(reply.WithHeader("Content-Length", "100")); err != nil || len(body) != 100 {
		t.Errorf("Content-Length: %d bytes, %v", len(body), err)
	}
	if _, body, err := get(reply.WithoutLast()); err != nil || strings.Contains(body, "response.completed") {
		t.Errorf("WithoutLast: %v", err)
	}
	if _, body, err := get(reply.WithoutLast().WithDone().WithEvent(-1, "x\ny")); err != nil || !strings.HasSuffix(body, "\n\ndata: x\ndata: y\n\ndata: [DONE]\n\n") {
		t.Errorf("WithDone, WithEvent: %q, %v", body, err)
	}
	resp, body, err := get(agenttest.Failure(429, "c", "m").RetryAfter("7"))
	if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" || !strings.Contains(body, `"code":"c"`) {
		t.Errorf("Failure: %v %s %v", resp, body, err)
	}
	release := make(chan struct{})
	close(release)
	if _, body, err := get(reply.StallAfter(3, release).InPieces(10, 20)); err != nil || !strings.Contains(body, "response.completed") {
		t.Errorf("StallAfter: %s, %v", body, err)
	}
}

// A request beyond the answers fails the test.
func TestNoAnswerLeft(t *testing.T) {
	fake := &recorder{TB: t}
	srv := agenttest.NewServer(fake)
	if body := ask(t, srv, `{}`); !fake.failed || !strings.Contains(body, "no_answer_left") {
		t.Errorf("failed %v: %s", fake.failed, body)
	}
}

type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
