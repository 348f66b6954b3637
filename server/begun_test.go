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
		<-p.begin
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
