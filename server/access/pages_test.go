// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/server/access"
)

// browse sends a request as a browser does for a page.
func (w *guarded) browse(method, path string, header map[string]string) (status int, h http.Header, body string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.at+path, strings.NewReader(hello))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
	}
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// Pages of the listed origins can use the server and read its answers; no other page can,
// also not by a name of its own for this address. The default is none. V7
func TestPages(t *testing.T) {
	const app, evil = "https://app.example", "https://evil.example"
	for _, keyed := range []bool{false, true} {
		var keys []access.Key
		if keyed {
			keys = []access.Key{{Name: "a"}}
		}
		none := world(t, &access.Guard{}, echo, keys...)
		w := world(t, &access.Guard{Origins: []string{app, "http://localhost:5173"}}, echo, keys...)
		for _, test := range []struct {
			w                    *guarded
			method, origin, host string
			status               int
		}{
			{w, "POST", app, "", 200},
			{w, "GET", app, "", 404},
			{w, "OPTIONS", app, "", 204},
			{w, "POST", "http://localhost:5173", "", 200},
			{w, "POST", evil, "", 403},
			{w, "OPTIONS", evil, "", 405},
			{w, "GET", evil, "", 404},
			{w, "POST", "null", "", 403},
			{w, "OPTIONS", "null", "", 405},
			{w, "POST", "https://app.example.evil.example", "", 403},
			{w, "POST", "https://app.example:444", "", 403},
			{w, "POST", "http://app.example", "", 403},
			{w, "POST", app + ", " + evil, "", 403},
			{w, "POST", "http://localhost:5174", "", 403},
			{none, "POST", app, "", 403},
			{none, "OPTIONS", app, "", 405},
			// A name that was pointed to this address is its page's own origin.
			{w, "POST", "http://evil.example", "evil.example", map[bool]int{true: 200, false: 403}[keyed]},
			{w, "OPTIONS", app, "evil.example", map[bool]int{true: 204, false: 403}[keyed]},
			{w, "POST", app, "evil.example", map[bool]int{true: 200, false: 403}[keyed]},
		} {
			path := "/v1/responses"
			if test.method == "GET" {
				path += "/resp_none"
			}
			header := map[string]string{"Origin": test.origin, "Sec-Fetch-Site": "cross-site"}
			if test.host != "" {
				header["Host"] = test.host
				if test.origin == "http://"+test.host {
					header["Sec-Fetch-Site"] = "same-origin"
				}
			}
			if test.method == "OPTIONS" { // a browser sends no key with it
				header["Access-Control-Request-Method"], header["Access-Control-Request-Headers"] = "POST", "authorization, content-type"
			} else if keyed {
				header["Authorization"] = "Bearer " + test.w.keys["a"]
			}
			want := test.status
			if keyed && want == 405 {
				want = 401
			}
			status, h, body := test.w.browse(test.method, path, header)
			if status != want {
				t.Errorf("keys %v, %s %s of %s: %d, not %d: %s", keyed, test.method, test.host, test.origin, status, want, body)
			}
			allowed := test.w == w && (test.origin == app || test.origin == "http://localhost:5173") && status != 403
			if got := h.Get("Access-Control-Allow-Origin"); (got == test.origin) != allowed || got != "" && !allowed || h.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("keys %v, %s of %s: %v", keyed, test.method, test.origin, h)
			}
			if status == 204 && (h.Get("Access-Control-Allow-Headers") != "authorization, content-type" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "DELETE")) {
				t.Errorf("%v", h)
			}
		}
		// Caches keep the answers of different origins apart, also those to none.
		if _, h, _ := w.browse("GET", "/v1/responses/resp_none", nil); h.Get("Vary") != "Origin" {
			t.Errorf("%v", h)
		}
		if _, h, _ := w.browse("POST", "/v1/responses", map[string]string{"Origin": app}); keyed && h.Get("Access-Control-Allow-Origin") != app {
			t.Errorf("a page cannot read why it was refused: %v", h)
		}
		for origin, opens := range map[string]bool{app: true, evil: false} {
			header := http.Header{"Origin": {origin}, "Authorization": {"Bearer " + w.keys["a"]}}
			conn, resp, err := websocket.Dial(t.Context(), "ws://"+w.at+"/v1/responses", &websocket.DialOptions{HTTPClient: w.client, HTTPHeader: header})
			if (err == nil) != opens {
				t.Errorf("a WebSocket of %s: %v", origin, err)
			}
			if err == nil {
				_ = conn.CloseNow()
			} else if resp != nil && resp.Body != nil {
				_ = resp.Body.Close()
			}
		}
	}
}

// Everything is below the base path, and nothing elsewhere.
func TestBasePath(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "measures") })
	w := world(t, &access.Guard{Base: "/antiphon", Metrics: metrics}, echo)
	for at, want := range map[string]int{
		"POST /antiphon/v1/responses": 200, "POST /antiphon/responses": 200, "GET /antiphon/healthz": 200, "GET /antiphon/readyz": 200, "GET /antiphon/metrics": 200,
		"GET /antiphon/v1/responses/resp_none": 404, "GET /antiphon": 404, "GET /antiphon/": 404,
		"POST /v1/responses": 404, "GET /healthz": 404, "GET /readyz": 404, "GET /metrics": 404, "GET /": 404, "POST /antiphonx/v1/responses": 404,
		"POST /x/antiphon/v1/responses": 404, "POST /ANTIPHON/v1/responses": 404, "POST /antiphon%2Fv1/responses": 200,
	} {
		method, path, _ := strings.Cut(at, " ")
		status, _, body := w.browse(method, path, nil)
		if status != want || want == 404 && !strings.Contains(body, `"error"`) {
			t.Errorf("%s: %d %s", at, status, body)
		}
	}
	if logged := w.logged(); !strings.Contains(logged, `"route":"POST /v1/responses"`) || !strings.Contains(logged, `"route":"GET /metrics"`) {
		t.Error(logged)
	}
	for _, g := range []*access.Guard{{Base: "antiphon"}, {Base: "/"}, {Base: "/a/"}, {Base: "/a/../b"}, {Base: "/a?b"}, {Base: "/a b"}, {Origins: []string{"*"}}, {Origins: []string{"null"}}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		err = g.Serve(t.Context(), l, nil)
		if _, still := l.Accept(); err == nil || !errors.Is(still, net.ErrClosed) {
			t.Errorf("%q %q: %v", g.Base, g.Origins, err)
		}
	}
}

func TestCheckOrigin(t *testing.T) {
	for origin, ok := range map[string]bool{
		"https://app.example": true, "http://localhost:5173": true, "http://[::1]:8080": true, "https://app.example:8443": true,
		"": false, "*": false, "null": false, "app.example": false, "https://": false, "https://app.example/": false, "https://app.example/x": false, "https://*.example": false,
		"https://App.example": false, "HTTPS://app.example": false, "https://a@app.example": false, "https://app.example?x": false, "https://app.example#": false,
		"file:///x": false, "ftp://app.example": false, "https://app.example:443": false, "http://app.example:80": false, "https://app.example:": false,
		"https://app.example https://b.example": false,
	} {
		if err := access.CheckOrigin(origin); (err == nil) != ok {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
