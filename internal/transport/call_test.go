// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Requests to one place share its URL, and nobody can change it for the others.
func TestURLIsOwn(t *testing.T) {
	profile := endpoint.Careful
	l := &Config{BaseURL: "http://localhost:1/v1?version=1", Profile: &profile, Discovered: new(Discovered)}
	const want = "http://localhost:1/v1/responses?version=1"
	for range 2 {
		u, err := l.URL(&profile, "/responses", nil)
		if err != nil || u.String() != want {
			t.Fatalf("%v, %v", u, err)
		}
		u.Path, u.RawQuery = "/changed", ""
		k, err := l.Call(t.Context(), Request{Path: "/responses", Body: item.TextBody("{}")})
		if err != nil {
			t.Fatal(err)
		}
		r := k.request(t.Context())
		if r.URL.String() != want || r.Host != "localhost:1" {
			t.Errorf("%v at %s", r.URL, r.Host)
		}
		r.URL.Host = "elsewhere"
		r.Header.Set("Accept", "changed")
		if again := k.request(t.Context()); again.URL.String() != want || again.Header.Get("Accept") != TypeJSON {
			t.Errorf("the next attempt is %v %v", again.URL, again.Header)
		}
	}
	for path, want := range map[string]string{
		"/responses":    want + "&limit=2",
		"/responses/r1": "http://localhost:1/v1/responses/r1?version=1&limit=2",
	} {
		u, err := l.URL(&profile, path, url.Values{"limit": {"2"}})
		if err != nil || u.Query().Get("limit") != "2" || u.Query().Get("version") != "1" || u.Path != must(url.Parse(want)).Path {
			t.Errorf("%s: %v, %v", path, u, err)
		}
	}
	l.BaseURL = "http://other"
	if u, err := l.URL(&profile, "/responses", nil); err != nil || u.String() != "http://other/v1/responses" {
		t.Errorf("with another base: %v, %v", u, err)
	}
}

// A body is sent as it is, whatever its pieces, and again after that.
func TestBodyAttached(t *testing.T) {
	long := strings.Repeat("x", small)
	for _, texts := range [][]string{{""}, {"one"}, {"a", "", "b"}, {long}, {long, "y"}, {"", long, "", "y"}} {
		r := &http.Request{}
		attach(r, item.TextBody(texts...))
		want := strings.Join(texts, "")
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range []io.Reader{r.Body, again} {
			if got, err := io.ReadAll(body); err != nil || string(got) != want || r.ContentLength != int64(len(want)) {
				t.Errorf("%d pieces: %d bytes of %d, length %d, %v", len(texts), len(got), len(want), r.ContentLength, err)
			}
		}
	}
}

// The name of an event stream counts, not what stands behind it.
func TestIsEventStream(t *testing.T) {
	for contentType, want := range map[string]bool{
		"text/event-stream": true, "Text/Event-Stream": true, " text/event-stream ; charset=utf-8": true, "text/event-stream;;": true,
		"": false, "text/event-streams": false, "application/json": false, "application/json; text/event-stream": false,
	} {
		if isEventStream(contentType) != want {
			t.Errorf("%q: want %v", contentType, want)
		}
	}
}
