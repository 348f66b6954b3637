// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/server"
)

// A page of another site cannot make the server work. V7
func TestForeignPages(t *testing.T) {
	const own, other = "http://127.0.0.1:8080", "http://evil.example"
	ran := 0
	s := &server.Server{Backend: server.BackendFunc(func(context.Context, *server.Request, *server.Writer) error {
		ran++
		return nil
	})}
	for _, test := range []struct {
		method, path string
		header       map[string]string
		status       int
		code         string
	}{
		{"POST", "responses", map[string]string{}, 200, ""},
		{"POST", "responses", map[string]string{"Origin": own, "Content-Type": "application/json; charset=utf-8"}, 200, ""},
		{"POST", "responses", map[string]string{"Sec-Fetch-Site": "same-origin", "Content-Type": "application/vnd.api+json"}, 200, ""},
		{"POST", "responses", map[string]string{"Origin": other, "Content-Type": "application/json"}, 403, "origin_not_allowed"},
		{"POST", "responses", map[string]string{"Origin": "null"}, 403, "origin_not_allowed"},
		{"POST", "responses", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "origin_not_allowed"},
		{"POST", "chat/completions", map[string]string{"Origin": other}, 403, "origin_not_allowed"},
		{"POST", "conversations", map[string]string{"Origin": other}, 403, "origin_not_allowed"},
		{"POST", "responses/resp_a/cancel", map[string]string{"Origin": other}, 403, "origin_not_allowed"},
		{"DELETE", "responses/resp_a", map[string]string{"Origin": other}, 403, "origin_not_allowed"},
		{"POST", "responses", map[string]string{"Content-Type": "text/plain"}, 415, "unsupported_content_type"},
		{"POST", "responses", map[string]string{"Content-Type": "text/plain; application/json"}, 415, "unsupported_content_type"},
		{"POST", "responses", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported_content_type"},
		{"POST", "conversations", map[string]string{"Content-Type": "text/plain"}, 415, "unsupported_content_type"},
	} {
		r := httptest.NewRequest(test.method, own+"/v1/"+test.path, strings.NewReader(`{"model":"m","input":"x"}`))
		for name, value := range test.header {
			r.Header.Set(name, value)
		}
		w, before := httptest.NewRecorder(), ran
		s.ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.code) || (ran > before) != (test.status == 200) {
			t.Errorf("%s %s %v: %d %s", test.method, test.path, test.header, w.Code, w.Body)
		}
	}
}

// A server that was started on loopback does not answer to another name. V7
func TestRebinding(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(context.Context, *server.Request, *server.Writer) error { return nil })}
	base, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for host, status := range map[string]int{
		"": 200, "localhost": 200, "LOCALHOST:1": 200, "127.0.0.2:80": 200, "[::1]:80": 200, "[::1]": 200,
		"evil.example": 403, "evil.example:80": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example:80": 403, "10.0.0.1": 403,
	} {
		for _, origin := range []string{"", "http://" + host} {
			got, body := postTo(t, base+"/responses", host, origin)
			if got != status || status == 403 && !strings.Contains(body, "host_not_allowed") {
				t.Errorf("host %q, origin %q: %d %s", host, origin, got, body)
			}
		}
	}
}

// postTo creates a response with the given headers; "" means the usual ones.
func postTo(t *testing.T, url, host, origin string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"model":"m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	if host != "" && origin != "" {
		r.Header.Set("Origin", origin)
	}
	own := new(http.Transport)
	defer own.CloseIdleConnections()
	resp, err := (&http.Client{Transport: own}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		_, err = api.ParseResponse(b)
	}
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}
