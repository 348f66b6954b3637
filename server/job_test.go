// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// post asks a server without a socket.
func post(s *Server, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w
}

// slow says two words, each after a second.
func slow(ctx context.Context, _ *Request, w *Writer) error {
	_ = w.Begin("")
	for _, word := range []string{"one ", "two"} {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		_ = w.Text(word)
	}
	return nil
}

// A run of the background goes on without its client, and those who follow it get
// each event when it comes. S10
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Backend: BackendFunc(slow)}
		defer s.Close()
		begun := func() *job {
			r, err := api.ParseResponse(post(s, "/v1/responses", `{"model":"m","input":"x","background":true,"stream":false}`).Body.Bytes())
			if err != nil || r.Status != item.StatusQueued {
				t.Fatalf("%+v, %v", r, err)
			}
			return s.jobs[r.ID]
		}
		var got []string
		begin := time.Now()
		note := func(ev api.Event) error {
			got = append(got, fmt.Sprint(time.Since(begin), " ", ev.Type))
			return nil
		}

		j := begun()
		synctest.Wait()
		if rec := j.record(); rec.Response.Status != item.StatusInProgress || len(rec.Response.Output) != 0 {
			t.Errorf("at first %s, %d items", rec.Response.Status, len(rec.Response.Output))
		}
		if err := j.follow(t.Context(), 2, note); err != nil {
			t.Error(err)
		}
		want := []string{
			"1s response.output_item.added", "1s response.content_part.added", "1s response.output_text.delta",
			"2s response.output_text.delta", "2s response.output_text.done",
			"2s response.content_part.done", "2s response.output_item.done", "2s response.completed",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		s.stop(j) // too late
		if rec := j.record(); rec.Response.Status != item.StatusCompleted || len(rec.Response.Output) != 1 {
			t.Errorf("at last %s, %d items", rec.Response.Status, len(rec.Response.Output))
		}

		j, got = begun(), nil
		time.AfterFunc(1500*time.Millisecond, func() { s.stop(j) })
		if err := j.follow(t.Context(), -1, note); err != nil || len(got) != 6 {
			t.Errorf("cancelled behind %q, %v", got, err)
		}
		time.Sleep(time.Hour)
		if status := j.record().Response.Status; status != item.StatusCancelled {
			t.Errorf("then it is %s", status)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := begun().follow(ctx, -1, note); err == nil {
			t.Error("followed without a client")
		}
	})
}

// Close cancels what is made in the background, and waits for it.
func TestCloseEndsBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Backend: BackendFunc(slow)}
		r, err := api.ParseResponse(post(s, "/v1/responses", `{"model":"m","input":"x","background":true}`).Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		rec, err := s.store().Get(t.Context(), r.ID)
		if err != nil || rec.Response.Status != item.StatusCancelled {
			t.Errorf("%+v, %v", rec.Response, err)
		}
		if w := post(s, "/v1/responses", `{"model":"m","input":"x","background":true}`); w.Code != http.StatusServiceUnavailable {
			t.Errorf("after Close: %d %s", w.Code, w.Body)
		}
	})
}

// What is asked for in the background can still be refused until the backend
// begins, and nobody waits for one that never does.
func TestBackgroundRefused(t *testing.T) {
	for _, test := range []struct {
		name    string
		backend BackendFunc
		status  int
	}{
		{"refused", func(context.Context, *Request, *Writer) error { return Invalid("no", "", "No.") }, http.StatusBadRequest},
		{"store", func(_ context.Context, _ *Request, w *Writer) error { return w.Text("x") }, http.StatusInternalServerError},
		{"closed", func(ctx context.Context, _ *Request, _ *Writer) error { <-ctx.Done(); return ctx.Err() }, http.StatusServiceUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{Backend: test.backend, ErrorLog: log.New(io.Discard, "", 0)}
			if test.name == "store" {
				s.Store = full{new(Memory)}
			}
			time.AfterFunc(time.Second, s.Close)
			if w := post(s, "/v1/responses", `{"model":"m","input":"x","background":true}`); w.Code != test.status {
				t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
			}
			if len(s.jobs) > 0 {
				t.Errorf("%s: it is still being made", test.name)
			}
			time.Sleep(time.Minute)
		})
	}
}

// full is a store that takes nothing.
type full struct{ *Memory }

func (full) Put(context.Context, StoredObject) error { return errors.New("disk full") }

// A cancelled response that its store no longer has is removed, also if the store
// wraps ErrNotFound.
func TestRemovedBefore(t *testing.T) {
	s := &Server{Store: wrapping{new(Memory)}}
	j := &job{ctx: t.Context(), id: "resp_1", keep: true}
	if err := s.keep(j, StoredObject{Response: &api.Response{ID: "resp_1", Status: item.StatusCancelled}}); err != nil {
		t.Error(err)
	}
}

type wrapping struct{ Store }

func (w wrapping) Delete(ctx context.Context, id string) error {
	return fmt.Errorf("deleting %s: %w", id, w.Store.Delete(ctx, id))
}

// Each event of a long stream costs the same: those before it are not copied. L9
func TestManyEvents(t *testing.T) {
	const n = 10_000
	j := &job{}
	if got := testing.AllocsPerRun(1, func() {
		for range n {
			j.add(api.Event{})
		}
	}); got > n/10 {
		t.Errorf("%v allocations for %d events", got, n)
	}
}

// compactor compacts, and spends.
type compactor struct {
	BackendFunc
	fails bool
}

func (c compactor) Compact(ctx context.Context, _ *Request) (*api.Compacted, error) {
	Spend(ctx, Outcome{Usage: &api.Usage{InputTokens: 7, TotalTokens: 7}, Cost: 0.5, Model: "m-2"})
	if c.fails {
		return nil, errors.New("no room")
	}
	return &api.Compacted{Output: []item.Item{item.User("short")}, Usage: new(api.Usage)}, nil
}

// What a compaction has cost counts, also if there is none in the end.
func TestCompactCosts(t *testing.T) {
	for _, fails := range []bool{false, true} {
		var got Outcome
		s := &Server{ErrorLog: log.New(io.Discard, "", 0), Backend: compactor{fails: fails}, Admit: func(context.Context, *Request) (func(Outcome), error) {
			return func(o Outcome) { got = o }, nil
		}}
		post(s, "/v1/responses/compact", `{"model":"m","input":"x"}`)
		want := item.StatusCompleted
		if fails {
			want = item.StatusFailed
		}
		if got.ID == "" || got.Status != want || got.Cost != 0.5 || got.Model != "m-2" || got.Usage == nil || got.Usage.TotalTokens != 7 {
			t.Errorf("fails %v: %+v", fails, got)
		}
	}
}

// An error that passes says when to try again. V5
func TestRetryAfter(t *testing.T) {
	wait := make(chan struct{})
	s := &Server{Backend: BackendFunc(func(_ context.Context, r *Request, w *Writer) error {
		switch r.Model {
		case "full":
			return &Error{Status: http.StatusServiceUnavailable, Message: "full"}
		case "knows":
			return &Error{Status: http.StatusServiceUnavailable, Message: "full", Header: http.Header{"Retry-After": {"60"}}}
		case "wrong":
			return Invalid("", "", "wrong")
		}
		_ = w.Begin("")
		<-wait
		return nil
	})}
	talk, err := api.ParseConversation(post(s, "/v1/conversations", "").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	in := `{"model":"m","input":"x","background":true,"conversation":"` + talk.ID + `"}`
	if w := post(s, "/v1/responses", in); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	for body, want := range map[string]string{
		`{"model":"full","input":"x"}`: "5", `{"model":"knows","input":"x"}`: "60", `{"model":"wrong","input":"x"}`: "", in: "1",
	} {
		if w := post(s, "/v1/responses", body); w.Code == http.StatusOK || w.Header().Get("Retry-After") != want {
			t.Errorf("%s: %d, Retry-After %q", body, w.Code, w.Header().Get("Retry-After"))
		}
	}
	close(wait)
	s.Close()
	if w := post(s, "/v1/responses", `{"model":"m","input":"x","background":true}`); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Error("while it stops:", w.Code, w.Header())
	}
}

// A stream whose backend has nothing to say for long, such as a local model that reads a long
// input, begins with comments, so that proxies keep it open. A refusal that comes later is an event,
// and one that comes soon has its status.
func TestSilenceBefore(t *testing.T) {
	spec := apispec.Load(t)
	for _, test := range []struct{ path, body string }{
		{"responses", `"input":"x"`},
		{"responses", `"input":"x","background":true`},
		{"chat/completions", `"messages":[{"role":"user","content":"x"}]`},
	} {
		for model, wait := range map[string]time.Duration{"slow": 40 * time.Second, "soon": time.Second} {
			for _, refuses := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					s := &Server{Backend: BackendFunc(func(ctx context.Context, _ *Request, w *Writer) error {
						time.Sleep(wait)
						if refuses {
							return Invalid("odd", "input", "No.")
						}
						return w.Text("x")
					})}
					defer s.Close()
					got := post(s, "/v1/"+test.path, `{"model":"`+model+`","stream":true,`+test.body+`}`)
					text, streams := got.Body.String(), got.Header().Get("Content-Type") == "text/event-stream; charset=utf-8"
					comments := strings.Count(text, ": \n\n")
					switch {
					case model == "soon" && refuses:
						if got.Code != http.StatusBadRequest || streams {
							t.Errorf("%s, soon refused: %d %s", test.body, got.Code, text)
						}
						return
					case got.Code != http.StatusOK || !streams || (comments >= 2) != (model == "slow") || got.Header().Get("X-Accel-Buffering") != "no":
						t.Errorf("%s, %s: %d %v %s", test.body, model, got.Code, got.Header(), text)
					}
					want := `"delta":"x"`
					switch chat := test.path != "responses"; {
					case refuses && chat:
						want = `data: {"error": {"message": "No."`
					case refuses:
						want = `"code":"odd"`
					case chat:
						want = `"content":"x"`
					}
					if !strings.Contains(text, want) || refuses && strings.Contains(text, "[DONE]") {
						t.Errorf("%s, %s: %s lacks %s", test.body, model, text, want)
					}
					for line := range strings.Lines(text) {
						data, ok := strings.CutPrefix(line, "data: {\"type\"")
						if !ok {
							continue
						}
						if refuses {
							spec.Check(t, "ResponseStreamEvent", []byte(`{"type"`+data))
						}
						if ev, err := api.ParseEventString(`{"type"` + data); err != nil || refuses && ev.Type != api.EventError {
							t.Errorf("%v: %s", err, line)
						}
					}
				})
			}
		}
	}
}

// atEnd is a client that calls a function just before it reads the last event.
type atEnd struct {
	*httptest.ResponseRecorder

	end func()
}

func (w *atEnd) Write(data []byte) (int, error) {
	if strings.Contains(string(data), "response.completed") {
		w.end()
	}
	return w.ResponseRecorder.Write(data)
}

// A client that has read the end of a response can begin the next one: its place is free. V5
func TestPlaceIsFreeAtTheEnd(t *testing.T) {
	running := 0
	s := &Server{Backend: BackendFunc(func(_ context.Context, _ *Request, w *Writer) error { return w.Text("y") }), Admit: func(context.Context, *Request) (func(Outcome), error) {
		running++
		return func(Outcome) { running-- }, nil
	}}
	w := &atEnd{httptest.NewRecorder(), func() {
		if running != 0 {
			t.Errorf("%d are running when the client reads the end", running)
		}
	}}
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(`{"model":"m","input":"x","stream":true}`)))
	if !strings.Contains(w.Body.String(), "response.completed") || running != 0 {
		t.Error(running, w.Body)
	}
}

// The place of a response is free before anybody reads its end: who follows it or asks for it,
// too. V5
func TestPlaceIsFreeForFollowers(t *testing.T) {
	for _, how := range []string{`"background":true`, `"background":true,"stream":true`, `"stream":true`, `"stream":false`} {
		for _, key := range []string{"", "k"} {
			var s *Server
			freed := make(chan string, 1)
			s = &Server{Backend: BackendFunc(func(_ context.Context, _ *Request, w *Writer) error { return w.Text("y") }), Admit: func(context.Context, *Request) (func(Outcome), error) {
				return func(o Outcome) {
					w := httptest.NewRecorder()
					s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/responses/"+o.ID, nil))
					r, err := api.ParseResponse(w.Body.Bytes())
					if err != nil || o.Status != item.StatusCompleted {
						t.Errorf("%v: %s, counted as %s", err, w.Body, o.Status)
						r = new(api.Response)
					}
					freed <- r.Status
				}, nil
			}}
			r := httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(`{"model":"m","input":"x",`+how+`}`))
			if key != "" {
				r.Header.Set("Idempotency-Key", key)
			}
			s.ServeHTTP(httptest.NewRecorder(), r)
			if status := <-freed; ended(&api.Response{Status: status}) {
				t.Errorf("%s %s: the response is %s before its place is free", how, key, status)
			}
			s.Close()
		}
	}
}
