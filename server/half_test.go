// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/server"
)

// V1: half a character is never changed silently: it is refused in what a person says, and kept in what a model
// has said and in outputs.
func TestHalfCharacter(t *testing.T) {
	var got string
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
		for _, it := range r.Items {
			got += it.JSON()
		}
		return w.Text("x")
	})}
	defer s.Close()
	for _, test := range []struct{ path, body, param string }{
		{"responses", `"input":"a\ud83db"`, "input"},
		{"responses", `"input":"a\ude00\ud83d"`, "input"},
		{"responses", `"input":"\ud83d\u0041"`, "input"},
		{"responses", `"input":[{"role":"user","content":"a\ud83d"}]`, "input[0].content"},
		{"responses", `"input":[{"role":"user","content":[{"type":"input_text","text":"a\uD83D\n"}]}]`, "input[0].content"},
		{"responses", `"input":"a","instructions":"\udc00"`, "instructions"},
		{"responses", `"input":"\ud83d\ude00 \\ud83d \u00e9"`, ""},
		{"responses", `"input":[{"role":"assistant","content":"a\ud83d"},{"role":"user","content":"\\ud83d\""}]`, ""},
		{"responses", `"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"\ud83d"},{"type":"function_call_output","call_id":"c","output":"a\ud83d"}]`, ""},
		{"conversations", `"items":[{"role":"user","content":"a\ud83db"}]`, "items[0].content"},
		{"chat/completions", `"messages":[{"role":"user","content":"a\ud83db"}]`, "messages"},
		{"chat/completions", `"messages":[{"role":"user","content":"a"}],"user":"\ud83d"`, "user"},
		{"chat/completions", `"messages":[{"role":"user","content":"\ud83d\ude00 \\ud83d"}]`, ""},
	} {
		got = ""
		model := `"model":"m",`
		if test.path == "conversations" {
			model = ""
		}
		status, text := call(s, http.MethodPost, test.path, `{`+model+test.body+`}`)
		if test.param == "" && status != http.StatusOK || test.param != "" && (status != http.StatusBadRequest || !strings.Contains(text, `"param": "`+test.param+`"`)) {
			t.Errorf("%s: %d %s", test.body, status, text)
		}
		if strings.Contains(got, "\uFFFD") || test.param == "" && strings.Contains(test.body, `a\ud83d"`) && !strings.Contains(got, `a\ud83d"`) {
			t.Errorf("%s becomes %s", test.body, got)
		}
	}
}
