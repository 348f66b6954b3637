// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/endpoint"
)

// Source is a request's body that is not JSON, such as an upload. It is read while it is sent.
type Source struct {
	Type string // media type
	Size int64  // in bytes; -1 means unknown
	// Open returns the body from its beginning, for one attempt. It must not be nil.
	Open func() io.ReadCloser
	// Once is set if the body can be read only once.
	Once bool

	read atomic.Bool // a part of the body was read
}

// spent reports whether the body cannot be sent again.
func (s *Source) spent() bool { return s != nil && s.Once && s.read.Load() }

// attach sets the body of a request. Time spent reading the source does not count as silence of the
// server.
func (s *Source) attach(ctx context.Context, r *http.Request, p *pace) {
	r.ContentLength = s.Size
	open := func() (io.ReadCloser, error) {
		return &sending{ReadCloser: s.Open(), ctx: ctx, source: s, pace: p}, nil
	}
	r.Body, _ = open()
	if !s.Once {
		r.GetBody = open
	}
}

// pace tells an idle timer what an upload waits for, until the answer begins.
type pace struct {
	mu    sync.Mutex
	timer *idleTimer
	over  bool
}

// reading says whether the upload waits for its source, and otherwise for the server.
func (p *pace) reading(now bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
	case now:
		p.timer.stop()
	default:
		p.timer.start()
	}
}

func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// sending is a body while it is sent. It is read in a goroutine of its own: net/http waits for a
// read to end before it reports that a request was cancelled, and a read of a pipe may never end.
type sending struct {
	io.ReadCloser
	ctx    context.Context // of the attempt
	source *Source
	pace   *pace
	buf    []byte
	rest   []byte // read, and not yet passed on
	err    error
}

// chunk is the result of a read.
type chunk struct {
	n   int
	err error
}

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	if len(s.rest) == 0 && s.err == nil && len(p) > 0 {
		s.fill()
	}
	n := copy(p, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) > 0 {
		return n, nil
	}
	return n, s.err
}

// fill reads the source, unless the attempt ends before.
func (s *sending) fill() {
	if s.buf == nil {
		s.buf = make([]byte, 32<<10)
	}
	s.source.read.Store(true)
	s.pace.reading(true)
	defer s.pace.reading(false)
	done := make(chan chunk, 1)
	go func() {
		n, err := s.ReadCloser.Read(s.buf)
		done <- chunk{n, err}
	}()
	select {
	case c := <-done:
		s.rest, s.err = s.buf[:c.n], c.err
	case <-s.ctx.Done():
		s.err = context.Cause(s.ctx) // the buffer belongs to the read that has not ended
	}
}

// unrepeatable returns the error of a request that is not repeated because its body is spent.
func unrepeatable(err error) error {
	e := AsError(err)
	if e.SafeToRetry() || e.Class == endpoint.Auth {
		e.Hint = "it was not tried again, because the content can be read only once; give a reader with a method Seek"
	}
	return err
}
