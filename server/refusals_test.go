// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/server"
)

// Common mistakes are told in words that say what to do.
func TestRefusalsSayWhatToDo(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	base, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	send := func(method, path, body string, header ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	_, text := send(http.MethodPost, "/conversations", `{"metadata":{"a":"b"}}`)
	_, id, _ := strings.Cut(text, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	for _, test := range []struct {
		path, body   string
		header       []string
		status       int
		want, absent string
	}{
		{path: "/responses", body: "\x1f\x8b", header: []string{"Content-Encoding", "gzip"}, status: 415, want: `Unsupported content encoding \"gzip\"`},
		{path: "/responses", body: `{"model":"m","input":"x"}`, header: []string{"Content-Encoding", "identity"}, status: 200},
		{path: "/responses", status: 400, want: "is empty: send a JSON object"},
		{path: "/chat/completions", status: 400, want: "is empty: send a JSON object"},
		{path: "/conversations", status: 200},
		{path: "/responses", body: "\xef\xbb\xbf{}", status: 400, want: "byte order mark"},
		{path: "/responses", body: `{"model":"m","input":"x","previous_response_id":""}`, status: 400, want: "'previous_response_id': it is empty", absent: "expected a string"},
		{path: "/responses", body: `{"model":"m","messages":[{"role":"user","content":"x"}]}`, status: 400, want: "/v1/chat/completions"},
		{path: "/chat/completions", body: `{"model":"m","messages":[{"content":"x"}]}`, status: 400, want: "'messages[0].role'", absent: "found nothing"},
		{path: "/chat/completions", body: `{"model":"m","n":2,"messages":[{"role":"user","content":"x"}]}`, status: 400, want: "Unsupported value: 'n': a response has one choice."},
		{path: "/conversations/" + id, body: `{}`, status: 400, want: "Missing required parameter: 'metadata'."},
	} {
		status, text := send(http.MethodPost, test.path, test.body, test.header...)
		if status != test.status || !strings.Contains(text, test.want) || test.absent != "" && strings.Contains(text, test.absent) {
			t.Errorf("%s %q: %d %s", test.path, test.body, status, text)
		}
	}
	if _, text := send(http.MethodGet, "/conversations/"+id, ""); !strings.Contains(text, `"a":"b"`) {
		t.Errorf("the metadata is lost: %s", text)
	}
	status, text := send(http.MethodHead, "/conversations/"+id, "")
	if status != http.StatusOK || text != "" {
		t.Errorf("HEAD: %d %q", status, text)
	}
	if status, _ := send(http.MethodHead, "/responses", ""); status != http.StatusMethodNotAllowed { // as for GET
		t.Errorf("HEAD: %d", status)
	}
}
