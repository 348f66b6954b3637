// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// mcpWorld is a folder with an agent whose tool waits for the test.
type mcpWorld struct {
	t   *testing.T
	dir string
}

func waitingAgent(t *testing.T) *mcpWorld {
	t.Helper()
	w := &mcpWorld{t, t.TempDir()}
	write(t, filepath.Join(w.dir, "it.md"), "<config model=\"rehearsal:it.script\"/>\n<tool name=\"wait\" command=\"cat "+filepath.Join(w.dir, "fifo")+"\" description=\"Waits.\" approval=\"allow\"/>\n")
	write(t, filepath.Join(w.dir, "it.script"), "turn\n  say I wait.\n  call wait {}\nturn\n  say Done.\nagain\nturn\n  say Now {{question}}.\n")
	if err := syscall.Mkfifo(filepath.Join(w.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *mcpWorld) flags() []string {
	return []string{"mcp", filepath.Join(w.dir, "it.md"), "--store", filepath.Join(w.dir, "s.db"), "--trust", "--sandbox", "full"}
}

// start starts the server over HTTP, and returns its URL.
func (w *mcpWorld) start() (*process, string) {
	w.t.Helper()
	p := startAs(w.t, nil, "sh", append([]string{"-c", `exec antiphon "$@" --listen 127.0.0.1:0 2>&1`, "sh"}, w.flags()...)...)
	return p, regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(p.until(w.t, "/mcp"))
}

// call calls the tool over HTTP.
func (w *mcpWorld) call(url, arguments string) (string, error) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"it","arguments":` + arguments + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "it"} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// running waits until the tool runs.
func (w *mcpWorld) running() *os.File {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, "fifo"), os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// session returns the id of the one session.
func (w *mcpWorld) session() (id string) {
	w.t.Helper()
	in, err := store.Open(context.Background(), filepath.Join(w.dir, "s.db"), store.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer in.Close()
	for info, err := range in.List(context.Background(), session.Query{Tags: []string{"mcp"}}) {
		if err != nil || id != "" {
			w.t.Fatalf("more than one session, or %v", err)
		}
		id = info.ID
	}
	return id
}

// continued calls the tool with the session until no dead process has it any more.
func (w *mcpWorld) continued(url string) {
	w.t.Helper()
	id, text := w.session(), "Another call"
	for strings.Contains(text, "Another call") {
		var err error
		if text, err = w.call(url, fmt.Sprintf(`{"task":"go on","session":%q}`, id)); err != nil {
			w.t.Fatal(err)
		}
	}
	if !strings.Contains(text, "Now go on.") {
		w.t.Error(text)
	}
}

// A server that is killed loses nothing that was complete: the next one continues the
// session, and does not run the tool again. J1
func TestMCPServerKilled(t *testing.T) {
	w := waitingAgent(t)
	p, url := w.start()
	ended := make(chan error, 1)
	go func() {
		_, err := w.call(url, `{"task":"x"}`)
		ended <- err
	}()
	f := w.running()
	p.signal(t, syscall.SIGKILL)
	_, _ = p.wait(t)
	f.Close()
	if err := <-ended; err == nil {
		t.Error("the call ended well")
	}
	p, url = w.start()
	w.continued(url)
	p.signal(t, syscall.SIGTERM)
	if code, out := p.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A client that is killed ends its server over standard input and output, and the session
// can be continued at another.
func TestMCPClientKilled(t *testing.T) {
	w := waitingAgent(t)
	r, in, err := os.Pipe() // a client's end of the server's input
	if err != nil {
		t.Fatal(err)
	}
	p := startAs(t, r, "antiphon", w.flags()...)
	r.Close()
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"it","arguments":{"task":"x"}}}`} {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	f := w.running()
	in.Close() // the system closes the pipes of a process that is killed
	if code, out := p.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	f.Close()
	p, url := w.start()
	w.continued(url)
	p.signal(t, syscall.SIGTERM)
	_, _ = p.wait(t)
}
