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

// body returns what is to be sent for request n, in parts that stand for the
// events.
func (a Answer) body(n int, r Request) (contentType string, pieces []piece) {
	contentType, pieces = a.pieces(n, r)
	for _, edit := range a.edits {
		pieces = edit(pieces)
	}
	return contentType, pieces
}

// delivery is an answer on its way.
type delivery struct {
	n      int
	got    Request
	r      *http.Request   // without its body; of a message, the handshake
	gone   context.Context // ends when the client goes away
	closed <-chan struct{} // the server's end
	sent   func(string)    // called with what of the body goes out
}

// wait stalls, and reports whether to go on.
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
func (a Answer) write(w http.ResponseWriter, d *delivery) {
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
		panic(http.ErrAbortHandler) // less than was announced
	}
}

// parts passes the body to write, in the pieces and with the pause that the
// answer wants, and reports whether it came to its end.
func (a Answer) parts(parts []string, d *delivery, write func(string)) bool {
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

func (a Answer) inPieces(body string, write func(string)) {
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

// output writes a body up to the byte where it is to break.
type output struct {
	w     http.ResponseWriter
	sent  func(string)
	left  int // bytes until the break; negative: none
	limit int // bytes until the Content-Length; negative: none
	reset bool
}

func (o *output) write(s string) {
	if o.limit >= 0 {
		s = s[:min(len(s), o.limit)] // net/http refuses to send more than was announced
		o.limit -= len(s)
	}
	breaks := o.left >= 0 && len(s) >= o.left
	if breaks {
		s = s[:o.left]
	} else if o.left >= 0 {
		o.left -= len(s)
	}
	o.sent(s)
	_, _ = o.w.Write([]byte(s)) // a client that is gone is not our concern
	_ = http.NewResponseController(o.w).Flush()
	if breaks && o.reset {
		hangUp(o.w, true)
	}
	if breaks {
		panic(http.ErrAbortHandler)
	}
}

// hangUp ends a connection, by reset in a way that the other side sees as an
// error.
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
