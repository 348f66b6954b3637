// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net/http"
	"slices"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// closed is a store whose conversations take nothing. It notes the states of responses that it has stored.
type closed struct {
	server.Memory
	states []string
}

func (s *closed) Put(ctx context.Context, rec server.StoredObject) error {
	if rec.Response != nil {
		s.states = append(s.states, rec.Response.Status)
	}
	return s.Memory.Put(ctx, rec)
}

func (*closed) Add(context.Context, string, ...item.Item) error { return errors.New("disk full") }

// If its conversation cannot take a response, it fails, and it was never stored as completed: an end that
// another server could have read does not change. V2
func TestConversationRefuses(t *testing.T) {
	store := new(closed)
	s := &server.Server{Store: store, ErrorLog: log.New(new(bytes.Buffer), "", 0), Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		return w.Text("y")
	})}
	_, body := call(s, http.MethodPost, "conversations", "")
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	_, body = call(s, http.MethodPost, "responses", `{"model":"m","input":"x","conversation":"`+talk.ID+`"}`)
	r, err := api.ParseResponse([]byte(body))
	if want := []string{item.StatusInProgress, item.StatusFailed}; err != nil || r.Status != item.StatusFailed || !slices.Equal(store.states, want) {
		t.Errorf("%v: told %s, stored %q", err, body, store.states)
	}
}
