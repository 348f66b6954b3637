// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// body returns the body for request n, in parts that correspond to events.
func (a Reply) body(n int, r Request) (contentType string, pieces []piece) {
	contentType, pieces = a.pieces(n, r)
	for _, edit := range a.edits {
		pieces = edit(pieces)
	}
	return contentType, pieces
}

// delivery is the sending of one answer.
type delivery struct {
	n      int
	got    Request
	r      *http.Request   // without its body; for a message, the handshake
	gone   context.Context // ends when the client disconnects
	closed <-chan struct{} // closed when the server is closed
	sent   func(string)    // called with the sent parts of the body
}

// wait stalls, and reports whether to continue.
func (d *delivery) wait(release <-chan struct{}) bool {
	select {
	case <-release:
		return true
	case <-d.gone.Done():
	case <-d.closed:
	}
	return false
}

// write sends the answer over HTTP.
func (a Reply) write(w http.ResponseWriter, d *delivery) {
	switch {
	case a.stall == silent && !d.wait(a.release):
		panic(http.ErrAbortHandler)
	case a.reset:
		hangUp(w, true)
		return
	}
	if a.through != nil {
		a = a.through.answer(a, d)
	}
	if a.pieces == nil {
		a = Failure(http.StatusBadRequest, "empty_reply", "the test's Reply is empty: make one with agenttest.Completed, agenttest.Failure and so on")
	}
	contentType, pieces := a.body(d.n, d.got)
	parts := a.style.render(pieces)
	if a.gzip {
		parts = compress(parts)
	}
	h := http.Header{"Content-Type": {contentType}, "X-Request-Id": {"req_" + strconv.Itoa(d.n)}}
	if !strings.HasPrefix(contentType, "text/event-stream") {
		h.Set("Content-Length", strconv.Itoa(len(strings.Join(parts, ""))))
	}
	for name, values := range a.header {
		h[name] = values
	}
	if a.wire.any() {
		a.writeRaw(w, d, h, parts)
		return
	}
	for _, status := range a.early {
		w.WriteHeader(status)
	}
	for name, values := range h {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	out := &output{w: w, sent: d.sent, left: a.cut, limit: -1, reset: a.byReset}
	if n, err := strconv.Atoi(h.Get("Content-Length")); err == nil {
		out.limit = n
	}
	if a.parts(parts, d, out.write) && out.limit > 0 {
		panic(http.ErrAbortHandler) // less than announced
	}
}

// parts passes the body to write, with the pieces and pauses of the answer, and
// reports whether it was complete.
func (a Reply) parts(parts []string, d *delivery, write func(string)) bool {
	if a.stall < 0 {
		a.inPieces(strings.Join(parts, ""), write)
		return true
	}
	at := min(a.stall, len(parts))
	a.inPieces(strings.Join(parts[:at], ""), write)
	if !d.wait(a.release) {
		return false
	}
	a.inPieces(strings.Join(parts[at:], ""), write)
	return true
}

func (a Reply) inPieces(body string, write func(string)) {
	if a.bytely {
		for i := range len(body) {
			write(body[i : i+1])
		}
		return
	}
	for _, n := range a.sizes {
		n = min(n, len(body))
		write(body[:n])
		body = body[n:]
	}
	write(body)
}

// output writes a body up to the byte where it should break.
type output struct {
	w     http.ResponseWriter
	sent  func(string)
	left  int // bytes until the break; negative: none
	limit int // bytes until the Content-Length; negative: none
	reset bool
}

func (o *output) write(s string) {
	if o.limit >= 0 {
		s = s[:min(len(s), o.limit)] // net/http refuses to send more than announced
		o.limit -= len(s)
	}
	breaks := o.left >= 0 && len(s) >= o.left
	if breaks {
		s = s[:o.left]
	} else if o.left >= 0 {
		o.left -= len(s)
	}
	o.sent(s)
	_, _ = o.w.Write([]byte(s)) // a disconnected client is not an error here
	_ = http.NewResponseController(o.w).Flush()
	if breaks && o.reset {
		hangUp(o.w, true)
	}
	if breaks {
		panic(http.ErrAbortHandler)
	}
}

// hangUp closes a connection. With byReset the other side sees an error.
func hangUp(w http.ResponseWriter, byReset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	closeConn(conn, byReset)
}

func closeConn(conn net.Conn, byReset bool) {
	inner := conn
	if t, ok := inner.(interface{ NetConn() net.Conn }); ok { // of TLS
		inner = t.NetConn()
	}
	if tcp, ok := inner.(*net.TCPConn); ok && byReset {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
	_ = conn.Close()
}
