// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// W12 B6: bodies built by hand are valid.
func TestBodies(t *testing.T) {
	spec := apispec.Load(t)
	input := item.NewList(item.User("q"))
	reply := item.Must(&item.Message{ID: "msg_1", Role: item.RoleAssistant, Status: item.StatusCompleted,
		Content: item.Parts(&item.OutputText{Text: "a", Annotations: "[]", Logprobs: "[]"})})
	usage := &api.Usage{InputTokens: 1, InputDetails: &api.InputTokensDetails{CacheWriteTokens: new(int64(0))}, OutputTokens: 1,
		OutputDetails: &api.OutputTokensDetails{}, TotalTokens: 2}
	meta := must(api.Metadata(map[string]string{"b": "1", "a": "2"}))
	if meta != `{"a":"2","b":"1"}` {
		t.Errorf("Metadata: %s", meta)
	}
	nulls := item.Extra{{Name: "code", Value: "null"}, {Name: "param", Value: "null"}}
	req := &api.Request{Model: "m", Input: input, Text: must(api.TextAsSchema("answer", `{"type":"object"}`, true)),
		Reasoning:            &api.ReasoningConfig{Effort: api.EffortXHigh, Summary: api.SummaryConcise, Context: "all_turns", Mode: "pro"},
		StreamOptions:        &api.StreamOptions{IncludeObfuscation: new(false)},
		Include:              []string{api.IncludeEncryptedReasoning, api.IncludeLogprobs},
		TopLogprobs:          new(int64(3)),
		Conversation:         api.ConversationByID("conv_1"),
		ContextManagement:    []api.ContextManagement{{Type: "compaction", CompactThreshold: new(int64(2000))}},
		Prompt:               &api.Prompt{ID: "pmpt_1", Version: "2", Variables: `{"a":"b","c":{"type":"input_text","text":"t"}}`},
		PromptCacheOptions:   &api.PromptCacheOptions{Mode: "explicit", TTL: "30m"},
		PromptCacheRetention: "24h",
		Moderation:           &api.ModerationConfig{Model: "m", Policy: &api.ModerationPolicy{Input: &api.ModerationMode{Mode: "block"}}},
		Metadata:             meta}
	for _, test := range []struct {
		schema string
		body   interface {
			AppendJSON([]byte) ([]byte, error)
		}
	}{
		{"CreateResponse", req},
		{"CreateResponse", &api.Request{Model: "m", Input: input, Text: api.TextAny}},
		{"CreateResponse", &api.Request{Model: "m", Input: input, Text: api.TextAsObject}},
		{"ResponsesClientEvent", clientEvent{&api.CreateEvent{StreamID: "s", Request: req}}},
		{"CompactResponseMethodPublicBody", &api.CompactRequest{Input: input}},
		{"CompactResponseMethodPublicBody", &api.CompactRequest{Model: "gpt-5", PreviousResponseID: "resp_1", Instructions: "i", PromptCacheKey: "k",
			PromptCacheOptions: &api.PromptCacheOptions{}, PromptCacheRetention: "24h", ServiceTier: "auto"}},
		{"CompactResource", &api.Compacted{ID: "resp_1", CreatedAt: 1, Output: []item.Item{reply}, Usage: usage}},
		{"TokenCountsBody", api.CountOf(req)},
		{"TokenCountsResource", &api.TokenCount{InputTokens: 5}},
		{"ConversationResource", &api.Conversation{ID: "conv_1"}},
		{"CreateConversationBody", &api.CreateConversation{Items: input, Metadata: meta}},
		{"UpdateConversationBody", &api.UpdateConversation{}},
		{"UpdateConversationBody", &api.UpdateConversation{Metadata: meta}},
		{"DeletedConversationResource", &api.Deleted{ID: "conv_1", Deleted: true}},
		{"ResponseItemList", &api.ItemPage{Data: []item.Item{reply}, FirstID: "msg_1", LastID: "msg_1"}},
		{"ConversationItemList", &api.ItemPage{}},
		{"ErrorResponse", &api.ErrorBody{Error: &api.APIError{Type: "server_error", Message: "m", Extra: nulls}}},
	} {
		spec.Check(t, test.schema, []byte(body(t, test.body.AppendJSON)))
	}
}

type clientEvent struct{ e api.ClientEvent }

func (c clientEvent) AppendJSON(dst []byte) ([]byte, error) { return api.AppendClientEvent(dst, c.e) }

// W8: a request in a WebSocket event is the request, and its items are the
// bytes that they were.
func TestClientEvent(t *testing.T) {
	in := `{"type":"response.create","stream_id":"s","model":"m","input":[{ "role":"user", "content":"\u0068i" }],"new":1}`
	e, err := api.ParseClientEvent([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	c, ok := e.(*api.CreateEvent)
	if !ok || c.StreamID != "s" || c.Request.Model != "m" || c.Request.Input.At(0).JSON() != `{ "role":"user", "content":"\u0068i" }` {
		t.Fatalf("got %+v", e)
	}
	if out := body(t, clientEvent{e}.AppendJSON); out != in {
		t.Errorf("got %s", out)
	}
	if out := body(t, clientEvent{&api.CreateEvent{}}.AppendJSON); out != `{"type":"response.create"}` {
		t.Errorf("got %s", out)
	}
	other := `{"type":"response.cancel", "x":1.0}`
	e, err = api.ParseClientEvent([]byte(other))
	if err != nil || e.ClientEventType() != "response.cancel" {
		t.Fatalf("%v, %v", e, err)
	}
	if out := body(t, clientEvent{e}.AppendJSON); out != other {
		t.Errorf("got %s", out)
	}
}

func TestConversationID(t *testing.T) {
	for in, want := range map[item.JSON]string{api.ConversationByID("c"): "c", `{"id":"c","x":1}`: "c", `{}`: "", `5`: "", ``: "", `null`: ""} {
		if got, ok := api.ConversationID(in); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", in, got, ok)
		}
	}
}

// W7 W8: the recorded bodies of other paths are read without loss.
func TestCorpusOther(t *testing.T) {
	kinds := tally{}
	for _, folder := range []string{"responses_other/requests/*.json", "responses_other/responses/*.json", "spec_examples/responses/*.json"} {
		eachFile(t, folder, func(t *testing.T, name string, data []byte) {
			kind, again := readerOf(t, filepath.Base(filepath.Dir(folder)), string(data))
			kinds[kind]++
			out, err := again(string(data))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			sameJSON(t, name, out, string(data))
		})
	}
	kinds.log(t)
}

// readerOf tells by its members which body it is.
func readerOf(t *testing.T, side, s string) (kind string, again func(string) (string, error)) {
	t.Helper()
	object, _ := memberOf(t, s, "object")
	_, items := memberOf(t, s, "items")
	_, model := memberOf(t, s, "model")
	switch {
	case object == `"list"`:
		return "page", reread(api.ParseItemPage)
	case object == `"conversation"`:
		return "conversation", reread(api.ParseConversation)
	case object == `"response.compaction"`:
		return "compacted", reread(api.ParseCompacted)
	case object == `"response.input_tokens"`:
		return "token count", reread(api.ParseTokenCount)
	case strings.Contains(string(object), "deleted"):
		return "deleted", reread(api.ParseDeleted)
	case side == "requests" && model:
		return "token count or compact request", both(reread(api.ParseTokenCountRequest), reread(api.ParseCompactRequest))
	case side == "requests" && items:
		return "create conversation", both(reread(api.ParseCreateConversation), reread(api.ParseAddItems))
	case side == "requests":
		return "update conversation", reread(api.ParseUpdateConversation)
	}
	return "response", reread(api.ParseResponse)
}

// both reads and writes by the one and then by the other.
func both(one, other func(string) (string, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		s, err := one(s)
		if err != nil {
			return "", err
		}
		return other(s)
	}
}

// S3: the recorded bodies of errors that are worded as the API words them.
func TestCorpusErrors(t *testing.T) {
	counts := tally{}
	eachFile(t, "errors/*", func(t *testing.T, name string, data []byte) {
		_, text, _ := strings.Cut(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n\n")
		if item.JSON(text).Valid() != nil || !strings.HasPrefix(strings.TrimSpace(text), "{") {
			counts["no object"]++
			return
		}
		out, err := reread(api.ParseErrorBody)(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		sameJSON(t, name, out, text)
		if b, _ := api.ParseErrorBody([]byte(text)); b.Error != nil && b.Error.Message != "" {
			counts["error object"]++
		} else {
			counts["other object"]++
		}
	})
	counts.log(t)
}

// W11: numbers of an envelope are written as they came, while the field has them.
// A field that was changed or taken away wins.
func TestNumbersAreKept(t *testing.T) {
	for _, n := range []string{"1.0", "1e3", "1E+03", "-0", "10", "0.10", "1.0000000000000000000001", "1e-400", "123456789012345678901234567890", "9007199254740993", "1e400", "0.5"} {
		request := `{"model":"m","max_output_tokens":` + n + `,"temperature":` + n + `,"top_p":` + n + `,"top_logprobs":` + n + `,"max_tool_calls":1}`
		r, err := api.ParseRequest([]byte(request))
		if err != nil {
			t.Fatal(err)
		}
		copied := *r
		if got := string(must(copied.AppendJSON(nil))); !sameMembers(got, request) {
			t.Errorf("request %s\nbecame  %s", request, got)
		}
		r.Temperature, r.MaxOutputTokens = new(0.25), nil
		r.Extra = nil
		if got := string(must(r.AppendJSON(nil))); !strings.Contains(got, `"temperature":0.25`) || strings.Contains(got, "max_output_tokens") {
			t.Errorf("changed: %s", got)
		}
		response := `{"id":"r","object":"response","created_at":` + n + `,"temperature":` + n + `,"output":[],"usage":{"input_tokens":` + n + `,"output_tokens":2,"total_tokens":` + n + `}}`
		p, err := api.ParseResponse([]byte(response))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(must(p.AppendJSON(nil))); !sameMembers(got, response) {
			t.Errorf("response %s\nbecame   %s", response, got)
		}
	}
}

// sameMembers compares objects member by member, their values as they are spelled.
func sameMembers(a, b string) bool {
	members := func(s string) string {
		list := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("{},", r) })
		slices.Sort(list)
		return strings.Join(list, ",")
	}
	return members(a) == members(b)
}
