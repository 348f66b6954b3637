// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
)

// What a backend writes into the items that it got is not stored: the next request
// continues what was said. V1
func TestItemsOfBackend(t *testing.T) {
	var asked [][]string
	s := httptest.NewServer(&server.Server{Backend: server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
		var texts []string
		for i, it := range r.Items {
			m, err := item.As[item.Message](it)
			if err != nil {
				return err
			}
			texts = append(texts, m.Content.Display())
			r.Items[i] = item.User("changed")
		}
		asked = append(asked, texts)
		return w.Text("reply")
	})})
	defer s.Close()
	c := &responses.Client{BaseURL: s.URL + "/v1"}
	first, err := c.Create(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.User("one"))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Create(t.Context(), &api.Request{Model: "m", PreviousResponseID: first.ID, Input: item.NewList(item.User("two"))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, texts := range asked[1:] {
		if len(texts) != 3 || texts[0] != "one" || texts[1] != "reply" || texts[2] != "two" {
			t.Errorf("%q", asked)
		}
	}
}
