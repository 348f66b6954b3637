// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"io"
	"net"

	"github.com/antiphon-go/antiphon/item"
)

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// straight makes a dialer's connections send bodies from where they are.
func straight(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return conn{tcp}, err
		}
		return c, err
	}
}

// conn is a connection that bodies are written to from where they are, all of
// one at once. Net/http would take a buffer of 32 KB for each body, and copy the
// history through it piece by piece. Over TLS it does in any case.
type conn struct{ *net.TCPConn }

// ReadFrom has the form of io.ReaderFrom. A body of a known length comes limited
// to that.
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

// body is the body of one request, to be read once or to be taken as a whole.
type body struct {
	io.ReadCloser
	all          item.Body
	begun, taken bool
}

func newBody(b item.Body) *body { return &body{ReadCloser: b.NewReader(), all: b} }

// Read has the form of io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.taken {
		return 0, io.EOF
	}
	b.begun = true
	return b.ReadCloser.Read(p)
}

// take returns all of a body of which nothing was read, if it is of that length
// and in memory. Then there is nothing left to read.
func (b *body) take(length int64) (net.Buffers, bool) {
	if b.begun || b.all.Len() != length {
		return nil, false
	}
	buffers, ok := b.all.Buffers()
	b.taken = ok
	return buffers, ok
}
