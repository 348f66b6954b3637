// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/session/store"
)

// TestMain makes the test's program the worker, as main does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "work" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The worker's process ends while a call waits, a person answers at the desk, and
// another process of the worker goes on.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	worker := func() string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "work")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := worker(); !strings.Contains(out, `waits: pay {"Euros": 40}`) {
		t.Fatal(out)
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, "approve.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	server := httptest.NewServer(desk(db))
	defer server.Close()
	ask := func(method, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := ask("GET", ""); !strings.Contains(text, `"tool":"pay"`) {
		t.Fatal(text)
	}
	if text := ask("POST", `[{"call_id":"nobody's","allow":true}]`); !strings.Contains(text, "no such call") {
		t.Errorf("an answer to nothing: %s", text)
	}
	var id string
	if _, after, ok := strings.Cut(ask("GET", ""), `"call_id":"`); ok {
		id, _, _ = strings.Cut(after, `"`)
	}
	if text := ask("POST", `[{"call_id":"`+id+`","allow":true,"by":"ann"}]`); strings.Contains(text, "pay") {
		t.Errorf("it still waits: %s", text)
	}
	if out := worker(); !strings.Contains(out, "The shop said: 40 euros are paid") {
		t.Error(out)
	}
}
