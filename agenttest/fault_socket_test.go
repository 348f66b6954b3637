// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

const create = `{"type":"response.create","model":"m","input":"x"}`

// dial opens a WebSocket, which the end of the test closes.
func dial(t *testing.T, srv *agenttest.Server) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), srv.URL+"/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	return c
}

// say sends a message.
func say(t *testing.T, c *websocket.Conn, message string) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
		t.Fatal(err)
	}
}

// hear reads messages up to one that ends a response, or up to an error.
func hear(t *testing.T, c *websocket.Conn) (messages []string, err error) {
	t.Helper()
	for {
		_, body, err := c.Read(t.Context())
		if err != nil {
			return messages, err
		}
		messages = append(messages, string(body))
		if ev, err := api.ParseEvent(body); err == nil && ev.Terminal() {
			return messages, nil
		}
	}
}

// S10: the events of a stream are the frames of a socket.
func TestSocket(t *testing.T) {
	reply := agenttest.Completed(everything()...)
	srv := agenttest.NewServer(t, reply, reply, agenttest.Completed(item.Assistant("no")), agenttest.Raw(200, "text/event-stream", ": hi\ndata: {\"type\":\"response.completed\"}\n\n"))
	want := dataOf(ask(t, srv, `{"model":"m","input":"x","stream":true}`))
	c := dial(t, srv)
	say(t, c, create)
	got, err := hear(t, c)
	for i := range want { // the ids of the responses count up, and usage counts bytes
		want[i] = strings.ReplaceAll(want[i], "resp_0", "resp_1")
	}
	if d := cmp.Diff(want[:len(want)-1], got[:len(got)-1]); d != "" || err != nil || len(got) != len(want) {
		t.Errorf("%v (-HTTP +socket):\n%s", err, d)
	}
	say(t, c, `{"type":"response.create","stream_id":"lane","generate":false}`)
	got, err = hear(t, c)
	if err != nil || len(got) != 3 || !strings.Contains(got[2], `"output":[]`) || !strings.Contains(got[2], `"stream_id":"lane"`) {
		t.Errorf("warm-up: %v %q", err, got)
	}
	say(t, c, create)
	if got, err = hear(t, c); err != nil || len(got) != 1 {
		t.Errorf("raw: %v %q", err, got)
	}
	reqs := srv.Requests()
	if len(reqs) != 4 || reqs[1].Socket != 1 || reqs[1].Method != "GET" || reqs[1].Path != "/v1/responses" || reqs[1].Parse(t).Model != "m" || len(srv.Sockets()) != 1 {
		t.Errorf("%+v", reqs)
	}
	if sent := srv.Sent(3); sent != `{"type":"response.completed"}`+"\n" {
		t.Errorf("sent %q", sent)
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
}

// Each fault is what its name says, seen from a plain client.
func TestSocketFaults(t *testing.T) {
	two := agenttest.Events(`{"n":1}`, `{"n":2}`)
	last := `{"type":"response.completed"}`
	big := `{"s":"` + strings.Repeat("x", 70000) + `"}`
	for _, tt := range []struct {
		name   string
		answer agenttest.Reply
		want   []string
		code   websocket.StatusCode // of a close frame; -1 no close frame; 0 no end
	}{
		{"CloseAfter", two.CloseAfter(1, 1011, "oh"), []string{`{"n":1}`}, 1011},
		{"CloseAfter the last", two.CloseAfter(9, 4000, ""), []string{`{"n":1}`, `{"n":2}`}, 4000},
		{"CloseAfter, no code", two.CloseAfter(0, 0, ""), nil, websocket.StatusNoStatusRcvd},
		{"CutAfter", two.CutAfter(9).ByReset(), []string{`{"n":1}`}, -1},
		{"CutAfter, ByReset", two.CutAfter(6).ByReset(), nil, -1},
		{"CutAfter a whole event", two.CutAfter(7), []string{`{"n":1}`}, -1},
		{"CutAfter, nothing", two.CutAfter(0).ByReset(), nil, -1},
		{"Reset", agenttest.Reset(), nil, -1},
		{"Failure", agenttest.PreviousResponseNotFound("resp_9").RetryAfter("7"), []string{`{"type":"error","status":400,"error":{"message":"Previous response with id 'resp_9' not found.","type":"invalid_request_error","param":null,"code":"previous_response_not_found"},"headers":{"retry-after":"7"}}`}, 0},
		{"ConnectionLimitReached", agenttest.ConnectionLimitReached(), []string{`{"type":"error","status":400,"error":{"message":"Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.","type":"invalid_request_error","param":null,"code":"websocket_connection_limit_reached"}}`}, websocket.StatusPolicyViolation},
		{"garbage", agenttest.Events("garbage", last).WithBinary(0, "\x00"), []string{"\x00", "garbage", last}, 0},
		{"in pieces", agenttest.Events(big, last).InPieces(1, 2, 3, 4000, 1), []string{big, last}, 0},
		{"byte by byte", agenttest.Events(strings.Repeat("y", 300), last).ByteByByte(), []string{strings.Repeat("y", 300), last}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.answer)
			c := dial(t, srv)
			c.SetReadLimit(-1)
			say(t, c, create)
			var got []string
			var err error
			for err == nil && (tt.code != 0 || len(got) < len(tt.want)) {
				var body []byte
				if _, body, err = c.Read(t.Context()); err == nil {
					got = append(got, string(body))
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if (err == nil) != (tt.code == 0) || err != nil && websocket.CloseStatus(err) != tt.code {
				t.Errorf("ended with %v, want code %d", err, tt.code)
			}
		})
	}
}

// A WebSocket is refused with the answers that are meant for that.
func TestRefusedUpgrade(t *testing.T) {
	srv := agenttest.NewServer(t,
		agenttest.Reset().AtUpgrade(),
		agenttest.Completed(item.Assistant("hi")),
		agenttest.Failure(426, "upgrade_required", "no sockets").AtUpgrade())
	if _, _, err := websocket.Dial(t.Context(), srv.URL+"/responses", nil); err == nil {
		t.Error("no reset")
	}
	if body := ask(t, srv, "{}"); !strings.Contains(body, "hi") {
		t.Error(body)
	}
	_, resp, err := websocket.Dial(t.Context(), srv.URL+"/responses", nil)
	if err == nil || resp.StatusCode != 426 {
		t.Errorf("%v, %v", resp, err)
	}
	dial(t, srv)
	if len(srv.Sockets()) != 3 || len(srv.Requests()) != 1 {
		t.Errorf("%d sockets, %d requests", len(srv.Sockets()), len(srv.Requests()))
	}
}

// A stall holds until release, leaves pings answered, and none after NoPong.
func TestSocketStall(t *testing.T) {
	release := make(chan struct{})
	two := agenttest.Events(`{"n":1}`, `{"type":"response.completed"}`)
	srv := agenttest.NewServer(t, two.StallAfter(1, release), two.Stall(nil), two.StallAfter(2, nil).NoPong())
	c := dial(t, srv)
	say(t, c, create)
	if _, _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := make(chan error, 1)
	go func() {
		_, err := hear(t, c)
		heard <- err
	}()
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-heard; err != nil {
		t.Error(err)
	}
	for i, wait := range []int{0, 2} {
		c := dial(t, srv)
		say(t, c, create)
		for len(srv.Requests()) < i+2 { // else the next socket may be given its answer
			time.Sleep(time.Millisecond)
		}
		for range wait {
			if _, _, err := c.Read(t.Context()); err != nil {
				t.Error(err)
			}
		}
		ctx := c.CloseRead(t.Context())
		if wait > 0 { // no pong comes, however long it is waited for
			short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
			defer cancel()
			ctx = short
		}
		if err := c.Ping(ctx); (err == nil) != (wait == 0) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stall after %d: ping %v", wait, err)
		}
	}
}
