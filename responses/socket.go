// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// socket is a WebSocket connection of the Responses API. It carries many responses, one after the
// other. One goroutine reads it while it is open, because the server expects answers to its pings
// while a tool runs, and because a lost socket must be noticed before anything is sent.
type socket struct {
	conn *websocket.Conn
	raw  net.Conn       // below conn, if net/http reports it
	resp *http.Response // the handshake's answer
	born time.Time
	max  int // maximum size of a message in bytes

	hearer atomic.Pointer[hearer]
	spare  chan *bytes.Buffer
	used   bool          // a response began and ended in order
	left   chan struct{} // closed when the client leaves
	leave  func()
	gone   chan struct{} // closed when the reader has ended
	err    error         // why the reader ended; read only after gone
}

// hearer is a response that waits for messages.
type hearer struct {
	messages chan *bytes.Buffer // closed when the socket is lost
	over     chan struct{}
}

const (
	// maxAge is the age at which a socket is replaced between two responses. Servers close sockets
	// after an hour, even in the middle of a response.
	maxAge = 55 * time.Minute
	// closeTime is how long to wait for the server's answer to a close frame.
	closeTime = time.Second
	// maxSpare is the largest buffer that is kept for another message, in bytes.
	maxSpare = 1 << 20
)

// openSocket connects and starts the reader.
func openSocket(ctx context.Context, k *transport.Call, header map[string]string) (*socket, error) {
	s := &socket{
		born: time.Now(), max: k.MaxEvent(),
		spare: make(chan *bytes.Buffer, 2), left: make(chan struct{}), gone: make(chan struct{}),
	}
	s.leave = sync.OnceFunc(func() { close(s.left) })
	err := k.Dial(ctx, header, func(ctx context.Context, url string, c *http.Client, h http.Header) (*http.Response, error) {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { s.raw = i.Conn }})
		var err error
		s.conn, s.resp, err = websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: c, HTTPHeader: h})
		return s.resp, err
	})
	if err != nil {
		return nil, err
	}
	s.conn.SetReadLimit(int64(s.max))
	go s.read()
	return s, nil
}

// read passes messages on until the socket ends.
func (s *socket) read() {
	for s.err == nil {
		msg, err := s.message()
		h := s.hearer.Load()
		switch {
		case err != nil:
			s.err = err
		case h == nil:
			s.err = unasked(msg.Bytes())
		default:
			select {
			case h.messages <- msg:
			case <-h.over:
				s.err = unasked(msg.Bytes()) // the message came after the last event
			case <-s.left:
			}
		}
	}
	_ = s.conn.CloseNow()
	close(s.gone) // close before notifying the hearer: a new hearer checks gone first
	if h := s.hearer.Swap(nil); h != nil {
		close(h.messages)
	}
}

var errBinary = errors.New("the server sent a binary message")

// message reads one message. If the server breaks off inside a message, only the JSON shows it: the
// library takes the end of the connection for the end of the message.
func (s *socket) message() (*bytes.Buffer, error) {
	kind, r, err := s.conn.Reader(context.Background()) // CloseNow ends the read
	if err != nil {
		return nil, err
	}
	msg := new(bytes.Buffer)
	select {
	case msg = <-s.spare:
		msg.Reset()
	default:
	}
	_, err = msg.ReadFrom(r)
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		return nil, &sse.TooLargeError{Limit: s.max}
	case err == nil && kind != websocket.MessageText:
		return nil, errBinary
	}
	return msg, err
}

// unasked examines a message that arrives while no response is running. A message about an error,
// such as the socket's age, or about a response ends the socket.
func unasked(msg []byte) error {
	ev, err := api.ParseEvent(msg)
	if err != nil {
		return err
	}
	if a, ok := ev.Err(); ok {
		return a
	}
	if tells(ev) {
		return errLate
	}
	return nil
}

// lost reports whether the socket has ended.
func (s *socket) lost() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// drop closes the socket immediately and waits for its reader.
func (s *socket) drop() {
	s.leave()
	_ = s.conn.CloseNow()
	<-s.gone
}

// close sends a close frame and waits a little for the server's answer.
func (s *socket) close() {
	force := time.AfterFunc(closeTime, func() {
		if s.raw != nil {
			_ = s.raw.Close()
		}
	})
	defer force.Stop()
	_ = s.conn.Close(websocket.StatusNormalClosure, "") // it is closed either way
	s.drop()
}

// question is a request in its WebSocket form.
type question struct {
	body item.Body
	from string // the id of the response to continue from
	sure bool   // the endpoint is known to understand from
}

// ask sends a message and returns the answer that receives its reply.
func (s *socket) ask(x *transport.Exchange, q question) (*answer, error) {
	a := &answer{x: x, s: s, q: q, h: &hearer{make(chan *bytes.Buffer), make(chan struct{})}}
	s.hearer.Store(a.h)
	if s.lost() {
		return a, a.lost()
	}
	err := x.Do(func(ctx context.Context) error { return s.send(ctx, q.body) })
	var held *item.HeldError
	if err == nil || errors.As(err, &held) {
		return a, err
	}
	// A message that the server sent before it closed the connection explains more.
	hurry := time.AfterFunc(closeTime, func() { _ = s.conn.CloseNow() })
	defer hurry.Stop()
	select {
	case <-s.gone:
	case <-x.Context().Done():
	}
	return a, a.lost()
}

// frame is the size in bytes of the frames of a message that is not all in memory.
const frame = 64 << 10

// send writes a message in one frame. If payloads must be read while writing, it uses several
// frames.
func (s *socket) send(ctx context.Context, body item.Body) error {
	if !body.Held() {
		text, err := body.Append(nil)
		if err != nil {
			return err
		}
		return s.conn.Write(ctx, websocket.MessageText, text)
	}
	w, err := s.conn.Writer(ctx, websocket.MessageText)
	if err != nil {
		return err
	}
	r := body.NewReader()
	defer r.Close()
	if _, err = io.CopyBuffer(w, r, make([]byte, frame)); err != nil {
		return err // the message stays unfinished, and the socket is discarded
	}
	return w.Close()
}

// answer holds the messages of one response. It is the [source] of a stream.
type answer struct {
	x    *transport.Exchange
	s    *socket
	q    question
	h    *hearer
	last *bytes.Buffer
	n    int
	// begun is set when the server has announced the response. On a used socket, messages before
	// that are left over from something else.
	begun bool
}

// Next returns the next message. It is valid until the next call.
func (a *answer) Next() (sse.Event, error) {
	for {
		a.free()
		msg, ok := transport.Receive(a.x, a.h.messages)
		if !ok || a.x.Ended() {
			return sse.Event{}, a.lost()
		}
		if a.last = msg; len(bytes.TrimSpace(msg.Bytes())) == 0 {
			continue // keepalive
		}
		if a.n++; !a.begun {
			skip, err := a.begins(msg.Bytes())
			if err != nil {
				return sse.Event{}, err
			}
			if skip {
				continue
			}
		}
		return sse.Event{Data: msg.Bytes()}, a.x.Counted(msg.Len())
	}
}

// begins examines a message that arrives before the server has announced the response. On a used
// socket it skips messages that are not about a response. A message about the previous response,
// which had ended, means that the socket cannot be trusted.
func (a *answer) begins(msg []byte) (skip bool, err error) {
	ev, err := api.ParseEvent(msg)
	if err != nil {
		return false, nil // the reader of the event reports this error
	}
	switch ev.Type {
	case api.EventCreated, api.EventQueued, api.EventInProgress:
		a.begun = true
		return false, a.isOurs(ev)
	case api.EventError, "":
		return false, nil
	}
	switch {
	case !a.s.used:
		return false, nil
	case tells(ev):
		return false, a.late()
	}
	return true, nil
}

// isOurs checks the response's previous_response_id, if the server sent it. The response may be
// another one, or the server may have ignored the id.
func (a *answer) isOurs(ev api.Event) error {
	r, _ := ev.Member("response")
	it, err := item.ParseString(string(r))
	if err != nil {
		return nil
	}
	v, _ := it.Member("previous_response_id")
	switch from, ok := v.Unquote(); {
	case ok && from != a.q.from && a.s.used:
		return a.late()
	case v == "null" && a.q.from != "" && !a.q.sure:
		return a.x.Fail(&endpoint.Error{Class: endpoint.PreviousResponse, Message: "the server did not continue from " + a.q.from})
	}
	return nil
}

func (a *answer) late() error {
	return a.x.Fail(&endpoint.Error{Class: endpoint.Truncated, Message: errLate.Error(), Err: errLate})
}

var errLate = errors.New("the server sent more events for a response that had ended")

// tells reports whether an event is about a response.
func tells(ev api.Event) bool { return ev.Terminal() || ev.OutputIndex >= 0 || ev.ItemID != "" }

// Unreadable returns the error for a message that cannot be read.
func (a *answer) Unreadable(raw sse.Event, err error) *endpoint.Error {
	return a.x.Unreadable(fmt.Sprintf("message %d of the response", a.n), raw.Data, true, err)
}

// free makes the last message's buffer available again.
func (a *answer) free() {
	if a.last == nil || a.last.Cap() > maxSpare {
		return
	}
	select {
	case a.s.spare <- a.last:
	default:
	}
	a.last = nil
}

// end frees the socket for the next response.
func (a *answer) end() {
	a.s.hearer.CompareAndSwap(a.h, nil)
	close(a.h.over)
	a.free()
}

// lost returns the error for a response whose messages can no longer be received.
func (a *answer) lost() error {
	if a.x.Ended() {
		return a.x.Broken(context.Canceled)
	}
	<-a.s.gone
	err := a.s.err
	var closed websocket.CloseError
	switch {
	case errors.Is(err, errBinary):
		return a.x.Fail(&endpoint.Error{Class: endpoint.Protocol, Err: err})
	case !errors.As(err, &closed):
		return a.x.Broken(err)
	}
	said := strings.TrimSpace(fmt.Sprintf("%d %s", int(closed.Code), closed.Reason))
	e := &endpoint.Error{Class: endpoint.Truncated, Message: "the server closed the socket: " + said, Err: err}
	if closed.Code == websocket.StatusMessageTooBig {
		e.Class = endpoint.TooLarge
	}
	return a.x.Fail(e)
}
