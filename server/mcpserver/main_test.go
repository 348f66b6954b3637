// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/server/mcpserver"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// carriers are the ways to reach a server, old and new.
var carriers = []struct {
	name, version string
	http          bool
}{
	{"stdio 2025-06-18", "2025-06-18", false},
	{"stdio 2026-07-28", "2026-07-28", false},
	{"http 2025-11-25", "2025-11-25", true},
	{"http 2026-07-28", "2026-07-28", true},
}

// world is a server with an agent called "it".
type world struct {
	t   *testing.T
	s   *mcpserver.Server
	in  store.Store
	dir string
}

// serving makes a server for an agent: a file with tools, and its script.
func serving(t *testing.T, tools, script string, change func(*mcpserver.Server)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	write(t, w.dir, "it.script", script)
	file := write(t, w.dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n"+tools+"<system>Be brief.</system>\n")
	in, err := store.Open(t.Context(), filepath.Join(w.dir, "sessions.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	w.in = in
	w.s = &mcpserver.Server{
		Store: in, Log: func(err error) { t.Log("logged:", err) },
		Agents: []mcpserver.Agent{{Name: "it", Description: "Does it.", Config: host.Config{File: file, Trust: trust.Everything, Sandbox: "full"}}},
	}
	if change != nil {
		change(w.s)
	}
	return w
}

// listen serves streamable HTTP until the test ends, and returns the URL.
func (w *world) listen() string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.s.Serve(ctx, l) }()
	w.t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			w.t.Error(err)
		}
	})
	return "http://" + l.Addr().String() + mcpserver.Path
}

// pipes serves a client over pipes until the test ends, and returns its ends.
func (w *world) pipes() (to io.WriteCloser, from io.ReadCloser) {
	w.t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- w.s.ServeIO(context.Background(), in, out)
		out.Close()
	}()
	w.t.Cleanup(func() {
		to.Close()
		go io.Copy(io.Discard, from)
		if err := <-served; err != nil {
			w.t.Error(err)
		}
	})
	return to, from
}

// connect connects a client of the SDK.
func (w *world) connect(version string, overHTTP bool, o *mcp.ClientOptions) *mcp.ClientSession {
	w.t.Helper()
	var way mcp.Transport
	if overHTTP {
		transport := new(http.Transport)
		way = &mcp.StreamableClientTransport{Endpoint: w.listen(), HTTPClient: &http.Client{Transport: transport}}
		w.t.Cleanup(transport.CloseIdleConnections)
	} else {
		to, from := w.pipes()
		way = &mcp.IOTransport{Reader: from, Writer: to, MaxLineLength: -1}
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, o)
	cs, err := c.Connect(w.t.Context(), way, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cs.Close() }) // some tests end the server before
	if got := cs.InitializeResult(); got != nil && got.ProtocolVersion != version {
		w.t.Fatalf("the version is %s, want %s", got.ProtocolVersion, version)
	}
	return cs
}

// call calls the tool, which must answer.
func call(t *testing.T, cs *mcp.ClientSession, arguments any) *mcp.CallToolResult {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "it", Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// text returns the texts of a result.
func text(res *mcp.CallToolResult) string {
	var list []string
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			list = append(list, text.Text)
		}
	}
	return strings.Join(list, "\n")
}

// sessionOf returns the session that a result names.
func sessionOf(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	id, _ := res.Meta[mcpserver.MetaSession].(string)
	if id == "" || !strings.Contains(text(res), id) {
		t.Fatalf("the result names no session: %v %s", res.Meta, text(res))
	}
	return id
}

// log returns the log of a session.
func (w *world) log(id string) []session.Entry {
	w.t.Helper()
	s, err := session.Open(context.Background(), w.in, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Log()
}

// stopped returns why the last run of a session stopped.
func (w *world) stopped(id string) string {
	w.t.Helper()
	why := ""
	for _, e := range w.log(id) {
		if b, ok := e.Body.(session.Stopped); ok {
			why = b.Why
		}
	}
	return why
}

// only returns the id of the one session of the store.
func (w *world) only() string {
	w.t.Helper()
	var ids []string
	for info, err := range w.in.List(context.Background(), session.Query{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	if len(ids) != 1 {
		w.t.Fatalf("%d sessions: %q", len(ids), ids)
	}
	return ids[0]
}

// lines collects lines of several goroutines.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, line)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, "\n")
}
