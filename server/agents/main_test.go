// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// world is a server over agents' files, with everything that it sends checked against the
// published schema.
type world struct {
	t      *testing.T
	b      *agents.Backend
	base   string
	dir    string
	client *http.Client
	spec   *apispec.Spec
	stop   func()
}

// serving serves an agent called "it": a file with tools, and its script.
func serving(t *testing.T, tools, script string, change func(*agents.Backend)) *world {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "it.script", script)
	write(t, dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n"+tools+"<system>Be brief.</system>\n")
	return reopened(t, dir, change)
}

// onPostgres is the test whose subtests have stores on the server of .ci/postgres.
const onPostgres = "TestQueueOnPostgres"

// placeIn returns where the sessions of a folder are: in a file, or in a schema of their own.
func placeIn(t *testing.T, dir string) string {
	t.Helper()
	if !strings.HasPrefix(t.Name(), onPostgres+"/") {
		return filepath.Join(dir, "sessions.db")
	}
	at := "postgres://antiphon@/postgres?antiphon_unsafe=fsync&host=" + postgresHost(t)
	schema := fmt.Sprintf("test_%x", sha256.Sum256([]byte(dir)))[:40]
	if _, err := os.Stat(filepath.Join(dir, "schema")); err != nil {
		write(t, dir, "schema", schema)
		run := func(statement string) {
			db, err := sql.Open("pgx", "postgres://antiphon@/postgres?host="+postgresHost(t))
			if err == nil {
				_, err = db.Exec(statement)
			}
			if err = errors.Join(err, db.Close()); err != nil {
				t.Error(err)
			}
		}
		run("CREATE SCHEMA " + schema)
		t.Cleanup(func() { run("DROP SCHEMA " + schema + " CASCADE") })
	}
	return at + "&search_path=" + schema
}

func postgresHost(t *testing.T) string {
	t.Helper()
	host := regexp.MustCompile(`host=(/\S+)`).FindStringSubmatch(os.Getenv("ANTIPHON_POSTGRES"))
	if host == nil {
		t.Skip("no ANTIPHON_POSTGRES: `.ci/postgres go test ./server/agents` starts a server and sets it")
	}
	return host[1]
}

// reopened serves the agent of a folder, as the next process does.
func reopened(t *testing.T, dir string, change func(*agents.Backend)) *world {
	t.Helper()
	in, err := store.Open(t.Context(), placeIn(t, dir), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, spec: apispec.Load(t)}
	w.b = &agents.Backend{
		Store: in, Log: func(err error) { t.Log("logged:", err) },
		Agents: []agents.Agent{{Name: "it", Config: host.Config{File: filepath.Join(dir, "it.md"), Trust: trust.Everything, Sandbox: "full"}}},
	}
	if change != nil {
		change(w.b)
	}
	s := &server.Server{Backend: w.b}
	base, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	transport := new(http.Transport)
	w.base, w.client = base, &http.Client{Transport: transport}
	w.stop = func() {
		transport.CloseIdleConnections()
		stop()
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { w.stop() })
	return w
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// send sends a request and returns the status and the body.
func (w *world) send(method, path, body string) (int, string) {
	w.t.Helper()
	resp := w.open(context.Background(), method, path, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (w *world) open(ctx context.Context, method, path, body string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.base+"/"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

// create makes a response, complete and valid.
func (w *world) create(body string) *api.Response {
	w.t.Helper()
	status, text := w.send(http.MethodPost, "responses", body)
	if status != http.StatusOK {
		w.t.Fatalf("%s: %d %s", body, status, text)
	}
	return w.response(text)
}

func (w *world) response(text string) *api.Response {
	w.t.Helper()
	w.spec.Check(w.t, "Response", []byte(text))
	r, err := api.ParseResponse([]byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// get reads a stored response.
func (w *world) get(id string) *api.Response {
	w.t.Helper()
	status, text := w.send(http.MethodGet, "responses/"+id, "")
	if status != http.StatusOK {
		w.t.Fatalf("%s: %d %s", id, status, text)
	}
	return w.response(text)
}

// stream makes a response whose events are all valid, and returns the response that they
// say.
func (w *world) stream(body string) (events []api.Event, r *api.Response) {
	w.t.Helper()
	resp := w.open(context.Background(), http.MethodPost, "responses", body)
	defer resp.Body.Close()
	var all api.Accumulator
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		w.spec.Check(w.t, "ResponseStreamEvent", data)
		ev, err := api.ParseEvent(bytes.Clone(data))
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := all.Add(ev); err != nil {
			w.t.Errorf("%v: %s", err, data)
		}
		events = append(events, ev)
	}
	r, whole := all.Response()
	if !whole {
		w.t.Fatalf("the stream broke off: %v", lines.Err())
	}
	return events, r
}

// refused sends a request that must be refused with a message.
func (w *world) refused(method, path, body, message string) {
	w.t.Helper()
	status, text := w.send(method, path, body)
	object, err := item.Parse([]byte(text))
	if status < 400 || err != nil || !strings.Contains(text, message) {
		w.t.Errorf("%s: %d %s; want %q", body, status, text, message)
		return
	}
	inner, _ := object.Member("error")
	w.spec.Check(w.t, "Error", []byte(inner))
}

// kinds lists the items of a response: the type, and the name or the text.
func kinds(r *api.Response) string {
	var list []string
	for _, it := range r.Output {
		text := it.Name()
		if it.Type() == item.TypeMessage {
			m, err := item.As[item.Message](it)
			if err == nil {
				text = m.Content.Display()
			}
		}
		list = append(list, string(it.Type())+":"+text)
	}
	return strings.Join(list, " | ")
}

// same fails if a response that is read later differs from the one that was made.
func (w *world) same(made *api.Response) {
	w.t.Helper()
	a, errA := made.AppendJSON(nil)
	b, errB := w.get(made.ID).AppendJSON(nil)
	if errA != nil || errB != nil || string(a) != string(b) {
		w.t.Errorf("made %s\nread %s\n%v %v", a, b, errA, errB)
	}
}

// alone opens the agent of a folder without a server.
func alone(t *testing.T, dir string) *agents.Backend {
	t.Helper()
	in, err := store.Open(t.Context(), placeIn(t, dir), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return &agents.Backend{
		Store: in, Log: func(err error) { t.Log("logged:", err) },
		Agents: []agents.Agent{{Name: "it", Config: host.Config{File: filepath.Join(dir, "it.md"), Trust: trust.Everything, Sandbox: "full"}}},
	}
}
