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

// V1: what the API does not have in a request about a conversation, or has in the other API alone, is refused
// by name, and null stands for what is left out.
func TestUnknownMembers(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	defer s.Close()
	status, text := call(s, http.MethodPost, "conversations", `{"items":null,"metadata":null,"nosuch":null}`)
	_, id, _ := strings.Cut(text, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if status != http.StatusOK || id == "" {
		t.Fatalf("%d %s", status, text)
	}
	const items = `[{"role":"user","content":"a"}]`
	const messages = `"model":"m","messages":[{"role":"user","content":"a"}]`
	for _, test := range []struct{ path, body, param string }{
		{"conversations", `{"item":` + items + `}`, "item"},
		{"conversations", `{"items":` + items + `,"metadat":{}}`, "metadat"},
		{"conversations", `{"items":[{"role":"user"}]}`, "items[0].content"},
		{"conversations", `{"items":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, "items[0].content[0].type"},
		{"conversations/" + id, `{"metadata":{},"x":1}`, "x"},
		{"conversations/" + id + "/items", `{"items":` + items + `,"item":` + items + `}`, "item"},
		{"conversations/" + id + "/items", `{"items":[{"role":"user"}]}`, "items[0].content"},
		{"responses", `{"model":"m","input":"a","conversation":{"id":"` + id + `","x":1}}`, "conversation.x"},
		{"responses", `{"model":"m","input":"a","conversation":{"id":"` + id + `","x":null}}`, ""},
		{"responses", `{"model":"m","input":"a","conversation":null,"previous_response_id":null}`, ""},
		{"responses", `{"model":"m","input":"a","conversation":5}`, "conversation"},
		{"conversations/" + id + "/items", `{"items":` + items + `}`, ""},
		{"chat/completions", `{` + messages + `,"input":"b"}`, "input"},
		{"chat/completions", `{` + messages + `,"instructions":"b"}`, "instructions"},
		{"chat/completions", `{` + messages + `,"max_output_tokens":50}`, "max_output_tokens"},
		{"chat/completions", `{` + messages + `,"conversation":"` + id + `"}`, "conversation"},
		{"chat/completions", `{` + messages + `,"input":null,"logprobs":false}`, ""},
	} {
		status, text := call(s, http.MethodPost, test.path, test.body)
		if test.param == "" && status != http.StatusOK || test.param != "" && (status != http.StatusBadRequest || !strings.Contains(text, `"param": "`+test.param+`"`)) {
			t.Errorf("%s %s: %d %s", test.path, test.body, status, text)
		}
	}
}
