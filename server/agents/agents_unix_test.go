// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agents_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// fifo is a tool that runs until the test lets it end. running waits for it.
func fifo(t *testing.T, w *world) (running func() (end func())) {
	t.Helper()
	name := filepath.Join(w.dir, "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() func() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // waits for the reader
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

const waiting = `<tool name="wait" command="cat fifo" description="Waits." approval="allow"/>` + "\n"

const waits = "turn\n  say I wait.\n  call wait {}\nturn\n  say Done.\n"

// A background response can be read while it is made, cancelled and streamed again.
func TestAgentInBackground(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	made := w.create(`{"model":"it","input":"x","background":true,"stream":false}`)
	end := running()
	if r := w.get(made.ID); r.Status != item.StatusInProgress || !strings.HasPrefix(kinds(r), "message:I wait.") {
		t.Errorf("%s: %s", r.Status, kinds(r))
	}
	status, body := w.send(http.MethodPost, "responses/"+made.ID+"/cancel", "")
	if status != http.StatusOK || w.response(body).Status != item.StatusCancelled {
		t.Errorf("%d %s", status, body)
	}
	end()
	w.stop()
	w.stop = func() {}
	next := reopened(t, w.dir, nil)
	if r := next.get(made.ID); r.Status != item.StatusCancelled || !strings.HasPrefix(kinds(r), "message:I wait.") {
		t.Errorf("%s: %s", r.Status, kinds(r))
	}
	// What was cancelled can be continued: the call has an output that says so.
	after := next.create(`{"model":"it","input":"y","previous_response_id":"` + made.ID + `"}`)
	if after.Status != item.StatusCompleted {
		t.Errorf("%s: %s", after.Status, kinds(after))
	}
}

// A client that goes away ends its response, which keeps what was complete. Others are
// served.
func TestClientGone(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	ctx, gone := context.WithCancel(t.Context())
	resp := w.open(ctx, http.MethodPost, "responses", `{"model":"it","input":"x","stream":true}`)
	end := running()
	head := make([]byte, 400)
	n, err := resp.Body.Read(head)
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(string(head[:n]), `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	gone()
	resp.Body.Close()
	end()
	w.stop()
	w.stop = func() {}
	next := reopened(t, w.dir, nil)
	if r := next.get(id); r.Status != item.StatusCancelled && r.Status != item.StatusIncomplete {
		t.Errorf("%s: %s", r.Status, kinds(r))
	}
}

// A server that stops lets responses end, and those that take too long are incomplete.
func TestDrain(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	done := make(chan *api.Response)
	go func() {
		_, r := w.stream(`{"model":"it","input":"x","stream":true}`)
		done <- r
	}()
	end := running()
	late, stop := context.WithCancel(t.Context())
	stop()
	w.b.Drain(late)
	r := <-done
	end()
	if r.Status != item.StatusIncomplete || r.Error == nil || !strings.HasPrefix(kinds(r), "message:I wait. | mcp_call:wait") {
		t.Errorf("%s, %v: %s", r.Status, r.Error, kinds(r))
	}
	w.same(r)
	w.refused(http.MethodPost, "responses", `{"model":"it","input":"x"}`, "about to stop")
}
