// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"sync"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
)

// Events reads the event stream of an exchange.
type Events struct {
	x  *Exchange
	rd sse.Reader
	n  int
}

// Events returns the reader of the exchange's stream, which begins with what
// sniffing has read.
func (x *Exchange) Events() *Events {
	e := &x.events
	e.x = x
	e.rd.Reset(x.Body, x.room[:], len(x.head), sse.Options{MaxEvent: x.call.link.MaxEvent})
	x.head = nil
	return e
}

// rooms are for the beginnings of answers, and for the streams that follow.
var rooms = sync.Pool{New: func() any { return new(room) }}

type room [sse.FirstBuffer]byte

// Recycle says that nobody looks at the stream's events any more.
func (x *Exchange) Recycle() {
	if r := x.room; r != nil {
		x.room, x.events.rd = nil, sse.Reader{}
		rooms.Put(r)
	}
}

// Next returns the next event that has data. It holds until the one after it.
// Its data may be [DONE]; see [Done]. The error is final: an [*endpoint.Error]
// that says what broke the stream, also where it just ended.
func (e *Events) Next() (sse.Event, error) {
	for {
		raw, err := e.rd.Next()
		if err != nil || e.x.outer.Err() != nil {
			return raw, e.x.Broken(err)
		}
		if len(raw.Data) > 0 { // otherwise a sign of life
			e.n++
			return raw, nil
		}
	}
}

// Unreadable is the error for an event whose data cannot be read.
func (e *Events) Unreadable(raw sse.Event, err error) *endpoint.Error {
	return e.x.Unreadable(fmt.Sprintf("event %d of the stream", e.n), raw.Data, raw.Unterminated, err)
}

// Done reports the text that some servers send in place of a last event, or
// after it.
func Done(data []byte) bool {
	return data[0] != '{' && bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]"))
}

// Ended reports whether the exchange is over: cancelled, silent, or closed.
func (x *Exchange) Ended() bool { return x.ctx.Err() != nil }

// ReadAll reads the body within the client's limit.
func (x *Exchange) ReadAll() ([]byte, error) {
	limit := cmp.Or(x.call.link.MaxBody, DefaultMaxBody)
	var buf bytes.Buffer
	if n := x.Response.ContentLength; n > 0 {
		buf.Grow(int(min(n, limit, 16<<20)) + bytes.MinRead)
	}
	n, err := io.Copy(&buf, io.LimitReader(x.Body, limit+1))
	switch {
	case err != nil:
		return nil, x.Broken(err)
	case n > limit:
		return nil, x.Fail(&endpoint.Error{Class: endpoint.TooLarge, Message: fmt.Sprintf("the answer is larger than %d bytes", limit)})
	}
	return buf.Bytes(), nil
}
