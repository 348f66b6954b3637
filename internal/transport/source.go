// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"io"
	"net/http"
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

// attach sets the body of a request. Heard is called before each part of it is read, so that a slow
// upload does not look like a silent server.
func (s *Source) attach(r *http.Request, heard func()) {
	r.ContentLength = s.Size
	open := func() (io.ReadCloser, error) { return &sending{s.Open(), s, heard}, nil }
	r.Body, _ = open()
	if !s.Once {
		r.GetBody = open
	}
}

// sending is a body while it is sent.
type sending struct {
	io.ReadCloser
	source *Source
	heard  func()
}

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	s.source.read.Store(true)
	s.heard()
	return s.ReadCloser.Read(p)
}

// unrepeatable returns the error of a request that is not repeated because its body is spent.
func unrepeatable(err error) error {
	e := AsError(err)
	if e.SafeToRetry() || e.Class == endpoint.Auth {
		e.Hint = "it was not tried again, because the content can be read only once; give a reader with a method Seek"
	}
	return err
}
