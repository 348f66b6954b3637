// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/server/mcpserver"
	"github.com/antiphon-go/antiphon/session"
)

var listAll session.Query

func infoOf(id, path string) session.Info { return session.Info{ID: id, Path: path} }

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

func pipePair() (in *io.PipeReader, to *io.PipeWriter, from *io.PipeReader, out *io.PipeWriter) {
	in, to = io.Pipe()
	from, out = io.Pipe()
	return in, to, from, out
}

func discard(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

// A line that is not a message is answered, and the connection goes on.
func TestBadLines(t *testing.T) {
	w := serving(t, "", "turn\n  say Hello.\n", nil)
	to, from := w.pipes()
	answers := bufio.NewReaderSize(from, 1<<20)
	ask := func(line, want string) {
		t.Helper()
		go func() { _, _ = io.WriteString(to, line+"\n") }()
		got, err := answers.ReadString('\n')
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%.60q: %.300s %v, want %q", line, got, err, want)
		}
	}
	ask("garbage", `"id":null,"error":{"code":-32700`)
	ask(initialize, `"protocolVersion":"2025-06-18"`)
	ask("{", "-32700")
	ask("\x00\xff", "-32700")
	ask(`[`+initialize+`]`, "batches are not supported")
	ask("[]", "-32600")
	ask("5", "-32600")
	ask(`{}`, "-32600")
	ask(`{"jsonrpc":"1.0","id":7,"method":"ping"}`, "-32600")
	ask(`{"id":"seven","method":"ping"}`, `"id":"seven","error":{"code":-32600`)
	ask(`{"jsonrpc":"2.0","id":8,"method":"none"}`, `"id":8`)
	ask(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":5}`, `"id":9`)
	ask(`{"jsonrpc":"2.0","id":10,"method":"tools/call"}`, `"id":10`)
	ask(strings.Repeat("x", mcpserver.MaxMessage+1), "at most 64 MiB")
	ask("\n\r\n"+`{"jsonrpc":"2.0","id":11,"method":"ping"}`+"\r", `"id":11,"result":{}`)
	ask(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"it","arguments":{"task":"x"}}}`, "Hello.")
}

// A call with the id of one that has no answer yet is answered at once, and not as that one. Later the id is free.
func TestIDInUse(t *testing.T) {
	w := serving(t, "", "turn\n  pause 10m\n  say Hello.\nagain\nturn\n  say Again.\n", nil)
	to, from := w.pipes()
	answers := bufio.NewReader(from)
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(to, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(want string) {
		t.Helper()
		if got, err := answers.ReadString('\n'); err != nil || !strings.Contains(got, want) {
			t.Errorf("%.300s %v, want %q", got, err, want)
		}
	}
	say(initialize)
	hears(`"id":1,`)
	const call = `{"jsonrpc":"2.0","id":45,"method":"tools/call","params":{"name":"it","arguments":{"task":"x"}}}`
	say(call)
	say(call)
	hears(`"id":null,"error":{"code":-32600,"message":"the id 45 is that of a call that has no answer yet"}`)
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":45}}`)
	hears(`"id":45,`)
	say(`{"jsonrpc":"2.0","id":45,"method":"ping"}`)
	hears(`"id":45,"result":{}`)
}

// Pages of other sites, forged hosts and other paths are refused. V7
func TestForeign(t *testing.T) {
	w := serving(t, "", "turn\n  say Hello.\n", nil)
	url := w.listen()
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	for _, test := range []struct {
		method, path, host string
		header             []string
		status             int
	}{
		{http.MethodPost, "", "", nil, http.StatusOK},
		{http.MethodPost, "", "localhost:1", nil, http.StatusOK},
		{http.MethodPost, "", "", []string{"Origin", strings.TrimSuffix(url, "/mcp")}, http.StatusOK},
		{http.MethodPost, "", "", []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{http.MethodPost, "", "", []string{"Origin", "null"}, http.StatusForbidden},
		{http.MethodGet, "", "", []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{http.MethodDelete, "", "", []string{"Origin", "http://127.0.0.1:1"}, http.StatusForbidden},
		{http.MethodPost, "", "", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{http.MethodPost, "", "evil.example", nil, http.StatusForbidden},
		{http.MethodPost, "", "127.0.0.1.evil.example", nil, http.StatusForbidden},
		{http.MethodPost, "", "", []string{"Mcp-Session-Id", "guessed"}, http.StatusNotFound},
		{http.MethodPost, "", "", []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		{http.MethodPost, "/other", "", nil, http.StatusNotFound},
		{http.MethodPut, "", "", nil, http.StatusMethodNotAllowed},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, url+test.path, strings.NewReader(initialize))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if r.Host = test.host; test.header != nil {
			r.Header.Set(test.header[0], test.header[1])
		}
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != test.status {
			t.Errorf("%+v: %d %s", test, resp.StatusCode, text)
		}
	}
}

// A server without agents, with names that clients refuse, or beyond loopback does not
// serve. V6
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		agents []mcpserver.Agent
		want   string
	}{
		{nil, "no agent"},
		{[]mcpserver.Agent{{Name: "a b"}}, "cannot be the name of a tool"},
		{[]mcpserver.Agent{{Name: strings.Repeat("a", 65)}}, "cannot be the name of a tool"},
		{[]mcpserver.Agent{{Name: "a"}, {Name: "a"}}, "two agents are called a"},
	} {
		s := &mcpserver.Server{Agents: test.agents}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
		if err := s.ServeIO(t.Context(), strings.NewReader(""), io.Discard); err == nil {
			t.Error("it serves")
		}
		if _, err := s.Handler(t.Context()); err == nil {
			t.Error("it serves")
		}
	}
	s := &mcpserver.Server{Agents: []mcpserver.Agent{{Name: "a"}}}
	if err := s.ServeIO(t.Context(), nil, nil); err == nil {
		t.Error("it serves nobody")
	}
	if err := s.Serve(t.Context(), nil); err == nil {
		t.Error("it serves nobody")
	}
}
