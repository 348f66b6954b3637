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
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

func call(s *server.Server, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, "/v1/"+path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// What a backend returns is told in the way that is still open: as a refusal
// before it began, and as the end of the response after. Only an Error is told in
// its own words.
func TestBackendErrors(t *testing.T) {
	secret := errors.New("no such host db.internal")
	refusal := &server.Error{Status: http.StatusTooManyRequests, Code: "slow_down", Message: "Too many."}
	for _, test := range []struct {
		name    string
		backend server.BackendFunc
		status  int
		want    string // in the whole answer and in the stream
		logged  string
	}{
		{"refused", func(context.Context, *server.Request, *server.Writer) error { return refusal }, 429, `Too many.`, ""},
		{"broken", func(context.Context, *server.Request, *server.Writer) error { return secret }, 500, `"server_error"`, "db.internal"},
		{"panic", func(context.Context, *server.Request, *server.Writer) error { panic("oh no") }, 500, `"server_error"`, "oh no"},
		{"nil refusal", func(context.Context, *server.Request, *server.Writer) error { return (*server.Error)(nil) }, 500, `"server_error"`, "a nil *server.Error"},
		{"late refusal", func(_ context.Context, _ *server.Request, w *server.Writer) error {
			_ = w.Text("so far")
			return refusal
		}, 200, `"error":{"code":"slow_down","message":"Too many."}`, ""},
		{"late panic", func(_ context.Context, _ *server.Request, w *server.Writer) error {
			_ = w.Text("so far")
			panic("oh no")
		}, 200, `"status":"failed"`, "oh no"},
		{"no UTF-8", func(_ context.Context, _ *server.Request, w *server.Writer) error {
			_ = w.Text("so far")
			return w.Text("\xff")
		}, 200, `"status":"failed"`, "UTF-8"},
		{"stopped early", func(_ context.Context, _ *server.Request, w *server.Writer) error {
			_ = w.Text("so far")
			return w.Incomplete("max_output_tokens")
		}, 200, `"incomplete_details":{"reason":"max_output_tokens"}`, ""},
		{"says nothing", func(context.Context, *server.Request, *server.Writer) error { return nil }, 200, `"status":"completed"`, ""},
	} {
		for _, stream := range []string{"false", "true"} {
			var logged bytes.Buffer
			s := &server.Server{Backend: test.backend, ErrorLog: log.New(&logged, "", 0)}
			status, body := call(s, http.MethodPost, "responses", `{"model":"m","input":"x","stream":`+stream+`}`)
			if status != test.status || !strings.Contains(body, test.want) || strings.Contains(body, "db.internal") || strings.Contains(body, "oh no") {
				t.Errorf("%s, stream %s: %d %s", test.name, stream, status, body)
			}
			if !strings.Contains(logged.String(), test.logged) || test.logged == "" && logged.Len() > 0 {
				t.Errorf("%s, stream %s: logged %q", test.name, stream, logged.String())
			}
		}
	}
}

// A server is without what its backend cannot do.
func TestOptionalParts(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(context.Context, *server.Request, *server.Writer) error { return nil })}
	for _, route := range []string{"GET models", "POST responses/input_tokens", "POST responses/compact"} {
		method, path, _ := strings.Cut(route, " ")
		if status, body := call(s, method, path, `{"model":"m","input":"x"}`); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %s", route, status, body)
		}
	}
	for range 2 {
		status, body := call(s, http.MethodPost, "responses", `{"model":"m","input":"x"}`)
		r, err := api.ParseResponse([]byte(body))
		if err != nil || status != http.StatusOK || len(r.ID) < 20 || r.CreatedAt == nil || *r.CreatedAt < 1.7e9 {
			t.Errorf("%d %v %s", status, err, body)
		}
	}
}

// failing is a store that fails when f says so.
type failing struct {
	server.Memory
	f func(rec server.StoredObject) error
}

func (s *failing) Put(ctx context.Context, rec server.StoredObject) error {
	if err := s.f(rec); err != nil {
		return err
	}
	return s.Memory.Put(ctx, rec)
}

// Add fails if f fails for the conversation.
func (s *failing) Add(ctx context.Context, id string, items ...item.Item) error {
	if err := s.f(server.StoredObject{Conversation: &api.Conversation{ID: id}}); err != nil {
		return err
	}
	return s.Memory.Add(ctx, id, items...)
}

// A response that could not be stored is not said to be completed.
func TestStoreFails(t *testing.T) {
	for _, at := range []string{item.StatusInProgress, item.StatusCompleted} {
		for _, stream := range []string{"false", "true"} {
			var logged bytes.Buffer
			s := &server.Server{
				Backend:  server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") }),
				ErrorLog: log.New(&logged, "", 0),
				Store: &failing{f: func(rec server.StoredObject) error {
					if rec.Response.Status == at {
						return errors.New("disk full")
					}
					return nil
				}},
			}
			status, body := call(s, http.MethodPost, "responses", `{"model":"m","input":"x","stream":`+stream+`}`)
			if strings.Contains(body, `"completed"`+`,"`) && strings.Contains(body, `response.completed`) || strings.Contains(body, "disk full") || !strings.Contains(logged.String(), "disk full") {
				t.Errorf("%s, stream %s: %d %s; logged %s", at, stream, status, body, logged.String())
			}
			if stream == "false" && status == http.StatusOK && !strings.Contains(body, `"failed"`) {
				t.Errorf("%s: %s", at, body)
			}
		}
	}
}

// asksFor writes a response that asks for the name of the request's model as its id.
func asksFor(_ context.Context, r *server.Request, w *server.Writer) error {
	_ = w.Begin(r.Model)
	return w.Text("x")
}

// A response never gets the id of another one, also not with a number and not in
// the next Server over the same store. V1
func TestIDs(t *testing.T) {
	store := new(server.Memory)
	var got []string
	for i, id := range []string{"resp_a_1", "resp_a", "resp_a", "resp_a"} {
		text := fmt.Sprint("question ", i)
		s := &server.Server{Backend: server.BackendFunc(asksFor), Store: store}
		_, body := call(s, http.MethodPost, "responses", `{"model":"`+id+`","input":"`+text+`"}`)
		r, err := api.ParseResponse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.ID)
		if rec, err := store.Get(t.Context(), r.ID); err != nil || !strings.Contains(rec.Input[0].JSON(), text) {
			t.Errorf("%s: %v, %v", r.ID, rec.Input, err)
		}
	}
	if want := "resp_a_1 resp_a resp_a_2 resp_a_3"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// unreadable is a store that cannot be read.
type unreadable struct{ *server.Memory }

func (unreadable) Get(context.Context, string) (server.StoredObject, error) {
	return server.StoredObject{}, errors.New("no connection")
}

// A request is refused if the store cannot tell whether its id is free. V1
func TestIDUnknown(t *testing.T) {
	store := new(server.Memory)
	old := server.StoredObject{Response: &api.Response{ID: "resp_a", Model: "old"}}
	if err := store.Put(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	s := &server.Server{Backend: server.BackendFunc(asksFor), Store: unreadable{store}, ErrorLog: log.New(&logged, "", 0)}
	for _, more := range []string{"", `,"stream":true`, `,"background":true`} {
		status, body := call(s, http.MethodPost, "responses", `{"model":"resp_a","input":"x"`+more+`}`)
		if status != http.StatusInternalServerError || !strings.Contains(body, `"server_error"`) || !strings.Contains(logged.String(), "no connection") {
			t.Errorf("%s: %d %s; logged %s", more, status, body, logged.String())
		}
	}
	if rec, err := store.Get(t.Context(), "resp_a"); err != nil || rec.Response.Model != "old" {
		t.Errorf("%+v, %v", rec.Response, err)
	}
}
