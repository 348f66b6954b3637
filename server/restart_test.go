// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// left returns a store with a response that a server began, and did not end before
// its process ended.
func left(t *testing.T, background bool, status string) *server.Memory {
	t.Helper()
	store := new(server.Memory)
	r := &api.Response{ID: "resp_a", Model: "m", Status: status}
	r.Extra.Set("error", "null")
	if err := store.Put(t.Context(), server.StoredObject{Response: r, Background: background}); err != nil {
		t.Fatal(err)
	}
	return store
}

// A response that an earlier server left unfinished is failed, or cancelled by the
// client, and this is stored. V2
func TestInterrupted(t *testing.T) {
	const get, cancel = "GET responses/resp_a", "POST responses/resp_a/cancel"
	for _, test := range []struct {
		request    string
		background bool
		code       int
		want       string
	}{
		{get, true, 200, item.StatusFailed},
		{get, false, 200, item.StatusFailed},
		{get + "?stream=true", true, 400, item.StatusFailed},
		{get + "/input_items", true, 200, item.StatusFailed},
		{cancel, true, 200, item.StatusCancelled},
		{cancel, false, 400, item.StatusFailed},
	} {
		for _, status := range []string{item.StatusQueued, item.StatusInProgress} {
			store := left(t, test.background, status)
			s := &server.Server{Store: store}
			method, path, _ := strings.Cut(test.request, " ")
			code, body := call(s, method, path, "")
			if code != test.code || code == 200 && strings.Contains(body, `"id":"resp_a"`) && !strings.Contains(body, `"status":"`+test.want+`"`) {
				t.Errorf("%s, %s: %d %s", test.request, status, code, body)
			}
			rec, err := store.Get(t.Context(), "resp_a")
			if err != nil || rec.Response.Status != test.want {
				t.Errorf("%s, %s: stored %+v, %v", test.request, status, rec.Response, err)
			}
			if _, again := call(s, http.MethodGet, "responses/resp_a", ""); again != encoded(t, rec.Response) || strings.Count(again, `"error":`) != 1 ||
				test.want == item.StatusFailed && !strings.Contains(again, "The server ended before the response did.") {
				t.Errorf("%s, %s: then GET tells %s", test.request, status, again)
			}
		}
	}
}

// A request that continues an interrupted response gets an error that says so. V2
func TestContinueInterrupted(t *testing.T) {
	s := &server.Server{Store: left(t, false, item.StatusInProgress)}
	code, body := call(s, http.MethodPost, "responses", `{"model":"m","input":"x","previous_response_id":"resp_a"}`)
	if code != http.StatusBadRequest || !strings.Contains(body, "'resp_a' is failed") {
		t.Errorf("%d %s", code, body)
	}
}

// If the store refuses the end of an interrupted response, GET still tells it, and
// cancel is refused: what it would promise could not be kept. V2
func TestInterruptedRefused(t *testing.T) {
	s := &server.Server{
		Store:    refuses{left(t, true, item.StatusQueued)},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	for range 2 {
		if code, body := call(s, http.MethodPost, "responses/resp_a/cancel", ""); code != http.StatusInternalServerError {
			t.Errorf("cancel: %d %s", code, body)
		}
		if code, body := call(s, http.MethodGet, "responses/resp_a", ""); code != http.StatusOK || !strings.Contains(body, `"status":"failed"`) {
			t.Errorf("GET: %d %s", code, body)
		}
	}
}

// refuses is a store that takes nothing.
type refuses struct{ *server.Memory }

func (refuses) Put(context.Context, server.StoredObject) error { return errors.New("disk full") }
