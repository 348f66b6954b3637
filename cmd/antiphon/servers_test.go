// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// deviant is a server as local ones are: it calls two tools in one reply, the
// items overlapping, leaves out what it can of the events, takes tool outputs
// as text only, and has numbers for error codes.
type deviant struct {
	server string // the Server header
	path   string
	first  []string // the events of the first reply
	second []string

	mu     sync.Mutex
	bodies []string
}

func (d *deviant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // a question about the window
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPost { // what is asked about windows is not a request for a reply
		d.mu.Lock()
		d.bodies = append(d.bodies, string(body))
		d.mu.Unlock()
	}
	if d.server != "" {
		w.Header().Set("Server", d.server)
	}
	fail := func(status int, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"code":%d,"message":%q,"type":"invalid_request_error"}}`, status, message)
	}
	switch {
	case r.URL.Path != d.path:
		fail(http.StatusNotFound, "File Not Found")
		return
	case strings.Contains(string(body), `"output":[`):
		fail(http.StatusBadRequest, "Output of tool call should be 'Input text'")
		return
	}
	events := d.first
	if strings.Contains(string(body), "a note") {
		events = d.second
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprintf(w, "data: %s\n\n", e)
		w.(http.Flusher).Flush()
	}
}

// The events of such a reply: no sequence_number, no output_index, no
// arguments.done, the second item begun before the first is done.
var (
	deviantCalls = []string{
		`{"type":"response.created","response":{"id":"r1","object":"response","status":"in_progress","output":[]}}`,
		`{"type":"response.in_progress","response":{"id":"r1","object":"response","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_a","call_id":"call_a","name":"read_file","arguments":"","status":"in_progress"}}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_a","delta":"{\"path\":"}`,
		`{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_b","call_id":"call_b","name":"import_image","arguments":"","status":"in_progress"}}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_b","delta":"{\"path\":\"dot.png\"}"}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_a","delta":"\"note.txt\"}"}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_b","call_id":"call_b","name":"import_image","arguments":"{\"path\":\"dot.png\"}","status":"completed"}}`,
		`{"type":"response.completed","response":{"id":"r1","object":"response","status":"completed","output":[]}}`,
	}
	deviantText = []string{
		`{"type":"response.created","response":{"id":"r2","object":"response","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.added","item":{"type":"message","id":"m","role":"assistant","content":[],"status":"in_progress"}}`,
		`{"type":"response.output_text.delta","item_id":"m","delta":"A grey "}`,
		`{"type":"response.output_text.delta","item_id":"m","delta":"dot."}`,
		`{"type":"response.completed","response":{"id":"r2","object":"response","status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}`,
	}
	chatCalls = []string{
		`{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read_file","arguments":""}}]},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"import_image","arguments":"{\"path\":\"dot.png\"}"}}]},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"note.txt\"}"}}]},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `[DONE]`,
	}
	chatText = []string{
		`{"id":"d","choices":[{"index":0,"delta":{"role":"assistant","content":"A grey dot."},"finish_reason":"stop"}]}`,
		`{"id":"d","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, `[DONE]`,
	}
)

// TestDeviantServers proves that servers which do as they please get a usable
// run by their profile, and others an honest error. S5 T10 B3 E7
func TestDeviantServers(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "note.txt"), "a note\n")
	drawDot(t, filepath.Join(dir, "dot.png"))
	agent := write(t, filepath.Join(dir, "agent.md"), `<tool name="read_file"><read id="here" path="${prompt_dir}"/></tool>
<tool name="import_image"/>
<user>What is in the picture?</user>
`)
	for name, tt := range map[string]struct {
		server *deviant
		args   []string
		// requests is how many are made: an unknown server refuses one first.
		requests int
	}{
		"llama.cpp, named":       {&deviant{path: "/v1/responses"}, []string{"--profile", "llama.cpp"}, 2},
		"llama.cpp, by header":   {&deviant{path: "/v1/responses", server: "llama.cpp"}, nil, 2},
		"ollama":                 {&deviant{path: "/v1/responses"}, []string{"--profile", "ollama"}, 2},
		"vllm":                   {&deviant{path: "/v1/responses", server: "uvicorn"}, []string{"--profile", "vllm"}, 2},
		"unknown":                {&deviant{path: "/v1/responses"}, nil, 3},
		"nothing but chat":       {&deviant{path: "/v1/chat/completions", first: chatCalls, second: chatText}, []string{"--api", "chat"}, 2},
		"nothing but chat, vllm": {&deviant{path: "/v1/chat/completions", first: chatCalls, second: chatText}, []string{"--api", "chat", "--profile", "vllm"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := tt.server
			if d.first == nil {
				d.first, d.second = deviantCalls, deviantText
			}
			srv := httptest.NewServer(d)
			defer srv.Close()
			out := filepath.Join(t.TempDir(), "talk.md")
			o := program(t, append([]string{"run", agent, "--out", out, "--base-url", srv.URL, "--model", "m"}, tt.args...)...)
			if o.code != 0 || o.out != "A grey dot.\n" {
				t.Fatalf("exit code %d, %q\n%s", o.code, o.out, o.err)
			}
			if len(d.bodies) != tt.requests {
				t.Errorf("%d requests, want %d", len(d.bodies), tt.requests)
			}
			last := d.bodies[len(d.bodies)-1]
			if n := strings.Count(last, "data:image/png;base64,"); n != 1 || strings.Index(last, "data:image/png") < strings.LastIndex(last, "call_b") && !strings.Contains(last, "From the output of call_b") {
				t.Errorf("the image is in the request %d times:\n%s", n, last)
			}
			text := read(t, out)
			for _, want := range []string{"a note", "data:image/png", "A grey dot.", `tool_call_id="call_a"`, `tool_call_id="call_b"`} {
				if !strings.Contains(text, want) {
					t.Errorf("the transcript lacks %s:\n%s", want, text)
				}
			}
			if o := program(t, "convert", out, "--to", "items"); o.code != 0 || strings.Count(o.out, string(item.TypeFunctionCallOutput)) != 2 {
				t.Errorf("convert: %d\n%s%s", o.code, o.out, o.err)
			}
		})
	}

	t.Run("the wrong API", func(t *testing.T) {
		srv := httptest.NewServer(&deviant{path: "/v1/chat/completions"})
		defer srv.Close()
		o := program(t, "run", agent, "--base-url", srv.URL, "--model", "m")
		if o.code != exitProvider || !strings.Contains(o.err, "404 Not Found") || !strings.Contains(o.err, "--api chat") {
			t.Errorf("exit code %d\n%s", o.code, o.err)
		}
	})
}

// E7: what the server's header said holds for the next process, in a session and
// in a transcript, over both APIs.
func TestServerIsKnownAgain(t *testing.T) {
	for _, api := range []string{"responses", "chat"} {
		for _, where := range []string{"--session", "--out"} {
			l := agenttest.StartLocal(t, &agenttest.Local{Server: "llama.cpp", Text: "It is so."})
			dir := t.TempDir()
			file := write(t, filepath.Join(dir, "a.md"), "<user>Hello</user>\n<user>You there?</user>\n")
			args := []string{"run", file, "--base-url", l.URL, "--model", "m", "--api", api, "--out", filepath.Join(dir, "talk.md")}
			if where == "--session" {
				args = append(args[:len(args)-2], "--session", "s", "--store", filepath.Join(dir, "store.db"))
			}
			for i, want := range []int{2, 3} { // the two at the beginning are one for llama.cpp
				if i > 0 {
					args = append(args, "And now?")
				}
				o := program(t, args...)
				requests := l.Requests()
				if n := len(requests[len(requests)-1].Messages); o.code != 0 || n != want || len(requests) != i+1 {
					t.Errorf("%s %s, process %d: %d messages in %d requests, want %d\n%s", api, where, i+1, n, len(requests), want, o.err)
				}
			}
		}
	}
}

// B3: what was asked for and the endpoint does not have is said, once.
func TestWhatAnEndpointLacksIsSaid(t *testing.T) {
	l := agenttest.StartLocal(t, &agenttest.Local{Text: strings.Repeat("word ", 300)})
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "a.md"), "<user>Hello</user>\n")
	store := []string{"--store", filepath.Join(dir, "store.db")}
	at := []string{"--base-url", l.URL, "--model", "m"}
	run := func(args ...string) outcome { return program(t, slices.Concat(args, at, store)...) }
	for _, transport := range []string{"continue", "websocket"} {
		o := run("run", file, "--session", transport, "--transport", transport)
		if o.code != 0 || strings.Count(o.err, "!! the whole history is sent with each request: ") != 1 {
			t.Errorf("%s: exit code %d\n%s", transport, o.code, o.err)
		}
		if socketless := strings.Contains(o.err, "there is no WebSocket"); socketless != (transport == "websocket") {
			t.Errorf("%s\n%s", transport, o.err)
		}
	}
	if o := run("run", file, "--session", "http"); o.code != 0 || strings.Contains(o.err, "!!") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	for range 3 {
		run("run", file, strings.Repeat("word ", 300), "--session", "http")
	}
	info := program(t, append([]string{"sessions", "list", "--json"}, store...)...)
	id := regexp.MustCompile(`http-[0-9a-f]+`).FindString(info.out)
	l.Text = "A short summary."
	o := program(t, slices.Concat([]string{"sessions", "compact", id, "--by", "endpoint", "--keep", "100"}, at, store)...)
	if o.code != 0 || !strings.Contains(o.err, "!! the endpoint has no compaction of its own, so the model wrote a summary") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

// What an endpoint or a model is known not to take is refused by its name, and
// nothing is sent. B2 B3 B4 R5
func TestRefusedLocally(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a request was sent: %s", r.URL) }))
	defer srv.Close()
	dir := t.TempDir()
	hot := write(t, filepath.Join(dir, "hot.md"), `<config model="o3" temperature="0.5"/><user>hi</user>`)
	plain := write(t, filepath.Join(dir, "plain.md"), `<config model="gpt-5"/><user>hi</user>`)
	effort := write(t, filepath.Join(dir, "effort.md"), `<config model="gpt-4.1" reasoning_effort="high"/><user>hi</user>`)
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{hot}, "not sent: temperature: the model o3 does not accept it"},
		{[]string{effort}, "not sent: reasoning.effort: the model gpt-4.1 does not reason"},
		{[]string{plain, "--profile", "codex"}, "not sent: instructions: this endpoint requires instructions"},
		{[]string{plain, "--profile", "nope"}, `--profile: unknown profile "nope"; the profiles are azure, careful, codex`},
	} {
		o := program(t, append([]string{"run", "--base-url", srv.URL}, tt.args...)...)
		if o.code != exitUsage || !strings.Contains(o.err, tt.says) {
			t.Errorf("%v: exit code %d\n%s", tt.args, o.code, o.err)
		}
	}
}

// drawDot writes a grey square.
func drawDot(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, image.NewGray(image.Rect(0, 0, 16, 16))); err != nil {
		t.Fatal(err)
	}
}
