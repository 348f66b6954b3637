// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/compliance"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
)

const openScript = `
again
turn
  say You: {{question}}
`

// openPost sends a body and returns the answer, which must be valid by the Open
// Responses specification.
func openPost(t *testing.T, url, body, schema string, status int) item.Item {
	t.Helper()
	resp, data := postRaw(t, url, body)
	if resp.StatusCode != status {
		t.Fatalf("%s: %s", resp.Status, data)
	}
	object, err := item.Parse(data)
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if schema == "ErrorPayload" {
		inner, _ := object.Member("error")
		data = []byte(inner)
	}
	apispec.LoadOpen(t).Check(t, schema, data)
	return object
}

func postRaw(t *testing.T, url, body string) (*http.Response, []byte) {
	t.Helper()
	client := &http.Client{Transport: new(http.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, data
}

// The rehearsal passes what the Open Responses compliance suite checks, against that
// specification and the published schema. V1
func TestOpenResponses(t *testing.T) {
	base := serve(t, openScript, func(s *rehearsal.Server) {
		s.Script, s.ReadOnly = nil, func(string) bool { return true }
	})
	compliance.Run(t, base, rehearsal.Model)
}

// What a request gives is repeated, with the members that the specification
// requires and a request may leave out.
func TestEchoes(t *testing.T) {
	base := serve(t, openScript, nil)
	object := openPost(t, base+"/responses", `{"model":"m","input":"x","store":false,"service_tier":"auto","reasoning":{"effort":"low"},"top_logprobs":2,
		"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"max_output_tokens":99,"presence_penalty":0.5,
		"tools":[{"type":"function","name":"f","strict":null},{"type":"web_search"}],"tool_choice":{"type":"function","name":"f"}}`, "ResponseResource", http.StatusOK)
	for name, want := range map[string]string{
		"store": `false`, "service_tier": `"default"`, "reasoning": `{"effort":"low","summary":null}`, "top_logprobs": `2`, "max_output_tokens": `99`,
		"text":                 `{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{"type":"object"},"description":"","strict":false}}`,
		"tools":                `[{"type":"function","name":"f","strict":true,"description":null,"parameters":null},{"type":"web_search"}]`,
		"previous_response_id": `null`, "presence_penalty": `0.5`, "tool_choice": `{"type":"function","name":"f"}`,
	} {
		got, _ := object.Member(name)
		var a, b any
		if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
