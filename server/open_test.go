// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
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

// The seventeen situations of the Open Responses compliance suite, each checked
// against that specification. V1
func TestOpenResponses(t *testing.T) {
	base := serve(t, openScript, nil)
	create := func(t *testing.T, members string) *api.Response {
		t.Helper()
		object := openPost(t, base+"/responses", `{"model":"rehearsal",`+members+`}`, "ResponseResource", http.StatusOK)
		r, err := api.ParseResponse([]byte(object.JSON()))
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != item.StatusCompleted || len(r.Output) == 0 {
			t.Errorf("status %s: %s", r.Status, object.JSON())
		}
		return r
	}
	for name, members := range map[string]string{
		"basic text":      `"input":[{"type":"message","role":"user","content":"Say hello."}]`,
		"phase in input":  `"input":[{"type":"message","role":"user","content":"a"},{"type":"message","role":"assistant","phase":"commentary","content":"b"},{"type":"message","role":"user","content":"c"}]`,
		"phase in output": `"input":"Say hello."`,
		"system message":  `"input":[{"type":"message","role":"system","content":"You are a pirate."},{"type":"message","role":"user","content":"Say hello."}]`,
		"image by URL":    `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is it?"},{"type":"input_image","image_url":"https://example.com/i.png"}]}]`,
		"several turns":   `"input":[{"role":"user","content":"My name is Alice."},{"role":"assistant","content":"Hello Alice!"},{"role":"user","content":"What is my name?"}]`,
	} {
		t.Run(name, func(t *testing.T) { create(t, members) })
	}
	t.Run("function call", func(t *testing.T) {
		r := create(t, `"input":[{"type":"message","role":"user","content":"Hi"}],
			"tools":[{"type":"function","name":"get_weather","description":"d","parameters":{"type":"object","properties":{"location":{"type":"string"}}}}]`)
		if !strings.Contains(string(r.Tools), `"strict":true`) {
			t.Errorf("tools %s", r.Tools)
		}
	})
	t.Run("stream", func(t *testing.T) { openStream(t, base) })
	t.Run("compact", func(t *testing.T) {
		openPost(t, base+"/responses/compact", `{"model":"rehearsal","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, "CompactResource", http.StatusOK)
	})
	t.Run("compact without a model", func(t *testing.T) {
		openPost(t, base+"/responses/compact", `{"input":[{"role":"user","content":"a"}]}`, "ErrorPayload", http.StatusBadRequest)
	})

	// Say checks all that comes over a WebSocket.
	next := func(id string) string {
		return `{"type":"response.create","model":"rehearsal","store":false,"previous_response_id":"` + id + `","input":[{"role":"user","content":"more"}]}`
	}
	const first = `{"type":"response.create","model":"rehearsal","store":false,"input":[{"role":"user","content":"a"}]}`
	t.Run("WebSocket, one and then others, each from the last", func(t *testing.T) { // three of the suite's
		conn := dial(t, base)
		one := lastResponse(t, say(t, conn, first))
		two := lastResponse(t, say(t, conn, next(one.ID)))
		if stored, _ := two.Extra.Get("store"); two.PreviousResponseID != one.ID || stored != "false" {
			t.Errorf("%s", encoded(t, two))
		}
		again := lastResponse(t, say(t, conn, first))
		conn = dial(t, base) // reconnected: what was not stored is gone
		if ev := say(t, conn, next(again.ID))[0]; !strings.Contains(ev.JSON(), "previous_response_not_found") {
			t.Errorf("after a reconnect: %s", ev.JSON())
		}
	})
	t.Run("WebSocket, unknown response", func(t *testing.T) {
		if ev := say(t, dial(t, base), next("resp_none"))[0]; !strings.Contains(ev.JSON(), "previous_response_not_found") {
			t.Errorf("got %s", ev.JSON())
		}
	})
	t.Run("WebSocket, a failure evicts", func(t *testing.T) {
		conn := dial(t, base)
		id := lastResponse(t, say(t, conn, first)).ID
		say(t, conn, `{"type":"response.create","model":"rehearsal","store":false,"previous_response_id":"`+id+`","input":[{"type":"function_call_output","call_id":"none","output":"x"}]}`)
		if ev := say(t, conn, next(id))[0]; !strings.Contains(ev.JSON(), "previous_response_not_found") {
			t.Errorf("got %s", ev.JSON())
		}
	})
	t.Run("WebSocket, a new chain from a compaction", func(t *testing.T) {
		packed := openPost(t, base+"/responses/compact", `{"model":"rehearsal","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, "CompactResource", http.StatusOK)
		output, _ := packed.Member("output")
		list := strings.TrimSuffix(string(output), "]") + `,{"role":"user","content":"go on"}]`
		r := lastResponse(t, say(t, dial(t, base), `{"type":"response.create","model":"rehearsal","store":false,"input":`+list+`}`))
		if r.Status != item.StatusCompleted {
			t.Errorf("%s", encoded(t, r))
		}
	})
}

// openStream checks the events of a stream and their order.
func openStream(t *testing.T, base string) {
	resp, data := postRaw(t, base+"/responses", `{"model":"rehearsal","stream":true,"input":"Hello"}`)
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%s: %s", resp.Status, data)
	}
	var types []string
	events := sse.NewReader(bytes.NewReader(data), sse.Options{})
	for n := 0; ; n++ {
		raw, err := events.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		apispec.LoadOpen(t).Check(t, apispec.OpenEvent, raw.Data)
		ev, err := api.ParseEvent(raw.Data)
		if err != nil {
			t.Fatal(err)
		}
		if ev.SequenceNumber != int64(n) {
			t.Errorf("event %d has number %d", n, ev.SequenceNumber)
		}
		if len(types) == 0 || types[len(types)-1] != string(ev.Type) {
			types = append(types, string(ev.Type))
		}
	}
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	}
	if d := cmp.Diff(want, types); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
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
		"text":                 `{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{"type":"object"},"description":null,"strict":false}}`,
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
