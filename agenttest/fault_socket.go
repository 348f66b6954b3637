// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
)

// socketFaults are the faults of frames.
type socketFaults struct {
	closeAfter int // events; -1 never
	code       int
	reason     string
	deaf       bool
}

// CloseAfter closes the WebSocket after n events, with a close frame of the given
// code, or without a code if it is 0. Codes that the standard forbids are sent too.
// If there are fewer events, the close frame follows the last one.
func (a Reply) CloseAfter(n, code int, reason string) Reply {
	return a.with(func(a *Reply) { a.socket.closeAfter, a.socket.code, a.socket.reason = n, code, reason }, "CloseAfter(%d, %d)", n, code)
}

// NoPong stops answering pings on the WebSocket.
func (a Reply) NoPong() Reply {
	return a.with(func(a *Reply) { a.socket.deaf = true }, "NoPong()")
}

// AtUpgrade makes the answer refuse the next request for a WebSocket; messages and
// HTTP requests do not get it. Without such an answer every WebSocket is accepted.
func (a Reply) AtUpgrade() Reply {
	return a.with(func(a *Reply) { a.upgrade = true }, "AtUpgrade()")
}

// ConnectionLimitReached is the API's message on a WebSocket that was open for too
// long, before it closes it.
func ConnectionLimitReached() Reply {
	a := Failure(http.StatusBadRequest, "websocket_connection_limit_reached",
		"Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.")
	return a.CloseAfter(1, int(websocket.StatusPolicyViolation), "")
}

// socket is the server's end of a WebSocket. The library reads; frames are written
// here, so that they can break after any byte.
type socket struct {
	conn     *lockedConn
	messages chan []byte
	gone     context.Context // ends when nothing more can be read
	deaf     *atomic.Bool
	leave    chan struct{}
	hangUp   func(byReset bool)
	behind   map[*through]*backConn // the sockets of handlers that messages are passed to
}

// lockedConn prevents pongs of the library inside our frames.
type lockedConn struct {
	net.Conn
	mu sync.Mutex
}

func (c *lockedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Write(b)
}

// hijack gives the library a connection that we also write to.
type hijack struct {
	http.ResponseWriter
	conn *lockedConn
}

func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &lockedConn{Conn: conn}
	rw.Writer.Reset(h.conn)
	return h.conn, rw, nil
}

func acceptSocket(w http.ResponseWriter, r *http.Request) (*socket, error) {
	deaf := new(atomic.Bool)
	h := &hijack{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true,
		OnPingReceived:     func(context.Context, []byte) bool { return !deaf.Load() },
	})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1)
	gone, cancel := context.WithCancel(context.Background())
	c := &socket{conn: h.conn, messages: make(chan []byte), gone: gone, deaf: deaf, leave: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(c.messages)
		defer cancel()
		c.read(ws)
	}()
	var once sync.Once
	c.hangUp = func(byReset bool) {
		once.Do(func() {
			close(c.leave)
			closeConn(c.conn.Conn, byReset)
			_ = ws.CloseNow() // release the library's resources for the connection
		})
		<-done
	}
	return c, nil
}

// read passes on messages until the socket ends.
func (c *socket) read(ws *websocket.Conn) {
	for {
		_, body, err := ws.Read(context.Background())
		if err != nil {
			return
		}
		select {
		case c.messages <- body:
		case <-c.leave:
			return
		}
	}
}

const (
	opText   = 1
	opBinary = 2
	opClose  = 8
)

// frameOf returns the head and the content of an unmasked, complete frame.
func frameOf(op byte, content string) (head []byte, _ string) {
	head = []byte{0x80 | op}
	switch n := len(content); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	return head, content
}

// frames sends the answer on a socket, and reports whether the socket stays open.
func (a Reply) frames(c *socket, d *delivery) bool {
	switch {
	case a.socket.deaf:
		c.deaf.Store(true)
	case a.reset:
		c.hangUp(true)
		return false
	}
	if a.stall == silent && !d.wait(a.release) {
		return false
	}
	if a.through != nil {
		a = a.through.message(a, c, d)
	}
	left := a.cut
	pieces := a.messages(d)
	for i, p := range pieces {
		switch {
		case i == a.stall && !d.wait(a.release):
			return false
		case i == a.socket.closeAfter:
			return c.close(a.socket, d)
		case left >= 0 && left <= len(p.text):
			c.send(a, p, left)
			c.hangUp(a.byReset)
			return false
		}
		left -= min(len(p.text), max(left, 0))
		d.sent(p.text + "\n")
		c.send(a, p, -1)
	}
	switch {
	case a.stall >= len(pieces) && !d.wait(a.release):
		return false
	case a.socket.closeAfter >= 0:
		return c.close(a.socket, d)
	}
	return true
}

// send writes a frame, or the beginning of one with cut bytes of content.
func (c *socket) send(a Reply, p piece, cut int) {
	op := byte(opText)
	if p.kind == pieceBinary {
		op = opBinary
	}
	head, content := frameOf(op, p.text)
	if cut >= 0 {
		content = content[:cut]
	}
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	a.inPieces(string(head)+content, func(s string) { _, _ = c.conn.Conn.Write([]byte(s)) })
}

// close sends a close frame and waits for the client's.
func (c *socket) close(f socketFaults, d *delivery) bool {
	content := ""
	if f.code != 0 {
		content = string(binary.BigEndian.AppendUint16(nil, uint16(f.code))) + f.reason
	}
	head, content := frameOf(opClose, content)
	_, _ = c.conn.Write(append(head, content...))
	for {
		select {
		case _, ok := <-c.messages: // a message that arrives too late gets no answer
			if !ok {
				return false
			}
		case <-d.closed:
			return false
		}
	}
}

// messages returns the contents of the frames.
func (a Reply) messages(d *delivery) []piece {
	contentType, pieces := a.body(d.n, d.got)
	var list []piece
	for _, p := range pieces {
		switch {
		case p.kind != pieceRaw:
			list = append(list, p)
		case strings.HasPrefix(contentType, "text/event-stream"):
			list = append(list, eventsOf(p.text)...)
		case a.status >= http.StatusBadRequest:
			list = append(list, piece{text: a.errorMessage(p.text)})
		default:
			list = append(list, piece{text: p.text})
		}
	}
	return list
}

// eventsOf are the events of a stream.
func eventsOf(stream string) []piece {
	var list []piece
	for rd := sse.NewReader(strings.NewReader(stream), sse.Options{}); ; {
		ev, err := rd.Next()
		if err != nil {
			return list
		}
		if len(bytes.TrimSpace(ev.Data)) > 0 {
			list = append(list, piece{text: string(ev.Data)})
		}
	}
}

// errorMessage returns an HTTP error in the form of WebSockets. Other bodies stay
// unchanged.
func (a Reply) errorMessage(body string) string {
	var e struct {
		Error jsontext.Value `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Kind() != '{' {
		return body
	}
	members := []any{"type", "error", "status", a.status, "error", item.JSON(e.Error)}
	if after := a.header.Get("Retry-After"); after != "" {
		members = append(members, "headers", item.JSON(object("retry-after", after)))
	}
	return object(members...)
}
