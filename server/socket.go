// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// lane is a WebSocket. It makes one response after the other, in the order of the
// requests.
type lane struct {
	s    *Server
	ctx  context.Context
	conn *websocket.Conn
	last *remembered // the last response, which the next request can continue although it is not stored
}

// remembered is a response with its complete input and output. The items are left out if
// the backend keeps them.
type remembered struct {
	by    *Server
	id    string
	items []item.Item
}

// maxWaiting is the maximum number of requests that wait on a WebSocket.
const maxWaiting = 16

// socket serves a WebSocket until the client closes it, or the server stops.
func (s *Server) socket(c *call) *Error {
	conn, err := websocket.Accept(c.w, c.r, nil)
	if err != nil {
		return nil // the client has received the error
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
		_ = conn.CloseNow() // it may already be closed
		<-gone
	}()
	l := &lane{s: s, ctx: ctx, conn: conn}
	defer l.forget(nil)
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

// receive reads a WebSocket to its end. Reading continuously makes the library
// answer pings.
func receive(ctx context.Context, conn *websocket.Conn, frames chan<- []byte) {
	for {
		kind, frame, err := conn.Read(ctx)
		switch {
		case err != nil:
			return
		case kind != websocket.MessageText:
			_ = conn.Close(websocket.StatusUnsupportedData, "messages are text") // the connection ends either way
			return
		}
		select {
		case frames <- frame:
		case <-ctx.Done():
			return
		}
	}
}

// serve handles one frame. It returns only errors of the socket.
func (l *lane) serve(frame []byte) error {
	s, done, wrong := l.s.chooses(l.ctx, frame, true, l.last)
	if wrong == nil {
		wrong = l.answer(s, frame)
		done(wrong == nil)
	}
	if wrong != nil {
		if l.last != nil && memberText(frame, "previous_response_id") == l.last.id {
			l.forget(nil) // the failed request cannot be continued
		}
		return l.write(wrong.frame(memberText(frame, "stream_id")))
	}
	return l.ctx.Err()
}

// answer makes the response to a frame, or returns why not.
func (l *lane) answer(s *Server, frame []byte) *Error {
	r, wrong := l.read(s, frame)
	if wrong != nil {
		return wrong
	}
	j, wrong := s.newJob(r)
	if wrong != nil {
		return wrong
	}
	j.to = func(ev api.Event) error { return l.write([]byte(ev.JSON())) }
	if wrong = s.run(l.ctx, j); wrong != nil {
		return wrong
	}
	if rec := j.record(); rec.Response != nil && rec.Response.Status == item.StatusCompleted {
		l.forget(&remembered{s, rec.ID(), append(slices.Clip(r.Items), rec.Response.Output...)})
	} else {
		s.forget(r, j.id)
	}
	return nil
}

// forget replaces the last response. What the backend keeps of it goes, unless it is
// stored.
func (l *lane) forget(next *remembered) {
	if l.last != nil {
		if k := l.last.by.keeper(); k != nil {
			k.Forget(l.last.id)
		}
	}
	l.last = next
}

func (l *lane) write(data []byte) error { return l.conn.Write(l.ctx, websocket.MessageText, data) }

// read parses a frame, which must create a response.
func (l *lane) read(s *Server, frame []byte) (*Request, *Error) {
	e, err := api.ParseClientEvent(frame)
	if err != nil {
		return nil, unreadable(err)
	}
	create, ok := e.(*api.CreateEvent)
	switch {
	case !ok:
		return nil, Invalid("invalid_value", "type", "Invalid value: '%s'. Supported values are: '%s'.", e.ClientEventType(), api.ClientCreate)
	case isSet(create.Request.Background):
		return nil, Invalid("unsupported_parameter", "background", "Unsupported parameter: 'background' is not supported over WebSocket.")
	}
	object, err := item.Parse(frame)
	if err != nil {
		return nil, unreadable(err)
	}
	last := l.last
	if last != nil && last.by != s {
		last = nil
	}
	r, wrong := s.check(l.ctx, create.Request, object, last)
	if wrong == nil {
		generate, _ := object.Member("generate")
		r.WarmUp, r.streamID = generate == "false", create.StreamID
	}
	return r, wrong
}

// memberText returns a member of a frame even if the rest of the frame is wrong.
func memberText(frame []byte, name string) string {
	object, err := item.Parse(frame)
	if err != nil {
		return ""
	}
	v, _ := object.Member(name)
	text, _ := v.Unquote()
	return text
}
