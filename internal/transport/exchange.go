// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
)

// Exchange is one attempt of a request that got an answer with status 2xx, and the body to read.
// Its context ends with the caller's context, when the endpoint is silent for too long, and on
// Close.
type Exchange struct {
	call   *Call
	outer  context.Context // the caller's
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   idleTimer
	wait   func() // is called before each read; see Passing
	// Response is the answer. Read its Body through the field Body, which includes the bytes
	// already read for detection.
	Response *http.Response
	Body     io.Reader
	Kind     Kind

	room  *room  // the buffer that the body is read into
	head  []byte // bytes read for detection and not consumed yet; at the start of room
	atEnd bool   // the body was read to its end
	bomb  *bombError

	streamed int64 // bytes of the events so far
	events   Events
}

// answer is the reader behind [Exchange.Body]: the head, then the rest within the idle limit.
type answer struct{ x *Exchange }

func (b answer) Read(p []byte) (int, error) {
	if x := b.x; len(x.head) > 0 {
		n := copy(p, x.head)
		x.head = x.head[n:]
		return n, nil
	}
	if b.x.wait != nil {
		b.x.wait()
	}
	b.x.idle.start()
	n, err := b.x.Response.Body.Read(p)
	b.x.idle.stop()
	b.x.atEnd = err != nil
	if err != nil {
		_ = errors.As(err, &b.x.bomb)
	}
	return n, err
}

var (
	errIdle   = errors.New("idle")
	errSigns  = errors.New("only keepalives")
	errClosed = errors.New("closed")
	// errPartial is the cause of an error whose description broke off, so that it does not say
	// whether the path or the object is missing.
	errPartial = errors.New("the server's message broke off")
)

// Open sends the request and waits for the beginning of the answer. For an answer that is not 2xx,
// or does not belong to this API, Open reads the body and returns an error. An [*item.HeldError]
// says that a part of the request no longer exists.
func (k *Call) Open(ctx context.Context) (*Exchange, error) {
	x := &Exchange{call: k, outer: ctx, wait: passing(ctx)}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.Body = answer{x}
	x.idle.open(k.config.idle(), x.cancel)
	r := k.request(x.ctx)
	var upload *pace
	if k.source != nil {
		upload = &pace{timer: &x.idle}
		k.source.attach(x.ctx, r, upload)
	}
	var err error
	x.idle.start()
	x.Response, err = k.http.Do(r) //nolint:bodyclose // Exchange.Close closes it
	if upload != nil {
		upload.end()
	}
	x.idle.stop()
	if err != nil {
		if x.Response != nil {
			_ = x.Response.Body.Close()
			x.Response = nil
		}
		defer x.Close()
		var held *item.HeldError
		if x.outer.Err() == nil && errors.As(err, &held) {
			return nil, held // trying again would not restore it
		}
		return nil, x.ended(func() *endpoint.Error { return endpoint.FromTransport(r.Method, r.URL, err) })
	}
	k.hideHeader(x.Response.Header)
	endpoint.FillMeta(ctx, x.Response, k.attempt)
	k.config.learn(x.Response)
	if err := x.begin(); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// maxErrorBody limits how much of an error's body is read, in bytes.
const maxErrorBody = 1 << 20

// begin checks the status and the first bytes of the body.
func (x *Exchange) begin() error {
	contentType := x.Response.Header.Get("Content-Type")
	if x.Response.StatusCode < 200 || x.Response.StatusCode > 299 {
		text, err := io.ReadAll(io.LimitReader(x.Body, maxErrorBody)) // a partial body still helps
		if context.Cause(x.ctx) != nil {
			return x.Broken(context.Cause(x.ctx))
		}
		e := x.Refused(text)
		if err != nil && e.Err == nil && e.Status == http.StatusNotFound {
			e.Err = errPartial
		}
		return e
	}
	if x.call.raw {
		return nil
	}
	x.room = rooms.Get().(*room)
	head, err := readHead(x.Body, x.room[:0], contentType)
	if err != nil && err != io.EOF {
		return x.Broken(err)
	}
	if err == io.EOF && len(head) == 0 && x.Response.Request.Method == http.MethodPost { // a proper end; a truncated body gives another error
		return x.Fail(&endpoint.Error{Class: endpoint.Protocol, Message: "the answer is empty"})
	}
	x.head = head
	if x.Kind = kindOf(head, contentType); x.Kind == Other {
		text, _ := io.ReadAll(io.LimitReader(x.Body, maxErrorBody))
		e := x.Refused(text)
		if what := encoding(trimStart(head)); what != "" {
			e.Message, e.Body = "the answer is "+what, ""
		} else if e.Message == "" && strings.Contains(contentType, "json") {
			e.Message = "the answer is not a JSON object"
		} else if e.Message == "" {
			e.Message = fmt.Sprintf("the answer is neither JSON nor an event stream but %s", cmp.Or(contentType, "of no type"))
		}
		return e
	}
	return nil
}

// Close closes the connection, unless the body was read to its end. It may be called more than
// once.
func (x *Exchange) Close() {
	x.idle.close()
	x.cancel(errClosed)
	if x.Response != nil {
		_ = x.Response.Body.Close()
	}
}

// Limits for reading after the last event, so that the connection can be reused. They are small,
// because some servers never end their streams.
const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// Drain reads the rest of the body after the last event. Usually the end has already arrived.
func (x *Exchange) Drain() {
	if x.atEnd {
		return
	}
	x.CancelAfter(drainTime)
	_, _ = io.CopyN(io.Discard, x.Body, drainBytes)
}

// Heard records that a part of the answer other than a keepalive has arrived. A reader of a stream
// also calls it once at the beginning.
func (x *Exchange) Heard() { x.idle.heard() }

// CancelAfter cancels the exchange after d, unless it is closed before.
func (x *Exchange) CancelAfter(d time.Duration) { x.idle.end(d) }

// ended returns the error for a failed connection. If the caller or the idle timer ended it, the
// error says so; otherwise it is the result of other.
func (x *Exchange) ended(other func() *endpoint.Error) *endpoint.Error {
	switch {
	case x.outer.Err() != nil:
		return x.call.canceled(x.outer)
	case errors.Is(context.Cause(x.ctx), errSigns):
		return x.Fail(&endpoint.Error{
			Class:   endpoint.Idle,
			Message: fmt.Sprintf("the server sent only keepalives for %v", patience*x.idle.limit),
			Hint:    "the model behind it may have stopped; raise the idle limit if the model thinks longer",
		})
	case errors.Is(context.Cause(x.ctx), errIdle):
		return x.Fail(&endpoint.Error{
			Class:   endpoint.Idle,
			Message: fmt.Sprintf("the server sent nothing for %v", x.idle.limit),
			Hint:    "raise the idle limit if the model thinks longer",
		})
	}
	return x.Fail(other())
}

// Broken returns the error for a body that could not be read to its end.
func (x *Exchange) Broken(err error) *endpoint.Error {
	return x.ended(func() *endpoint.Error {
		var tooLarge *sse.TooLargeError
		switch {
		case x.bomb != nil:
			return &endpoint.Error{Class: endpoint.TooLarge, Message: x.bomb.Error(), Err: x.bomb}
		case errors.As(err, &tooLarge):
			return &endpoint.Error{Class: endpoint.TooLarge, Message: err.Error(), Err: err}
		case errors.Is(err, io.EOF):
			return &endpoint.Error{Class: endpoint.Truncated, Message: "the stream ended without its last event", Err: io.ErrUnexpectedEOF}
		}
		return &endpoint.Error{Class: endpoint.Truncated, Message: "the connection broke before the end of the answer: " + err.Error(), Err: err}
	})
}

// Unreadable returns the error for invalid JSON; what names its place. Text that ends too early at
// the end of the body is truncated.
func (x *Exchange) Unreadable(what string, text []byte, last bool, err error) *endpoint.Error {
	if x.bomb != nil {
		return x.Broken(err)
	}
	e := &endpoint.Error{Class: endpoint.Protocol, Err: err}
	e.Message = fmt.Sprintf("%s cannot be read: %v: %s", what, err, x.Quote(text, 200))
	var syntax *item.SyntaxError
	if last && errors.As(err, &syntax) && syntax.Offset >= len(bytes.TrimRight(text, " \t\r\n")) {
		e.Class = endpoint.Truncated
		e.Message = what + " ends too early"
	}
	return x.Fail(e)
}

// Hide is like [Call.Hide].
func (x *Exchange) Hide(text string) string { return x.call.Hide(text) }

// Fail adds the exchange's place to an error and returns it.
func (x *Exchange) Fail(e *endpoint.Error) *endpoint.Error { return x.call.Fill(e, x.Response) }

// FromAPI returns the error that the server reports in the body.
func (x *Exchange) FromAPI(a *api.APIError) *endpoint.Error { return x.call.FromAPI(a, x.Response) }

// FromAPI returns the error that the server reports without an error status. Resp may be nil.
func (k *Call) FromAPI(a *api.APIError, resp *http.Response) *endpoint.Error {
	e := endpoint.FromAPI(a.Code, a.Type, strings.TrimSpace(a.Message), a.Param)
	e.Err = a
	return k.Fill(e, resp)
}

// mostStreamed limits the data of all events of a stream, in bytes, because what reads them keeps what
// they say. The longest replies of models have less than a tenth of it. A client that accepts larger
// events accepts four of them.
var mostStreamed int64 = 1 << 30

// Counted counts the data of an event, and returns an error if the stream has more than a client takes.
func (x *Exchange) Counted(n int) error {
	limit := max(mostStreamed, 4*int64(x.call.config.MaxEvent))
	if x.streamed += int64(n); x.streamed > limit {
		return x.Fail(&endpoint.Error{Class: endpoint.TooLarge, Message: fmt.Sprintf("the events of the stream are larger than %d bytes together", limit)})
	}
	return nil
}

// Events reads the event stream of an exchange.
type Events struct {
	x  *Exchange
	rd sse.Reader
	n  int
}

// Events returns the reader of the exchange's stream. It begins with the bytes read for detection.
func (x *Exchange) Events() *Events {
	e := &x.events
	e.x = x
	e.rd.Reset(x.Body, x.room[:], len(x.head), sse.Options{MaxEvent: x.call.config.MaxEvent})
	x.head = nil
	return e
}

// rooms holds buffers for the beginnings of answers and their streams.
var rooms = sync.Pool{New: func() any { return new(room) }}

type room [sse.FirstBuffer]byte

// Recycle returns the buffer for reuse. The stream's events must not be used after it.
func (x *Exchange) Recycle() {
	if r := x.room; r != nil {
		x.room, x.events.rd = nil, sse.Reader{}
		rooms.Put(r)
	}
}

// Next returns the next event that has data, which is valid until the next call. Its data may be
// [DONE]; see [Done]. The error is final: an [*endpoint.Error] that says why the stream ended, even
// if it ended properly.
func (e *Events) Next() (sse.Event, error) {
	for {
		raw, err := e.rd.Next()
		if err != nil || e.x.outer.Err() != nil {
			return raw, e.x.Broken(err)
		}
		if len(raw.Data) > 0 { // otherwise a keepalive
			e.n++
			return raw, e.x.Counted(len(raw.Data))
		}
	}
}

// Unreadable returns the error for an event whose data cannot be read.
func (e *Events) Unreadable(raw sse.Event, err error) *endpoint.Error {
	return e.x.Unreadable(fmt.Sprintf("event %d of the stream", e.n), raw.Data, raw.Unterminated, err)
}

// Done reports whether data is the text that some servers send instead of a last event, or after
// it.
func Done(data []byte) bool {
	return data[0] != '{' && bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]"))
}

// Ended reports whether the exchange was cancelled, was silent for too long, or is closed.
func (x *Exchange) Ended() bool { return x.ctx.Err() != nil }

// ReadAll reads the body, up to the client's limit.
func (x *Exchange) ReadAll() ([]byte, error) {
	limit := cmp.Or(x.call.config.MaxBody, DefaultMaxBody)
	size := int64(bytes.MinRead)
	if n := x.Response.ContentLength; n > 0 {
		size += min(n, limit, largestPart)
	}
	var parts [][]byte // a buffer that doubles would be three times the body while it grows
	var n int64
	rest := io.LimitReader(x.Body, limit+1)
	for err := error(nil); err == nil; size = min(2*size, largestPart) {
		part := make([]byte, 0, size)
		for err == nil && len(part) < cap(part) {
			var more int
			more, err = rest.Read(part[len(part):cap(part)])
			part = part[:len(part)+more]
		}
		if err != nil && err != io.EOF {
			return nil, x.Broken(err)
		}
		n += int64(len(part))
		parts = append(parts, part)
	}
	if n > limit {
		return nil, x.Fail(&endpoint.Error{Class: endpoint.TooLarge, Message: fmt.Sprintf("the answer is larger than %d bytes", limit)})
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return bytes.Join(parts, nil), nil
}

// largestPart is the size of the buffers that [Exchange.ReadAll] reads a large body into, in bytes.
const largestPart = 16 << 20

// Kind is the kind of a body. Its first bytes count more than its Content-Type, because servers and
// proxies often set a wrong one.
type Kind int

// The kinds of bodies.
const (
	Other  Kind = iota // neither of the two, or a web page
	Stream             // an event stream
	JSON               // one JSON text
)

func kindOf(head []byte, contentType string) Kind {
	start := trimStart(head)
	switch {
	case len(start) == 0:
		return Stream // an empty body: truncated
	case encoding(start) != "":
		return Other
	case start[0] == '{' || start[0] == '[':
		return JSON
	case start[0] == '<' && endpoint.LooksLikeHTML(start):
		return Other
	case isEventStream(contentType):
		return Stream
	}
	for _, field := range []string{":", "data", "event", "id", "retry"} {
		if bytes.HasPrefix(start, []byte(field)) {
			return Stream
		}
	}
	return Other
}

// trimStart removes a byte order mark and white space.
func trimStart(head []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
}

// encoding names the encoding of bytes that are not UTF-8 text, or returns "" for text. Such an
// answer is not retried: it was generated, may have been paid for, and would look the same again.
func encoding(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return "gzip without a Content-Encoding header"
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd without a Content-Encoding header"
	case bytes.HasPrefix(start, []byte{0xff, 0xfe}), bytes.HasPrefix(start, []byte{0xfe, 0xff}), len(start) > 1 && (start[0] == 0) != (start[1] == 0):
		return "text in UTF-16"
	case start[0] < ' ' || start[0] >= 0x7f:
		return "binary data"
	}
	return ""
}

func isEventStream(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(t), TypeEvents)
}

const (
	maxHead = 512
	minHead = 16 // bytes after leading white space that are enough to decide
)

// readHead reads enough to detect the kind of the body into head, which has a capacity above
// maxHead. At the end of the body it returns the bytes and io.EOF.
func readHead(r io.Reader, head []byte, contentType string) ([]byte, error) {
	need := minHead
	if isEventStream(contentType) {
		need = 2 // the second byte shows UTF-16
	}
	for len(head) < maxHead {
		n, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if err != nil {
			return head, err
		}
		start := bytes.TrimLeft(head, "\ufeff \t\r\n")
		if len(start) >= need || bytes.ContainsAny(start, "\r\n") || len(start) > 0 && (start[0] == '{' || start[0] == ':') {
			break
		}
	}
	return head, nil
}
