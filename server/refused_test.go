// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// refusing are ways in which a store does not take the end of a response. full is set
// once the response has begun.
var refusing = []struct {
	name   string
	no     func(rec server.StoredObject, full *atomic.Bool) bool
	status string // of the response
	items  int    // that are then in its conversation
	code   int    // of a request that continues it
}{
	{"the end", func(rec server.StoredObject, full *atomic.Bool) bool { return rec.Response != nil && full.Load() }, item.StatusCompleted, 2, 0},
	{"the conversation", func(rec server.StoredObject, full *atomic.Bool) bool { return rec.Conversation != nil && full.Load() }, item.StatusFailed, 0, http.StatusOK}, // the response is stored
	{"everything", func(_ server.StoredObject, full *atomic.Bool) bool { return full.Load() }, item.StatusFailed, 0, http.StatusBadRequest},
}

// If the store refuses a part of the end of a response, the client, a follower and a later request read the
// same end, which is stored as soon as the store takes it. What is in the conversation is completed, and
// nothing of a failed response is there. V1 V2
func TestEndRefused(t *testing.T) {
	for _, test := range refusing {
		for _, mode := range []string{"", `,"stream":true`, `,"background":true`, `,"background":true,"stream":true`} {
			t.Run(test.name+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { endRefused(t, test.no, mode, test.status, test.items, test.code) })
			})
		}
	}
}

func endRefused(t *testing.T, no func(server.StoredObject, *atomic.Bool) bool, mode, status string, items, want int) {
	var full atomic.Bool
	var logged bytes.Buffer
	store := &failing{f: func(rec server.StoredObject) error {
		if no(rec, &full) {
			return errors.New("disk full")
		}
		return nil
	}}
	s := &server.Server{Store: store, ErrorLog: log.New(&logged, "", 0)}
	s.Backend = server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		_ = w.Begin("resp_a")
		full.Store(true)
		return w.Text("x")
	})
	_, body := call(s, http.MethodPost, "conversations", "")
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	_, told := call(s, http.MethodPost, "responses", `{"model":"m","input":"x","conversation":"`+talk.ID+`"`+mode+`}`)
	defer s.Close()
	synctest.Wait() // for the background
	if strings.Contains(mode, "stream") {
		told = lastOf(t, told)
	}
	_, got := call(s, http.MethodGet, "responses/resp_a", "")
	r, err := api.ParseResponse([]byte(got))
	failed := status == item.StatusFailed
	if err != nil || r.Status != status || failed != (r.Error != nil) || failed != (r.CompletedAt == nil) || len(r.Output) != 1 || strings.Contains(got, "disk full") {
		t.Errorf("%v: GET tells %s", err, got)
	}
	if mode != `,"background":true` && told != got {
		t.Errorf("the client was told\n%s\nand GET tells\n%s", told, got)
	}
	if strings.Contains(mode, "background") && strings.Contains(mode, "stream") {
		_, stream := call(s, http.MethodGet, "responses/resp_a?stream=true", "")
		if followed := lastOf(t, stream); followed != got {
			t.Errorf("a follower was told\n%s\nand GET tells\n%s", followed, got)
		}
	}
	if _, list := call(s, http.MethodGet, "conversations/"+talk.ID+"/items", ""); strings.Count(list, `"type":"message"`) != items {
		t.Errorf("the conversation has %s", list)
	}
	if code, next := call(s, http.MethodPost, "responses", `{"model":"m","input":"y","previous_response_id":"resp_a","store":false}`); failed && code != want || code == http.StatusBadRequest && !strings.Contains(next, "failed") {
		t.Errorf("continued: %d %s", code, next)
	}

	full.Store(false) // the store has room again, and the next request stores the end
	if _, again := call(s, http.MethodGet, "responses/resp_a", ""); again != got {
		t.Errorf("later GET tells %s", again)
	}
	if rec, err := store.Get(t.Context(), "resp_a"); err != nil || encoded(t, rec.Response) != got {
		t.Errorf("stored %+v, %v", rec.Response, err)
	}
	if !strings.Contains(logged.String(), "disk full") {
		t.Errorf("logged %q", logged.String())
	}
}

// lastOf returns the response in the last event of a stream, whose events must have
// the numbers 0, 1, 2 and so on.
func lastOf(t *testing.T, stream string) string {
	t.Helper()
	n := 0
	var last item.JSON
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		ev, err := api.ParseEvent([]byte(data))
		if err != nil || ev.SequenceNumber != int64(n) {
			t.Errorf("event %d, %v: %s", n, err, data)
		}
		last, _ = ev.Member("response")
		n++
	}
	return string(last)
}

// A response that ends with a bare error event is failed for all who read it later.
// V2
func TestBareError(t *testing.T) {
	for _, mode := range []string{"", `,"stream":true`} {
		s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
			_ = w.Begin("resp_a")
			return w.Error("odd", "It broke.")
		})}
		_, told := call(s, http.MethodPost, "responses", `{"model":"m","input":"x"`+mode+`}`)
		_, got := call(s, http.MethodGet, "responses/resp_a", "")
		r, err := api.ParseResponse([]byte(got))
		if err != nil || r.Status != item.StatusFailed || r.Error == nil || r.Error.Code != "odd" || mode == "" && told != got {
			t.Errorf("%v: told %s, GET tells %s", err, told, got)
		}
	}
}

// A server that has lost a response to another one, which has ended it, tells what that one stored, and
// does not try to store its own end for ever. V2
func TestEndedElsewhere(t *testing.T) {
	puts := 0
	store := &failing{f: func(rec server.StoredObject) error {
		if rec.Response.Status != item.StatusInProgress {
			puts++
			return fmt.Errorf("the session is locked by another process: %w", server.ErrEnded)
		}
		return nil
	}}
	s := &server.Server{Store: store, ErrorLog: log.New(new(bytes.Buffer), "", 0)}
	s.Backend = server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		_ = w.Begin("resp_a")
		return w.Text("x")
	})
	_, _ = call(s, http.MethodPost, "responses", `{"model":"m","input":"x"}`)
	rec, err := store.Get(t.Context(), "resp_a")
	if err != nil {
		t.Fatal(err)
	}
	other := *rec.Response
	other.Status = item.StatusIncomplete
	rec.Response = &other
	if err := store.Memory.Put(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, got := call(s, http.MethodGet, "responses/resp_a", ""); !strings.Contains(got, `"status":"incomplete"`) {
			t.Errorf("GET tells %s", got)
		}
	}
	if puts > 3 { // the end, the failure, and once more
		t.Errorf("the end was stored %d times", puts)
	}
}

// A response whose end the store refused can be deleted.
func TestDeleteRefused(t *testing.T) {
	s := &server.Server{ErrorLog: log.New(new(bytes.Buffer), "", 0)}
	var full atomic.Bool
	s.Store = &failing{f: func(server.StoredObject) error {
		if full.Load() {
			return errors.New("disk full")
		}
		return nil
	}}
	s.Backend = server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		_ = w.Begin("resp_a")
		full.Store(true)
		return w.Text("x")
	})
	var got []string
	_, _ = call(s, http.MethodPost, "responses", `{"model":"m","input":"x"}`)
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodGet, http.MethodDelete} {
		status, _ := call(s, method, "responses/resp_a", "")
		got = append(got, fmt.Sprint(status))
	}
	if want := []string{"200", "200", "404", "404"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
