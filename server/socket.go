// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	end  context.CancelFunc // of ctx, and with it of the connection
	conn *websocket.Conn
	last *remembered // the last response, which the next request can continue although it is not stored

	patience time.Duration
	slow     *time.Timer  // ends the socket while the client does not read
	writing  atomic.Bool  // a write has not ended
	moved    atomic.Int64 // how often writing or busy has changed
	turn     atomic.Int64 // how many requests have begun and ended: odd while one is served
	busy     atomic.Bool  // a message is read or waits for its turn, and pongs behind it wait, too
}

// remembered is a response with its complete input and output. The items are left out if
// the backend keeps them.
type remembered struct {
	by    *Server
	id    string
	items []item.Item
	drop  context.CancelFunc // gives back the memory of the items
}

// frame is a message of a client, or why there is none. Its memory is held until end is called.
type frame struct {
	ctx   context.Context
	end   context.CancelFunc
	data  []byte
	wrong *Error
}

const (
	// maxWaiting is the maximum number of requests that wait on a WebSocket.
	maxWaiting = 16
	// patience is the default of Server.Patience.
	patience = 30 * time.Second
	// frameTime is how long a client may take to send a message.
	frameTime = 5 * time.Minute
	// readSize is how much of a message a client may take Server.Patience to send.
	readSize = 32 << 10
)

// socket serves a WebSocket until the client closes it, or the server stops.
func (s *Server) socket(c *call) *Error {
	conn, err := websocket.Accept(c.w, c.r, nil)
	if err != nil {
		return nil // the client has received the error
	}
	conn.SetReadLimit(s.limit())
	l := &lane{s: s, conn: conn, patience: cmp.Or(s.Patience, patience)}
	l.ctx, l.end = context.WithCancel(c.r.Context())
	l.slow = time.AfterFunc(l.patience, l.end)
	l.slow.Stop()
	frames := make(chan frame, maxWaiting)
	var all sync.WaitGroup
	all.Go(func() {
		defer l.end()
		l.receive(frames)
	})
	all.Go(l.ping)
	defer func() {
		l.slow.Stop()
		l.end()
		_ = conn.CloseNow() // it may already be closed
		all.Wait()
	}()
	defer l.forget(nil)
	for {
		select {
		case <-l.ctx.Done():
			return nil
		case f := <-frames:
			l.turn.Add(1)
			err := l.serve(f)
			f.end()
			l.turn.Add(1)
			if err != nil {
				return nil
			}
		}
	}
}

// receive reads a WebSocket to its end. Reading continuously makes the library
// answer pings.
func (l *lane) receive(frames chan<- frame) {
	for {
		kind, r, err := l.conn.Reader(l.ctx)
		switch {
		case err != nil:
			return
		case kind != websocket.MessageText:
			_ = l.conn.Close(websocket.StatusUnsupportedData, "messages are text") // the connection ends either way
			return
		}
		l.busy.Store(true)
		l.moved.Add(1)
		f, err := l.take(r)
		if err != nil {
			return
		}
		select {
		case frames <- f:
		case <-l.ctx.Done():
			return
		}
		l.busy.Store(false)
		l.moved.Add(1)
	}
}

// take reads a message. It may have memory as the body of a request has it. The error is one of
// the socket.
func (l *lane) take(r io.Reader) (f frame, err error) {
	late, stalled := time.AfterFunc(frameTime, l.end), time.AfterFunc(l.patience, l.end)
	defer late.Stop()
	defer stalled.Stop()
	from := readerFunc(func(data []byte) (int, error) {
		n, err := r.Read(data[:min(len(data), readSize)]) // it returns when data is full
		stalled.Reset(l.patience)
		return n, err
	})
	f.ctx, f.end = context.WithCancel(l.ctx)
	f.data, err = readHeld(f.ctx, from, math.MaxInt64) // the connection has the limit
	if errors.As(err, &f.wrong) {
		f.end()
		f.wrong = f.wrong.complete()
		_, err = io.Copy(io.Discard, from)
	}
	if err != nil {
		f.end()
	}
	return f, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(data []byte) (int, error) { return f(data) }

// ping fills the silence of a socket, which proxies close otherwise, and ends the response of a
// client that is gone: it leaves two pings in a row unanswered while nothing else is sent or
// received. Between responses some clients do not read, and so cannot answer.
func (l *lane) ping() {
	tick := time.NewTicker(cmp.Or(l.s.Silence, silence))
	defer tick.Stop()
	for lost := 0; lost < 2; {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		if l.writing.Load() {
			continue // a ping that has to wait for long ends the connection
		}
		turn, moved := l.turn.Load(), l.moved.Load()
		ctx, stop := context.WithTimeout(l.ctx, l.patience)
		err := l.conn.Ping(ctx)
		stop()
		if err != nil && turn%2 == 1 && l.turn.Load() == turn && l.moved.Load() == moved && !l.writing.Load() && !l.busy.Load() {
			lost++
		} else {
			lost = 0
		}
	}
	l.end()
}

// serve handles one frame. It returns only errors of the socket.
func (l *lane) serve(f frame) error {
	if f.wrong != nil {
		return l.write(f.wrong.frame(""))
	}
	s, done, wrong := l.s.chooses(f.ctx, f.data, true, l.last)
	if wrong == nil {
		wrong = l.answer(s, f)
		done(wrong == nil)
	}
	if wrong != nil {
		if l.last != nil && memberText(f.data, "previous_response_id") == l.last.id {
			l.forget(nil) // the failed request cannot be continued
		}
		return l.write(wrong.frame(memberText(f.data, "stream_id")))
	}
	return l.ctx.Err()
}

// answer makes the response to a frame, or returns why not.
func (l *lane) answer(s *Server, f frame) *Error {
	r, wrong := l.read(s, f)
	if wrong != nil {
		return wrong
	}
	j, wrong := s.newJob(r)
	if wrong != nil {
		return wrong
	}
	j.to = func(ev api.Event) error { return l.write([]byte(ev.JSON())) }
	if wrong = s.run(f.ctx, j); wrong != nil {
		return wrong
	}
	rec := j.record()
	if rec.Response == nil || !continues(rec.Response) || !l.remember(s, rec, r.Items) {
		s.forget(r, j.id)
	}
	return nil
}

// remember makes a response the last one, unless there is no memory for it.
func (l *lane) remember(s *Server, rec StoredObject, input []item.Item) bool {
	items, size := append(slices.Clip(input), lasting(rec.Response)...), 0
	for _, it := range items {
		size += len(it.JSON())
	}
	ctx, drop := context.WithCancel(l.ctx)
	if Hold(ctx, int64(size)) != nil {
		drop()
		return false
	}
	l.forget(&remembered{s, rec.ID(), items, drop})
	return true
}

// forget replaces the last response. What the backend keeps of it goes, unless it is
// stored.
func (l *lane) forget(next *remembered) {
	if l.last != nil {
		l.last.drop()
		if k := l.last.by.keeper(); k != nil {
			k.Forget(l.last.id)
		}
	}
	l.last = next
}

// write sends a message. A client that does not read it loses its connection. V5
func (l *lane) write(data []byte) error {
	l.writing.Store(true)
	l.moved.Add(1)
	l.slow.Reset(l.patience)
	err := l.conn.Write(l.ctx, websocket.MessageText, data)
	l.slow.Stop()
	l.writing.Store(false)
	l.moved.Add(1)
	return err
}

// read parses a frame, which must create a response.
func (l *lane) read(s *Server, f frame) (*Request, *Error) {
	e, err := api.ParseClientEvent(f.data)
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
	object, err := item.Parse(f.data)
	if err != nil {
		return nil, unreadable(err)
	}
	last := l.last
	if last != nil && last.by != s {
		last = nil
	}
	r, wrong := s.check(f.ctx, create.Request, object, last)
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
