// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

const wholeCompaction = `{"id":"resp_2","object":"response.compaction","created_at":1,"output":[{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}}`

func TestCompact(t *testing.T) {
	s := answers(t, wholeCompaction)
	got, err := s.Compact(t.Context(), &api.CompactRequest{Model: "m", Input: hello().Input, Instructions: "short"})
	if err != nil || len(got.Output) != 1 || got.Output[0].Type() != item.TypeCompaction || got.Usage.TotalTokens != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	r := s.all()[0]
	if r.line != "POST /v1/responses/compact" {
		t.Error(r.line)
	}
	spec := apispec.Load(t)
	spec.Check(t, "CompactResponseMethodPublicBody", []byte(r.body))
	// W9: the output is the next input, as it is.
	next := item.NewList(got.Output...)
	if want := `[{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}]`; next.JSON() != want {
		t.Errorf("%s", next.JSON())
	}
}

// E1: a compaction that began to be answered is not asked for again.
func TestCompactRetries(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		tries  int
	}{
		"busy":  {503, `{}`, 2},
		"reset": {0, ``, 2},
		"cut":   {200, wholeCompaction[:50], 1},
		"none":  {200, `{"id":"resp_2"}`, 1},
		"400":   {400, `{"error":{"message":"no","type":"invalid_request_error"}}`, 1},
	} {
		s := newStore(t, func(n int, _ asked) (int, string) {
			if n == 0 {
				return tt.status, tt.body
			}
			return 200, wholeCompaction
		})
		_, err := s.Compact(t.Context(), &api.CompactRequest{Model: "m", Input: hello().Input})
		if n := len(s.all()); n != tt.tries || (err == nil) != (tt.tries == 2) {
			t.Errorf("%s: %d requests, %v", name, n, err)
		}
	}
}

// What comes back takes the place of the history.
func ExampleClient_Compact() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"resp_2","object":"response.compaction","output":[
			{"type":"message","role":"user","content":[{"type":"input_text","text":"Plan a trip."}]},
			{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}]}`)
	}))
	defer server.Close()

	client := &responses.Client{BaseURL: server.URL, Key: endpoint.NewKey("sk-…"), HTTP: server.Client()}
	history := item.NewList(item.User("Plan a trip."), item.Assistant("A very long answer."))
	short, err := client.Compact(context.Background(), &api.CompactRequest{Model: "any", Input: history})
	if err != nil {
		fmt.Println(err)
		return
	}
	history = item.NewList(short.Output...)
	history.Append(item.User("And the way back?"))
	for _, it := range history.All() {
		fmt.Println(it.Type())
	}
	// Output:
	// message
	// compaction
	// message
}
