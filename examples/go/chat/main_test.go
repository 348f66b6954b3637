// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Users talk at once, under the same name, and none sees another's words.
func TestManyUsers(t *testing.T) {
	model := agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
		last := req.Input.At(req.Input.Len() - 1)
		return agenttest.Completed(item.Assistant("heard " + last.JSON()))
	})
	chat := &Chat{Agent: &agent.Agent{Model: model}, Store: new(session.Memory), Users: map[string]string{}}
	chat.Agent.Request.Model = "m"
	for n := range 20 {
		chat.Users[fmt.Sprintf("Bearer %d", n)] = fmt.Sprintf("user %d", n)
	}
	server := httptest.NewServer(chat)
	defer server.Close()
	do := func(method, path, token, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		req.Header.Set("Authorization", token)
		res, err := server.Client().Do(req)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return res.StatusCode, string(text)
	}
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			token := fmt.Sprintf("Bearer %d", n)
			for turn := range 2 {
				mine := fmt.Sprintf("secret-%d-%d", n, turn)
				status, text := do("POST", "/talk", token, mine)
				if status != http.StatusOK || !strings.Contains(text, mine) || strings.Count(text, "secret-") != strings.Count(text, fmt.Sprintf("secret-%d-", n)) {
					t.Errorf("user %d: %d %s", n, status, text)
				}
			}
			if _, text := do("GET", "/", token, ""); text != fmt.Sprintf("talk: secret-%d-0\n", n) {
				t.Errorf("user %d sees %q", n, text)
			}
		})
	}
	all.Wait()
	if status, _ := do("GET", "/", "Bearer nobody's", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
}
