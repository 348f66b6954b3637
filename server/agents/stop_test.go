// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

// stoppable serves an agent, its responses and its sessions to projects.
func stoppable(t *testing.T, tools, script string) (*tenants, store.Store) {
	dir := t.TempDir()
	write(t, dir, "it.script", script)
	write(t, dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n"+tools+"<system>Be brief.</system>\n")
	in, err := store.Open(t.Context(), filepath.Join(dir, "sessions.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	w := guardedBy(t, func(project string) *server.Server {
		return &server.Server{Sessions: sessionsOf(t, in, project), Backend: &agents.Backend{
			Store: in, Owner: project, Log: func(err error) { t.Log("logged:", err) },
			Agents: []agents.Agent{{Name: "it", Config: host.Config{File: filepath.Join(dir, "it.md"), Trust: trust.Everything, Sandbox: "full"}}},
		}}
	})
	return w, in
}

// ok sends a request that succeeds.
func (w *tenants) ok(method, path, body string) string {
	w.t.Helper()
	status, text := w.send(red, method, path, body)
	if status != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}

// onlySession returns the id of the only session.
func (w *tenants) onlySession() string {
	w.t.Helper()
	_, rest, _ := strings.Cut(w.ok("GET", front, ""), `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// member returns a text member of an object.
func member(t *testing.T, text, name string) string {
	t.Helper()
	o, err := item.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := o.Member(name)
	s, _ := v.Unquote()
	return s
}

// A request to stop is refused where nothing runs, and does not end the next response.
func TestStopIdle(t *testing.T) {
	w, in := stoppable(t, "", "again\nturn\n  say Yes.\n")
	first := member(t, w.ok("POST", "responses", `{"model":"it","input":"a"}`), "id")
	id := w.onlySession()
	for range 2 {
		status, text := w.send(red, "POST", front+"/"+id+"/stop", `{"reason":"enough","key":"k"}`)
		if status != http.StatusConflict || !strings.Contains(text, `"not_running"`) {
			t.Errorf("%d %s", status, text)
		}
	}
	// One that comes as the run ends waits in the inbox, as that of an operator does.
	if _, err := in.(session.Inbox).Deliver(t.Context(), id, session.Delivery{
		Delivered: session.Delivered{Key: "late", By: "ann", From: "sessions stop"}, Bodies: []session.Body{session.StopAsked{Detail: "late"}},
	}); err != nil {
		t.Fatal(err)
	}
	next := w.ok("POST", "responses", `{"model":"it","input":"b","previous_response_id":"`+first+`"}`)
	if member(t, next, "status") != "completed" || !strings.Contains(next, "Yes.") {
		t.Error(next)
	}
	if got := w.ok("GET", front+"/"+id, ""); !strings.Contains(got, `"deliveries":0`) {
		t.Error(got)
	}
}

// A response that somebody stopped says who did, and why.
func TestStoppedBy(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`{"reason":"home time.","key":"k"}`, `The agent stopped before its answer: \"red\" stopped it: home time.`},
		{`{"key":"k"}`, `The agent stopped before its answer: \"red\" stopped it.`},
	} {
		w, _ := stoppable(t, "", "turn\n  say one\n  pause 10m\n  say two\n")
		id := member(t, w.ok("POST", "responses", `{"model":"it","input":"a","background":true}`), "id")
		in := ""
		for in == "" || !strings.Contains(w.ok("GET", front+"/"+in+"/events?follow=false", ""), "turn_started") {
			time.Sleep(time.Millisecond)
			in = w.onlySession()
		}
		w.ok("POST", front+"/"+in+"/stop", test.body)
		got := w.ok("GET", "responses/"+id, "")
		for member(t, got, "status") == "in_progress" {
			time.Sleep(time.Millisecond)
			got = w.ok("GET", "responses/"+id, "")
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("lacks %s: %s", test.want, got)
		}
		// The same request again has no effect, and is no mistake.
		w.ok("POST", front+"/"+in+"/stop", test.body)
	}
}

// A request to stop that is given while a call waits is for this call also: it does not run.
func TestStopWaiting(t *testing.T) {
	w, _ := stoppable(t, "<tool name=\"append_to_file\" approval=\"ask\"/>\n", "turn\n  call append_to_file {\"path\":\"new.txt\",\"content\":\"x\"}\nturn\n  say Done.\n")
	first := w.ok("POST", "responses", `{"model":"it","input":"a"}`)
	if !strings.Contains(first, "mcp_approval_request") {
		t.Fatal(first)
	}
	_, rest, _ := strings.Cut(first, `"mcpr_`)
	ask, _, _ := strings.Cut(rest, `"`)
	w.ok("POST", front+"/"+w.onlySession()+"/stop", `{"reason":"no more"}`)
	next := w.ok("POST", "responses", `{"model":"it","previous_response_id":"`+member(t, first, "id")+`","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_`+ask+`","approve":true}]}`)
	if member(t, next, "status") != "incomplete" || !strings.Contains(next, "no more") {
		t.Error(next)
	}
}
