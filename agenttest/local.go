// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/item"
)

// Local is a server that imitates local model servers where they differ from the
// API, for both APIs, streamed or not. Its model says Text, one word at a time, and
// a word is a token. Set the fields before the first request.
type Local struct {
	// URL is the base URL. It ends in /v1.
	URL string
	// Ollama imitates Ollama: it continues an assistant message at the end of a
	// request and returns only the new text; it drops the oldest messages if a request
	// exceeds Window. Otherwise it imitates llama-server: it returns the whole message
	// with the new text, refuses two such messages in a chat, and refuses requests
	// that exceed Window.
	Ollama bool
	// Server is the Server header.
	Server string
	// Text is the model's reply.
	Text string
	// Restarts makes the model begin again when it is asked to continue a reply that
	// broke off.
	Restarts bool
	// Window is the context in tokens; 0 means unlimited. Offered means that clients
	// can ask for it.
	Window  int
	Offered bool
	// Template checks the messages like a chat template; an error refuses the request.
	Template func([]LocalMessage) error
	// NoImages refuses images, as llama-server does without an image model.
	NoImages bool
	// Break returns the number of words after which the connection breaks in answer n,
	// from 0; a negative number means never.
	Break func(n int) int

	mu       sync.Mutex
	requests []LocalRequest
	asked    []string
}

// LocalMessage is a message as a chat template receives it.
type LocalMessage struct {
	Role   string
	Text   string
	Calls  int
	Images int
}

// LocalRequest is a request for a reply.
type LocalRequest struct {
	Body     []byte
	Messages []LocalMessage
	Dropped  int // messages that were dropped
	Input    int // reported tokens
	Status   int
}

// StartLocal starts the server, which is closed at the end of the test. A nil l is the zero
// Local.
func StartLocal(tb testing.TB, l *Local) *Local {
	l = cmp.Or(l, new(Local))
	srv := httptest.NewServer(l)
	tb.Cleanup(srv.Close)
	l.URL = srv.URL + "/v1"
	return l
}

// Requests returns the requests for replies so far.
func (l *Local) Requests() []LocalRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// Asked returns the paths of all other requests so far.
func (l *Local) Asked() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

// ServeHTTP implements [http.Handler].
func (l *Local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.Server != "" {
		w.Header().Set("Server", l.Server)
	}
	if r.Method == http.MethodPost && (r.URL.Path == "/v1/responses" || r.URL.Path == "/v1/chat/completions") {
		l.reply(w, r)
		return
	}
	l.mu.Lock()
	l.asked = append(l.asked, r.URL.Path)
	l.mu.Unlock()
	body := ""
	if l.Offered {
		switch r.URL.Path {
		case "/v1/models":
			if !l.Ollama {
				body = fmt.Sprintf(`{"object":"list","data":[{"id":"m","object":"model","meta":{"n_ctx":%d}}]}`, l.Window)
			}
		case "/api/ps":
			if l.Ollama {
				body = fmt.Sprintf(`{"models":[{"name":"m:latest","model":"m:latest","context_length":%d}]}`, l.Window)
			}
		}
	}
	if body == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", typeJSON)
	fmt.Fprint(w, body)
}

// localBody is the part of a request that is read.
type localBody struct {
	Stream       bool           `json:"stream"`
	Instructions string         `json:"instructions"`
	Input        []localItem    `json:"input"`
	Messages     []localItem    `json:"messages"`
	MaxTokens    int            `json:"max_tokens"`
	MaxOutput    int            `json:"max_output_tokens"`
	Rest         map[string]any `json:",unknown"`
}

type localItem struct {
	Type      string         `json:"type"`
	Role      string         `json:"role"`
	Content   any            `json:"content"`
	Output    any            `json:"output"`
	Arguments string         `json:"arguments"`
	ToolCalls []any          `json:"tool_calls"`
	Rest      map[string]any `json:",unknown"`
}

// messages returns a request's messages in the form of the server: consecutive
// assistant messages are one message of a chat.
func (b *localBody) messages() (list []LocalMessage) {
	if b.Instructions != "" {
		list = append(list, LocalMessage{Role: "system", Text: b.Instructions})
	}
	for _, m := range b.Messages {
		one := LocalMessage{Role: m.Role, Calls: len(m.ToolCalls)}
		one.add(m.Content)
		list = append(list, one)
	}
	for _, it := range b.Input {
		one := LocalMessage{Role: it.Role}
		switch it.Type {
		case "", "message":
			one.add(it.Content)
		case "function_call":
			one.Role, one.Text, one.Calls = "assistant", it.Arguments, 1
		case "function_call_output":
			one.Role = "tool"
			one.add(it.Output)
		default:
			continue
		}
		if n := len(list); n > 0 && one.Role == "assistant" && list[n-1].Role == "assistant" {
			list[n-1].Text += "\n\n" + one.Text
			list[n-1].Calls += one.Calls
			continue
		}
		list = append(list, one)
	}
	return list
}

// add adds a content: a text, or parts.
func (m *LocalMessage) add(content any) {
	switch c := content.(type) {
	case string:
		m.Text += c
	case []any:
		for _, p := range c {
			part, _ := p.(map[string]any)
			if text, ok := part["text"].(string); ok {
				m.Text += text
			} else if part != nil {
				m.Images++
			}
		}
	}
}

// words returns the tokens of a text.
func words(text string) []string { return strings.Fields(text) }

// tokensOf counts a message: its words, a few for the frame, and many for an image.
func tokensOf(m LocalMessage) int { return 4 + len(words(m.Text)) + 100*m.Images }

// reply answers a request for a reply.
func (l *Local) reply(w http.ResponseWriter, r *http.Request) {
	var b localBody
	raw := make([]byte, 0, 1<<16)
	for {
		buf := make([]byte, 1<<16)
		n, err := r.Body.Read(buf)
		raw = append(raw, buf[:n]...)
		if err != nil {
			break
		}
	}
	err := json.Unmarshal(raw, &b)
	got := LocalRequest{Body: raw, Messages: b.messages(), Status: http.StatusOK}
	all := got.Messages
	if err == nil {
		got.Status, err = l.refusal(&got, strings.HasSuffix(r.URL.Path, "completions"))
	} else {
		got.Status = http.StatusBadRequest
	}
	l.mu.Lock()
	n := len(l.requests)
	l.requests = append(l.requests, got)
	l.mu.Unlock()
	if err != nil {
		w.Header().Set("Content-Type", typeJSON)
		w.WriteHeader(got.Status)
		kind := "invalid_request_error"
		if got.Status >= 500 {
			kind = "server_error"
		}
		fmt.Fprint(w, object("error", item.JSON(object("code", got.Status, "message", err.Error(), "type", kind))))
		return
	}
	text := l.says(all)
	limit := max(b.MaxTokens, b.MaxOutput)
	if said := words(text); limit > 0 && len(said) > limit {
		text = strings.Join(said[:limit], " ")
	}
	cut := -1
	if l.Break != nil {
		cut = l.Break(n)
	}
	if strings.HasSuffix(r.URL.Path, "responses") {
		l.responses(w, b.Stream, n, got.Input, text, cut)
		return
	}
	l.chat(w, b.Stream, got.Input, text, cut)
}

// serverWords is an error with the text of a real server.
type serverWords string

func (w serverWords) Error() string { return string(w) }

// refusal returns the reason for refusing a request, and drops messages that do not
// fit.
func (l *Local) refusal(got *LocalRequest, chat bool) (int, error) {
	list := got.Messages
	if n := len(list); !l.Ollama && chat && n > 1 && list[n-1].Role == "assistant" && list[n-2].Role == "assistant" {
		return http.StatusBadRequest, serverWords("Cannot have 2 or more assistant messages at the end of the list.")
	}
	for _, m := range list {
		if l.NoImages && m.Images > 0 {
			return http.StatusInternalServerError, serverWords("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj")
		}
	}
	if l.Template != nil {
		if err := l.Template(list); err != nil {
			return http.StatusBadRequest, serverWords("Unable to generate parser for this template. " + err.Error())
		}
	}
	sum := func() (n int) {
		for _, m := range got.Messages {
			n += tokensOf(m)
		}
		return n
	}
	for l.Window > 0 && sum() > l.Window {
		if !l.Ollama {
			return http.StatusBadRequest, fmt.Errorf("the request exceeds the available context size")
		}
		first := slices.IndexFunc(got.Messages, func(m LocalMessage) bool { return m.Role != "system" })
		if first < 0 || first == len(got.Messages)-1 {
			break
		}
		got.Messages = slices.Delete(slices.Clone(got.Messages), first, first+1)
		got.Dropped++
	}
	got.Input = sum()
	if l.Window > 0 {
		got.Input = min(got.Input, l.Window)
	}
	return http.StatusOK, nil
}

// says returns the model's reply.
func (l *Local) says(list []LocalMessage) string {
	done := ""
	n := len(list)
	if n > 0 && list[n-1].Role == "assistant" { // continued
		done = list[n-1].Text
	} else if n > 1 && list[n-1].Role == "user" && strings.Contains(list[n-1].Text, "broke off") && !l.Restarts {
		for i := n - 2; i >= 0 && (list[i].Role == "assistant" || strings.Contains(list[i].Text, "broke off")); i-- {
			if list[i].Role == "assistant" {
				done = list[i].Text + " " + done
			}
		}
		return strings.Join(words(l.Text)[min(len(words(done)), len(words(l.Text))):], " ")
	}
	rest := strings.Join(words(l.Text)[min(len(words(done)), len(words(l.Text))):], " ")
	if l.Ollama || done == "" {
		return rest
	}
	return done + " " + rest
}

// responses writes a reply of the Responses API.
func (l *Local) responses(w http.ResponseWriter, stream bool, n, input int, text string, cut int) {
	said := words(text)
	id := fmt.Sprintf("resp_%d", n)
	message := func(status, text string) item.JSON {
		return item.JSON(object("type", "message", "id", "msg_"+id, "role", "assistant", "status", status,
			"content", item.JSON("["+object("type", "output_text", "text", text, "annotations", item.JSON("[]"), "logprobs", item.JSON("[]"))+"]")))
	}
	response := func(status, output string) item.JSON {
		members := []any{"id", id, "object", "response", "status", status, "model", "m", "output", item.JSON(output)}
		if status == "completed" {
			members = append(members, "incomplete_details", nil, "usage", item.JSON(object("input_tokens", input, "output_tokens", len(said), "total_tokens", input+len(said))))
		}
		return item.JSON(object(members...))
	}
	last := response("completed", "["+string(message("completed", text))+"]")
	if !stream {
		breakAt(w, cut)
		w.Header().Set("Content-Type", typeJSON)
		fmt.Fprint(w, last)
		return
	}
	events := newEvents(w)
	at := []any{"item_id", "msg_" + id, "output_index", 0}
	events.send("response.created", "response", response("in_progress", "[]"))
	events.send("response.output_item.added", "output_index", 0, "item", message("in_progress", ""))
	for i, word := range said {
		if i == cut {
			panic(http.ErrAbortHandler)
		}
		if i > 0 {
			word = " " + word
		}
		events.send("response.output_text.delta", append(at[:4:4], "content_index", 0, "delta", word)...)
	}
	breakAt(w, cut)
	events.send("response.output_text.done", append(at[:4:4], "content_index", 0, "text", text)...)
	events.send("response.output_item.done", "output_index", 0, "item", message("completed", text))
	events.send("response.completed", "response", last)
}

// chat writes a reply of Chat Completions.
func (l *Local) chat(w http.ResponseWriter, stream bool, input int, text string, cut int) {
	said := words(text)
	usage := item.JSON(object("prompt_tokens", input, "completion_tokens", len(said), "total_tokens", input+len(said)))
	chunk := func(choice string, more ...any) string {
		return object(append([]any{"id", "c", "object", "chat.completion.chunk", "created", 1, "model", "m", "choices", item.JSON("[" + choice + "]")}, more...)...)
	}
	if !stream {
		breakAt(w, cut)
		w.Header().Set("Content-Type", typeJSON)
		fmt.Fprint(w, chunk(object("index", 0, "finish_reason", "stop", "message", item.JSON(object("role", "assistant", "content", text))), "usage", usage))
		return
	}
	events := newEvents(w)
	for i, word := range said {
		if i == cut {
			panic(http.ErrAbortHandler)
		}
		if i > 0 {
			word = " " + word
		}
		events.data(chunk(object("index", 0, "finish_reason", nil, "delta", item.JSON(object("content", word)))))
	}
	breakAt(w, cut)
	events.data(chunk(object("index", 0, "finish_reason", "stop", "delta", item.JSON("{}"))))
	events.data(chunk("", "usage", usage))
	events.data("[DONE]")
}

// breakAt breaks the connection if cut is not negative.
func breakAt(w http.ResponseWriter, cut int) {
	if cut >= 0 {
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

// events writes a stream and flushes each event.
type events struct {
	w http.ResponseWriter
	n int
}

func newEvents(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", typeStream)
	return &events{w: w}
}

func (e *events) send(kind string, members ...any) {
	e.data(object(append([]any{"type", kind, "sequence_number", e.n}, members...)...))
	e.n++
}

func (e *events) data(text string) {
	fmt.Fprintf(e.w, "data: %s\n\n", text)
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}
