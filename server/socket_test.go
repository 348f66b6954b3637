// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
)

// dial opens a WebSocket to the path of responses.
func dial(t *testing.T, base string) *websocket.Conn {
	t.Helper()
	own := new(http.Transport)
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(base, "http")+"/responses",
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: own}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow(); own.CloseIdleConnections() })
	return conn
}

// say sends a frame and returns what comes, up to the end of the response, all
// of it valid by the schema.
func say(t *testing.T, conn *websocket.Conn, frame string) (list []api.Event) {
	t.Helper()
	spec, open := apispec.Load(t), apispec.LoadOpen(t)
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		t.Fatal(err)
	}
	for {
		_, data, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		spec.Check(t, "ResponsesServerEvent", data)
		ev, err := api.ParseEvent(data)
		if err != nil {
			t.Fatal(err)
		}
		if ev.Type == api.EventError {
			open.Check(t, "WebSocketErrorEvent", data)
		} else {
			open.Check(t, apispec.OpenEvent, data)
		}
		if list = append(list, ev); ev.Terminal() {
			return list
		}
	}
}

func lastResponse(t *testing.T, list []api.Event) *api.Response {
	t.Helper()
	r, err := list[len(list)-1].Response()
	if err != nil {
		t.Fatalf("%v: %s", err, list[len(list)-1].JSON())
	}
	return r
}

// One socket, many responses: each goes on from the last one without its being
// stored, after a warm-up too; mistakes are told and leave the socket open.
func TestSocket(t *testing.T) {
	conn := dial(t, serve(t, twoRounds, nil))
	warm := lastResponse(t, say(t, conn, `{"type":"response.create","model":"m","store":false,"generate":false,"input":[{"role":"user","content":"Hello."}]}`))
	if len(warm.Output) != 0 || warm.Usage.OutputTokens != 0 {
		t.Errorf("warmed up: %s", encoded(t, warm))
	}
	first := lastResponse(t, say(t, conn, `{"type":"response.create","model":"m","store":false,"input":[],"previous_response_id":"`+warm.ID+`"}`))
	if first.ID == warm.ID || len(first.Output) != 2 || first.PreviousResponseID != warm.ID {
		t.Errorf("first: %s", encoded(t, first))
	}
	output := `[{"type":"function_call_output","call_id":"` + first.Output[1].CallID() + `","output":"blue"}]`
	next := `{"type":"response.create","model":"m","store":false,"stream_id":"a.1","input":` + output + `,"previous_response_id":"` + first.ID + `"}`
	list := say(t, conn, next)
	if got := lastResponse(t, list).Text(); got != "You: Hello.; it: blue" {
		t.Errorf("said %q", got)
	}
	for _, ev := range list {
		if id, _ := ev.Member("stream_id"); id != `"a.1"` {
			t.Errorf("not of the lane: %s", ev.JSON())
		}
	}
	for _, test := range []struct {
		frame, code string
		class       endpoint.Class
	}{
		{next, "previous_response_not_found", endpoint.PreviousResponse}, // only the last one is remembered
		{`{"type":"response.create"`, "invalid_request_error", endpoint.BadRequest},
		{`[]`, "invalid_type", endpoint.BadRequest},
		{`{"type":"response.cancel","stream_id":"b"}`, "invalid_value", endpoint.BadRequest},
		{`{"type":"response.create","model":"m","input":"x","background":true}`, "unsupported_parameter", endpoint.BadRequest},
		{`{"type":"response.create","input":"x"}`, "missing_required_parameter", endpoint.BadRequest},
		{`{"type":"response.create","model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`, "invalid_request_error", endpoint.BadRequest},
	} {
		list := say(t, conn, test.frame)
		e := endpoint.FromEvent([]byte(list[0].JSON()))
		if len(list) != 1 || e == nil || e.Class != test.class || e.Code != test.code || e.Status != 400 {
			t.Errorf("%s: %s", test.frame, list[0].JSON())
		}
	}
	if got := lastResponse(t, say(t, conn, `{"type":"response.create","model":"m","input":"Again."}`)); len(got.Output) != 2 {
		t.Errorf("after mistakes: %s", encoded(t, got))
	}
}

// Requests that come while another is answered wait their turn.
func TestSocketQueue(t *testing.T) {
	conn := dial(t, serve(t, "again\nturn\n  pause 5ms\n  say {{question}}\n", nil))
	for _, word := range []string{"one", "two"} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create","model":"m","input":"`+word+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, list := range [][]api.Event{say(t, conn, `{"type":"response.create","model":"m","input":"three"}`), say(t, conn, `{"type":"other"}`), nil} {
		if list != nil && list[len(list)-1].Type != api.EventError {
			got = append(got, lastResponse(t, list).Text())
		}
	}
	if d := cmp.Diff([]string{"one", "two"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// S8: a client that hangs up ends its response, and Stop ends a socket.
func TestSocketEnds(t *testing.T) {
	script := "again\nturn\n  say one\n  pause 10m\n"
	for _, hangUp := range []func(*websocket.Conn, func()){
		func(c *websocket.Conn, _ func()) { _ = c.CloseNow() },
		func(_ *websocket.Conn, stop func()) { stop() },
	} {
		server := served(t, script)
		base, stop, err := server.Start()
		if err != nil {
			t.Fatal(err)
		}
		conn := dial(t, base)
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create","model":"m","input":"x"}`)); err != nil {
			t.Fatal(err)
		}
		for {
			_, data, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), `"delta":"one"`) {
				break
			}
		}
		hangUp(conn, stop)
		for err == nil {
			_, _, err = conn.Read(t.Context())
		}
		stop() // waits for what runs
	}
}
