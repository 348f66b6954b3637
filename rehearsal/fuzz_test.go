// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
)

// Whatever is asked of a server that keeps something, it answers: no panic, no
// mistake of its own, and an error is an error of the API's shape.
func FuzzServe(f *testing.F) {
	unknown := httptest.NewRecorder()
	new(Server).ServeHTTP(unknown, httptest.NewRequest(http.MethodGet, "/", nil)) // it lists what is served
	_, list, _ := strings.Cut(unknown.Body.String(), "serves ")
	for route := range strings.SplitSeq(list, ", ") {
		if method, path, ok := strings.Cut(route, " /v1/"); ok {
			f.Add(method, strings.ReplaceAll(path, "{id}", "{}"), `{"model":"m","input":"x"}`)
		}
	}
	for _, body := range []string{
		`{"model":"m","input":[],"previous_response_id":"resp_1"}`, `{"model":"m","conversation":"conv_0000000000000001"}`,
		`{"model":"m","input":"x","background":true,"stream":true}`, `{"model":"m","input":[{"type":"compaction","id":"c","encrypted_content":"AAAA"}]}`,
		`{"items":[{"role":"user","content":"x"}],"metadata":{"a":"b"}}`, `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}`, `{`, ``,
	} {
		f.Add("POST", "responses", body)
		f.Add("POST", "chat/completions", body)
		f.Add("POST", "conversations/{}/items", body)
	}
	f.Add("GET", "responses/{}?stream=true&starting_after=-1", "")
	f.Add("GET", "responses/{}/input_items?limit=2&after=x&order=asc", "")
	f.Fuzz(func(t *testing.T, method, path, body string) {
		s := &Server{ReadOnly: func(string) bool { return true }}
		do := func(method, path, body string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			u, err := url.ParseRequestURI("/v1/" + path)
			if err != nil {
				return w
			}
			r := httptest.NewRequest(http.MethodPost, "/v1", strings.NewReader(body))
			r.Method, r.URL = method, u
			s.ServeHTTP(w, r)
			return w
		}
		do("POST", "conversations", "")
		made, err := api.ParseResponse(do("POST", "responses", `{"model":"m","input":"hello","background":true,"stream":false}`).Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		body = strings.ReplaceAll(body, "resp_1", made.ID)
		for _, id := range []string{made.ID, "conv_0000000000000001", "rehearsal"} {
			w := do(method, strings.Replace(path, "{}", id, 1), body)
			if w.Code == http.StatusOK {
				continue
			}
			e, err := api.ParseErrorBody(w.Body.Bytes())
			if err != nil || e.Error == nil || e.Error.Message == "" || w.Code < 400 || w.Code >= 500 {
				t.Errorf("%s %s %s: %d %s", method, path, body, w.Code, w.Body)
			}
		}
	})
}
