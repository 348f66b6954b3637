// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/responses"
)

// J6: of a header that nobody knows, the name is recorded and nothing else; of
// those that say how to read an answer and when to ask again, all is.
func TestUnknownHeadersScrubbed(t *testing.T) {
	secretive := []string{
		"X-Custom-Token", "X-Auth-Token", "X-Portkey-Api-Key", "Helicone-Auth", "x-lower-secret", "X-Session-Id", "X-My-Password",
		"X-Amz-Credential", "X-Signature", "Ocp-Apim-Subscription-Key", "Cf-Aig-Authorization", "X-Jwt-Assertion", "Openai-Project", "Chatgpt-Account-Id",
	}
	open := map[string]string{
		"Retry-After": "7", "X-Ratelimit-Remaining-Tokens": "12", "X-Codex-Primary-Used-Percent": "3", "X-Request-Id": "req_1", "Openai-Processing-Ms": "5",
	}
	answer := agenttest.Raw(200, "text/plain", "x")
	header := http.Header{"Idempotency-Key": {"antiphon-HDRSECRET"}, "User-Agent": {"mine"}}
	for _, name := range secretive {
		answer = answer.WithHeader(name, "HDRSECRET")
		header[name] = []string{"HDRSECRET"} // spelled as it is
	}
	for name, value := range open {
		answer = answer.WithHeader(name, value)
	}
	srv := agenttest.NewServer(t, answer)
	file := recordOf(t, srv.URL, func(tape *agenttest.Tape) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		resp, err := tape.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	})
	text := read(t, file)
	if strings.Contains(text, "HDRSECRET") {
		t.Errorf("a secret is in the recording:\n%s", text)
	}
	for _, name := range append(secretive, "Idempotency-Key") {
		if line := "> " + http.CanonicalHeaderKey(name) + ": [scrubbed]\n"; !strings.Contains(text, line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	for name, value := range open {
		if line := "< " + name + ": " + value + "\n"; !strings.Contains(text, line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if !strings.Contains(text, "> User-Agent: mine\n") {
		t.Error(text)
	}
}

// J6: recording again changes nothing in what was sent, and a base URL keeps its
// path and its query.
func TestRecordAgain(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed() })
	profile, err := endpoint.ByName("openai") // whose requests have an Idempotency-Key
	if err != nil {
		t.Fatal(err)
	}
	run := func(tape *agenttest.Tape, viaClient bool) {
		c := &responses.Client{BaseURL: tape.URL(strings.TrimSuffix(srv.URL, "/v1") + "/team%2Fa/v1?api-version=preview"), Profile: &profile, Retry: srv.Client().Retry}
		if viaClient {
			c.HTTP = tape.Client()
		}
		if _, err := c.Create(t.Context(), request("a")); err != nil {
			t.Error(err)
		}
	}
	var sent []string
	for _, viaClient := range []bool{false, true} {
		file := recordOf(t, srv.URL, func(tape *agenttest.Tape) { run(tape, viaClient) })
		text := read(t, file)
		if n := strings.Count(text, "\n> POST "); n != 1 || !strings.Contains(text, "/team%2Fa/v1/responses?api-version=preview\n") {
			t.Errorf("%d records:\n%s", n, text)
		}
		if !strings.Contains(text, "> Idempotency-Key: [scrubbed]\n") {
			t.Error(text)
		}
		before, _, _ := strings.Cut(text, "\n< ")
		sent = append(sent, before)
		run(agenttest.Replay(t, file), viaClient)
		run(agenttest.Replay(t, file), !viaClient)
	}
	if d := cmp.Diff(sent[0], sent[1]); d != "" {
		t.Errorf("(-first +second):\n%s", d)
	}
	for _, r := range srv.Requests() {
		if r.Query != "api-version=preview" {
			t.Errorf("the server was asked %s?%s", r.Path, r.Query)
		}
	}
}

// A request that no record answers ends the client's call at once, and the error
// says how it differs.
func TestMismatchIsFinal(t *testing.T) {
	for _, socket := range []bool{false, true} {
		fake := &fakeTB{TB: t}
		tape := agenttest.Replay(fake, write(t, twoRecords))
		retries := 0
		c := &responses.Client{
			BaseURL: "https://x/v1", HTTP: tape.Client(), Retry: agenttest.NewServer(t).Client().Retry,
			OnRetry: func(error, time.Duration, int) { retries++ },
		}
		if socket {
			c.BaseURL, c.HTTP = tape.URL(c.BaseURL), nil
		}
		_, err := c.Create(t.Context(), request("a"))
		var e *endpoint.Error
		if !errors.As(err, &e) || e.SafeToRetry() || e.Class == endpoint.Network || retries > 0 || !strings.Contains(err.Error(), "no record answers POST") {
			t.Errorf("after %d retries: %v", retries, err)
		}
		if !socket && (e.Class != endpoint.Protocol || !strings.Contains(e.Message, "\n+   \"model\": \"m\"")) {
			t.Errorf("%s: %s", e.Class, e.Message)
		}
		if errs := fake.end(); strings.Count(errs, "no record answers") != 1 || !strings.Contains(errs, "to record again, call agenttest.Record instead of Replay, and run the test with ANTIPHON_RECORD=TestMismatchIsFinal") {
			t.Error(errs)
		}
	}
}
