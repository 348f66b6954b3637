// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/server"
)

// A conversation that is changed between the request and the beginning of its response, to other items of the
// same number, does not change what the response was made from. V1
func TestConversationChanges(t *testing.T) {
	s := new(server.Server)
	_, body := call(s, http.MethodPost, "conversations", `{"items":[{"role":"user","content":"first"},{"role":"user","content":"second"}]}`)
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	at := "conversations/" + talk.ID + "/items"
	sent := ""
	s.Backend = server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
		for _, it := range r.Items {
			sent += it.JSON()
		}
		if code, body := call(s, http.MethodDelete, at+"/"+r.Items[0].ID(), ""); code != http.StatusOK {
			t.Error(code, body)
		}
		if code, body := call(s, http.MethodPost, at, `{"items":[{"role":"user","content":"other"}]}`); code != http.StatusOK {
			t.Error(code, body)
		}
		_ = w.Begin("resp_a")
		return w.Text("y")
	})
	if code, body := call(s, http.MethodPost, "responses", `{"model":"m","input":"third","conversation":"`+talk.ID+`"}`); code != http.StatusOK || !strings.Contains(sent, "first") {
		t.Fatal(code, body, sent)
	}
	_, list := call(s, http.MethodGet, "responses/resp_a/input_items", "")
	for word, want := range map[string]bool{"first": true, "second": true, "third": true, "other": false} {
		if strings.Contains(list, `"`+word+`"`) != want {
			t.Errorf("%q: %s", word, list)
		}
	}
}
