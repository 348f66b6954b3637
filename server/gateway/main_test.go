// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// world is a gateway on a socket. What it answers is checked against the schema.
type world struct {
	t       testing.TB
	base    string
	client  *http.Client
	spec    *apispec.Spec
	s       *server.Server
	b       *gateway.Backend
	end     func()
	mu      sync.Mutex
	records []gateway.Record
	logged  strings.Builder
}

// open makes the upstream of a test server.
func open(t testing.TB, base string, chat bool) gateway.Upstream {
	t.Helper()
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	u := gateway.Upstream{Config: &dialect.Config{BaseURL: base, HTTP: &http.Client{Transport: transport}, Retry: endpoint.Retry{Max: -1}}}
	if chat {
		u.Dialect = completions.Dialect{}
	}
	return u
}

func serving(t testing.TB, ups ...gateway.Upstream) *world {
	t.Helper()
	w := &world{t: t}
	w.b = &gateway.Backend{Upstreams: ups}
	w.b.Made = func(r gateway.Record) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.records = append(w.records, r)
	}
	w.b.Log = func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logged.WriteString(err.Error() + "\n")
	}
	w.serve(&server.Server{Backend: w.b})
	t.Cleanup(w.end)
	return w
}

// serve serves a gateway until end is called.
func (w *world) serve(s *server.Server) {
	w.t.Helper()
	if w.spec == nil {
		w.spec = apispec.Load(w.t)
	}
	w.s = s
	base, stop, err := s.Start()
	if err != nil {
		w.t.Fatal(err)
	}
	transport := new(http.Transport)
	w.base, w.client = base, &http.Client{Transport: transport}
	w.end = func() {
		transport.CloseIdleConnections()
		stop()
	}
}

// wrap puts a handler around the server until the end of the test.
func (w *world) wrap(around func(http.Handler) http.Handler) {
	front := httptest.NewServer(around(w.s))
	w.t.Cleanup(front.Close)
	w.t.Cleanup(front.CloseClientConnections)
	w.base = front.URL + "/v1"
}

// ask sends a request and returns the answer as it came.
func (w *world) ask(method, path, body string) (int, http.Header, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(req)
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

// create makes a response, which must succeed.
func (w *world) create(body string) *api.Response {
	w.t.Helper()
	status, _, text := w.ask(http.MethodPost, "/responses", body)
	if status != http.StatusOK {
		w.t.Fatalf("%d %s", status, text)
	}
	w.spec.Check(w.t, "Response", []byte(text))
	r, err := api.ParseResponse([]byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// refused makes a request that must fail, and returns the error's body.
func (w *world) refused(body string, want int) (http.Header, item.Item) {
	w.t.Helper()
	status, header, text := w.ask(http.MethodPost, "/responses", body)
	object, err := item.Parse([]byte(text))
	if err != nil || status != want {
		w.t.Fatalf("%d %s, want %d", status, text, want)
	}
	inner, _ := object.Member("error")
	w.spec.Check(w.t, "Error", []byte(inner))
	got, err := item.ParseString(string(inner))
	if err != nil {
		w.t.Fatal(err)
	}
	return header, got
}

// events makes a streamed response and returns its events, each checked.
func (w *world) events(body string) []api.Event {
	w.t.Helper()
	status, _, text := w.ask(http.MethodPost, "/responses", body)
	if status != http.StatusOK {
		w.t.Fatalf("%d %s", status, text)
	}
	return w.parse(text)
}

func (w *world) parse(text string) (list []api.Event) {
	w.t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		w.spec.Check(w.t, "ResponseStreamEvent", data)
		ev, err := api.ParseEvent(data)
		if err != nil {
			w.t.Fatal(err)
		}
		if ev.SequenceNumber != int64(len(list)) {
			w.t.Errorf("event %d has number %d", len(list), ev.SequenceNumber)
		}
		list = append(list, ev)
	}
	return list
}

func text(m item.Item, name string) string {
	v, _ := m.Member(name)
	s, _ := v.Unquote()
	return s
}

// typed is the client of the gateway.
func (w *world) typed() *responses.Client {
	return &responses.Client{BaseURL: w.base, HTTP: w.client, Retry: endpoint.Retry{Max: -1}, Profile: &endpoint.Profile{
		Name: "gateway", APIs: []string{endpoint.APIResponses}, PreviousResponse: endpoint.Yes, Conversations: endpoint.Yes,
		Background: endpoint.Yes, Stored: endpoint.Yes, WebSocket: endpoint.Yes, Compact: endpoint.Yes, InputTokens: endpoint.Yes,
	}}
}

// says answers every request with a text.
func says(t testing.TB, words string) *agenttest.Server {
	t.Helper()
	s := agenttest.NewServer(t)
	s.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant(words)) })
	return s
}
