// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
)

// Through is the answer of a handler, such as a server of package server. Its
// methods add faults as for other answers:
//
//	agenttest.Through(handler).CutAfter(700)
//
// The handler completes its answer before the first byte is sent, so it must end. A
// message on a WebSocket is passed on over a WebSocket that lives as long as the
// client's.
func Through(handler http.Handler) Reply {
	a := newAnswer("Through", nil)
	a.status, a.through = 0, &through{handler}
	return a
}

// Wrap is middleware that injects faults: for each request, pick returns the answer
// to send, given the right answer of next. Requests are numbered from 0 in order of
// arrival; messages on WebSockets are requests too. pick may be called concurrently.
func Wrap(next http.Handler, pick func(n int, r Request, right Reply) Reply) http.Handler {
	right := Through(next)
	var mu sync.Mutex
	requests, sockets := 0, 0
	count := func(n *int) int {
		mu.Lock()
		defer mu.Unlock()
		*n++
		return *n
	}
	return &faulty{
		pick: func(r Request) (int, Reply, func(string)) {
			n := count(&requests) - 1
			return n, pick(n, r, right), func(string) {}
		},
		refuse: func(Request) (int, *Reply) { return count(&sockets), nil },
		behind: right.through,
	}
}

// faulty is a handler that gives answers with faults.
type faulty struct {
	// pick numbers a request and returns its answer. sent receives the parts of the
	// body that are sent.
	pick func(r Request) (n int, a Reply, sent func(string))
	// refuse numbers a request for a WebSocket, from 1, and returns the answer that
	// refuses it, or nil.
	refuse   func(r Request) (n int, refusal *Reply)
	behind   *through        // also decides about WebSockets if it is not nil
	closed   <-chan struct{} // ends stalls, if not nil
	handlers sync.WaitGroup  // includes handlers whose connection was hijacked
}

// ServeHTTP implements [http.Handler].
func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.handlers.Add(1)
	defer f.handlers.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client disconnected
	}
	got := Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body, 0}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		f.upgrade(w, r, got)
		return
	}
	n, a, sent := f.pick(got)
	a.write(w, &delivery{n: n, got: got, r: r, gone: r.Context(), closed: f.closed, sent: sent})
}

// upgrade accepts a WebSocket, or refuses it.
func (f *faulty) upgrade(w http.ResponseWriter, r *http.Request, got Request) {
	n, refusal := f.refuse(got)
	var behind *backConn
	if f.behind != nil {
		behind, refusal = f.behind.dial(r)
	}
	if refusal != nil {
		refusal.write(w, &delivery{n: n - 1, got: got, r: r, gone: r.Context(), closed: f.closed, sent: func(string) {}})
		return
	}
	got.Socket = n
	c, err := acceptSocket(w, r)
	if err != nil {
		behind.end()
		return // it was answered
	}
	c.behind = map[*through]*backConn{f.behind: behind}
	defer func() {
		c.hangUp(false)
		for _, b := range c.behind {
			b.end()
		}
	}()
	f.handlers.Go(func() {
		select {
		case <-f.closed:
			c.hangUp(false)
		case <-c.gone.Done():
		}
	})
	for body := range c.messages {
		got.Body = body
		n, a, sent := f.pick(got)
		if !a.frames(c, &delivery{n: n, got: got, r: r, gone: c.gone, closed: f.closed, sent: sent}) {
			return
		}
	}
}

// through is a handler whose answers get faults.
type through struct{ handler http.Handler }

// answer returns a with the content of the handler's answer.
func (t *through) answer(a Reply, d *delivery) Reply {
	r := d.r.Clone(d.gone)
	r.Body = io.NopCloser(bytes.NewReader(d.got.Body))
	recorder := httptest.NewRecorder()
	t.handler.ServeHTTP(recorder, r)
	result := recorder.Result()
	contentType := result.Header.Get("Content-Type")
	pieces := []piece{{pieceRaw, recorder.Body.String()}}
	if strings.HasPrefix(contentType, "text/event-stream") {
		pieces = eventsOf(recorder.Body.String())
	}
	return a.of(result.StatusCode, result.Header, contentType, pieces)
}

// of returns a copy with other content. Settings of a itself have precedence.
func (a Reply) of(status int, h http.Header, contentType string, pieces []piece) Reply {
	h = h.Clone()
	h.Del("Content-Length") // faults may change it
	maps.Copy(h, a.header)
	a.status, a.header, a.through = cmp.Or(a.status, status), h, nil
	a.pieces = func(int, Request) (string, []piece) { return contentType, pieces }
	return a
}

// message is like answer, for a message on a WebSocket.
func (t *through) message(a Reply, c *socket, d *delivery) Reply {
	behind := c.behind[t]
	if behind == nil {
		var refusal *Reply
		if behind, refusal = t.dial(d.r); refusal != nil {
			return *refusal
		}
		c.behind[t] = behind
	}
	return a.of(http.StatusOK, nil, typeStream, behind.ask(d.gone, d.got.Body))
}

// backConn is a WebSocket to a handler in memory.
type backConn struct {
	conn  *websocket.Conn
	close func()
}

func (b *backConn) end() {
	if b != nil {
		b.close()
	}
}

// dial opens a WebSocket to the handler as requested by the client of r. If the
// handler refuses, dial returns its answer instead.
func (t *through) dial(r *http.Request) (*backConn, *Reply) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	var serving sync.WaitGroup
	l := &pipes{conns: make(chan net.Conn), closed: ctx.Done()}
	s := &http.Server{
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serving.Add(1)
			defer serving.Done()
			t.handler.ServeHTTP(w, r)
		}),
	}
	serving.Go(func() { _ = s.Serve(l) }) // it ends with the listener
	transport := &http.Transport{DialContext: l.dial}
	end := sync.OnceFunc(func() {
		cancel()
		_ = s.Close()
		transport.CloseIdleConnections()
		serving.Wait()
	})
	h := http.Header{}
	if key := r.Header.Get("Authorization"); key != "" {
		h.Set("Authorization", key)
	}
	conn, resp, err := websocket.Dial(ctx, "ws://handler"+r.URL.RequestURI(), &websocket.DialOptions{ //nolint:bodyclose // Dial closes it
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: h,
	})
	if err != nil {
		defer end()
		if resp == nil {
			return nil, new(Failure(http.StatusBadGateway, "no_socket", err.Error()))
		}
		body, _ := io.ReadAll(resp.Body) // as much of it as the library leaves
		return nil, new(Raw(resp.StatusCode, resp.Header.Get("Content-Type"), string(body)))
	}
	conn.SetReadLimit(-1)
	return &backConn{conn, func() {
		_ = conn.CloseNow()
		end()
	}}, nil
}

// ask passes on a message, and returns the events up to the end of the response.
func (b *backConn) ask(ctx context.Context, message []byte) (events []piece) {
	if b.conn.Write(ctx, websocket.MessageText, message) != nil {
		return nil
	}
	for {
		_, data, err := b.conn.Read(ctx)
		if err != nil {
			return events
		}
		events = append(events, piece{text: string(data)})
		if ev, err := api.ParseEvent(data); err != nil || ev.Terminal() {
			return events
		}
	}
}

// pipes is a listener for in-memory connections.
type pipes struct {
	conns  chan net.Conn
	closed <-chan struct{}
}

func (l *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. The connections end with their context.
func (l *pipes) Close() error { return nil }

// Addr implements [net.Listener].
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }
