// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/item"
)

func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// lane is a WebSocket: one response after the other, in the order in which they
// were asked for.
type lane struct {
	s    *Server
	ctx  context.Context
	conn *websocket.Conn
	last *record // the last response, which need not be stored to be gone on from
}

// maxWaiting is how many requests may wait on a WebSocket for the one before.
const maxWaiting = 16

// socket serves a WebSocket until the client closes it, or the server stops.
func (s *Server) socket(c *call) *problem {
	conn, err := websocket.Accept(c.w, c.r, nil)
	if err != nil {
		return nil // the client was told
	}
	conn.SetReadLimit(s.limit())
	ctx, cancel := context.WithCancel(c.r.Context())
	frames, gone := make(chan []byte, maxWaiting), make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		receive(ctx, conn, frames)
	}()
	defer func() {
		cancel()
		_ = conn.CloseNow() // it may be closed already
		<-gone
	}()
	l := &lane{s: s, ctx: ctx, conn: conn}
	for {
		select {
		case <-ctx.Done():
			return nil
		case frame := <-frames:
			if l.serve(frame) != nil {
				return nil
			}
		}
	}
}

// receive reads a WebSocket to its end. What it reads meanwhile makes the
// library answer pings.
func receive(ctx context.Context, conn *websocket.Conn, frames chan<- []byte) {
	for {
		kind, frame, err := conn.Read(ctx)
		switch {
		case err != nil:
			return
		case kind != websocket.MessageText:
			_ = conn.Close(websocket.StatusUnsupportedData, "messages are text") // it is the end either way
			return
		}
		select {
		case frames <- frame:
		case <-ctx.Done():
			return
		}
	}
}

// serve answers one frame. The error is that of the socket.
func (l *lane) serve(frame []byte) error {
	q, wrong := l.read(frame)
	var a *answer
	if wrong == nil {
		a, wrong = l.s.answer(q)
	}
	if wrong != nil {
		if l.last != nil && memberText(frame, "previous_response_id") == l.last.id {
			l.last = nil // what could not be gone on from is forgotten
		}
		return l.write("", wrong.frame(memberText(frame, "stream_id")))
	}
	rec := l.s.memory.begin(a, l.s.keeps(q.req), l.s.MaxStored)
	defer l.s.memory.giveUp(rec)
	st := &stream{to: &live{l.ctx, l.write}, done: func() { l.s.memory.complete(rec) }}
	a.stream(st)
	l.last = rec
	return st.err
}

func (l *lane) write(_ item.EventType, data []byte) error {
	return l.conn.Write(l.ctx, websocket.MessageText, data)
}

// read reads a frame, which must ask for a response.
func (l *lane) read(frame []byte) (*asked, *problem) {
	e, err := item.ParseClientEvent(frame)
	if err != nil {
		return nil, unreadable(err)
	}
	create, ok := e.(*item.CreateEvent)
	switch {
	case !ok:
		return nil, invalid("invalid_value", "type", "Invalid value: '%s'. Supported values are: '%s'.", e.ClientEventType(), item.ClientCreate)
	case isSet(create.Request.Background):
		return nil, invalid("unsupported_parameter", "background", "Unsupported parameter: 'background' is not supported over WebSocket.")
	}
	object, err := item.Parse(frame)
	if err != nil {
		return nil, unreadable(err)
	}
	q, wrong := l.s.check(create.Request, object, l.last)
	if wrong == nil {
		generate, _ := object.Member("generate")
		q.warm, q.lane = generate == "false", create.StreamID
	}
	return q, wrong
}

// memberText returns a member of a frame, however wrong the rest may be.
func memberText(frame []byte, name string) string {
	object, err := item.Parse(frame)
	if err != nil {
		return ""
	}
	v, _ := object.Member(name)
	text, _ := v.Unquote()
	return text
}

// frame returns the error as an event of a WebSocket. Its code is a string by the
// Open Responses specification, where that of an HTTP error may be null.
func (p *problem) frame(lane string) []byte {
	coded := *p
	coded.code = cmp.Or(p.code, p.typ)
	at := ""
	if lane != "" {
		at = `,"stream_id":` + string(item.Quote(lane))
	}
	return fmt.Appendf(nil, `{"type":"error","status":%d,"error":%s%s}`, p.status, coded.object(), at)
}
