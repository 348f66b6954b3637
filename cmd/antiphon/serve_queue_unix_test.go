// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// queueServed is a server whose runs workers make, and n workers.
func queueServed(t *testing.T, n int) (s *served, workers map[int]*process) {
	t.Helper()
	s = servedFiles(t, "--work", "queue")
	if strings.HasPrefix(t.Name(), queueOnPostgres+"/") {
		s.place = postgresSchema(t)
	}
	// A definition cannot hold a pipe, so no tool of the file may name it.
	write(t, filepath.Join(s.dir, "it.md"), "<config model=\"rehearsal:it.script\"/>\n<tool name=\"run_command\" approval=\"allow\"/>\n")
	script := read(t, filepath.Join(s.dir, "it.script"))
	write(t, filepath.Join(s.dir, "it.script"), strings.ReplaceAll(strings.ReplaceAll(script, "wait {}", `run_command {"command": ["cat", "`+filepath.Join(s.dir, "fifo")+`"]}`), "\"wait\"", "\"run_command\""))
	write(t, filepath.Join(s.dir, "asks.md"), "<config model=\"rehearsal:asks.script\"/>\n<tool name=\"run_command\"/>\n")
	write(t, filepath.Join(s.dir, "asks.script"), `turn
  call run_command {"command": ["touch", "`+filepath.Join(s.dir, "made")+`"]}
turn
  say Noted.
`)
	write(t, filepath.Join(s.dir, "real.md"), "<config model=\"gpt-5.1\"/>\n")
	s.start()
	t.Cleanup(func() { // before the folder is removed
		_ = s.process.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = s.process.cmd.Wait()
	})
	workers = map[int]*process{}
	for range n {
		p := s.worker(s.dir)
		workers[p.cmd.Process.Pid] = p
	}
	return s, workers
}

// worker starts a worker for the agents of a folder, and waits until others can see it.
func (s *served) worker(agents string) *process {
	s.t.Helper()
	p := start(s.t, nil, "work", "--store", s.store(), "--agents", agents, "--trust", "--sandbox", "full", "--json")
	p.until(s.t, "worker started")
	for name := strconv.Itoa(p.cmd.Process.Pid); !strings.Contains(program(s.t, "work", "status", "--json", "--store", s.store()).out, name); {
		time.Sleep(20 * time.Millisecond)
	}
	go func() { _, _ = io.Copy(io.Discard, p.out) }()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = p.cmd.Wait()
	})
	return p
}

// rows returns the rows of work.
func (s *served) rows() (rows []workRow) {
	s.t.Helper()
	o := program(s.t, "work", "list", "--json", "--store", s.store())
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || o.code != 0 {
		s.t.Fatalf("%v: %s%s", err, o.out, o.err)
	}
	return rows
}

// ended reads a response until it has ended.
func (s *served) ended(id string) *api.Response {
	s.t.Helper()
	for {
		r := s.response(http.MethodGet, "responses/"+id, "")
		if r.Status != item.StatusQueued && r.Status != item.StatusInProgress {
			return r
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// saying returns the result of a tool to a tool that waits for it.
func saying(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Error(err)
	}
	f.Close()
}

func textOf(r *api.Response) string {
	var all []string
	for _, it := range r.Output {
		all = append(all, it.JSON())
	}
	return strings.Join(all, "\n")
}

// A worker makes the response of a server, and another one goes on if it is killed: nothing is lost or
// doubled. The response can be continued. D2
func TestServeQueue(t *testing.T) {
	s, workers := queueServed(t, 2)
	made := make(chan *api.Response)
	go func() { made <- s.response(http.MethodPost, "responses", `{"model":"it","input":"x"}`) }()
	saying(t, s.running(), "the result")
	r := <-made
	if text := textOf(r); r.Status != item.StatusCompleted || len(r.Output) != 3 || !strings.Contains(text, "I wait.") || strings.Count(text, "the result") != 2 {
		t.Errorf("%s %+v\n%s", r.Status, r.Error, text)
	}

	r = s.response(http.MethodPost, "responses", `{"model":"it","input":"x","background":true}`)
	f := s.running()
	killed := 0
	for _, row := range s.rows() {
		if row.State != "running" {
			continue
		}
		for pid, p := range workers {
			if strings.HasSuffix(row.Worker, " "+strconv.Itoa(pid)) {
				p.signal(t, syscall.SIGKILL)
				killed++
			}
		}
	}
	if killed != 1 {
		t.Fatalf("%d workers run it: %+v", killed, s.rows())
	}
	f.Close()
	r = s.ended(r.ID)
	if text := textOf(r); r.Status != item.StatusCompleted || len(r.Output) != 3 || strings.Count(text, "I wait.") != 1 || !strings.Contains(text, "Done: ") {
		t.Errorf("%s %+v\n%s", r.Status, r.Error, text)
	}
	next := s.response(http.MethodPost, "responses", `{"model":"it","input":"what now","previous_response_id":"`+r.ID+`"}`)
	if next.Status != item.StatusCompleted || !strings.Contains(textOf(next), "And: what now") {
		t.Errorf("%s\n%s", next.Status, textOf(next))
	}
}

// A server that is killed while a worker makes a background response loses nothing: the stream is taken up
// at another one, with the same events. V2
func TestServeQueueServerKilled(t *testing.T) {
	s, _ := queueServed(t, 1)
	stream := func(method, path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.base+"/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := stream(http.MethodPost, "responses", `{"model":"it","input":"x","background":true,"stream":true}`)
	id := strings.Replace(resp.Header.Get("X-Request-Id"), "req_", "resp_", 1)
	f := s.running()
	before := make([]byte, 0, 4096)
	for one := make([]byte, 1); !strings.Contains(string(before), "I wait."); before = append(before, one...) {
		if _, err := resp.Body.Read(one); err != nil {
			t.Fatalf("%v after %s", err, before)
		}
	}
	s.process.signal(t, syscall.SIGKILL)
	_, _ = s.process.wait(t)
	resp.Body.Close()
	s.start()
	saying(t, f, "the result")
	if r := s.ended(id); r.Status != item.StatusCompleted || len(r.Output) != 3 || !strings.Contains(textOf(r), "Done: the result") {
		t.Errorf("%s %+v\n%s", r.Status, r.Error, textOf(r))
	}
	again := stream(http.MethodGet, "responses/"+id+"?stream=true&starting_after=2", "")
	defer again.Body.Close()
	text, err := io.ReadAll(again.Body)
	if err != nil || !strings.Contains(string(text), "response.completed") || strings.Contains(string(text), "response.created") || !strings.Contains(string(text), "Done: the result") {
		t.Errorf("%v\n%s", err, text)
	}
}

// A cancel that waits for a worker which does not answer is kept when the server is killed: when the worker goes
// on, the run stops, and the response is cancelled.
func TestServeQueueCancelFrozen(t *testing.T) {
	s, workers := queueServed(t, 1)
	r := s.response(http.MethodPost, "responses", `{"model":"it","input":"x","background":true}`)
	f := s.running()
	defer f.Close()
	for _, p := range workers {
		p.signal(t, syscall.SIGSTOP)
	}
	if c := s.response(http.MethodPost, "responses/"+r.ID+"/cancel", ""); c.Status != item.StatusCancelled {
		t.Errorf("%s %+v", c.Status, c.Error)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(r.ID, "resp_"), "_")
	for !s.asked("api-" + id) {
		time.Sleep(20 * time.Millisecond)
	}
	s.process.signal(t, syscall.SIGKILL)
	_, _ = s.process.wait(t)
	s.start()
	for _, p := range workers {
		p.signal(t, syscall.SIGCONT)
	}
	if r = s.ended(r.ID); r.Status != item.StatusCancelled {
		t.Errorf("%s %+v\n%s", r.Status, r.Error, textOf(r))
	}
}

// asked reports whether something waits in the inbox of a session.
func (s *served) asked(id string) bool {
	s.t.Helper()
	in, err := store.Open(s.t.Context(), s.store(), store.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer in.Close()
	for _, err := range in.(session.Inbox).Deliveries(s.t.Context(), id) {
		if err != nil {
			s.t.Fatal(err)
		}
		return true
	}
	return false
}

// The run of a client that went away with its server stops, and the response is incomplete.
func TestServeQueueClientGone(t *testing.T) {
	s, _ := queueServed(t, 1)
	resp, err := http.Post(s.base+"/responses", "application/json", strings.NewReader(`{"model":"it","input":"x","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Replace(resp.Header.Get("X-Request-Id"), "req_", "resp_", 1)
	f := s.running()
	resp.Body.Close()
	if r := s.ended(id); r.Status != item.StatusCancelled {
		t.Errorf("%s %+v\n%s", r.Status, r.Error, textOf(r))
	}
	f.Close()
	if resp, err = http.Post(s.base+"/responses", "application/json", strings.NewReader(`{"model":"it","input":"x","stream":true}`)); err != nil {
		t.Fatal(err)
	}
	id = strings.Replace(resp.Header.Get("X-Request-Id"), "req_", "resp_", 1)
	f = s.running()
	s.process.signal(t, syscall.SIGKILL)
	_, _ = s.process.wait(t)
	resp.Body.Close()
	s.start()
	if r := s.ended(id); r.Status != item.StatusIncomplete || r.Error == nil {
		t.Errorf("%s %+v\n%s", r.Status, r.Error, textOf(r))
	}
	f.Close()
	for _, row := range s.rows() {
		if row.State != "done" {
			t.Errorf("the work is left: %+v", row)
		}
	}
}

// Without a worker, a client that waits is told so at once, and a background response waits for one. One
// that no worker can make fails, and the operator reads why.
func TestServeQueueNoWorker(t *testing.T) {
	s, _ := queueServed(t, 0)
	if status, body := s.send(http.MethodPost, "responses", `{"model":"it","input":"x"}`); status != http.StatusServiceUnavailable || !strings.Contains(body, "no_worker") {
		t.Errorf("%d %s", status, body)
	}
	if rows := s.rows(); len(rows) != 0 {
		t.Errorf("work was left: %+v", rows)
	}
	r := s.response(http.MethodPost, "responses", `{"model":"asks","input":"x","background":true}`)
	if status, body := s.send(http.MethodPost, "responses", `{"model":"real","input":"x","background":true}`); status != http.StatusOK {
		t.Errorf("the key of a model is the worker's: %d %s", status, body)
	}
	for len(s.rows()) < 2 { // it is left behind the answer
		time.Sleep(20 * time.Millisecond)
	}
	if o := program(t, "work", "status", "--store", s.store()); !strings.Contains(o.out, "waits for a worker") || !strings.Contains(o.err, "no worker runs") {
		t.Errorf("%s%s", o.out, o.err)
	}
	others := t.TempDir()
	write(t, filepath.Join(others, "other.md"), "<config model=\"rehearsal\"/>\n")
	s.worker(others)
	if r = s.ended(r.ID); r.Status != item.StatusFailed || r.Error == nil || !strings.Contains(r.Error.Message, "No worker can run the agent") {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
	if o := program(t, "work", "status", "--store", s.store()); !strings.Contains(o.out, "needs the agreement of a worker's operator") {
		t.Errorf("%s%s", o.out, o.err)
	}
}

// A client answers a request for approval, and a worker goes on. What a worker does not do is refused before
// anything is left.
func TestServeQueueApproval(t *testing.T) {
	s, _ := queueServed(t, 1)
	if o := program(t, "serve", s.dir, "--work", "queue", "--store", s.store(), "--allow", "run_command"); o.code != exitUsage || !strings.Contains(o.err, "--allow: with --work queue") {
		t.Errorf("exit code %d: %s", o.code, o.err)
	}
	if o := program(t, "serve", s.dir, "--work", "queue", "--store", s.store(), "--trust", "--model", "small", "--listen", "nowhere"); !strings.Contains(o.err, "--model is here about counted tokens") {
		t.Errorf("exit code %d: %s", o.code, o.err)
	}
	for _, refused := range []string{
		`{"model":"asks","input":"x","store":false}`,
		`{"model":"asks","input":"x","tools":[{"type":"mcp","server_label":"s","server_url":"https://example.org/","authorization":"k"}]}`,
	} {
		if status, body := s.send(http.MethodPost, "responses", refused); status != http.StatusBadRequest || !strings.Contains(body, "workers make the responses") {
			t.Errorf("%d %s", status, body)
		}
	}
	r := s.response(http.MethodPost, "responses", `{"model":"asks","input":"x"}`)
	if len(r.Output) != 1 || r.Output[0].Type() != item.TypeMCPApprovalRequest {
		t.Fatalf("%s %+v\n%s", r.Status, r.Error, textOf(r))
	}
	if _, err := os.Stat(filepath.Join(s.dir, "made")); err == nil {
		t.Error("the call was made without an approval")
	}
	r = s.response(http.MethodPost, "responses", `{"model":"asks","previous_response_id":"`+r.ID+`","input":[{"type":"mcp_approval_response","approval_request_id":"`+r.Output[0].ID()+`","approve":true}]}`)
	if text := textOf(r); r.Status != item.StatusCompleted || !strings.Contains(text, "mcp_call") || !strings.Contains(text, "Noted.") {
		t.Errorf("%s %+v\n%s", r.Status, r.Error, text)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "made")); err != nil {
		t.Error(err)
	}
	r = s.response(http.MethodPost, "responses", `{"model":"asks","input":"x","background":true}`)
	r = s.response(http.MethodPost, "responses/"+r.ID+"/cancel", "")
	if r.Status != item.StatusCancelled && r.Status != item.StatusCompleted {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
}

// An operator who parks the work of a response stops it, and its client reads so. D4
func TestServeQueueParked(t *testing.T) {
	s, _ := queueServed(t, 1)
	r := s.response(http.MethodPost, "responses", `{"model":"it","input":"x","background":true}`)
	f := s.running()
	if o := program(t, "work", "park", "--all", "--store", s.store()); o.code != 0 || !strings.Contains(o.out, "1 session: parked") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if r = s.ended(r.ID); r.Status != item.StatusIncomplete || r.Error == nil || !strings.Contains(r.Error.Message, "an operator stopped it") {
		t.Errorf("%s %+v\n%s", r.Status, r.Error, textOf(r))
	}
	f.Close()
	// A response that is cancelled at once is not made, whoever holds its session then.
	for range 3 {
		r = s.response(http.MethodPost, "responses", `{"model":"it","input":"x","background":true}`)
		r = s.response(http.MethodPost, "responses/"+r.ID+"/cancel", "")
		if r.Status != item.StatusCancelled {
			t.Errorf("%s %+v", r.Status, r.Error)
		}
		if again := s.ended(r.ID); again.Status != item.StatusCancelled {
			t.Errorf("%s %+v", again.Status, again.Error)
		}
	}
}

// queueOnPostgres is the test whose subtests have their store on the server of .ci/postgres.
const queueOnPostgres = "TestServeQueueOnPostgres"

// The same on the server of .ci/postgres.
func TestServeQueueOnPostgres(t *testing.T) {
	postgresStore(t)
	for name, test := range map[string]func(*testing.T){
		"Workers":      TestServeQueue,
		"ServerKilled": TestServeQueueServerKilled,
		"CancelFrozen": TestServeQueueCancelFrozen,
		"ClientGone":   TestServeQueueClientGone,
		"NoWorker":     TestServeQueueNoWorker,
		"Approval":     TestServeQueueApproval,
		"Parked":       TestServeQueueParked,
	} {
		t.Run(name, test)
	}
}

// postgresSchema returns a store on the server of .ci/postgres that nobody else has.
func postgresSchema(t *testing.T) string {
	t.Helper()
	all, schema := postgresStore(t), "test_"+strings.ToLower(rand.Text())
	run := func(statement string) {
		db, err := sql.Open("pgx", strings.Replace(all, "antiphon_unsafe=fsync&", "", 1))
		if err == nil {
			_, err = db.Exec(statement)
		}
		if err = errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	}
	run("CREATE SCHEMA " + schema)
	t.Cleanup(func() { run("DROP SCHEMA " + schema + " CASCADE") })
	return all + "&search_path=" + schema
}
