// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"cmp"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// served is antiphon serve as a process, for an agent whose tool waits for the test.
type served struct {
	flags   []string // more of the server
	t       *testing.T
	dir     string
	place   string // of the store; "" is a file in dir
	process *process
	base    string
}

func (s *served) store() string { return cmp.Or(s.place, filepath.Join(s.dir, "s.db")) }

func servedAgent(t *testing.T, flags ...string) *served {
	t.Helper()
	s := servedFiles(t, flags...)
	s.start()
	return s
}

// servedFiles makes the files of such a server.
func servedFiles(t *testing.T, flags ...string) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir(), flags: flags}
	write(t, filepath.Join(s.dir, "it.md"), "<config model=\"rehearsal:it.script\" description=\"Waits for the test.\"/>\n"+
		"<tool name=\"wait\" command=\"cat "+filepath.Join(s.dir, "fifo")+"\" description=\"Waits.\" approval=\"allow\"/>\n")
	write(t, filepath.Join(s.dir, "it.script"), "turn\n  say I wait.\n  call wait {}\nturn\n  say Done: {{output \"wait\" 1}}\nagain\nturn\n  say And: {{question}}\n")
	if err := syscall.Mkfifo(filepath.Join(s.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

var listening = regexp.MustCompile(`http://127\.0\.0\.1:\d+/v1`)

// start starts the server, and waits until it listens.
func (s *served) start() {
	s.t.Helper()
	flags := s.flags
	if !slices.Contains(flags, "--work") { // otherwise it is the worker's
		flags = append([]string{"--sandbox", "full"}, flags...)
	}
	s.process = startAs(s.t, nil, "sh", append([]string{"-c", `exec antiphon "$@" 2>&1`, "sh",
		"serve", s.dir, "--listen", "127.0.0.1:0", "--store", s.store(), "--trust", "--drain-time", "1ms"}, flags...)...)
	s.base = listening.FindString(s.process.until(s.t, "/v1/responses"))
}

func (s *served) send(method, path, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+"/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// response sends a request that must give a valid response.
func (s *served) response(method, path, body string) *api.Response {
	s.t.Helper()
	status, text := s.send(method, path, body)
	if status != http.StatusOK {
		s.t.Fatalf("%d %s", status, text)
	}
	apispec.Load(s.t).Check(s.t, "Response", []byte(text))
	r, err := api.ParseResponse([]byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// running waits until the tool runs. The result lets it end.
func (s *served) running() *os.File {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "fifo"), os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// A rule about a tool of one agent does not keep the others from running. If the tool gets another name, its
// agent is refused until the rule is about a tool again, because the rule would not hold.
func TestServeRuleOfOneAgent(t *testing.T) {
	s := servedFiles(t, "--deny", "read_file")
	write(t, filepath.Join(s.dir, "quick.md"), "<config model=\"rehearsal:quick.script\"/>\n")
	write(t, filepath.Join(s.dir, "quick.script"), "again\nturn\n  say Hello.\n")
	write(t, filepath.Join(s.dir, "note.md"), "<config model=\"rehearsal:quick.script\"/>\n<tool name=\"read_file\"/>\n")
	s.start()
	for _, name := range []string{"quick", "note"} {
		if r := s.response(http.MethodPost, "responses", `{"model":"`+name+`","input":"x"}`); r.Status != item.StatusCompleted {
			t.Errorf("%s: %s, %+v", name, r.Status, r.Error)
		}
	}
	write(t, filepath.Join(s.dir, "note.md"), "<config model=\"rehearsal:quick.script\"/>\n<tool name=\"read_directory\"/>\n")
	if status, text := s.send(http.MethodPost, "responses", `{"model":"note","input":"x"}`); status != http.StatusServiceUnavailable || !strings.Contains(text, `"agent_invalid"`) {
		t.Errorf("%d %s", status, text)
	}
	s.process.signal(t, syscall.SIGTERM)
	if code, rest := s.process.wait(t); code != exitOK {
		t.Errorf("exit code %d, %s", code, rest)
	}
}

// A server that ends says for what it waits.
func TestServeSaysWhyItWaits(t *testing.T) {
	s := servedAgent(t)
	s.response(http.MethodPost, "responses", `{"model":"it","input":"x","background":true}`)
	end := s.running()
	s.process.signal(t, syscall.SIGTERM)
	s.process.until(t, "waits up to 1ms for 1 response, and a second signal ends at once")
	end.Close()
	if code, rest := s.process.wait(t); code != exitOK {
		t.Errorf("exit code %d, %s", code, rest)
	}
}

// A server that is killed in the middle of a response leaves none in progress: the next one
// finds it, and it is incomplete, with what was complete. It can be continued. J1 V2
func TestServeKilled(t *testing.T) {
	s := servedAgent(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/responses", strings.NewReader(`{"model":"it","input":"x","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := strings.Replace(resp.Header.Get("X-Request-Id"), "req_", "resp_", 1)
	end := s.running()
	s.process.signal(t, syscall.SIGKILL)
	_, _ = s.process.wait(t)
	end.Close()
	s.start()
	made := s.response(http.MethodGet, "responses/"+id, "")
	if made.Status != item.StatusIncomplete || made.Error == nil || len(made.Output) != 2 || !strings.Contains(made.Output[0].JSON(), "I wait.") || made.Output[1].Status() != item.StatusIncomplete {
		t.Errorf("%s, %+v, %v", made.Status, made.Error, made.Output)
	}
	next := s.response(http.MethodPost, "responses", `{"model":"it","input":"what now","previous_response_id":"`+id+`"}`)
	if next.Status != item.StatusCompleted {
		t.Errorf("%s: %v", next.Status, next.Output)
	}
	if status, body := s.send(http.MethodGet, "responses/"+next.ID+"/input_items", ""); status != http.StatusOK || !strings.Contains(body, "I wait.") {
		t.Errorf("%d %s", status, body)
	}
	s.process.signal(t, syscall.SIGTERM)
	if code, out := s.process.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A background response survives its server: the next one goes on where the log ends, whether
// the server was killed or told to end. A call that was running has an unknown outcome. D2
func TestServeGoesOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		s := servedAgent(t)
		made := s.response(http.MethodPost, "responses", `{"model":"it","input":"x","background":true}`)
		end := s.running()
		s.process.signal(t, sig)
		_, _ = s.process.wait(t)
		end.Close()
		s.start()
		r := s.final(made.ID)
		if r.Status != item.StatusCompleted || len(r.Output) != 3 || !strings.Contains(r.Output[0].JSON(), "I wait.") || !strings.Contains(r.Output[2].JSON(), "Done: ") {
			t.Errorf("%v: %s, %v", sig, r.Status, r.Output)
		}
		if call, err := item.As[item.MCPCall](r.Output[1]); err != nil || call.Error == nil {
			t.Errorf("%v: %+v, %v", sig, call, err)
		}
		s.process.signal(t, syscall.SIGTERM)
		if code, out := s.process.wait(t); code != 0 {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
}

// final waits for the end of a response.
func (s *served) final(id string) *api.Response {
	s.t.Helper()
	for {
		r := s.response(http.MethodGet, "responses/"+id, "")
		if r.Status != item.StatusQueued && r.Status != item.StatusInProgress {
			return r
		}
		select {
		case <-time.After(20 * time.Millisecond): // the server has no other way to tell
		case <-s.t.Context().Done():
			s.t.Fatal("the response does not end")
		}
	}
}

// Of two servers over one store one makes a response, and the other reads it and cancels
// it. D1 D2
func TestServeBeside(t *testing.T) {
	s := servedAgent(t)
	made := s.response(http.MethodPost, "responses", `{"model":"it","input":"x","background":true}`)
	end := s.running()
	defer end.Close()
	other := &served{t: t, dir: s.dir}
	other.start()
	if r := other.response(http.MethodGet, "responses/"+made.ID, ""); r.Status != item.StatusInProgress || len(r.Output) == 0 {
		t.Errorf("%s, %v", r.Status, r.Output)
	}
	if r := other.response(http.MethodPost, "responses/"+made.ID+"/cancel", ""); r.Status != item.StatusCancelled {
		t.Errorf("%s, %v", r.Status, r.Output)
	}
	if r := s.final(made.ID); r.Status != item.StatusCancelled || !strings.Contains(r.Output[0].JSON(), "I wait.") {
		t.Errorf("%s, %v", r.Status, r.Output)
	}
	for _, one := range []*served{s, other} {
		one.process.signal(t, syscall.SIGTERM)
		if code, out := one.process.wait(t); code != 0 {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
}

// keyed sends a request for a response with a key.
func (s *served) keyed(key, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.base+"/responses", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// A request whose server was killed is not made again when it is sent again: it has the
// response that was begun. V4 J1
func TestServeKeyKilled(t *testing.T) {
	s := servedAgent(t)
	const body = `{"model":"it","input":"x"}`
	left := make(chan error, 1)
	go func() {
		_, _, err := s.keyed("k", body)
		left <- err
	}()
	end := s.running()
	s.process.signal(t, syscall.SIGKILL)
	_, _ = s.process.wait(t)
	end.Close()
	if err := <-left; err == nil {
		t.Error("a server that was killed answered")
	}
	s.start()
	for range 2 {
		code, text, err := s.keyed("k", body)
		if code != http.StatusOK || err != nil || !strings.Contains(text, `"status":"incomplete"`) || !strings.Contains(text, "I wait.") {
			t.Errorf("%d %s %v", code, text, err)
		}
	}
	s.process.signal(t, syscall.SIGTERM)
	if code, out := s.process.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}
