// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
)

// models prints the names, or the objects as they came, and nothing else.
func TestModels(t *testing.T) {
	srv := httptest.NewServer(&agenttest.Platform{Models: []string{"small", "large\x1b[2J"}})
	defer srv.Close()
	if o := program(t, "models", "--base-url", srv.URL); o.code != 0 || o.err != "" || !strings.HasPrefix(o.out, "small\nlarge") || strings.Contains(o.out, "\x1b") {
		t.Errorf("%d %q %q", o.code, o.out, o.err)
	}
	o := program(t, "models", "--base-url", srv.URL+"/v1", "--json")
	lines := strings.Split(strings.TrimSpace(o.out), "\n")
	var m struct {
		ID      string `json:"id"`
		OwnedBy string `json:"owned_by"`
	}
	if len(lines) != 2 || json.Unmarshal([]byte(lines[1]), &m) != nil || m.ID != "large\x1b[2J" || m.OwnedBy != "test" {
		t.Errorf("%q", o.out)
	}
}

// Each object is on a line of its own, with what the program does not know.
func TestModelsAsLines(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{\n \"data\": [\n  {\"id\": \"a\",\n \"meta\": {\n \"n_ctx\": 4096 }}, {\"id\": \"b\"}]}")
	}))
	defer srv.Close()
	if o := program(t, "models", "--base-url", srv.URL, "--json"); o.out != "{\"id\":\"a\",\"meta\":{\"n_ctx\":4096}}\n{\"id\":\"b\"}\n" {
		t.Errorf("%q", o.out)
	}
}

// U1, E2: without an endpoint nothing is asked; an endpoint that fails is told.
func TestModelsFails(t *testing.T) {
	if o := programEnv(t, nil, "models"); o.code != exitUsage || !strings.Contains(o.err, "--base-url") || o.out != "" {
		t.Errorf("%d %q %q", o.code, o.out, o.err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf(`{"error":{"message":"bad %s","type":"invalid_request_error"}}`, r.Header.Get("Authorization")), http.StatusBadRequest)
	}))
	defer srv.Close()
	o := program(t, "models", "--base-url", srv.URL)
	if o.code != exitProvider || strings.Contains(o.err, testKey) || !strings.Contains(o.err, "bad") {
		t.Errorf("%d %q", o.code, o.err)
	}
}
