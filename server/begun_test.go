// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// preparing is a store that can prepare. The first Put of a response waits until one may be
// received from begin, and then fails with err.
type preparing struct {
	server.Memory
	begin chan struct{}
	err   error
}

func (p *preparing) Prepare(context.Context, server.StoredObject) func() { return func() {} }

func (p *preparing) Put(ctx context.Context, rec server.StoredObject) error {
	if rec.Response != nil && rec.Response.Status == item.StatusInProgress {
		select {
		case <-p.begin:
		case <-ctx.Done():
			return ctx.Err()
		}
		if p.err != nil {
			return p.err
		}
	}
	return p.Memory.Put(ctx, rec)
}

// The client of a stream learns that the response has begun while the store still writes that,
// and nothing that the model says; whoever asks for the response waits. If the store fails, so
// does the response, and nothing is stored. V1
func TestBegunBeforeStored(t *testing.T) {
	for _, broken := range []error{nil, errors.New("disk full")} {
		synctest.Test(t, func(t *testing.T) {
			store := &preparing{begin: make(chan struct{}), err: broken}
			s := &server.Server{Store: store, Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
				if err := w.Begin("resp_a"); err != nil {
					return err
				}
				return w.Text("Hello.")
			})}
			defer s.Close()
			told := httptest.NewRecorder()
			go s.ServeHTTP(told, httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(`{"model":"m","input":"x","stream":true}`)))
			synctest.Wait()
			if got := typesOf(t, told.Body.String()); !slices.Equal(got, []api.EventType{api.EventCreated, api.EventInProgress}) {
				t.Errorf("%v: before it is stored the client has %q", broken, got)
			}
			asked := make(chan int)
			go func() {
				status, _ := call(s, http.MethodGet, "responses/resp_a", "")
				asked <- status
			}()
			synctest.Wait()
			select {
			case status := <-asked:
				t.Errorf("%v: GET says %d before it is stored", broken, status)
			default:
			}
			close(store.begin)
			<-asked
			synctest.Wait()
			last, stored := api.EventCompleted, http.StatusOK
			if broken != nil {
				last, stored = api.EventFailed, http.StatusNotFound
			}
			got := typesOf(t, told.Body.String())
			if got[len(got)-1] != last || slices.Contains(got, api.EventTextDelta) != (broken == nil) {
				t.Errorf("%v: the client has %q", broken, got)
			}
			if status, body := call(s, http.MethodGet, "responses/resp_a", ""); status != stored || strings.Contains(told.Body.String()+body, "disk full") {
				t.Errorf("%v: later GET says %d %s", broken, status, body)
			}
		})
	}
}

// Each event is sent when the backend writes it. One that calls Flush sends them when it does, but
// the client learns at once that the response has begun.
func TestLive(t *testing.T) {
	for _, flushes := range []bool{false, true} {
		for _, route := range []string{"responses", "chat/completions"} {
			synctest.Test(t, func(t *testing.T) {
				next := make(chan struct{})
				s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
					if flushes {
						_ = w.Flush()
					}
					_ = w.Begin("")
					<-next
					_ = w.Open(&item.Message{})
					_ = w.Delta("Hello.")
					if flushes {
						_ = w.Flush()
					}
					<-next
					return w.Close()
				})}
				defer s.Close()
				told, question := httptest.NewRecorder(), `"input":"x"`
				if route == "chat/completions" {
					question = `"messages":[{"role":"user","content":"x"}]`
				}
				go s.ServeHTTP(told, httptest.NewRequest(http.MethodPost, "/v1/"+route, strings.NewReader(`{"model":"m",`+question+`,"stream":true}`)))
				synctest.Wait()
				if got := told.Body.String(); route == "responses" && !strings.Contains(got, "response.in_progress") {
					t.Errorf("Flush is called: %v; a response that has begun: %q", flushes, got)
				}
				next <- struct{}{}
				synctest.Wait()
				if got := told.Body.String(); !strings.Contains(got, "Hello.") {
					t.Errorf("%s, Flush is called: %v; after a delta: %q", route, flushes, got)
				}
				close(next)
				synctest.Wait()
			})
		}
	}
}

// A store that has hung keeps neither a client that leaves nor one that only asks.
func TestBegunInHungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server.Server{Store: &preparing{begin: make(chan struct{})}, Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
			if err := w.Begin("resp_a"); err != nil {
				return err
			}
			return w.Text("Hello.")
		})}
		defer s.Close()
		ended := make(chan string)
		ask := func(what, method, path, body string) context.CancelFunc {
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, method, "/v1/"+path, strings.NewReader(body)))
				ended <- what
			}()
			synctest.Wait()
			return leave
		}
		made := ask("POST", http.MethodPost, "responses", `{"model":"m","input":"x","stream":true}`)
		read := ask("GET", http.MethodGet, "responses/resp_a", "")
		read()
		if got := <-ended; got != "GET" {
			t.Errorf("%s ended first", got)
		}
		made()
		if got := <-ended; got != "POST" {
			t.Errorf("%s ended last", got)
		}
	})
}

// typesOf returns the types of the events of a stream.
func typesOf(t *testing.T, stream string) (types []api.EventType) {
	t.Helper()
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		ev, err := api.ParseEventString(data)
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, ev.Type)
	}
	return types
}
