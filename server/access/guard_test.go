// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guarded is a Guard on a socket, with keys.
type guarded struct {
	t      *testing.T
	g      *access.Guard
	at     string
	client *http.Client
	keys   map[string]string // by name
	clock  *clock
	stop   func()

	mu   sync.Mutex
	logs bytes.Buffer
	uses chan access.Use
}

// clock is a time that only a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Write takes the log.
func (w *guarded) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logs.Write(line)
}

func (w *guarded) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logs.String()
}

// echo says what it was asked.
func echo(_ context.Context, r *server.Request, w *server.Writer) error {
	for _, it := range r.Items {
		if it.Type() == item.TypeMessage && it.Role() != item.RoleAssistant {
			_ = w.Text(it.JSON())
		}
	}
	w.Usage(api.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15})
	w.Cost = 0.25
	return w.Complete()
}

// world serves a backend behind a Guard, with keys in a file if the Guard has none.
func world(t *testing.T, g *access.Guard, b server.BackendFunc, keys ...access.Key) *guarded {
	t.Helper()
	w := &guarded{t: t, g: g, keys: map[string]string{}, uses: make(chan access.Use, 1000), clock: &clock{at: time.Now().Truncate(24 * time.Hour)}}
	if g.Keys == nil {
		g.Keys = access.OpenKeys(filepath.Join(t.TempDir(), "keys.json"))
	}
	for _, key := range keys {
		if key.Project == "" {
			key.Project = "p"
		}
		if key.Scopes == nil {
			key.Scopes = access.Scopes
		}
		sent, _, err := g.Keys.Create(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		w.keys[key.Name] = sent
	}
	g.Log = slog.New(slog.NewJSONHandler(w, nil))
	g.Now = w.clock.now
	g.Record = func(u access.Use) { w.uses <- u }
	if g.Server == nil {
		g.Server = func(string) (*server.Server, error) { return &server.Server{Backend: b, Silence: time.Hour}, nil }
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, l, nil) }()
	transport := new(http.Transport)
	w.at, w.client = l.Addr().String(), &http.Client{Transport: transport}
	w.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

func (w *guarded) open(key, method, path, body string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.at+"/v1/"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.HasPrefix(path, "/") {
		r.URL.Path = path
	}
	if sent := w.keys[key]; sent != "" {
		key = sent
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

// send sends a request with a key, given by its name.
func (w *guarded) send(key, method, path, body string) (int, string) {
	w.t.Helper()
	resp := w.open(key, method, path, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode >= 400 && strings.HasPrefix(string(text), "{") {
		object, err := item.Parse(text)
		if err != nil {
			w.t.Fatal(err)
		}
		inner, _ := object.Member("error")
		apispec.Load(w.t).Check(w.t, "Error", []byte(inner))
	}
	return resp.StatusCode, string(text)
}

// create makes a response and returns its id.
func (w *guarded) create(key, body string) string {
	w.t.Helper()
	status, text := w.send(key, "POST", "responses", body)
	r, err := api.ParseResponse([]byte(text))
	if status != 200 || err != nil {
		w.t.Fatalf("%s: %d %s", body, status, text)
	}
	return r.ID
}

const hello = `{"model":"m","input":"Hello"}`

// Every request needs a key as soon as there is one, and an answer tells nothing of keys.
// V6
func TestKeysRequired(t *testing.T) {
	w := world(t, &access.Guard{}, echo)
	if status, body := w.send("", "POST", "responses", hello); status != 200 {
		t.Fatal("without keys:", status, body)
	}
	sent, key, err := w.g.Keys.Create(t.Context(), access.Key{Name: "a", Project: "p", Scopes: access.Scopes, Expires: time.Now().Add(48 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := w.send(sent, "POST", "responses", hello); status != 200 {
		t.Error(status, body)
	}
	for _, wrong := range []string{"", "x", sent[:len(sent)-1] + map[bool]string{true: "b", false: "a"}[strings.HasSuffix(sent, "a")], sent + "a", strings.ToUpper(sent), "antiphon_" + key.ID + "_", key.Hash} {
		for _, path := range []string{"responses", "responses/resp_x/cancel", "nothing", "/metrics"} {
			status, body := w.send(wrong, "POST", path, hello)
			if status != 401 || wrong != "" && strings.Contains(body, wrong) || strings.Contains(body, key.ID) {
				t.Errorf("%q: %d %s", wrong, status, body)
			}
		}
	}
	if status, body := w.send("", "GET", "models?api_key="+sent, ""); status != 401 {
		t.Error("a key in a URL:", status, body)
	}
	w.clock.pass(72 * time.Hour)
	if status, body := w.send(sent, "POST", "responses", hello); status != 401 || !strings.Contains(body, "expired") {
		t.Error(status, body)
	}
	w.clock.pass(-72 * time.Hour)
	if _, err := w.g.Keys.Revoke(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if status, body := w.send(sent, "POST", "responses", hello); status != 401 || !strings.Contains(body, "revoked") {
		t.Error(status, body)
	}
	if status, _ := w.send("", "POST", "responses", hello); status != 401 {
		t.Error("the last key was revoked, and the server is open")
	}
	list, err := w.g.Keys.List()
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	_, secret, _ := strings.Cut(strings.TrimPrefix(sent, "antiphon_"), "_")
	if strings.Contains(w.logged(), secret) || strings.Contains(w.logged(), "Hello") || !strings.Contains(w.logged(), `"route":"POST /v1/responses"`) {
		t.Error(w.logged())
	}
}

// A file of keys that is removed opens nothing. V6
func TestKeysRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	w := world(t, &access.Guard{Keys: access.OpenKeys(path)}, echo, access.Key{Name: "a"})
	if status, _ := w.send("a", "POST", "responses", hello); status != 200 {
		t.Error(status)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", ""} {
		if status, body := w.send(key, "POST", "responses", hello); status != 401 {
			t.Error(status, body)
		}
	}
}

// Without keys nothing but loopback is served, and only under its names. V6 V7
func TestAddressNeedsKeys(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &access.Guard{Server: func(string) (*server.Server, error) { return nil, nil }, Keys: access.OpenKeys(filepath.Join(t.TempDir(), "keys.json"))}
	if err := g.Serve(t.Context(), l, nil); err == nil || !strings.Contains(err.Error(), "no keys") {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it listens")
	}
	for _, keys := range [][]access.Key{nil, {{Name: "a"}}} {
		w := world(t, &access.Guard{}, echo, keys...)
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+w.at+"/v1/responses", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example"
		r.Header.Set("Authorization", "Bearer "+w.keys["a"])
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if want := map[bool]int{true: 200, false: 403}[keys != nil]; resp.StatusCode != want {
			t.Errorf("%v: %d, not %d", keys, resp.StatusCode, want)
		}
	}
}

// A key does what its scopes say. A key without approve sees what is to be approved, and
// cannot answer it, by any route.
func TestScopes(t *testing.T) {
	asks := func(_ context.Context, r *server.Request, w *server.Writer) error {
		if r.Items[len(r.Items)-1].Type() == item.TypeMCPApprovalResponse {
			return w.Text("approved")
		}
		return w.Item(item.Must(&item.MCPApprovalRequest{ID: "mcpr_1", ServerLabel: "s", Name: "wipe", Arguments: "{}"}))
	}
	scope := func(list ...access.Scope) []access.Scope { return list }
	w := world(t, &access.Guard{Metrics: http.NotFoundHandler()}, asks,
		access.Key{Name: "models", Scopes: scope(access.ScopeModels)}, access.Key{Name: "read", Scopes: scope(access.ScopeRead)},
		access.Key{Name: "approve", Scopes: scope(access.ScopeModels, access.ScopeApprove)}, access.Key{Name: "admin", Scopes: scope(access.ScopeAdmin)},
		access.Key{Name: "urls", Scopes: scope(access.ScopeModels, access.ScopeURLs)})
	const pictured = `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"https://8.8.8.8/x.png"}]}]}`
	id := w.create("models", hello)
	const answer = `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`
	answered := fmt.Sprintf(`{"model":"m","previous_response_id":%q,"input":[%s]}`, id, answer)
	for _, test := range []struct {
		key, method, path, body string
		status                  int
		want                    string
	}{
		{"read", "POST", "responses", hello, 403, "'models'"},
		{"read", "POST", "chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, 403, "'models'"},
		{"read", "DELETE", "responses/" + id, "", 403, "'models'"},
		{"read", "POST", "responses/" + id + "/cancel", "", 403, "'models'"},
		{"read", "POST", "conversations", "{}", 403, "'models'"},
		{"models", "GET", "responses/" + id, "", 403, "'read'"},
		{"models", "GET", "responses/" + id + "/input_items", "", 403, "'read'"},
		{"models", "GET", "conversations/conv_x", "", 403, "'read'"},
		{"admin", "GET", "responses/" + id, "", 403, "'read'"},
		{"admin", "POST", "responses", hello, 403, "'models'"},
		{"read", "GET", "/metrics", "", 403, "'admin'"},
		{"admin", "GET", "/metrics", "", 404, ""},
		{"read", "GET", "responses/" + id, "", 200, "mcp_approval_request"},
		{"models", "POST", "responses", answered, 403, "'approve'"},
		{"models", "POST", "conversations", `{"items":[` + answer + `]}`, 403, "'approve'"},
		{"approve", "POST", "responses", answered, 200, "approved"},
		{"models", "POST", "responses", pictured, 403, "'urls'"},
		{"urls", "POST", "responses", pictured, 200, ""},
	} {
		if status, body := w.send(test.key, test.method, test.path, test.body); status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s %s: %d %s", test.key, test.method, test.path, status, body)
		}
	}
	_, text := w.send("models", "POST", "conversations", "{}")
	conversation, err := api.ParseConversation([]byte(text))
	if err != nil {
		t.Fatal(text, err)
	}
	if status, body := w.send("models", "POST", "conversations/"+conversation.ID+"/items", `{"items":[`+answer+`]}`); status != 403 {
		t.Error(status, body)
	}
	conn, _, err := websocket.Dial(t.Context(), "ws://"+w.at+"/v1/responses", &websocket.DialOptions{HTTPClient: w.client, HTTPHeader: http.Header{"Authorization": {"Bearer " + w.keys["models"]}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create",`+answered[1:])); err != nil {
		t.Fatal(err)
	}
	if _, frame, err := conn.Read(t.Context()); err != nil || !strings.Contains(string(frame), "'approve'") {
		t.Error(string(frame), err)
	}
	if _, err := w.g.Keys.Revoke(t.Context(), "models"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create",`+hello[1:])); err != nil {
		t.Fatal(err)
	}
	if _, frame, err := conn.Read(t.Context()); err != nil || !strings.Contains(string(frame), "revoked") {
		t.Error("a revoked key goes on over its WebSocket:", string(frame), err)
	}
}
