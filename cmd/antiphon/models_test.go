// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
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

// silence accepts requests and answers none until the test is over.
func silence(t *testing.T) (baseURL string, asked <-chan struct{}) {
	t.Helper()
	over, first := make(chan struct{}), make(chan struct{}, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		first <- struct{}{}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(over) })
	return srv.URL + "/v1", first
}

// E2: an endpoint that never answers is given up, with what helps.
func TestModelsOfSilence(t *testing.T) {
	t.Parallel()
	url, _ := silence(t)
	o := programEnv(t, nil, "models", "--base-url", url, "--timeout", "10ms")
	if o.code != exitProvider || o.out != "" || !strings.Contains(o.err, "did not list its models within 10ms") || !strings.Contains(o.err, "--timeout") {
		t.Errorf("%d %q %q", o.code, o.out, o.err)
	}
}

// E2: the doctor does not wait for each probe of an endpoint that has answered none, and an
// interrupt is not reported as a fault of the endpoint.
func TestDoctorOfSilence(t *testing.T) {
	t.Parallel()
	url, asked := silence(t)
	o := programEnv(t, nil, "doctor", "--base-url", url, "--model", "m", "--timeout", "10ms")
	if o.code != exitProvider || strings.Count(o.out, "no answer within") != 2 || strings.Count(o.out, "does not answer in time") != 17 {
		t.Errorf("%d %q %q", o.code, o.out, o.err)
	}
	for len(asked) > 0 {
		<-asked
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"doctor", "--base-url", url, "--model", "m"}, nil, stdio{strings.NewReader(""), &stdout, &stderr})
	if said := stderr.String(); code != exitInterrupted || said != "antiphon: interrupted\n" || strings.Contains(stdout.String(), "reached") {
		t.Errorf("%d %q\n%s", code, said, stdout.String())
	}
}

// E2: the doctor repeats what helps.
func TestDoctorSaysWhatHelps(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no key"}}`, http.StatusUnauthorized)
	}))
	defer srv.Close()
	o := programEnv(t, nil, "doctor", "--base-url", srv.URL, "--model", "m")
	if o.code != exitProvider || !strings.Contains(o.err, "set OPENAI_API_KEY to the key of this server") {
		t.Errorf("%d %q", o.code, o.err)
	}
	if o = programEnv(t, nil, "doctor", "--base-url", srv.URL); o.code != exitProvider || !strings.Contains(o.err, "check the base URL") {
		t.Errorf("without a model: %d %q", o.code, o.err)
	}
}
