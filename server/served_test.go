// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
)

// serve plays a script on a socket for the time of a test.
func serve(t testing.TB, script string, change func(*rehearsal.Server)) (baseURL string) {
	t.Helper()
	s, err := rehearsal.Parse("s.script", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server := &rehearsal.Server{Script: s}
	if change != nil {
		change(server)
	}
	base, stop, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return base
}

// full is a profile that withholds nothing: the endpoint is to say what it has.
var full = &endpoint.Profile{
	Name: "full", APIs: []string{endpoint.APIResponses, endpoint.APIChat},
	PreviousResponse: endpoint.Yes, Conversations: endpoint.Yes, Background: endpoint.Yes, Stored: endpoint.Yes,
	WebSocket: endpoint.Yes, Compact: endpoint.Yes, InputTokens: endpoint.Yes,
}

// clientOf is a client whose answers are all checked against the schema.
func clientOf(t testing.TB, base string) *responses.Client {
	own := new(http.Transport)
	t.Cleanup(own.CloseIdleConnections)
	return &responses.Client{
		BaseURL: base, Profile: full, HTTP: &http.Client{Transport: &checked{t, apispec.Load(t), apispec.LoadOpen(t), own}},
		Retry: endpoint.Retry{Max: -1},
	}
}

// checked is a transport that checks what comes against the schema.
type checked struct {
	t    testing.TB
	spec *apispec.Spec
	open *apispec.Spec
	next http.RoundTripper
}

func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, err
	}
	schema := schemaOf(r, resp.StatusCode)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		to, from := io.Pipe()
		go c.events(resp.Body, from, schema)
		resp.Body = to
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if schema != "" {
		c.check(schema, body)
	}
	return resp, nil
}

func (c *checked) check(schema string, body []byte) {
	if schema == "Error" {
		object, err := item.Parse(body)
		if err != nil {
			c.t.Errorf("%v: %s", err, body)
			return
		}
		inner, _ := object.Member("error")
		body = []byte(inner)
	}
	c.spec.Check(c.t, schema, body)
	if open := openSchemas[schema]; open != "" {
		c.open.Check(c.t, open, body)
	}
}

// openSchemas are the names of the Open Responses specification for what it has.
var openSchemas = map[string]string{
	"Response": "ResponseResource", "ResponseStreamEvent": apispec.OpenEvent, "CompactResource": "CompactResource", "Error": "ErrorPayload",
}

// events checks a stream and passes it on.
func (c *checked) events(body io.ReadCloser, to *io.PipeWriter, schema string) {
	defer body.Close()
	r := sse.NewReader(io.TeeReader(body, to), sse.Options{})
	for {
		raw, err := r.Next()
		if err != nil {
			to.CloseWithError(err)
			return
		}
		if string(raw.Data) != "[DONE]" {
			c.check(schema, raw.Data)
		}
	}
}

// schemaOf names the schema of an answer.
func schemaOf(r *http.Request, status int) string {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	id := len(path) == 2
	streamed := r.URL.Query().Get("stream") == "true" || strings.Contains(r.Header.Get("Accept"), "event-stream")
	switch {
	case status != http.StatusOK:
		return "Error"
	case path[0] == "chat" && streamed:
		return "CreateChatCompletionStreamResponse"
	case path[0] == "chat":
		return "CreateChatCompletionResponse"
	case path[0] == "models":
		return ""
	case path[len(path)-1] == "input_tokens":
		return "TokenCountsResource"
	case path[len(path)-1] == "compact":
		return "CompactResource"
	case path[len(path)-1] == "input_items":
		return "ResponseItemList"
	case path[0] == "responses" && r.Method == http.MethodDelete:
		return ""
	case path[0] == "responses" && streamed:
		return "ResponseStreamEvent"
	case path[0] == "responses":
		return "Response"
	case id && r.Method == http.MethodDelete:
		return "DeletedConversationResource"
	case len(path) == 4 && r.Method == http.MethodGet:
		return "ConversationItem"
	case len(path) == 3:
		return "ConversationItemList"
	}
	return "ConversationResource"
}

// ask creates a response that must come.
func ask(t testing.TB, c *responses.Client, req *api.Request) *api.Response {
	t.Helper()
	req.Model = rehearsal.Model
	r, err := c.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func users(texts ...string) *item.List {
	l := new(item.List)
	for _, s := range texts {
		l.Append(item.User(s))
	}
	return l
}

// failure is the endpoint's error that err must be.
func failure(t testing.TB, err error) *endpoint.Error {
	t.Helper()
	e, ok := err.(*endpoint.Error)
	if !ok {
		t.Fatalf("got %v, want an error of the endpoint", err)
	}
	return e
}
