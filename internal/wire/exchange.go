// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
)

// Exchange is one attempt on the wire: a request that was answered with 2xx,
// and the body to read. Its context ends with the caller's, when the endpoint
// is silent for too long, and with close.
type Exchange struct {
	call   *Call
	outer  context.Context // the caller's
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   idleTimer
	// Response is the answer. Its Body is read through Body, which has what
	// sniffing has read already.
	Response *http.Response
	Body     io.Reader
	Kind     Kind

	room  *room  // where the body is read to
	head  []byte // what sniffing has read of the body, and nobody else yet; at the front of room
	atEnd bool   // nothing more can be read

	events Events
}

// answer is what is read through [Exchange.Body]: the head, then the rest within
// the idle limit.
type answer struct{ x *Exchange }

func (b answer) Read(p []byte) (int, error) {
	if x := b.x; len(x.head) > 0 {
		n := copy(p, x.head)
		x.head = x.head[n:]
		return n, nil
	}
	b.x.idle.start()
	n, err := b.x.Response.Body.Read(p)
	b.x.idle.stop()
	b.x.atEnd = err != nil
	return n, err
}

var (
	errIdle   = errors.New("idle")
	errSigns  = errors.New("nothing but signs of life")
	errClosed = errors.New("closed")
)

// Open sends the request and waits for the beginning of the answer. What is not
// an answer of 2xx, or none of this API, is returned as an error, its body read.
// A [*item.HeldError] says that a part of the request is not there any more.
func (k *Call) Open(ctx context.Context) (*Exchange, error) {
	x := &Exchange{call: k, outer: ctx}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.Body = answer{x}
	x.idle.open(k.link.idle(), x.cancel)
	r := k.request(x.ctx)
	var err error
	x.idle.start()
	x.Response, err = k.http.Do(r)
	x.idle.stop()
	if err != nil {
		if x.Response != nil {
			_ = x.Response.Body.Close()
			x.Response = nil
		}
		defer x.Close()
		var held *item.HeldError
		if x.outer.Err() == nil && errors.As(err, &held) {
			return nil, held // trying again would not bring it back
		}
		return nil, x.ended(func() *endpoint.Error { return endpoint.FromTransport(r.Method, r.URL, err) })
	}
	k.hideHeader(x.Response.Header)
	endpoint.FillMeta(ctx, x.Response, k.attempt)
	k.link.learn(x.Response)
	if err := x.begin(); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// maxErrorBody bounds what is read of an answer that is an error.
const maxErrorBody = 1 << 20

// begin looks at the status and at the first bytes of the body.
func (x *Exchange) begin() error {
	contentType := x.Response.Header.Get("Content-Type")
	if x.Response.StatusCode < 200 || x.Response.StatusCode > 299 {
		text, _ := io.ReadAll(io.LimitReader(x.Body, maxErrorBody)) // half of it is better than nothing
		if context.Cause(x.ctx) != nil {
			return x.Broken(context.Cause(x.ctx))
		}
		return x.Refused(text)
	}
	x.room = rooms.Get().(*room)
	head, err := readHead(x.Body, x.room[:0], contentType)
	if err != nil && err != io.EOF {
		return x.Broken(err)
	}
	if err == io.EOF && len(head) == 0 && x.Response.Request.Method == http.MethodPost { // an end that the server meant: a truncated one is another error
		return x.Fail(&endpoint.Error{Class: endpoint.Protocol, Message: "the answer is empty"})
	}
	x.head = head
	if x.Kind = kindOf(head, contentType); x.Kind == Other {
		text, _ := io.ReadAll(io.LimitReader(x.Body, maxErrorBody))
		e := x.Refused(text)
		if what := encoding(trimStart(head)); what != "" {
			e.Message, e.Body = "the answer is "+what, ""
		} else if e.Message == "" {
			e.Message = fmt.Sprintf("the answer is neither JSON nor an event stream but %s", cmp.Or(contentType, "of no type"))
		}
		return e
	}
	return nil
}

// Close gives the connection up, unless the body was read to its end. It may be
// called more than once.
func (x *Exchange) Close() {
	x.idle.close()
	x.cancel(errClosed)
	if x.Response != nil {
		_ = x.Response.Body.Close()
	}
}

// What is read after the last event, so that the connection can be used again:
// little, and not for long, for some servers never end their streams.
const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// Drain reads what is left behind the last event: mostly nothing, the end has
// come with it.
func (x *Exchange) Drain() {
	if x.atEnd {
		return
	}
	x.CancelAfter(drainTime)
	_, _ = io.CopyN(io.Discard, x.Body, drainBytes)
}

// Heard says that something of the answer has come, other than a sign of life. A
// reader of a stream says so once when it begins.
func (x *Exchange) Heard() { x.idle.heard() }

// CancelAfter gives the exchange up in a while, if it is not closed before.
func (x *Exchange) CancelAfter(d time.Duration) { x.idle.end(d) }

// ended is the error for a failure of the connection: the caller's or the idle
// timer's doing, where it is one of theirs, and otherwise what other says.
func (x *Exchange) ended(other func() *endpoint.Error) *endpoint.Error {
	switch {
	case x.outer.Err() != nil:
		return x.call.canceled(x.outer)
	case context.Cause(x.ctx) == errSigns:
		return x.Fail(&endpoint.Error{
			Class:   endpoint.Idle,
			Message: fmt.Sprintf("the server sent nothing but signs of life for %v", patience*x.idle.limit),
			Hint:    "the model behind it may be gone; raise the idle limit if it thinks for so long",
		})
	case context.Cause(x.ctx) == errIdle:
		return x.Fail(&endpoint.Error{
			Class:   endpoint.Idle,
			Message: fmt.Sprintf("the server sent nothing for %v", x.idle.limit),
			Hint:    "raise the idle limit if the model thinks for so long",
		})
	}
	return x.Fail(other())
}

// Broken is the error for a body that could not be read on.
func (x *Exchange) Broken(err error) *endpoint.Error {
	return x.ended(func() *endpoint.Error {
		var tooLarge *sse.TooLargeError
		switch {
		case errors.As(err, &tooLarge):
			return &endpoint.Error{Class: endpoint.TooLarge, Message: err.Error(), Err: err}
		case errors.Is(err, io.EOF):
			return &endpoint.Error{Class: endpoint.Truncated, Message: "the stream ended without its last event", Err: io.ErrUnexpectedEOF}
		}
		return &endpoint.Error{Class: endpoint.Truncated, Message: "the connection broke before the end of the answer: " + err.Error(), Err: err}
	})
}

// Unreadable is the error for invalid JSON; what names its place. A text that
// ends too early at the end of the body was truncated.
func (x *Exchange) Unreadable(what string, text []byte, last bool, err error) *endpoint.Error {
	e := &endpoint.Error{Class: endpoint.Protocol, Err: err}
	e.Message = fmt.Sprintf("%s cannot be read: %v: %s", what, err, x.Quote(text, 200))
	var syntax *item.SyntaxError
	if last && errors.As(err, &syntax) && syntax.Offset >= len(bytes.TrimRight(text, " \t\r\n")) {
		e.Class = endpoint.Truncated
		e.Message = what + " ends too early"
	}
	return x.Fail(e)
}

// Hide is [Call.Hide].
func (x *Exchange) Hide(text string) string { return x.call.Hide(text) }

// Fail adds the exchange's place to an error.
func (x *Exchange) Fail(e *endpoint.Error) *endpoint.Error { return x.call.Fill(e, x.Response) }

// FromAPI is the error that the server reports in the body.
func (x *Exchange) FromAPI(a *item.APIError) *endpoint.Error { return x.call.FromAPI(a, x.Response) }

// FromAPI is the error that the server reports otherwise than by a status. Resp
// may be nil.
func (k *Call) FromAPI(a *item.APIError, resp *http.Response) *endpoint.Error {
	e := endpoint.FromAPI(a.Code, a.Type, strings.TrimSpace(a.Message), a.Param)
	e.Err = a
	return k.Fill(e, resp)
}
