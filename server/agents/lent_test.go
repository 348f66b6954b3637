// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/item"
)

// bearers records the Authorization headers that reach a host.
type bearers struct {
	mu   sync.Mutex
	seen map[string]int
}

func (b *bearers) note(r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]int{}
	}
	b.seen[r.Header.Get("Authorization")]++
}

func (b *bearers) all() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprint(b.seen)
}

// The token that a caller gives for a server of the agent's file reaches this server and no
// other host, not even by a redirect; it is in no answer, no log and no store. Without a token, or
// with one that the file does not ask for, the request is refused. K4 V3
func TestLentToken(t *testing.T) {
	var own, other, elsewhere bearers
	tickets := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1"}, nil)
	mcp.AddTool(tickets, &mcp.Tool{Name: "mine"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "for " + r.Extra.Header.Get("Authorization")}}}, nil, nil
	})
	weather := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	mcp.AddTool(weather, &mcp.Tool{Name: "sky"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "blue"}}}, nil, nil
	})
	listen := func(seen *bearers, h http.Handler) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.note(r)
			h.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	serve := func(s *mcp.Server) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	away := listen(&elsewhere, serve(tickets))
	address, sky := listen(&own, serve(tickets)), listen(&other, serve(weather))
	leads := listen(new(bearers), http.RedirectHandler(away, http.StatusTemporaryRedirect))

	tools := fmt.Sprintf("<tool mcp_server=%q server=\"tickets\" credentials=\"caller\" approval=\"allow\"/>\n<tool mcp_server=%q server=\"weather\" credentials=\"operator\" approval=\"allow\"/>\n", address, sky)
	w := serving(t, tools, "turn\n  call mine {}\n  call sky {}\nturn\n  say Done.\n", nil)
	const token = "CANARY-of-the-caller"
	asks := func(members, url, token string) string {
		return fmt.Sprintf(`{"model":"it","input":"x"%s,"tools":[{"type":"mcp","server_label":"tickets","server_url":%q,"authorization":%q}]}`, members, url, token)
	}
	made := w.create(asks("", address, token))
	if got := kinds(made); got != "mcp_call:mine | mcp_call:sky | message:Done." {
		t.Fatal(got)
	}
	if call, err := item.As[item.MCPCall](made.Output[0]); err != nil || call.Output != "for Bearer [redacted]" {
		t.Errorf("%+v, %v", call, err)
	}
	if !strings.Contains(own.all(), "map[Bearer "+token+":") || strings.Contains(other.all(), "CANARY") || other.all() == "map[]" {
		t.Errorf("its server got %s, the other one %s", own.all(), other.all())
	}
	w.same(made)
	_, streamed := w.stream(asks(`,"stream":true`, address, token))
	_, read := w.send(http.MethodGet, "responses/"+streamed.ID, "")
	if strings.Contains(read, "CANARY") {
		t.Error(read)
	}
	w.refused(http.MethodPost, "responses", `{"model":"it","input":"x"}`, "mcp_authorization_required")
	w.refused(http.MethodPost, "responses", asks("", sky, token), "mcp_authorization_required")
	w.refused(http.MethodPost, "responses", asks(`,"background":true`, address, token), "not stored")
	w.refused(http.MethodPost, "responses/input_tokens", `{"model":"it","input":"x"}`, "mcp_authorization_required")
	both := strings.Replace(asks("", address, token), "]}", fmt.Sprintf(`,{"type":"mcp","server_label":"w","server_url":%q,"authorization":"CANARY-two"}]}`, sky), 1)
	w.refused(http.MethodPost, "responses", both, "tools[1].server_url")
	w.refused(http.MethodPost, "responses", strings.Replace(both, `"authorization":"CANARY-two"`, `"headers":{"X":"CANARY-two"}`, 1), "tools[1]")
	if strings.Contains(other.all(), "CANARY") {
		t.Error(other.all())
	}

	write(t, w.dir, "it.md", strings.ReplaceAll(fileText(t, w.dir, "it.md"), address, leads))
	if status, body := w.send(http.MethodPost, "responses", asks("", leads, token)); status < 500 || strings.Contains(body, "CANARY") {
		t.Errorf("%d %s", status, body)
	}
	if got := elsewhere.all(); strings.Contains(got, "CANARY") {
		t.Errorf("the redirect took the token along: %s", got)
	}
	for _, name := range []string{"sessions.db", "sessions.db-wal"} {
		if data, err := os.ReadFile(filepath.Join(w.dir, name)); err == nil && bytes.Contains(data, []byte("CANARY")) {
			t.Errorf("%s has a token", name)
		}
	}
}

func fileText(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
