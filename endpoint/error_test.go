// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/apispec"
)

func response(status int, header ...string) *http.Response {
	u, _ := url.Parse("https://me:hunter2@api.openai.com/v1/responses?key=hunter2")
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Request: &http.Request{Method: "POST", URL: u}}
}

// E7, E2, E1: status and code decide, in all the shapes bodies come in.
func TestFromResponse(t *testing.T) {
	page := "<!DOCTYPE html>\n<html><head><title>502 Bad &amp; ugly</title></head></html>"
	tests := []struct {
		status int
		body   string
		class  Class
		retry  bool
		msg    string
	}{
		{400, `{"error":{"message":"M","type":"invalid_request_error","param":"input","code":null}}`, BadRequest, false, "M"},
		{400, `{"error":{"message":"M","code":"context_length_exceeded"}}`, ContextOverflow, false, "M"},
		{400, `{"error":{"message":"M","code":"previous_response_not_found"}}`, PreviousResponse, false, "M"},
		{400, `{"error":{"message":"M","code":"invalid_encrypted_content"}}`, EncryptedContent, false, "M"},
		{400, `{"error":{"message":"M","code":"invalid_prompt"}}`, Policy, false, "M"},
		{400, `{"error":{"message":"M","code":"model_not_found"}}`, NotFound, false, "M"},
		{400, `{"error":{"message":"M","type":"server_error"}}`, BadRequest, false, "M"},
		{400, `{"error":{"message":"rate limit exceeded, insufficient_quota","code":""}}`, BadRequest, false, "rate limit exceeded, insufficient_quota"},
		{401, `{"error":{"message":"M","code":"invalid_api_key"}}`, Auth, false, "M"},
		{401, `{"detail":"D"}`, Auth, false, "D"},
		{402, `{"error":{"message":"M"}}`, Quota, false, "M"},
		{403, `{"error":{"message":"M"}}`, Forbidden, false, "M"},
		{404, `{"error":"model 'x' not found"}`, NotFound, false, "model 'x' not found"},
		{404, "404 page not found\n", NotFound, false, ""},
		{404, page, Protocol, false, `got a web page instead of JSON, titled "502 Bad & ugly"`},
		{405, "", BadRequest, false, ""},
		{408, "", Server, true, ""},
		{409, `{"error":{"message":"M"}}`, Server, true, "M"},
		{413, page, TooLarge, false, `got a web page instead of JSON, titled "502 Bad & ugly"`},
		{422, `{"detail":[{"loc":["body","input"],"msg":"field required","type":"value_error"},{"msg":"second"}]}`, BadRequest, false, "field required; second"},
		{429, `{"error":{"message":"M","code":"rate_limit_exceeded"}}`, RateLimit, true, "M"},
		{429, `{"error":{"message":"M","type":"insufficient_quota","code":"insufficient_quota"}}`, Quota, false, "M"},
		{429, `{"error":{"message":"M","code":"billing_hard_limit_reached"}}`, Quota, false, "M"},
		{429, "", RateLimit, true, ""},
		{500, `{"error":{"message":"M","type":"server_error"}}`, Server, true, "M"},
		{500, `{"error":{"message":"M","type":"invalid_request_error"}}`, Server, true, "M"},
		{502, page, Server, true, `got a web page instead of JSON, titled "502 Bad & ugly"`},
		{503, "no healthy upstream", Overloaded, true, ""},
		{504, "", Server, true, ""},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"M"}}`, Overloaded, true, "M"},
		{501, "", NotFound, false, ""},
		{200, page, Protocol, false, `got a web page instead of JSON, titled "502 Bad & ugly"`},
		{200, `{"error":{"message":"M","code":429}}`, RateLimit, true, "M"},
		{200, `hello`, Protocol, false, ""},
		{302, ``, Protocol, false, ""},
		{400, `{"object":"error","message":"M","type":"BadRequestError","param":null,"code":400}`, BadRequest, false, "M"},
		{500, `{"error":{"code":500,"message":"M","type":"server_error"}}`, Server, true, "M"},
		{400, `{"error":{"code":400,"message":"M","type":"exceed_context_size_error"}}`, ContextOverflow, false, "M"},
		{400, `{"code":"invalid-argument","error":"M"}`, BadRequest, false, "M"},
		{400, `[{"error":{"code":400,"message":"M","status":"INVALID_ARGUMENT"}}]`, BadRequest, false, "M"},
		{404, `{"error":{"code":"DeploymentNotFound","message":"M"}}`, NotFound, false, "M"},
		{400, `{"type":"about:blank","title":"T","status":400}`, BadRequest, false, "T"},
		{400, `{"error":null}`, BadRequest, false, ""},
		{400, `{"error":{"message":{"message":"deep"}}}`, BadRequest, false, "deep"},
		{400, `{"error":{"message":"a` + "\xff" + `b","message":"second"}}`, BadRequest, false, "second"},
		{400, `{`, BadRequest, false, ""},
	}
	for _, tt := range tests {
		e := FromResponse(response(tt.status), []byte(tt.body))
		if e.Class != tt.class || e.SafeToRetry() != tt.retry || e.Message != tt.msg {
			t.Errorf("%d %s:\n got class %s, retry %v, message %q\nwant class %s, retry %v, message %q",
				tt.status, tt.body, e.Class, e.SafeToRetry(), e.Message, tt.class, tt.retry, tt.msg)
		}
		fitForTerminal(t, e)
	}
}

func fitForTerminal(t *testing.T, e *Error) {
	t.Helper()
	s := e.Error()
	if strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s) || len(s) > 6000 {
		t.Errorf("unfit for a terminal: %q", s)
	}
	if strings.Contains(s, "hunter2") {
		t.Errorf("a secret of the URL is in %q", s)
	}
	silent := strings.Contains(s, ": ;") && !strings.Contains(e.Message+e.Body, ";") // which a server may say
	if strings.HasSuffix(s, ": ") || silent {
		t.Errorf("says nothing: %q", s)
	}
}

// The message names what failed, where, the status, the server's words and
// what to do.
func TestErrorMessage(t *testing.T) {
	e := FromResponse(response(401, "X-Request-Id", "req_1"),
		[]byte(`{"error":{"message":"Incorrect API key \u001b[31mprovided.","code":"invalid_api_key"}}`))
	want := "POST https://api.openai.com/v1/responses: 401 Unauthorized: Incorrect API key <U+001B>[31mprovided. " +
		"(code invalid_api_key, request req_1); set OPENAI_API_KEY to a key from https://platform.openai.com/api-keys"
	if e.Error() != want {
		t.Errorf("got  %s\nwant %s", e, want)
	}
	resp := response(404)
	resp.Request.URL.Path = "/responses"
	if s := FromResponse(resp, []byte("404 page not found")).Error(); !strings.Contains(s, "404 page not found; ") || !strings.Contains(s, "/v1") {
		t.Errorf("no word of /v1: %s", s)
	}
	// Ollama's answer for a model that was not pulled: its path is right.
	resp = response(404)
	resp.Request.URL = &url.URL{Scheme: "http", Host: "localhost:11434", Path: "/v1/responses"}
	e = FromResponse(resp, []byte(`{"error":{"message":"model 'x' not found","type":"api_error","param":null,"code":null}}`))
	if s := e.Error(); e.Class != NotFound || !strings.Contains(s, "ollama pull") || strings.Contains(s, "Responses API") {
		t.Errorf("for a model that is not there: %s", s)
	}
	if s := FromResponse(response(200), []byte("<html>")).Error(); !strings.Contains(s, "not a Responses endpoint") {
		t.Errorf("no hint: %s", s)
	}
	long := FromResponse(response(400), []byte(`{"error":{"message":"`+strings.Repeat("ä", 1<<20)+`"}}`))
	fitForTerminal(t, long)
}

func corpus(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(apispec.Shared(t, "corpus"), filepath.FromSlash(folder), "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	return files
}

func TestFromTransport(t *testing.T) {
	u, _ := url.Parse("http://me:hunter2@localhost:1/v1/responses?key=hunter2")
	wrap := func(err error) error { return &url.Error{Op: "Post", URL: u.String(), Err: err} }
	e := FromTransport("POST", u, wrap(fmt.Errorf("dial: %w", syscall.ECONNREFUSED)))
	if e.Class != Network || !e.SafeToRetry() || !errors.Is(e, syscall.ECONNREFUSED) || !strings.Contains(e.Error(), "is the server running at localhost:1?") {
		t.Errorf("%+v: %s", e, e)
	}
	fitForTerminal(t, e)
	unknown := &net.DNSError{Err: "no such host", Name: "nosuch.invalid", IsNotFound: true}
	if e := FromTransport("POST", u, wrap(unknown)); e.SafeToRetry() || !strings.HasSuffix(e.Error(), "no such host; check the base URL and the network") {
		t.Errorf("of an unknown host: %s", e)
	}
	if e := FromTransport("POST", u, wrap(http.ErrSchemeMismatch)); e.SafeToRetry() || !strings.Contains(e.Error(), "http://") {
		t.Errorf("%+v: %s", e, e)
	}
	own := &Error{Class: Protocol}
	if e := FromTransport("POST", u, wrap(own)); e != own {
		t.Errorf("%+v", e)
	}
	if e := FromTransport("POST", nil, context.DeadlineExceeded); e.URL != "" {
		t.Errorf("%+v", e)
	}
}

// E1: seconds, milliseconds, a date, and nonsense.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		header []string
		want   time.Duration
	}{
		{nil, 0},
		{[]string{"Retry-After", "3"}, 3 * time.Second},
		{[]string{"Retry-After", "1.5"}, 1500 * time.Millisecond},
		{[]string{"Retry-After", " 2 "}, 2 * time.Second},
		{[]string{"Retry-After-Ms", "250", "Retry-After", "1"}, 250 * time.Millisecond},
		{[]string{"Retry-After-Ms", "soon", "Retry-After", "1"}, time.Second},
		{[]string{"Retry-After", "Sat, 21 Nov 2026 12:00:07 GMT", "Date", "Sat, 21 Nov 2026 12:00:00 GMT"}, 7 * time.Second},
		{[]string{"Retry-After", "Sat, 21 Nov 2026 11:00:00 GMT", "Date", "Sat, 21 Nov 2026 12:00:00 GMT"}, 0},
		{[]string{"Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT"}, 0},
		{[]string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, 24 * time.Hour},
		{[]string{"Retry-After", "-5"}, 0},
		{[]string{"Retry-After", "NaN"}, 0},
		{[]string{"Retry-After", "Inf"}, 24 * time.Hour},
		{[]string{"Retry-After", "1e300"}, 24 * time.Hour},
		{[]string{"Retry-After", "1e999"}, 24 * time.Hour},
		{[]string{"Retry-After", "99999999999999999999"}, 24 * time.Hour},
		{[]string{"Retry-After", "later"}, 0},
	} {
		if got := FromResponse(response(429, tt.header...), nil).RetryAfter; got != tt.want {
			t.Errorf("%v: %v, want %v", tt.header, got, tt.want)
		}
	}
	if e := FromResponse(response(400, "X-Should-Retry", "true"), nil); !e.SafeToRetry() {
		t.Error("what the server calls worth a try is final")
	}
	if e := FromResponse(response(400, "X-Should-Retry", "true"), nil); e.Class != BadRequest {
		t.Errorf("class %s", e.Class)
	}
	if e := FromResponse(response(503, "X-Should-Retry", "false"), nil); e.SafeToRetry() {
		t.Error("repeated although the server said not to")
	}
}
