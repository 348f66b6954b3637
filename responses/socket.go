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

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// socket is a WebSocket of the Responses API: many responses, one after the
// other. One goroutine reads it for as long as it is open, for a server wants
// its pings answered while a tool runs, and a socket that was lost meanwhile
// must be known as lost before anything is sent.
type socket struct {
	conn *websocket.Conn
	raw  net.Conn       // below conn, where net/http tells
	resp *http.Response // of the handshake
	born time.Time
	max  int // bytes of a message

	hearer atomic.Pointer[hearer]
	spare  chan *bytes.Buffer
	used   bool          // for a response that began and ended in order
	left   chan struct{} // closed when we leave
	leave  func()
	gone   chan struct{} // closed when the reader has ended
	err    error         // why; to be read after gone
}

// hearer is a response that waits for messages.
type hearer struct {
	messages chan *bytes.Buffer // closed when the socket is lost
	over     chan struct{}
}

const (
	// maxAge is when a socket is given up between two responses: servers end
	// them after an hour, and do not mind if that is in the middle of one.
	maxAge = 55 * time.Minute
	// closeTime is how long a server may take to answer a close frame.
	closeTime = time.Second
	// maxSpare bounds a buffer that is kept for another message.
	maxSpare = 1 << 20
)

// openSocket dials.
func openSocket(ctx context.Context, k *wire.Call, header map[string]string) (*socket, error) {
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
				s.err = unasked(msg.Bytes()) // it came after the last event
			case <-s.left:
			}
		}
	}
	_ = s.conn.CloseNow()
	close(s.gone) // before the hearer is told: one that comes now looks first
	if h := s.hearer.Swap(nil); h != nil {
		close(h.messages)
	}
}

var errBinary = errors.New("the server sent a binary message")

// message reads one. If the server breaks off within, that shows in the JSON
// alone: the library takes the end of the connection for that of the message.
func (s *socket) message() (*bytes.Buffer, error) {
	kind, r, err := s.conn.Reader(context.Background()) // CloseNow ends it
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

// unasked looks at a message that comes while no response is waited for. One
// that tells of an error, such as the socket's age, or of a response, ends the
// socket.
func unasked(msg []byte) error {
	ev, err := item.ParseEvent(msg)
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

// lost reports a socket that ended.
func (s *socket) lost() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// drop ends the socket at once. Nothing of it runs on.
func (s *socket) drop() {
	s.leave()
	_ = s.conn.CloseNow()
	<-s.gone
}

// close tells the server and waits a little for its answer.
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

// question is a request as it goes over a socket.
type question struct {
	body item.Body
	from string // the id of the response it goes on from
	sure bool   // that the endpoint understands that
}

// ask sends a message and returns what hears the answer.
func (s *socket) ask(x *wire.Exchange, q question) (*answer, error) {
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
	// What the server said before it hung up tells more.
	hurry := time.AfterFunc(closeTime, func() { _ = s.conn.CloseNow() })
	defer hurry.Stop()
	select {
	case <-s.gone:
	case <-x.Context().Done():
	}
	return a, a.lost()
}

// frame is how much of a message goes into one frame, in bytes, where it is not
// all at hand.
const frame = 64 << 10

// send writes a message: in one frame, or in several if it has payloads that are
// read meanwhile.
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
		return err // the message stays open, and the socket is given up
	}
	return w.Close()
}

// answer is the messages of one response. It is the [source] of a stream.
type answer struct {
	x    *wire.Exchange
	s    *socket
	q    question
	h    *hearer
	last *bytes.Buffer
	n    int
	// begun is set when the response was said to be made. What comes before that
	// over a socket that was used is the rest of something else.
	begun bool
}

// Next returns the next message. It holds until the one after it.
func (a *answer) Next() (sse.Event, error) {
	for {
		a.free()
		msg, ok := wire.Receive(a.x, a.h.messages)
		if !ok || a.x.Ended() {
			return sse.Event{}, a.lost()
		}
		if a.last = msg; len(bytes.TrimSpace(msg.Bytes())) == 0 {
			continue // a sign of life
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
		return sse.Event{Data: msg.Bytes()}, nil
	}
}

// begins looks at what comes before the response is known to be made. Over a
// socket that was used, it may be skipped if it is not about a response; if it
// is about the one before, which had come to its end, nothing here can be
// trusted.
func (a *answer) begins(msg []byte) (skip bool, err error) {
	ev, err := item.ParseEvent(msg)
	if err != nil {
		return false, nil // that is for the reader of the event to say
	}
	switch ev.Type {
	case item.EventCreated, item.EventQueued, item.EventInProgress:
		a.begun = true
		return false, a.isOurs(ev)
	case item.EventError, "":
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

// isOurs checks what the server says the response goes on from, if it does: it
// may be another response, or the id may mean nothing to it.
func (a *answer) isOurs(ev item.Event) error {
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
		return a.x.Fail(&endpoint.Error{Class: endpoint.PreviousResponse, Message: "the server did not go on from " + a.q.from})
	}
	return nil
}

func (a *answer) late() error {
	return a.x.Fail(&endpoint.Error{Class: endpoint.Truncated, Message: errLate.Error(), Err: errLate})
}

var errLate = errors.New("the server went on with a response that had come to its end")

// tells reports an event that says something of a response.
func tells(ev item.Event) bool { return ev.Terminal() || ev.OutputIndex >= 0 || ev.ItemID != "" }

// Unreadable is the error for a message that cannot be read.
func (a *answer) Unreadable(raw sse.Event, err error) *endpoint.Error {
	return a.x.Unreadable(fmt.Sprintf("message %d of the response", a.n), raw.Data, true, err)
}

// free gives the last message's buffer back.
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

// end lets the socket go on to the next response.
func (a *answer) end() {
	a.s.hearer.CompareAndSwap(a.h, nil)
	close(a.h.over)
	a.free()
}

// lost is the error for a response that cannot be heard on.
func (a *answer) lost() error {
	if a.x.Ended() {
		return a.x.Broken(context.Canceled)
	}
	<-a.s.gone
	err := a.s.err
	var closed websocket.CloseError
	switch {
	case err == errBinary:
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
