// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
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
	last *Record // the last response, which need not be stored to be gone on from
}

// maxWaiting is how many requests may wait on a WebSocket for the one before.
const maxWaiting = 16

// socket serves a WebSocket until the client closes it, or the server stops.
func (s *Server) socket(c *call) *Error {
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
	var j *job
	r, wrong := l.read(frame)
	if wrong == nil {
		j, wrong = l.s.newJob(r)
	}
	if wrong == nil {
		j.to = func(ev item.Event) error { return l.write([]byte(ev.JSON())) }
		wrong = l.s.run(l.ctx, j)
	}
	if wrong != nil {
		if l.last != nil && memberText(frame, "previous_response_id") == l.last.ID() {
			l.last = nil // what could not be gone on from is forgotten
		}
		return l.write(wrong.frame(memberText(frame, "stream_id")))
	}
	if rec := j.record(); rec.Response != nil && rec.Response.Status == item.StatusCompleted {
		l.last = &rec
	}
	return l.ctx.Err()
}

func (l *lane) write(data []byte) error { return l.conn.Write(l.ctx, websocket.MessageText, data) }

// read reads a frame, which must ask for a response.
func (l *lane) read(frame []byte) (*Request, *Error) {
	e, err := item.ParseClientEvent(frame)
	if err != nil {
		return nil, unreadable(err)
	}
	create, ok := e.(*item.CreateEvent)
	switch {
	case !ok:
		return nil, Invalid("invalid_value", "type", "Invalid value: '%s'. Supported values are: '%s'.", e.ClientEventType(), item.ClientCreate)
	case isSet(create.Request.Background):
		return nil, Invalid("unsupported_parameter", "background", "Unsupported parameter: 'background' is not supported over WebSocket.")
	}
	object, err := item.Parse(frame)
	if err != nil {
		return nil, unreadable(err)
	}
	r, wrong := l.s.check(l.ctx, create.Request, object, l.last)
	if wrong == nil {
		generate, _ := object.Member("generate")
		r.WarmUp, r.streamID = generate == "false", create.StreamID
	}
	return r, wrong
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
