// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// small is the size up to which a body is joined into one string: net/http sends the headers in a
// separate packet before a body of an unknown type. A larger body needs several packets anyway.
const small = 4 << 10

// attach sets the body of a request and its length. A nil b means no body.
func attach(r *http.Request, b item.Body) {
	if b == nil {
		return
	}
	r.ContentLength = b.Len()
	open := func() (io.ReadCloser, error) { return newBody(b), nil }
	if r.ContentLength <= small {
		if joined, err := b.Text(); err == nil { // otherwise the reader will report the error
			open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(joined)), nil }
		}
	}
	r.Body, _ = open()
	r.GetBody = open
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// straight returns a dialer whose connections write bodies without copying them.
func straight(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return conn{tcp}, err
		}
		return c, err
	}
}

// conn is a connection that writes a body from where it is in memory, in one call. Otherwise
// net/http would allocate a buffer of 32 KB for each body and copy the history through it. Over TLS
// it still does.
type conn struct{ *net.TCPConn }

// ReadFrom implements io.ReaderFrom. Net/http wraps a body of known length in an io.LimitedReader.
func (c conn) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok {
		if b, ok := l.R.(*body); ok {
			if buffers, ok := b.take(l.N); ok {
				n, err := buffers.WriteTo(c.TCPConn)
				l.N -= n
				return n, err
			}
		}
	}
	return c.TCPConn.ReadFrom(r)
}

// body is the body of one request. It is either read once or taken as a whole.
type body struct {
	io.ReadCloser
	all          item.Body
	begun, taken bool
}

func newBody(b item.Body) *body { return &body{ReadCloser: b.NewReader(), all: b} }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.taken {
		return 0, io.EOF
	}
	b.begun = true
	return b.ReadCloser.Read(p)
}

// take returns the whole body if nothing was read from it, it has the given length and it is in
// memory. Nothing is left to read then.
func (b *body) take(length int64) (net.Buffers, bool) {
	if b.begun || b.all.Len() != length {
		return nil, false
	}
	buffers, ok := b.all.Buffers()
	b.taken = ok
	return buffers, ok
}
