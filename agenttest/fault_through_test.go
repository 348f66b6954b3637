// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
)

// echoing is a server that says how many items it was asked with.
func echoing() *server.Server {
	var made atomic.Int64
	return &server.Server{
		NewID: func(prefix string) string { return fmt.Sprint(prefix, made.Add(1)) },
		Now:   func() time.Time { return time.Unix(1, 0) },
		Backend: server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
			_ = w.Text("I have ")
			return w.Text(fmt.Sprintf("%d items", len(r.Items)))
		}),
	}
}

func postRaw(t *testing.T, url, body string) (status int, contentType, got string, err error) {
	t.Helper()
	resp, err := http.Post(url+"/v1/responses", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(b), err
}

// Without a fault, what a handler answers goes through unchanged; with faults, they
// are its own answers that are spoiled.
func TestWrap(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	plain := httptest.NewServer(echoing())
	defer plain.Close()
	faults := []func(agenttest.Reply) agenttest.Reply{
		func(a agenttest.Reply) agenttest.Reply { return a },
		func(a agenttest.Reply) agenttest.Reply { return a },
		func(a agenttest.Reply) agenttest.Reply { return a },
		func(a agenttest.Reply) agenttest.Reply { return a.WithoutLast() },
		func(a agenttest.Reply) agenttest.Reply { return a.CutAfter(100) },
		func(a agenttest.Reply) agenttest.Reply { return a.WithStatus(500) },
		func(a agenttest.Reply) agenttest.Reply { return agenttest.Reset() },
	}
	wrapped := httptest.NewServer(agenttest.Wrap(echoing(), func(n int, _ agenttest.Request, right agenttest.Reply) agenttest.Reply {
		return faults[n](right)
	}))
	defer wrapped.Close()
	for _, body := range []string{`{"model":"m","input":"x"}`, `{"model":"m","input":"x","stream":true}`, `{}`} {
		status, kind, got, err := postRaw(t, wrapped.URL, body)
		wantStatus, wantKind, want, wantErr := postRaw(t, plain.URL, body)
		if status != wantStatus || kind != wantKind || got != want || err != nil || wantErr != nil {
			t.Errorf("%s: %d %s %v %s\nwant %d %s %v %s", body, status, kind, err, got, wantStatus, wantKind, wantErr, want)
		}
	}
	const stream = `{"model":"m","input":"x","stream":true}`
	if _, _, got, err := postRaw(t, wrapped.URL, stream); err != nil || !strings.Contains(got, "1 items") || strings.Contains(got, "response.completed") {
		t.Errorf("WithoutLast: %v %s", err, got)
	}
	if _, _, got, err := postRaw(t, wrapped.URL, stream); err != io.ErrUnexpectedEOF || len(got) != 100 {
		t.Errorf("CutAfter: %v %s", err, got)
	}
	if status, _, got, err := postRaw(t, wrapped.URL, stream); err != nil || status != 500 || !strings.Contains(got, "response.completed") {
		t.Errorf("WithStatus: %d %v %s", status, err, got)
	}
	if _, _, _, err := postRaw(t, wrapped.URL, stream); err == nil {
		t.Error("Reset: no error")
	}
}

// Messages on a WebSocket go over one to the handler, which remembers what it is to
// remember; a handler without WebSockets refuses them itself.
func TestWrapSocket(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	wrapped := httptest.NewServer(agenttest.Wrap(echoing(), func(n int, r agenttest.Request, right agenttest.Reply) agenttest.Reply {
		if n == 2 {
			return right.CloseAfter(3, int(websocket.StatusGoingAway), "enough")
		}
		return right
	}))
	defer wrapped.Close()
	conn, _, err := websocket.Dial(t.Context(), wrapped.URL+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	say := func(body string) (events []api.Event) {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(body)); err != nil {
			t.Fatal(err)
		}
		for {
			_, data, err := conn.Read(t.Context())
			if err != nil {
				if websocket.CloseStatus(err) != websocket.StatusGoingAway {
					t.Error(err)
				}
				return events
			}
			ev, err := api.ParseEvent(data)
			if err != nil {
				t.Fatal(err)
			}
			if events = append(events, ev); ev.Terminal() {
				return events
			}
		}
	}
	const ask = `{"type":"response.create","model":"m","store":false,"input":"x"`
	answer := func(body, want string) (id string) {
		events := say(body)
		r, err := events[len(events)-1].Response()
		if err != nil || r.Text() != want {
			t.Fatalf("%+v %v", r, err)
		}
		return r.ID
	}
	id := answer(ask+`}`, "I have 1 items")
	answer(ask+`,"previous_response_id":"`+id+`"}`, "I have 3 items")
	if got := say(ask + `}`); len(got) != 3 {
		t.Errorf("%d events before the close", len(got))
	}

	without := echoing()
	without.Without = []server.Feature{server.WebSocket}
	refusing := httptest.NewServer(agenttest.Wrap(without, func(_ int, _ agenttest.Request, right agenttest.Reply) agenttest.Reply { return right }))
	defer refusing.Close()
	if conn, resp, err := websocket.Dial(t.Context(), refusing.URL+"/v1/responses", nil); err == nil || resp == nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v %v %v", conn, resp, err)
	}
}

// A server's own answers make schedules as scripted replies do: a client gets the
// whole reply, or an error.
func TestThroughSchedule(t *testing.T) {
	log.SetOutput(io.Discard) // net/http logs what a server says unasked
	defer log.SetOutput(os.Stderr)
	handler := echoing()
	for seed := range uint64(30) {
		dice := rand.New(rand.NewPCG(seed, 0))
		srv := agenttest.NewServer(t, agenttest.Schedule(dice, 2, agenttest.Through(handler))...)
		srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Through(handler) })
		c := srv.Client()
		c.IdleTimeout = 200 * time.Millisecond
		r, err := c.Create(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.User("x"))})
		var e *endpoint.Error
		if err == nil && r.Text() != "I have 1 items" || err != nil && !errors.As(err, &e) {
			t.Errorf("seed %d: %v, %v", seed, r, err)
		}
		srv.Close()
	}
}

// Any server can be made to fail: here one of two words is lost on the way, and the
// client notices that the answer is not whole.
func ExampleWrap() {
	handler := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		return w.Text("Good evening.")
	})}
	unreliable := httptest.NewServer(agenttest.Wrap(handler, func(n int, _ agenttest.Request, right agenttest.Reply) agenttest.Reply {
		if n == 0 {
			return right.CutAfter(1500) // and what comes after it is whole
		}
		return right
	}))
	defer unreliable.Close()

	client := &responses.Client{BaseURL: unreliable.URL + "/v1", Retry: endpoint.Retry{Max: -1}}
	request := &api.Request{Model: "m", Input: item.NewList(item.User("Hello."))}
	for range 2 {
		var err error
		for _, err = range client.Stream(context.Background(), request) {
		}
		fmt.Println("broke off:", err != nil)
	}
	// Output:
	// broke off: true
	// broke off: false
}
