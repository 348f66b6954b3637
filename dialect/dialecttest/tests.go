// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package dialecttest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// full returns a reply with the features that every dialect has. Its texts contain characters that
// JSON escapes, and characters of several bytes.
func full() Reply {
	return Reply{
		Text: []string{"Let me \"look\".\n", "Gr", "üße", " 🎻"},
		Calls: []Call{
			{"call_a", "read_file", []string{`{"path":`, `"a.txt"`, `}`}},
			{"call_b", "read_file", []string{`{"path":"b`, `.txt"}`}},
		},
		Input: 12, Output: 34,
	}
}

func testInfo(t *testing.T, s *suite) {
	info := s.Dialect.Info()
	if info.Name == "" || info.Name != strings.ToLower(info.Name) || info.Title == "" || info.Op == "" || !strings.HasPrefix(info.Path, "/") {
		t.Errorf("Info is %+v: it needs a Name in lower case, a Title, an Op, and a Path that begins with a slash", info)
	}
	model, _, sc := s.client(s.stream(full()))
	listen(t, model.Stream(t.Context(), question()))
	if got := sc.asked[0].URL.Path; got != "/v1"+info.Path {
		t.Errorf("the request went to %s, want /v1%s", got, info.Path)
	}
	if got := sc.asked[0].Header.Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("the key was sent as %q", got)
	}
}

func testText(t *testing.T, s *suite) {
	want := Reply{Text: full().Text, Input: 12, Output: 34}
	model, _, _ := s.client(s.stream(want))
	h := listen(t, model.Stream(t.Context(), question()))
	if h.err != nil || h.last != api.EventCompleted {
		t.Fatalf("the stream ended with %q, %v", h.last, h.err)
	}
	if !slices.Equal(h.deltas, want.Text) {
		t.Errorf("deltas %q, want %q", h.deltas, want.Text)
	}
	if got := h.resp.Text(); got != strings.Join(want.Text, "") {
		t.Errorf("the last event's response says %q", got)
	}
	if u := h.resp.Usage; u == nil || u.InputTokens != want.Input || u.OutputTokens != want.Output {
		t.Errorf("usage %+v, want %d and %d", u, want.Input, want.Output)
	}
	if len(h.items) != 1 || h.items[0].Type() != item.TypeMessage {
		t.Errorf("items %v, want one message", h.items)
	}
	if h.events[0] != api.EventCreated {
		t.Errorf("the first event is %s, want %s", h.events[0], api.EventCreated)
	}
}

func testReasoning(t *testing.T, s *suite) {
	want := Reply{Reasoning: []string{"First ", "this."}, Text: []string{"Done."}}
	model, _, _ := s.client(s.stream(want))
	h := listen(t, model.Stream(t.Context(), question()))
	if h.err != nil || h.reasoning != "First this." || h.text != "Done." {
		t.Errorf("reasoning %q, text %q, %v", h.reasoning, h.text, h.err)
	}
	if len(h.items) != 2 || h.items[0].Type() != item.TypeReasoning {
		t.Errorf("items %v, want reasoning and a message", h.items)
	}
}

func testRefusal(t *testing.T, s *suite) {
	model, _, _ := s.client(s.stream(Reply{Refusal: []string{"I ", "will not."}}))
	h := listen(t, model.Stream(t.Context(), question()))
	if h.err != nil || h.refusal != "I will not." || h.text != "" {
		t.Errorf("refusal %q, text %q, %v", h.refusal, h.text, h.err)
	}
}

func testCalls(t *testing.T, s *suite) {
	want := full()
	model, _, _ := s.client(s.stream(want))
	h := listen(t, model.Stream(t.Context(), question()))
	if h.err != nil || h.last != api.EventCompleted {
		t.Fatalf("the stream ended with %q, %v", h.last, h.err)
	}
	if !slices.Equal(calls(h.items), want.calls()) {
		t.Errorf("calls %q, want %q", calls(h.items), want.calls())
	}
	if !slices.Equal(calls(h.resp.Output), want.calls()) {
		t.Errorf("calls of the last event %q, want %q", calls(h.resp.Output), want.calls())
	}
}

func testLimit(t *testing.T, s *suite) {
	model, _, _ := s.client(s.stream(Reply{Text: []string{"It is a"}, Limit: true}))
	h := listen(t, model.Stream(t.Context(), question()))
	if h.err != nil || h.last != api.EventIncomplete {
		t.Fatalf("the stream ended with %q, %v, want %s", h.last, h.err, api.EventIncomplete)
	}
	if d := h.resp.Incomplete; d == nil || d.Reason != "max_output_tokens" {
		t.Errorf("the reason is %+v, want max_output_tokens", d)
	}
}

// testWhole: an answer that is a single object has the same content as a stream.
func testWhole(t *testing.T, s *suite) {
	want := full()
	model, _, _ := s.client(answer{body: s.Whole(want)})
	c, ok := model.(creator)
	if !ok {
		t.Fatal("the client has no Create")
	}
	r, err := c.Create(t.Context(), question())
	if err != nil {
		t.Fatal(err)
	}
	if r.Text() != strings.Join(want.Text, "") || !slices.Equal(calls(r.Output), want.calls()) {
		t.Errorf("text %q, calls %q", r.Text(), calls(r.Output))
	}
	if u := r.Usage; u == nil || u.InputTokens != want.Input || u.OutputTokens != want.Output {
		t.Errorf("usage %+v", u)
	}
}

// testOtherForm: the client understands a server that answers in the other form.
func testOtherForm(t *testing.T, s *suite) {
	want := full()
	model, _, _ := s.client(answer{body: s.Whole(want)})
	h := listen(t, model.Stream(t.Context(), question()))
	if h.err != nil || h.last != api.EventCompleted || !slices.Equal(calls(h.items), want.calls()) {
		t.Errorf("JSON as a stream: %q, %v, calls %q", h.last, h.err, calls(h.items))
	}
	model, _, _ = s.client(s.stream(want))
	r, err := model.(creator).Create(t.Context(), question())
	if err != nil || r.Text() != strings.Join(want.Text, "") || !slices.Equal(calls(r.Output), want.calls()) {
		t.Errorf("a stream as one answer: %v, %v", r, err)
	}
}

// sent returns the request as the server reads it.
func (s *suite) sent(t *testing.T, req *api.Request) *api.Request {
	t.Helper()
	before, err := req.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	model, _, sc := s.client(s.stream(Reply{Text: []string{"ok"}}))
	if h := listen(t, model.Stream(t.Context(), req)); h.err != nil {
		t.Fatal(h.err)
	}
	if after, err := req.MarshalJSON(); err != nil || string(after) != string(before) {
		t.Errorf("the caller's request changed from %s to %s", before, after)
	}
	got, err := s.Read(sc.bodies[0])
	if err != nil {
		t.Fatalf("%s: %v", sc.bodies[0], err)
	}
	return got
}

func testRequest(t *testing.T, s *suite) {
	output, _ := item.Output("call_a", item.Text("It says \"hello\"."))
	tokens := int64(99)
	got := s.sent(t, &api.Request{
		Model: "m", Instructions: "Be brief.", MaxOutputTokens: &tokens,
		Input: item.NewList(item.User("Read a.txt"), item.Call("call_a", "read_file", `{"path":"a.txt"}`), output, item.User("And?")),
		Tools: []item.Tool{&item.FunctionTool{Name: "read_file", Description: "reads a file", Parameters: `{"type":"object","properties":{"path":{"type":"string"}}}`}},
	})
	if got.Model != "m" || got.Stream == nil || !*got.Stream {
		t.Errorf("model %q, stream %v", got.Model, got.Stream)
	}
	var seen []string
	for _, it := range got.Input.All() {
		switch {
		case it.IsCall():
			seen = append(seen, describe(it))
		case it.IsOutput():
			o, err := item.As[item.FunctionCallOutput](it)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, o.CallID+" = "+o.Output.Display())
		default:
			m, err := item.As[item.Message](it)
			if err != nil {
				t.Fatal(err)
			}
			if !it.Instructs() {
				seen = append(seen, m.Content.Display())
			}
		}
	}
	if want := []string{"Read a.txt", `call_a read_file({"path":"a.txt"})`, `call_a = It says "hello".`, "And?"}; !slices.Equal(seen, want) {
		t.Errorf("the server reads %q, want %q", seen, want)
	}
	if text, _ := got.MarshalJSON(); !strings.Contains(string(text), "Be brief.") {
		t.Errorf("the instructions are not in %s", text)
	}
	if got.MaxOutputTokens == nil || *got.MaxOutputTokens != tokens {
		t.Errorf("the output limit is %v, want %d", got.MaxOutputTokens, tokens)
	}
	if len(got.Tools) != 1 || got.Tools[0].(*item.FunctionTool).Name != "read_file" || !strings.Contains(string(got.Tools[0].(*item.FunctionTool).Parameters), `"path"`) {
		t.Errorf("the tools are %v", got.Tools)
	}
}

// pixel is a PNG of one pixel.
const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func testImage(t *testing.T, s *suite) {
	it, err := item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputText{Text: "What is this?"}, &item.InputImage{ImageURL: pixel})})
	if err != nil {
		t.Fatal(err)
	}
	s.wantImage(t, it)
}

func testOutputImage(t *testing.T, s *suite) {
	output, err := item.Output("call_a", item.Parts(&item.InputText{Text: "the picture"}, &item.InputImage{ImageURL: pixel}))
	if err != nil {
		t.Fatal(err)
	}
	s.wantImage(t, item.User("Look."), item.Call("call_a", "look", "{}"), output)
}

// wantImage sends items and fails unless the image arrives in some item.
func (s *suite) wantImage(t *testing.T, items ...item.Item) {
	t.Helper()
	got := s.sent(t, &api.Request{Model: "m", Input: item.NewList(items...)})
	for _, it := range got.Input.All() {
		if strings.Contains(it.JSON(), pixel) {
			return
		}
	}
	t.Errorf("the image is not in what the server reads: %.300s", got.Input.JSON())
}

func testToolChoice(t *testing.T, s *suite) {
	for _, choice := range []item.JSON{api.ChoiceRequired, api.ChooseFunction("f")} {
		got := s.sent(t, &api.Request{
			Model: "m", Input: item.NewList(item.User("Go.")), ToolChoice: choice,
			Tools: []item.Tool{&item.FunctionTool{Name: "f", Parameters: `{"type":"object","properties":{}}`}},
		})
		if got.ToolChoice != choice {
			t.Errorf("tool choice %s, want %s", got.ToolChoice, choice)
		}
	}
}

// testErrorBodies: an error has the class of its status, and does not repeat the key.
func testErrorBodies(t *testing.T, s *suite) {
	body := `{"error":{"message":"no: ` + secret + `","type":"some_error","code":null,"param":null}}`
	for status, want := range map[int]endpoint.Class{
		400: endpoint.BadRequest, 401: endpoint.Auth, 403: endpoint.Forbidden, 404: endpoint.NotFound,
		429: endpoint.RateLimit, 500: endpoint.Server, 503: endpoint.Overloaded,
	} {
		for _, text := range []string{body, "{}", ""} {
			model, _, _ := s.client(answer{status: status, body: text})
			h := listen(t, model.Stream(t.Context(), question()))
			if class(h.err) != want || len(h.events) > 0 {
				t.Errorf("status %d with %q: class %q, want %q; events %v", status, text, class(h.err), want, h.events)
			}
			if h.err != nil && strings.Contains(h.err.Error(), secret) {
				t.Errorf("the key is in the error: %v", h.err)
			}
		}
	}
}

// testErrorInStream: an error that the server reports in the stream is yielded as an event and as
// the error, and does not undo earlier events.
func testErrorInStream(t *testing.T, s *suite) {
	model, _, _ := s.client(s.stream(Reply{Text: []string{"It "}, Error: &api.APIError{Code: "server_error", Message: "it broke " + secret}}))
	h := listen(t, model.Stream(t.Context(), question()))
	if h.err == nil || !strings.Contains(h.err.Error(), "it broke") || strings.Contains(h.err.Error(), secret) {
		t.Errorf("the error is %v", h.err)
	}
	if h.text != "It " || h.last == api.EventCompleted {
		t.Errorf("text %q, last event %q", h.text, h.last)
	}
	var e *endpoint.Error
	if errors.As(h.err, &e) && e.SafeToRetry() {
		t.Error("the error says that the request may be sent again, and output had come")
	}
}

// testBroken cuts a stream after each of its bytes, with a proper end and with a broken connection.
// The events received are a prefix of the reply, a reply that counts as whole is whole, and the
// error holds the complete items.
func testBroken(t *testing.T, s *suite) {
	want := full()
	body := s.stream(want).body
	text := strings.Join(want.Text, "")
	for n := range len(body) {
		for _, cut := range []bool{false, true} {
			model, _, sc := s.client(answer{body: body[:n], cut: cut, header: http.Header{"Content-Type": {"text/event-stream"}}})
			h := listen(t, model.Stream(t.Context(), question()))
			whole := h.text == text && slices.Equal(calls(h.items), want.calls())
			switch {
			case h.err == nil && (!whole || h.last != api.EventCompleted):
				t.Fatalf("cut at %d: text %q and calls %q count as whole", n, h.text, calls(h.items))
			case h.err != nil && class(h.err) != endpoint.Truncated && class(h.err) != endpoint.Protocol:
				t.Fatalf("cut at %d: %v, want a truncated answer", n, h.err)
			case !strings.HasPrefix(text, h.text):
				t.Fatalf("cut at %d: the text is %q", n, h.text)
			case h.err != nil && len(h.items) > 0:
				var partial *dialect.PartialError
				if !errors.As(h.err, &partial) || !slices.Equal(partial.Items, h.items) {
					t.Fatalf("cut at %d: %v does not hold the complete items %v", n, h.err, h.items)
				}
			}
			if len(sc.asked) != 1 {
				t.Fatalf("cut at %d: asked %d times", n, len(sc.asked))
			}
		}
	}
}

// testForeign: comments, pings and white space change nothing, and data that is not an event is
// noted.
func testForeign(t *testing.T, s *suite) {
	want := full()
	var b strings.Builder
	for _, event := range s.Stream(want) {
		b.WriteString(": a comment\n\n" + event + "data: ping\n\n\n\n")
	}
	noted := 0
	ctx := api.WithNotes(t.Context(), func(n api.Note) {
		if n.Kind == api.NoteSkipped {
			noted++
		}
	})
	model, _, _ := s.client(answer{body: b.String()})
	h := listen(t, model.Stream(ctx, question()))
	if h.err != nil || h.text != strings.Join(want.Text, "") || !slices.Equal(calls(h.items), want.calls()) {
		t.Errorf("text %q, calls %q, %v", h.text, calls(h.items), h.err)
	}
	if noted == 0 {
		t.Error("something that is not an event was left out without a note")
	}
	model, _, _ = s.client(answer{body: strings.Repeat("data: ping\n\n", 20), header: http.Header{"Content-Type": {"text/event-stream"}}})
	if h := listen(t, model.Stream(t.Context(), question())); h.err == nil {
		t.Error("a stream of nothing but pings is a reply")
	}
}

func quick() endpoint.Retry {
	return endpoint.Retry{Max: 2, Base: time.Microsecond, Cap: time.Microsecond}
}

// testRetry: a failure before any output is retried, and the reply arrives once.
func testRetry(t *testing.T, s *suite) {
	want := full()
	right := s.stream(want)
	for name, first := range map[string]answer{
		"status":  {status: 500, body: "{}"},
		"nothing": {body: "", header: http.Header{"Content-Type": {"text/event-stream"}}, cut: true},
		"comment": {body: ": hold on\n\n", cut: true},
		"error":   s.stream(Reply{Error: &api.APIError{Code: "server_error", Message: "not now"}}),
	} {
		model, c, sc := s.client(first, right)
		c.Retry = quick()
		h := listen(t, model.Stream(t.Context(), question()))
		if h.err != nil || len(sc.asked) != 2 || h.text != strings.Join(want.Text, "") || !slices.Equal(calls(h.items), want.calls()) {
			t.Errorf("%s: asked %d times, text %q, %v", name, len(sc.asked), h.text, h.err)
		}
		if len(sc.bodies) == 2 && string(sc.bodies[0]) != string(sc.bodies[1]) {
			t.Errorf("%s: the second request is another one", name)
		}
	}
}

// testNoRetry: the request is not sent again after output.
func testNoRetry(t *testing.T, s *suite) {
	events := s.Stream(full())
	for n := range events {
		model, c, sc := s.client(answer{body: strings.Join(events[:n], ""), cut: true, header: http.Header{"Content-Type": {"text/event-stream"}}}, s.stream(Reply{Text: []string{"twice"}}))
		c.Retry = quick()
		h := listen(t, model.Stream(t.Context(), question()))
		if strings.Contains(h.text, "twice") && h.text != "twice" {
			t.Errorf("cut behind event %d: %q", n, h.text)
		}
		if len(sc.asked) > 1 && h.text != "twice" {
			t.Errorf("cut behind event %d: asked %d times for %q", n, len(sc.asked), h.text)
		}
	}
}

// testKey: a redirect to another host is not followed.
func testKey(t *testing.T, s *suite) {
	for _, to := range []string{"https://elsewhere.test/v1", "http://" + host + "/v1", "https://sub." + host + "/v1"} {
		model, _, sc := s.client(answer{status: 307, header: http.Header{"Location": {to}}}, s.stream(full()))
		h := listen(t, model.Stream(t.Context(), question()))
		if h.err == nil || len(sc.asked) != 1 {
			t.Errorf("redirected to %s: %d requests, %v", to, len(sc.asked), h.err)
		}
	}
}

// testCancel: when the context is done, the stream ends with an error of class Canceled that wraps
// the cause.
func testCancel(t *testing.T, s *suite) {
	model, _, sc := s.client(s.stream(full()))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var last error
	for ev, err := range model.Stream(ctx, question()) {
		last = err
		if ev.Type == api.EventTextDelta {
			stop()
		}
	}
	if class(last) != endpoint.Canceled || !errors.Is(last, context.Canceled) {
		t.Errorf("the error is %v", last)
	}
	if sc.closed == 0 {
		t.Error("the answer was not closed")
	}
}

// testStop: a caller that stops iterating receives no more events, and the answer is closed.
func testStop(t *testing.T, s *suite) {
	model, _, sc := s.client(s.stream(full()))
	for _, err := range model.Stream(t.Context(), question()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if sc.closed == 0 {
		t.Error("the answer was not closed")
	}
}
