// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/access"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// world is a server with sessions, behind keys, and a store in which a test runs agents.
type world struct {
	t      *testing.T
	dir    string
	in     store.Store
	h      *sessions.Handler
	base   string
	keys   map[string]string // by the name of the key
	client *http.Client
	stop   func()       // the server
	revoke func(string) // a key, by its name

	mu      sync.Mutex
	records []audit.Record
}

// shop is the project of the keys.
const shop = "shop"

// serving serves the sessions of a new store. change may be nil.
func serving(t *testing.T, change func(*sessions.Handler)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), keys: map[string]string{}}
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
	w.h = &sessions.Handler{Store: in, Owner: shop, Log: func(err error) { t.Log("logged:", err) }, Record: func(_ context.Context, list ...audit.Record) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.records = append(w.records, list...)
		return nil
	}}
	if change != nil {
		change(w.h)
	}
	keys := access.OpenKeys(filepath.Join(w.dir, "keys.json"))
	for name, scopes := range map[string][]access.Scope{"lead": access.Scopes, "reader": {access.ScopeSessions}, "api": {access.ScopeModels, access.ScopeRead}, "approver": {access.ScopeApprove}} {
		sent, _, err := keys.Create(t.Context(), access.Key{Name: name, Project: shop, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		w.keys[name] = sent
	}
	w.revoke = func(name string) {
		if _, err := keys.Revoke(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	g := &access.Guard{Keys: keys, Server: func(string) (*server.Server, error) {
		return &server.Server{Backend: server.BackendFunc(nil), Sessions: w.h}, nil
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, l, nil) }()
	transport := new(http.Transport)
	w.base, w.client = "http://"+l.Addr().String(), &http.Client{Transport: transport}
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

func (w *world) open(key, method, path, body string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+sessions.Path+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.keys[key])
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

func (w *world) send(key, method, path, body string) (int, string) {
	w.t.Helper()
	resp := w.open(key, method, path, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// as returns a client with a key.
func (w *world) as(key string) *sessions.Client {
	return &sessions.Client{URL: w.base, Key: w.keys[key], Transport: w.client.Transport}
}

// runs runs an agent with a script in a session, in the background. A question waits for
// somebody else's answer. The result is called to wait for the end of the run.
func (w *world) runs(name, script, prompt string) (wait func() string) {
	w.t.Helper()
	for file, text := range map[string]string{name + ".script": script, name + ".md": "<config model=\"rehearsal:" + name + ".script\"/>\n<tool name=\"append_to_file\"/>\n<system>Be brief.</system>\n"} {
		if err := os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	h, err := host.Open(w.t.Context(), host.Config{
		File: filepath.Join(w.dir, name+".md"), Store: w.in, Session: name, Owner: shop, Trust: trust.Everything, Sandbox: "full",
		Approver: func(ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
			<-ctx.Done()
			return agent.Decision{}, context.Cause(ctx)
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var failed error
	go func() {
		defer close(done)
		for _, err := range h.Stream(ctx, prompt) {
			failed = err
		}
	}()
	var why string
	wait = sync.OnceValue(func() string {
		<-done
		if failed != nil && !errors.Is(failed, context.Canceled) {
			w.t.Error(failed)
		}
		if res := h.Result(); res != nil {
			why = string(res.Why)
		}
		if err := h.Close(); err != nil {
			w.t.Error(err)
		}
		return why
	})
	w.t.Cleanup(func() {
		cancel()
		wait()
	})
	return wait
}

// log returns the log of a session.
func (w *world) log(id string) []session.Entry {
	w.t.Helper()
	s, err := session.Open(w.t.Context(), w.in, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Log()
}

// lines are entries as text.
func lines(t *testing.T, log []session.Entry) (list []string) {
	t.Helper()
	for _, e := range log {
		line, err := session.AppendEntry(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(line))
	}
	return list
}
