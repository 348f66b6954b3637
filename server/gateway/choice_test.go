// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/server"
)

// V1: a tool choice names a tool of the request. An upstream that does not check it is not asked.
func TestToolChoice(t *testing.T) {
	var asked atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, strings.Join(pieces(1), ""))
	}))
	defer up.Close()
	front := serving(t, open(t, up.URL, false))
	model := &world{t: t}
	model.serve(&server.Server{Backend: new(rehearsal.Server)})
	defer model.end()
	const (
		function = `{"type":"function","name":"f","parameters":null}`
		custom   = `{"type":"custom","name":"c"}`
		group    = `{"type":"namespace","name":"n","description":"d","tools":[` + function + `]}`
		tickets  = `{"type":"mcp","server_label":"t","server_url":"https://example.com/mcp"}`
		search   = `{"type":"web_search_2025_08_26"}`
		later    = `{"type":"x_search","depth":3}` // of a later API, or of another provider
	)
	for _, test := range []struct{ tools, choice, param string }{
		{function, `{"type":"function","name":"f"}`, ""},
		{function, `{"type":"function","name":"nope"}`, "tool_choice"},
		{function, `{"type":"custom","name":"f"}`, "tool_choice"},
		{function, `{"type":"teleport"}`, "tool_choice.type"},
		{custom, `{"type":"custom","name":"c"}`, ""},
		{group, `{"type":"function","name":"f"}`, ""},
		{group, `{"type":"function","name":"n"}`, "tool_choice"},
		{tickets, `{"type":"mcp","server_label":"t","name":"close"}`, ""},
		{tickets, `{"type":"mcp","server_label":"u"}`, "tool_choice"},
		{search, `{"type":"web_search"}`, ""},
		{search, `{"type":"web_search_preview"}`, ""},
		{search, `{"type":"image_generation"}`, "tool_choice"},
		{later, `{"type":"x_search"}`, ""},
		{function, `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`, ""},
		{function, `{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]}`, "tool_choice.tools[1]"},
	} {
		body := `{"model":"m","input":"hi","store":false,"tools":[` + test.tools + `],"tool_choice":` + test.choice + `}`
		for _, w := range []*world{front, model} {
			status, _, text := w.ask(http.MethodPost, "/responses", body)
			wrong := test.param != ""
			if (status == http.StatusBadRequest) != wrong || wrong && !strings.Contains(text, `"param": "`+test.param+`"`) || !wrong && status != http.StatusOK {
				t.Errorf("%s: %d %s", body, status, text)
			}
		}
	}
	if n := asked.Load(); n != 8 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

// V1: an upstream gets a tool that the API does not have, and the response does not repeat it.
func TestToolOfAnotherAPI(t *testing.T) {
	var got atomic.Value
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Store(string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, strings.Join(pieces(1), ""))
	}))
	defer up.Close()
	front := serving(t, open(t, up.URL, false))
	const later, search = `{"type":"x_search","depth":3}`, `{"type":"web_search","excluded_domains":["a.example"],"search_context_size":"low"}`
	status, _, text := front.ask(http.MethodPost, "/responses", `{"model":"m","input":"hi","store":false,"tools":[`+later+`,`+search+`],"tool_choice":{"type":"x_search"}}`)
	sent, _ := got.Load().(string)
	if status != http.StatusOK || !strings.Contains(sent, later) || !strings.Contains(sent, `"excluded_domains":["a.example"]`) {
		t.Errorf("%d %s: the upstream got %s", status, text, sent)
	}
	if strings.Contains(text, "x_search") || strings.Contains(text, "excluded") || !strings.Contains(text, `"search_context_size":"low"`) || !strings.Contains(text, `"tool_choice":"auto"`) {
		t.Error(text)
	}
}
