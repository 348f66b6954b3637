// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// stopped is one way for a request to be given up.
type stopped struct {
	answer agenttest.Reply
	// at is the event at which the consumer gives up, counted from 1; 0 gives
	// up before any, as soon as the server has the request.
	at int
	// how the consumer gives up: it ends the context, or breaks off.
	breaks bool
	// slow has the consumer wait for the end of the context where it is, as one
	// does that does something else meanwhile.
	slow  bool
	class endpoint.Class // of the error; empty is none
	sent  bool           // the error knows that output was delivered
}

// S8: wherever a request is given up, the call returns while the server is
// still stalled, the items that were complete are there, the server sees the
// connection end, and no goroutine is left.
func TestGivingUp(t *testing.T) {
	reply := agenttest.Completed(item.Assistant("one two three"), item.Call("call_1", "f", "{}"))
	last := 0
	for range drain(t, agenttest.NewServer(t, reply).Client(), hello()).events {
		last++
	}
	var firstDone, firstDelta int
	for i, ev := range drain(t, agenttest.NewServer(t, reply).Client(), hello()).events {
		switch {
		case ev.Type == api.EventItemDone && firstDone == 0:
			firstDone = i + 1
		case ev.Type == api.EventTextDelta && firstDelta == 0:
			firstDelta = i + 1
		}
	}
	for name, tt := range map[string]stopped{
		"before headers":                    {answer: reply.Stall(nil), class: endpoint.Canceled},
		"behind the head":                   {answer: reply.CutWire(1<<20).StallAfter(0, nil), class: endpoint.Canceled},
		"waiting for the first event":       {answer: reply.StallAfter(0, nil), class: endpoint.Canceled},
		"after the first event":             {answer: reply.StallAfter(1, nil), at: 1, class: endpoint.Canceled},
		"in the middle of an event":         {answer: agenttest.Raw(200, "text/event-stream", "data: {\"type\":\"response.created\"}\n\ndata: {\"type\":\"response.in").WrongLength(100).StallAfter(1, nil), at: 1, class: endpoint.Canceled},
		"in the middle of deltas":           {answer: reply.StallAfter(firstDelta, nil), at: firstDelta, class: endpoint.Canceled, sent: true},
		"after an item":                     {answer: reply.StallAfter(firstDone, nil), at: firstDone, class: endpoint.Canceled, sent: true},
		"while the consumer is busy":        {answer: reply.StallAfter(firstDone, nil), at: firstDone, slow: true, class: endpoint.Canceled, sent: true},
		"at the last event":                 {answer: reply, at: last},
		"at the last event, body open":      {answer: reply.WithEvent(99, "{}").StallAfter(last, nil), at: last},
		"breaking off at the first event":   {answer: reply.StallAfter(1, nil), at: 1, breaks: true},
		"breaking off in deltas":            {answer: reply.StallAfter(firstDelta, nil), at: firstDelta, breaks: true},
		"breaking off in mid-stream":        {answer: reply, at: firstDelta, breaks: true},
		"breaking off at the last event":    {answer: reply.WithEvent(99, "{}").StallAfter(last, nil), at: last, breaks: true},
		"gzip":                              {answer: reply.Gzip().StallAfter(firstDelta, nil), at: firstDelta, class: endpoint.Canceled, sent: true},
		"slow bytes":                        {answer: reply.ByteByByte().StallAfter(firstDelta, nil), at: firstDelta, class: endpoint.Canceled, sent: true},
		"an error event before the end":     {answer: agenttest.ErrorEvent("server_error", "oh", item.Assistant("x")).WithEvent(99, "{}").StallAfter(99, nil), at: 3, class: endpoint.Canceled, sent: true},
		"in the body of an error":           {answer: agenttest.Failure(500, "c", "m").WrongLength(100).StallAfter(1, nil), class: endpoint.Canceled},
		"in a body that is not a stream":    {answer: agenttest.Raw(200, "application/json", `{"id":"r","out`).WrongLength(100).StallAfter(1, nil), class: endpoint.Canceled},
		"a connection that ends with bytes": {answer: reply.UntilClose().StallAfter(firstDelta, nil), at: firstDelta, class: endpoint.Canceled, sent: true},
	} {
		t.Run(name, func(t *testing.T) { tt.run(t) })
	}
}

func (s stopped) run(t *testing.T) {
	before := goleak.IgnoreCurrent()
	srv := agenttest.NewServer(t)
	arrived := make(chan struct{}, 1)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		arrived <- struct{}{}
		return s.answer
	})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if s.at == 0 {
		go func() {
			<-arrived
			cancel(why)
		}()
	}
	seen, done := 0, 0
	var last error
	for ev, err := range srv.Client().Stream(ctx, hello()) {
		if last = err; err != nil {
			continue
		}
		if ev.Type == api.EventItemDone {
			done++
		}
		if seen++; seen < s.at || s.at == 0 {
			continue
		}
		if s.breaks {
			break
		}
		if cancel(why); s.slow {
			<-ctx.Done()
		}
	}
	if len(srv.Requests()) != 1 {
		t.Errorf("%d requests", len(srv.Requests()))
	}
	s.checkError(t, last, why, done)
	srv.Close() // waits for its handlers
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func (s stopped) checkError(t *testing.T, err, why error, done int) {
	if s.class == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	e := wantClass(t, err, s.class)
	if !errors.Is(err, why) || e.Sent != s.sent {
		t.Errorf("sent %v, %v", e.Sent, e)
	}
	var partial *responses.PartialError
	if errors.As(err, &partial) != (done > 0) || done > 0 && len(partial.Items) != done {
		t.Errorf("%d items were complete, the error has %v", done, partial)
	}
}

// S8: the server sees the end of a request that was given up, while it is still
// stalled: its handler is released by the client, not by the test's end.
func TestServerSeesTheEnd(t *testing.T) {
	for name, breaks := range map[string]bool{"cancel": false, "break": true} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			srv := httptestServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte("data: {\"type\":\"response.created\"}\n\n"))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				close(ended)
			})
			c := &responses.Client{BaseURL: srv.URL, HTTP: srv.Client()}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range c.Stream(ctx, hello()) {
				if breaks {
					break
				}
				cancel()
			}
			<-ended
		})
	}
}

// S8: cancelled while it waits to try again, a call returns at once: the wait
// would be an hour.
func TestGivingUpBetweenAttempts(t *testing.T) {
	both(t, []agenttest.Reply{agenttest.Failure(503, "c", "m")}, func(t *testing.T, srv *agenttest.Server, _ func(*responses.Client) error) {
		for _, streamed := range []bool{true, false} {
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Failure(503, "c", "m") })
			c := srv.Client()
			c.Retry = endpoint.Retry{Base: time.Hour, Cap: time.Hour, MaxWait: 10 * time.Hour}
			ctx, cancel := context.WithCancel(t.Context())
			c.OnRetry = func(error, time.Duration, int) { cancel() }
			var err error
			if streamed {
				err = drainContext(ctx, t, c, hello()).err
			} else {
				_, err = c.Create(ctx, hello())
			}
			wantClass(t, err, endpoint.Canceled)
		}
	})
}

// S8: a connection that was read to its end is used again, also when the
// consumer leaves at the last event; one that was given up is not.
func TestConnectionsAfterGivingUp(t *testing.T) {
	reply := agenttest.Completed(item.Assistant("hi"))
	for name, tt := range map[string]struct {
		answer agenttest.Reply
		leave  api.EventType
		fresh  int32
	}{
		"read to the end":          {reply, "", 1},
		"left at the last event":   {reply, api.EventCompleted, 1},
		"left at the last, [DONE]": {reply.WithDone(), api.EventCompleted, 1},
		"left in the middle":       {reply.StallAfter(3, nil), api.EventItemAdded, 2},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.answer, reply)
			c := srv.Client()
			var fresh atomic.Int32
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
				if !i.Reused {
					fresh.Add(1)
				}
			}})
			for ev, err := range c.Stream(ctx, hello()) {
				if err != nil || ev.Type == tt.leave {
					break
				}
			}
			if d := drainContext(ctx, t, c, hello()); d.err != nil {
				t.Error(d.err)
			}
			if fresh.Load() != tt.fresh {
				t.Errorf("%d connections, want %d", fresh.Load(), tt.fresh)
			}
		})
	}
}

// S7: dead sockets are typed errors, and leave nothing.
func TestDeadSockets(t *testing.T) {
	for how, class := range map[agenttest.ConnFault]endpoint.Class{
		agenttest.Refusing: endpoint.Network, agenttest.Closing: endpoint.Network, agenttest.Resetting: endpoint.Network, agenttest.Mute: endpoint.Idle,
	} {
		transport := &http.Transport{}
		c := &responses.Client{
			BaseURL: agenttest.DeadURL(t, how), HTTP: &http.Client{Transport: transport}, IdleTimeout: 100 * time.Millisecond,
			Retry: endpoint.Retry{Sleep: func(context.Context, time.Duration) error { return nil }},
		}
		tries := 0
		c.OnRetry = func(error, time.Duration, int) { tries++ }
		e := wantClass(t, drain(t, c, hello()).err, class)
		if want := map[bool]int{true: endpoint.DefaultRetries}[class == endpoint.Network]; tries != want || strings.Contains(e.Error(), "<nil>") {
			t.Errorf("%v: %d retries: %v", how, tries, e)
		}
		transport.CloseIdleConnections()
	}
}
