// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/rehearsal"
)

var update = flag.Bool("update", false, "record the samples in testdata/corpus anew")

// samples are the exchanges with the mock model that stand in for recordings of real
// ones in a plain clone. They are ordinary on purpose: what is odd about real servers
// only real recordings show.
var samples = []struct{ name, path, body string }{
	{"text", "responses", `{"model":"rehearsal","input":"Hello?"}`},
	{"text_stream", "responses", `{"model":"rehearsal","stream":true,"input":[{"role":"user","content":"Hello?"}]}`},
	{"call_stream", "responses", `{"model":"rehearsal","stream":true,"instructions":"Use the tools.","tools":[` + look + `],"input":[` + user + `]}`},
	{"call", "responses", `{"model":"rehearsal","tools":[` + look + `],"parallel_tool_calls":true,"input":[` + user + `]}`},
	{"output_stream", "responses", `{"model":"rehearsal","stream":true,"temperature":0.5,"tools":[` + look + `],"tool_choice":"auto","input":[` + user + `,` + called + `]}`},
	{"output", "responses", `{"model":"rehearsal","store":false,"include":["reasoning.encrypted_content"],"metadata":{"for":"tests"},"tools":[` + look + `],"input":[` + user + `,` + called + `]}`},
	{"image", "responses", `{"model":"rehearsal","max_output_tokens":500,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is this?"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,` + pixel + `"}]}]}`},
	{"background_stream", "responses", `{"model":"rehearsal","stream":true,"background":true,"store":true,"input":"Hello?"}`},
	{"not_json", "responses", `{"model":`},
	{"no_output", "responses", `{"model":"rehearsal","tools":[` + look + `],"input":[` + user + `,{"type":"function_call","call_id":"call_1","name":"look","arguments":"{}"}]}`},
	{"tokens", "responses/input_tokens", `{"model":"rehearsal","input":"Hello?"}`},
	{"compact", "responses/compact", `{"model":"rehearsal","input":[` + user + `]}`},
	{"conversation", "conversations", `{"metadata":{"for":"tests"},"items":[{"type":"message","role":"user","content":"Hello?"}]}`},
	{"chat", "chat/completions", `{"model":"rehearsal","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello?"}]}`},
	{"chat_stream", "chat/completions", `{"model":"rehearsal","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Look around."}],"tools":[{"type":"function","function":{"name":"look","description":"Looks around.","parameters":{"type":"object","properties":{}}}}]}`},
	{"chat_not_json", "chat/completions", `{"model":`},
}

const (
	look   = `{"type":"function","name":"look","description":"Looks around.","strict":false,"parameters":{"type":"object","properties":{"where":{"type":"string"}}}}`
	user   = `{"type":"message","role":"user","content":[{"type":"input_text","text":"Look around – überall, 世界."}]}`
	called = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I look."}]},` +
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{\"where\":\"here\"}","status":"completed"},` +
		`{"type":"function_call","id":"fc_2","call_id":"call_2","name":"look","arguments":"{}","status":"completed"},` +
		`{"type":"function_call_output","call_id":"call_1","output":"A saw.\nA plank."},` +
		`{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"Nothing."}]}`
	pixel  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	script = "turn\n  reason I think of it.\n  say I look around.\n  call look {\"where\":\"here\"}\n  call look {}\nturn\n  say There is a saw. Größe: 3 µm, 世界.\n"
)

// The samples are what the mock model answers. After a change of it, record them anew:
//
//	go test ./internal/apispec -run TestSamples -update
func TestSamples(t *testing.T) {
	play, err := rehearsal.Parse("samples.script", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	base, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	files := map[string][]byte{}
	var index bytes.Buffer
	for _, s := range samples {
		resp, err := http.Post(base+"/"+s.path, "application/json", strings.NewReader(s.body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		contentType := resp.Header.Get("Content-Type")
		chat, other := s.path == "chat/completions", s.path != "responses" && s.path != "chat/completions"
		under := map[bool]string{true: "chat_completions/"}[chat]
		if other {
			under = "responses_other/"
		}
		name := "antiphon-" + s.name
		answer := ""
		switch {
		case resp.StatusCode != http.StatusOK:
			answer = under + "errors/" + name + ".http"
			got = fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", resp.Status, contentType, len(got), got)
		case strings.HasPrefix(contentType, "text/event-stream"):
			answer = under + "streams/" + name + ".sse"
			if !chat { // as some recorders keep them, and one event of each kind by itself
				var rewrapped bytes.Buffer
				for line := range bytes.Lines(got) {
					data, ok := bytes.CutPrefix(line, []byte("data: "))
					if !ok || !bytes.HasPrefix(data, []byte("{")) {
						continue
					}
					fmt.Fprintf(&rewrapped, "%s\n", line)
					var event struct{ Type string }
					if err := json.Unmarshal(data, &event); err != nil {
						t.Fatal(err)
					}
					files["spec_examples/events/"+event.Type+".json"] = bytes.TrimSpace(data)
				}
				files["streams_rewrapped/"+name+".sse"] = rewrapped.Bytes()
			}
		default:
			answer = under + "responses/" + name + ".json"
		}
		files[answer] = got
		request := under + "requests/" + name + ".json"
		if json.Valid([]byte(s.body)) {
			files[request] = []byte(s.body)
		}
		if s.path == "responses" {
			line, err := json.Marshal(map[string]any{
				"method": "POST", "endpoint": "responses.create", "url_path": "/v1/responses", "status": resp.StatusCode,
				"headers": [][2]string{{"content-type", contentType}}, "request": request, "response": answer,
			})
			if err != nil {
				t.Fatal(err)
			}
			index.Write(append(line, '\n'))
		}
	}
	files["interactions.jsonl"] = index.Bytes()
	files["stream_chunks.jsonl"] = []byte(`{"path":"streams/antiphon-text_stream.sse","chunk_bytes":[400,1,700,300,5]}` + "\n")
	files["spec_examples/requests/antiphon-text.json"] = files["requests/antiphon-text.json"]
	files["spec_examples/responses/antiphon-text.json"] = files["responses/antiphon-text.json"]

	dir := filepath.Join("testdata", "corpus")
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s is not what the mock model answers, %v; see how to record it anew above", name, err)
		}
	}
}
